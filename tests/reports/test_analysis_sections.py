"""What reports say of placements, ancestral states, concordance, genes and dates, and what stands where in pictures."""

import re
from itertools import count

import pytest
from page_reader import SVG, pictures_of, read_page, texts_of
from page_records import (
    GENES,
    MUTATIONS,
    NAMES,
    jplace,
    record_of_ancestors,
    record_of_concordance,
    record_of_dates,
    record_of_placements,
    write,
)

import plltool


def picture_in(html, key):
    """The tree in a section of a page."""
    return pictures_of(re.search(rf'<section id="{key}".*?</section>', html, re.DOTALL)[0])[0]


def row_of(name, picture):
    """Across and down, where the name of a tip begins."""
    (text,) = [own for own in picture.iter(f"{SVG}text") if own.text == name]
    return float(text.get("x")), float(text.get("y"))


def lines_of(picture, colour):
    """(x1, y1, x2, y2, width) of all lines of a colour."""
    found = []
    for path in picture.iter(f"{SVG}path"):
        if path.get("stroke") == colour:
            for piece in re.findall(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)", path.get("d")):
                found.append((*map(float, piece), float(path.get("stroke-width"))))
    return found


def test_placements(tmp_path):
    write(tmp_path / "run.place.json", record_of_placements())
    (tmp_path / "run.jplace").write_text(jplace())
    made = plltool.report(tmp_path / "run")
    for line in (
        "Query sequences placed:                 4",
        "Distinct sequences:                     3",
        "Weight of the best placement:           median 0.750",
        "Queries with a weight of at least 0.95: 1",
        "Branches with a best placement:         3",
    ):
        assert f"\n{line}\n" in made.text
    rows = re.findall(r"^  (.*?)  +(\d)  +(\d)  +(\d\.\d{3})$", made.text, re.MULTILINE)
    expected = [("Pongo … Hylobates (2 taxa)", "5", "1", "1.800"), ("Pan", "1", "2", "1.500"),
                ("Gorilla", "2", "1", "0.500")]  # fmt: skip
    assert rows == expected
    assert re.search(r"^  q2 +Pan  0\.7500 +0\.01000 +-1001\.5000$", made.text, re.MULTILINE)
    assert "Pan [2]" in made.text
    assert "We placed 4 query sequences on the branches of the reference tree" in " ".join(made.text.split())
    assert "- Berger S.A." in made.text
    elements = read_page(made.html)
    assert "</script><b>q3" in texts_of(elements, "th")
    picture = picture_in(made.html, "placements")
    bands = {round(y): width for _, y, _, _, width in lines_of(picture, "#9dbfe0")}
    rows = {name: row_of(name, picture)[1] - 4 for name in NAMES}
    both = (rows["Pongo"] + rows["Hylobates"]) / 2
    assert bands == {round(both): 10, round(rows["Pan"]): 9.1, round(rows["Gorilla"]): 5.3}  # 10 sqrt(sum / 1.8)
    counts = sorted((round(float(own.get("y")) + 4), own.text) for own in picture.iter(f"{SVG}text")
                    if own.get("font-size") == "9" and own.get("text-anchor") == "end")  # fmt: skip
    assert counts == sorted([(round(both), "1"), (round(rows["Pan"]), "2"), (round(rows["Gorilla"]), "1")])


def test_placements_of_another_program_are_shown_without_a_record(tmp_path):
    (tmp_path / "run.jplace").write_text(jplace())
    text = plltool.report(tmp_path / "run").text
    assert "PLACEMENTS" in text
    assert "METHODS" not in text


def test_ancestral_states(tmp_path):
    write(tmp_path / "run.ancestral.json", record_of_ancestors())
    (tmp_path / "run.mutations.tsv").write_text(MUTATIONS)
    made = plltool.report(tmp_path / "run")
    for line in ("Mutations by joint states:           3", "Mutations by marginal states:        3"):
        assert f"\n{line}\n" in made.text
    assert "Branch to: Node3\nMutations: A3C C17T\nNumber:    2\nFrom:      Node2\n" in made.text
    assert made.text.index("Branch to: Node3") < made.text.index("Branch to: Pan")
    drawn = re.search(r"ANCESTRAL STATES.*", made.text, re.DOTALL)[0]
    for label in ("Node2: 0", "Node3: 2", "Pan [1]", "Homo [0]"):
        assert label in drawn
    for source in ("Yang, Kumar & Nei 1995", "Pupko et al. 2000"):
        assert f"({source})" in " ".join(made.text.split())
    assert {"Node2: 0", "Node3: 2"} <= {text.text for text in picture_in(made.html, "ancestors").iter(f"{SVG}text")}


def test_concordance_stands_at_its_branches(tmp_path):
    write(tmp_path / "run.cf.json", record_of_concordance())
    (tmp_path / "run.genes.tsv").write_text(GENES)
    made = plltool.report(tmp_path / "run")
    lines = made.text.splitlines()
    assert re.search(r"1: 75\.0/45\.2┬", made.text)
    row = next(k for k, line in enumerate(lines) if "2: 25.0/-┬" in line)
    assert lines[row].endswith("Hylobates")
    assert lines[row + 1].endswith("Pongo")
    assert re.search(r"^  1 +75\.0 +12 +45\.2$", made.text, re.MULTILINE)
    assert re.search(r"^  2 +25\.0 +8 +-$", made.text, re.MULTILINE)
    assert "sCF_N" not in made.text
    assert "from 12 gene trees and site concordance factors" in " ".join(made.text.split())
    assert "plltool concordance --tree x.nwk" in made.text
    assert "colour" not in re.search(r"CONCORDANCE\n.*", made.text, re.DOTALL)[0], "a page of text has none"
    assert "The colour of a dot shows gCF" in made.html
    circles = picture_in(made.html, "concordance").iter(f"{SVG}circle")
    dots = {own.find(f"{SVG}title").text: own.get("fill") for own in circles}
    assert dots == {"1: 75.0/45.2": "#1b7837", "2: 25.0/-": "#b2182b"}
    plot = re.findall(r"<title>(branch \d), ([\d.]+): ([\d.]+)</title>", made.html)
    assert plot == [("branch 1", "75", "45.25")], "without sCF there is no point"
    assert re.search(r"^  <b>one</b> +5 +60 +20 +-400\.5  HKY\+FU\+G4$", made.text, re.MULTILINE)
    assert "<b>" not in made.html


def test_an_evaluation_in_a_record_of_concordance_tells_of_data_and_model(tmp_path):
    write(tmp_path / "run.cf.json", record_of_concordance() | {"evaluation": record_of_placements()})
    text = plltool.report(tmp_path / "run").text
    for title in ("TREE", "DATA", "MODEL", "CONCORDANCE"):
        assert f"\n{title}\n" in text
    assert "Time of concordance:   1.5 min" in text


def test_a_tree_in_time(tmp_path):
    """Years are in proportion: the axis, the tips, and the bar of the root."""
    write(tmp_path / "run.date.json", record_of_dates())
    html = plltool.report(tmp_path / "run").html
    assert html.index('<section id="dates"') < html.index('<section id="tree"'), "the tree in time comes first"
    picture = picture_in(html, "dates")
    texts = [text for text in picture.iter(f"{SVG}text") if text.get("text-anchor") == "middle"]
    axis = {text.text: float(text.get("x")) for text in texts}
    assert {"1980", "1990", "2000", "2010"} <= set(axis)
    year = (axis["2010"] - axis["1980"]) / 30
    for number, name in enumerate(NAMES):
        assert row_of(name, picture)[0] - 4 == pytest.approx(axis["1990"] + 5 * number * year, abs=0.05)
    ((left, _, right, _, _),) = lines_of(picture, "#9dbfe0")
    assert (left, right) == pytest.approx((axis["1980"] - 2 * year, axis["1980"] + 3.4 * year), abs=0.05)
    assert len(lines_of(picture, "#d0d0d0")) == len(axis)


def test_marks_of_a_large_tree_stay_with_their_branches(tmp_path):
    """Two combs of 150 taxa: clades far from the root are collapsed, queries on branches that are left stay there."""
    edges, combs = count(), []
    for letter in "ab":
        comb = f"{letter}0:1{{{next(edges)}}}"
        for number in range(1, 150):
            comb = f"({letter}{number}:1{{{next(edges)}}},{comb}):1{{{next(edges)}}}"
        combs.append(comb)
    tree = f"({combs[0]},{combs[1]},c:1{{{next(edges)}}});"
    numbers = {name: int(edge) for name, edge in re.findall(r"(\w+):1\{(\d+)\}", tree)}
    chosen = ("a149", "a140", "b149", "b140", "c", "a0", "a1", "b3")
    rows = [{"p": [[numbers[name], -1.0, 1.0, 0.0, 0.1]], "n": [f"on {name}"]} for name in chosen]
    (tmp_path / "run.jplace").write_text(jplace(tree=tree, placements=rows))
    made = plltool.report(tmp_path / "run")
    picture = picture_in(made.html, "placements")
    bands = sorted(round(y) for _, y, _, _, _ in lines_of(picture, "#9dbfe0"))
    names = [text.text for text in picture.iter(f"{SVG}text")]
    collapsed = [next(name for name in names if re.fullmatch(rf"\[\d+ taxa, among them {x}\d+\]", name)) for x in "ab"]
    where = {name: round(row_of(name, picture)[1]) - 4 for name in (*chosen[:5], *collapsed)}
    assert bands == sorted(where.values())
    assert {width for *_, width in lines_of(picture, "#9dbfe0")} == {10.0}, (
        "two queries make no wider band than the widest"
    )
    counts = {round(float(own.get("y")) + 4): own.text for own in picture.iter(f"{SVG}text")
              if own.get("font-size") == "9" and own.get("text-anchor") == "end"}  # fmt: skip
    assert [counts[where[name]] for name in (*chosen[:5], *collapsed)] == ["1"] * 5 + ["2", "1"]
    assert "its smallest clades are collapsed" in made.text


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("mutations.tsv", "Node\tParent\nx\ty\n", "mutations.tsv: line 1: found no column Site, From, To"),
        ("genes.tsv", GENES + "three\t\n", "genes.tsv: line 4: found 2 fields, expected 7"),
        ("cf.json", "{}", "cf.json: not concordance factors of a tree, it lacks kinds"),
        ("jplace", "[]", "jplace: found a JSON list, expected placements"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, name, text, problem):
    write(tmp_path / "run.ancestral.json", record_of_ancestors())
    (tmp_path / f"run.{name}").write_text(text)
    with pytest.raises(plltool.InputError) as error:
        plltool.report(tmp_path / "run")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
