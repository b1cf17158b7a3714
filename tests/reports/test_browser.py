"""Reports in a browser: the script runs under the page's policy, and names do nothing. Skipped without Chromium."""

import itertools
import math
import re
import shutil
import subprocess

import pytest
from page_reader import read_page, texts_of
from page_records import (
    HOSTILE,
    MUTATIONS,
    NAMES,
    jplace,
    quoted_tree,
    record_of_ancestors,
    record_of_concordance,
    record_of_dates,
    record_of_placements,
    record_of_search,
    write,
)

import plltool

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-dev-shm-usage", "--enable-logging=stderr", "--virtual-time-budget=3000",
)  # fmt: skip
SECONDS = 60.0
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")


def open_page(path, folder, *flags):
    """What Chromium prints of a page, and what its console says."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_the_script_draws_the_tree_and_no_name_runs(tmp_path):
    names = (*NAMES, *HOSTILE)
    write(tmp_path / "x.json", record_of_search(names, quoted_tree(names)))
    plltool.report(tmp_path / "x").write()
    dom, console = open_page(tmp_path / "x.html", tmp_path, "--dump-dom")
    assert console == []
    elements = read_page(dom)
    assert not [name for name, _, _ in elements if name in ("img", "iframe")]
    (toolbar,) = [given for _, given, _ in elements if given.get("class") == "toolbar"]
    assert "hidden" not in toolbar, "the script has not run"
    assert [given["data-number"] for name, given, _ in elements if given.get("class") == "hit"], "no tree of the script"
    shown = texts_of(elements, "text")
    assert [shown.count(name) for name in names] == [1] * len(names)


@pytest.mark.parametrize(("width", "is_narrow"), [(600, True), (1200, False)])
def test_a_narrow_window_has_a_tree_that_fits_and_folded_controls(prefix, width, is_narrow):
    plltool.report(prefix).write()
    dom, _ = open_page(prefix.with_name("run.html"), prefix.parent, f"--window-size={width},900", "--dump-dom")
    (toolbar,) = [given for _, given, _ in read_page(dom) if given.get("class") == "toolbar"]
    assert ("open" in toolbar) != is_narrow
    (drawn,) = re.findall(r'class="scroll tree"[^>]*><svg [^>]*width="([0-9.]+)"', dom)
    assert float(drawn) < width if is_narrow else float(drawn) == 980


def test_a_picture_of_the_page(prefix):
    plltool.report(prefix).write()
    picture = prefix.with_name("page.png")
    _, console = open_page(prefix.with_name("run.html"), prefix.parent, f"--screenshot={picture}")
    assert console == []
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_script_draws_marks_and_years_as_they_stood_there(tmp_path):
    """Where no clade is collapsed and nothing is turned, the script draws the same picture."""
    write(tmp_path / "x.place.json", record_of_placements())
    (tmp_path / "x.jplace").write_text(jplace())
    write(tmp_path / "x.ancestral.json", record_of_ancestors())
    (tmp_path / "x.mutations.tsv").write_text(MUTATIONS)
    write(tmp_path / "x.cf.json", record_of_concordance())
    write(tmp_path / "x.date.json", record_of_dates())
    made = plltool.report(tmp_path / "x")
    made.write()
    dom, console = open_page(tmp_path / "x.html", tmp_path, "--dump-dom")
    assert console == []
    for key, is_free in (("placements", True), ("ancestors", False), ("concordance", True), ("dates", False)):
        before, after = (
            re.search(rf'<section id="{key}".*?</section>', html, re.DOTALL)[0] for html in (made.html, dom)
        )
        assert 'class="hit"' in after, f"no tree of the script in {key}"
        assert texts_in(after) == texts_in(before)
        assert bands_in(after) == bands_in(before)
        assert {dot for dot in dots_in(after) if dot != "#666666"} == set(dots_in(before))
        assert re.search(r'<fieldset class="moves-root"( hidden="")?>', after)[1] == (None if is_free else ' hidden=""')


def tree_in(section):
    """The picture of the tree, which comes before plots."""
    return re.search("<svg.*?</svg>", section, re.DOTALL)[0]


def texts_in(section):
    """What is written where, to the point."""
    found = []
    for attributes, text in re.findall(r"<text ([^>]*)>([^<]*)</text>", tree_in(section)):
        x, y = (float(re.search(rf'{name}="([-\d.]+)"', attributes)[1]) for name in "xy")
        found.append((text, round(x), round(y)))
    return sorted(found)


def bands_in(section):
    """The widths of what lies behind branches, and of bars over years."""
    paths = re.findall(r'<path [^>]*stroke="#9dbfe0" stroke-width="([\d.]+)"', tree_in(section))
    return sorted(map(float, paths))


def dots_in(section):
    return re.findall(r'<circle [^>]*fill="(#\w+)"', tree_in(section))


def drawn_tree(folder, tree, names, layout):
    """The tree of a page as the script draws it in a layout."""
    write(folder / "x.json", record_of_search(names, tree))
    plltool.report(folder / "x").write()
    page = folder / "x.html"
    html = page.read_text().replace(" checked", "", 1).replace(f'value="{layout}"', f'value="{layout}" checked', 1)
    page.write_text(html)
    dom, _ = open_page(page, folder, "--window-size=1200,900", "--dump-dom")
    return re.search(r'<div class="scroll tree".*?</svg>', dom, re.DOTALL)[0]


def test_a_support_of_a_short_branch_crosses_no_line(tmp_path):
    tree = "(Homo:0.1,(Pan:0.2,Gorilla:0.2)99.9/98.5:0.01,((Pongo:0.3,Hylobates:0.3)91/90.5:0.02,Macaca:0.3)88/77:0.2);"
    drawn = drawn_tree(tmp_path, tree, (*NAMES, "Macaca"), "rectangular")
    number = r"([-\d.]+)"
    across = [tuple(map(float, found)) for found in re.findall(rf'd="M{number} {number}H{number}" fill', drawn)]
    down = [tuple(map(float, found)) for found in re.findall(rf'd="M{number} {number}V{number}" fill', drawn)]
    texts = re.findall(
        rf'<text (text-anchor="end" )?x="{number}" y="{number}" font-size="9"[^>]*>([\d./]+)</text>', drawn
    )
    supports = [found for found in texts if "/" in found[3]]
    assert sorted(text for *_, text in supports) == ["88/77", "91/90.5", "99.9/98.5"]
    assert (len(across), len(down)) == (2 * 9, 4)  # each branch and where it may be clicked; four nodes
    for is_end, x, y, text in supports:
        wide, bottom = 4.5 * len(text), float(y)  # a digit is 0.5 to 0.56 of its height wide in every sans-serif font
        left = float(x) - wide if is_end else float(x)
        assert not [
            line for line in across if bottom - 6 < line[1] < bottom and line[0] < left + wide and line[2] > left
        ]
        assert not [line for line in down if left < line[0] < left + wide and line[1] < bottom and line[2] > bottom - 6]


def test_the_mark_of_a_tip_is_not_written_on_its_name(tmp_path):
    record = record_of_ancestors()
    record["ancestors"]["tree"] = (
        "(Homo:0.1,(Gorilla:0.1,(Pongo:0.3,Hylobates:0.1)Node3:0.05)Node2:0.15,Pan:0.005)Node1;"
    )
    write(tmp_path / "x.ancestral.json", record)
    (tmp_path / "x.mutations.tsv").write_text(MUTATIONS)
    plltool.report(tmp_path / "x").write()
    dom, _ = open_page(tmp_path / "x.html", tmp_path, "--window-size=1200,900", "--dump-dom")
    section = re.search(r'<section id="ancestors".*?</section>', dom, re.DOTALL)[0]
    places = {text: (x, y) for text, x, y in texts_in(section)}
    digits = [y for text, (x, y) in places.items() if text == "1" and abs(x - places["Pan"][0]) < 40]
    assert digits
    assert all(abs(y - places["Pan"][1]) > 4 for y in digits)


def test_names_of_a_tree_without_a_root_stand_apart(tmp_path):
    names = [f"a_rather_long_name_{number}" for number in range(24)]
    tree = "(" + ",".join(f"({a}:0.001,{b}:0.001):0.2" for a, b in zip(names[::2], names[1::2], strict=True)) + ");"
    drawn = drawn_tree(tmp_path, tree, names, "unrooted")
    found = re.findall(
        r'<text x="([-\d.]+)" y="([-\d.]+)" font-size="12" fill="#111111"( text-anchor="end")? '
        r'transform="rotate\(([-\d.]+) ([-\d.]+) ([-\d.]+)\)"[^>]*>(\w+)<', drawn,
    )  # fmt: skip
    assert sorted(text for *_, text in found) == sorted(names)
    axes = []
    for x, _, is_end, angle, centre_x, centre_y, text in found:
        turn = math.radians(float(angle))
        start = float(x) - float(centre_x)
        steps = [start + (-1 if is_end else 1) * 6.0 * step for step in range(len(text))]
        axes.append([(float(centre_x) + s * math.cos(turn), float(centre_y) + s * math.sin(turn)) for s in steps])
    for first, second in itertools.combinations(axes, 2):
        assert min(math.dist(a, b) for a in first for b in second) > 7.0  # letters without ascenders are 6.3 high
