"""Trees drawn with characters, as SVG and as PDF: what stands where, and what hostile names do."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from page_reader import SVG, columns_of

import plltool
from plltool.io.newick import parse_nodes
from plltool.reports.picture import (
    Mark,
    drawn_lengths,
    equal_angles,
    is_support,
    nice_length,
    node_rows,
    support_colour,
)

TREE = "((A:1,B:2)97:1,(C:1,(D:1,E:2)80:1)0.5:2);"


def test_characters_in_proportion():
    drawn = plltool.show("((A:10,B:20):10,C:40);").text(width=42, labels=False)
    assert drawn.splitlines() == [
        "┌─────────┬───────── A",
        "│         └─────────────────── B",
        "└─────────────────────────────────────── C",
        "",
        "├─────────┤ 10",
    ]


def test_labels_stand_on_their_branches():
    drawn = plltool.show(TREE).text(width=40)
    assert drawn.splitlines()[:5] == [
        "┌─────97┬─────── A",
        "│       └────────────── B",
        "└───────────0.5┬─────── C",
        "               └─────80┬─────── D",
        "                       └────────────── E",
    ]


def test_branches_are_as_long_as_their_labels():
    drawn = plltool.show("((A:9,B:9)100/0.99:0.001,C:9);").text(width=30)
    assert drawn.splitlines()[0].startswith("┌100/0.99┬───")


def test_ascii_lines():
    drawn = plltool.show("((A,B),(C,D));").text(width=12, ascii_only=True)
    assert drawn.splitlines() == ["+----+---- A", "|    +---- B", "+----+---- C", "     +---- D"]


@pytest.mark.parametrize("width", [30, 80, 300])
def test_a_drawing_fits_its_width_where_there_is_room(width):
    rng = np.random.default_rng(5)
    parts = [f"taxon{i}:{rng.exponential():.3f}" for i in range(25)]
    while len(parts) > 2:
        a, b = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(f"({a},{b}):{rng.exponential():.3f}")
    lines = plltool.show(f"({','.join(parts)});").text(width).splitlines()
    assert max(map(len, lines)) <= max(width, 8 + 1 + 25)
    assert max(map(len, lines)) >= width - 2 or width < 40
    assert sorted(re.findall(r"taxon\d+", "\n".join(lines))) == sorted(f"taxon{i}" for i in range(25))


def test_ladderize_puts_small_clades_first():
    names = re.findall(r" ([A-E])$", plltool.show("(((A,B),C),D,E);", ladderize=True).text(), re.MULTILINE)
    assert names == ["D", "E", "C", "A", "B"]


def test_rows_and_depths():
    nodes = parse_nodes(TREE, "test")
    assert node_rows(nodes).tolist() == [1.625, 0.5, 0, 1, 2.75, 2, 3.5, 3, 4]
    assert drawn_lengths(parse_nodes("((A,B),C);", "test"))[0].tolist() == [0, 1, 1, 1, 1]
    assert drawn_lengths(parse_nodes("((A:2,B),C);", "test"))[0].tolist() == [0, 0, 2, 0, 0]


def test_unrooted_branches_keep_their_lengths_and_do_not_cross():
    nodes = parse_nodes(TREE, "test")
    lengths, _ = drawn_lengths(nodes)
    points, _ = equal_angles(nodes, lengths)
    drawn = np.linalg.norm(points[1:] - points[nodes.parents[1:]], axis=1)
    np.testing.assert_allclose(drawn, lengths[1:], rtol=1e-12)
    branches = [(points[parent], points[node]) for node, parent in enumerate(nodes.parents[1:], start=1)]
    for k, (a, b) in enumerate(branches):
        for c, d in branches[:k]:
            if not any(np.allclose(p, q) for p in (a, b) for q in (c, d)):
                turns = [_turn(a, b, c) * _turn(a, b, d), _turn(c, d, a) * _turn(c, d, b)]
                assert max(turns) > 0, "two branches cross"


def test_each_tip_of_a_star_has_a_sector_of_its_own():
    nodes = parse_nodes("(A:1,B:2,C:3,D:4);", "test")
    _, directions = equal_angles(nodes, drawn_lengths(nodes)[0])
    assert np.degrees(directions[1:]).tolist() == [45, 135, 225, 315]


def _turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


@pytest.mark.parametrize("unrooted", [False, True])
def test_svg_holds_every_name_and_support(unrooted):
    root = ET.fromstring(plltool.show(TREE).svg(unrooted=unrooted))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert set(texts) >= {"A", "B", "C", "D", "E", "97", "80", "0.5"}
    assert [element.find(f"{SVG}title").text for element in root.iter(f"{SVG}circle")] == ["97", "0.5", "80"]
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter(f"{SVG}text"):
        assert 0 <= float(element.get("x")) <= width
        assert 0 <= float(element.get("y")) <= height


def test_an_axis_of_years():
    """Lengths are years: tips and nodes stand where the axis has their years, at any width."""
    drawn = plltool.show("((A:10,B:20)1:10,C:40);", latest=2010)
    for width in (400, 900):
        root = ET.fromstring(drawn.svg(width=width))
        texts = columns_of(root)
        year = (texts["2010"] - texts["1970"]) / 40
        assert [texts[name] - 4 for name in "ABC"] == pytest.approx(
            [texts["1970"] + years * year for years in (20, 30, 40)], abs=0.05
        )
        assert "10" not in texts, "a scale bar beside the axis"


@pytest.mark.parametrize("key", ["height_range", "height_95%_HPD", "age_95%HPD"])
@pytest.mark.parametrize("ladderize", [False, True])
def test_intervals_of_nodes_are_bars(key, ladderize):
    """Heights of 15 to 25 years before 2010 are 1985 to 1995; the tip further down has none."""
    text = f"(((D:2,E:2):8,(A:10,B:10):0)[&{key}={{15,25}}]:10,C:40);"
    root = ET.fromstring(plltool.show(text, latest=2010, ladderize=ladderize).svg())
    texts = columns_of(root)
    bars = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("stroke") == "#9dbfe0"]
    assert len(bars) == 1
    left, right = (float(x) for x in re.findall(r"[ML]([0-9.]+)", bars[0]))
    year = (texts["2010"] - texts["1970"]) / 40
    assert (left, right) == pytest.approx((texts["1970"] + 15 * year, texts["1970"] + 25 * year), abs=0.06)


@pytest.mark.parametrize(("tree", "latest"), [("((A,B),C);", 2000.0), ("((A:1,B:1):1,C:2);", float("nan"))])
def test_trees_that_cannot_be_drawn_in_time(tree, latest):
    with pytest.raises(plltool.InputError, match=r"latest: found .*, expected a year, and a tree with lengths"):
        plltool.show(tree, latest=latest)


def test_bands_and_marks_of_tips():
    nodes = parse_nodes("((A:1,B:1):1,C:2);", "test")
    marks = [Mark(), Mark("3", band=5.0), *[Mark()] * 2, Mark("2", "#1b7837", 2.5)]
    drawing = plltool.TreeDrawing(nodes, tuple(marks))
    for unrooted in (False, True):
        root = ET.fromstring(drawing.svg(unrooted=unrooted))
        bands = [path for path in root.iter(f"{SVG}path") if path.get("stroke") == "#9dbfe0"]
        assert sorted(path.get("stroke-width") for path in bands) == ["2.5", "5"]
        assert {path.get("stroke-linecap") for path in bands} == {"butt"}
        assert list(root.iter(f"{SVG}path"))[-1].get("stroke") == "#333333", "bands are behind the tree"
        assert [own.get("fill") for own in root.iter(f"{SVG}circle")] == ["#1b7837"]
    assert "C [2]" in drawing.text()
    assert "3┬" in drawing.text()


def test_hostile_names_are_text():
    name = "</text><script>alert(1)</script>&\x01\ud800"
    drawing = plltool.show("(A:1,B:1,C:1);").nodes
    drawing.labels[1] = name
    root = ET.fromstring(plltool.TreeDrawing(drawing).svg())
    assert "</text><script>alert(1)</script>&\ufffd\ufffd" in [element.text for element in root.iter(f"{SVG}text")]
    assert not list(root.iter(f"{SVG}script"))


@pytest.mark.parametrize(
    ("label", "colour"),
    [("97", "#1b7837"), ("95", "#1b7837"), ("94.9", "#b8860b"), ("0.80", "#b8860b"), ("0.3/99", "#b2182b"),
     ("1.000", "#1b7837"), ("1", "#b2182b"), ("n5", None)],
)  # fmt: skip
def test_colours_of_supports(label, colour):
    assert support_colour(label) == colour


@pytest.mark.parametrize(("about", "length"), [(0.034, 0.02), (0.05, 0.05), (1.0, 1.0), (9.99, 5.0), (1234, 1000)])
def test_scale_bars_are_round(about, length):
    assert nice_length(about) == pytest.approx(length)


def test_pdf_and_png():
    pytest.importorskip("matplotlib")
    assert plltool.show("((A:10,B:20):10,C:40);", latest=2010).pdf().startswith(b"%PDF")
    drawing = plltool.show("((Ä:1,'$x^2$':2)97:1,C:1);")
    pdf, png = drawing.pdf(), drawing.png(width=200)
    assert pdf.startswith(b"%PDF")
    assert pdf == drawing.pdf()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 600  # the width in its header, at 3 pixels a point


def test_names_of_nodes_are_no_supports():
    tree = "(((A:1,B:1)Node2:1,C:1)98.5/0.97:1,D:1)Node1;"
    plain, named = (plltool.show(tree, node_names=own) for own in (False, True))
    assert "98.5/0.97" in plain.text(60)
    assert "98.5/0.97" in named.text(60)
    assert "Node2" in named.text(60)
    assert "Node" not in plain.text(60) + plain.svg()


@pytest.mark.parametrize(
    ("label", "expected"),
    [("", True), ("97", True), ("97.5/0.9", True), ("1e-05", True), ("-0.2/nan", True), ("100/-", True), ("98%", True),
     ("Node7", False), ("n5", False), ("12S", False), ("95/x", False), ("nanus", False)],
)  # fmt: skip
def test_supports_are_numbers(label, expected):
    assert is_support(label) is expected


def test_trees_draw_themselves(tmp_path):
    path = tmp_path / "tree.nwk"
    path.write_text("(A:1,B:1,(C:1,D:1):1);")
    tree = plltool.read_tree(path)
    assert str(tree.draw()) == plltool.show("(A:1,B:1,(C:1,D:1):1);").text()
    assert tree.draw()._repr_svg_().startswith("<svg")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"root": "middle"}, "the tree given: root: found 'middle', expected one of: midpoint, mad, outgroup"),
        ({"root": "outgroup"}, "the tree given: root: found 'outgroup' without an outgroup"),
        ({"root": "mad", "outgroup": "A"}, "the tree given: root: found 'mad' and an outgroup"),
        ({"outgroup": "A,C"}, "the tree given: the outgroup of 2 taxa is not one clade"),
    ],
)
def test_bad_roots(settings, problem):
    with pytest.raises(plltool.InputError, match=f"^{re.escape(problem)}"):
        plltool.show(TREE, **settings)


def test_a_tree_of_one_taxon_is_refused(tmp_path):
    path = tmp_path / "one.nwk"
    path.write_text("(A);")
    with pytest.raises(plltool.InputError, match=r"one.nwk: found a tree of fewer than 2 taxa"):
        plltool.show(path)


def test_names_of_an_unrooted_tree_do_not_begin_in_each_other():
    """Where tips almost meet, as A and B do; letters are 12 points high."""
    text = "((A:0.001,B:0.001):1,(C:1,D:1):1,(E:1,F:1):1);"
    root = ET.fromstring(plltool.show(text).svg(unrooted=True))
    places = {own.text: (float(own.get("x")), float(own.get("y"))) for own in root.iter(f"{SVG}text")}
    names = [places[name] for name in "ABCDEF"]
    apart = [math.dist(one, other) for k, one in enumerate(names) for other in names[:k]]
    assert min(apart) >= 12
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(0 < x < width and 0 < y < height for x, y in names)
