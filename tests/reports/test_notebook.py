"""Results in notebooks: static HTML in which no name is code, tables for pandas, and a progress bar."""

import io
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from functools import cache

import numpy as np
import pytest
from page_reader import columns_of, pictures_of, read_page, texts_of
from page_records import HOSTILE

import plltool
from plltool.constants import ABAYES, FBP
from plltool.progress import Progress
from plltool.reports.shown import Shown

ROWS = {"a": "ACGTACGTAA", "b": "ACGTACGTAC", "c": "ACGAACGAAG", "d": "TCGAACTAAG", "e": "TCGAACTACG"}
BINARY = {"a": "0101101001", "b": "0101101011", "c": "0111001000", "d": "1111001000", "e": "1111001100"}
TREE = "((a:0.1,b:0.1):0.1,c:0.1,(d:0.1,e:0.1):0.1);"
OTHER_TREE = "((a:0.1,c:0.1):0.1,b:0.1,(d:0.1,e:0.1):0.1);"
DATES = {"a": 2001.0, "b": 2002.5, "c": 2000.0, "d": 2004.0, "e": 2003.0}
QUICK = {"device": "numpy"}
QUERIES = ">q\nACGTACGTAC\n>r\nTCGAACTACG\n"
CPU = plltool.Hardware("numpy")


@cache
def search():
    return plltool.search(ROWS, "JC", effort="fast", starts=2, site_lnl=True, workers=1, **QUICK)


def place(folder):
    (folder / "q.fasta").write_text(QUERIES)
    return plltool.place(ROWS, TREE, folder / "q.fasta", "JC", **QUICK)


RESULTS = {  # how each is made, and how many rows its table has; None if the test below says
    "search": (lambda at: search(), 2),
    "evaluate": (lambda at: plltool.evaluate(ROWS, TREE, "JC", site_lnl=True, site_rates=True, **QUICK), 10),
    "alrt": (lambda at: plltool.alrt(ROWS, TREE, "JC", replicates=10, **QUICK), 2),
    "topology_tests": (lambda at: plltool.topology_tests(ROWS, [TREE, OTHER_TREE], "JC", replicates=10, **QUICK), 2),
    "ancestral_states": (lambda at: plltool.ancestral_states(ROWS, TREE, "JC", **QUICK), None),
    "place": (place, None),
    "date": (lambda at: plltool.date(ROWS, TREE, DATES, "JC", clock_rate=0.01, fixed=True, **QUICK), None),
    "supports": (lambda at: plltool.supports(TREE, [TREE, OTHER_TREE], ("fbp", "tbe")), 2),
    "search_supports": (lambda at: plltool.search_supports(search(), (ABAYES,), **QUICK), 2),
    "bootstrap": (lambda at: plltool.bootstrap(ROWS, "JC", replicates=3, tree=TREE, workers=1, **QUICK), 3),
    "concordance": (lambda at: plltool.concordance(TREE, [TREE, OTHER_TREE]), 2),
    "genes": (lambda at: plltool.genes({"g": ROWS, "h": ROWS}, "JC", workers=1, **QUICK), 2),
    "select_model": (lambda at: plltool.select_model(BINARY, free_rates=False, **QUICK), None),
    "select_scheme": (lambda at: plltool.select_scheme(BINARY, "BIN, all = 1-.", free_rates=False, **QUICK), 1),
    "sample": (lambda at: plltool.sample(ROWS, "JC", options=plltool.SampleOptions(9, sample_every=3), **QUICK), None),
    "marginal_likelihood": (
        lambda at: plltool.marginal_likelihood(
            ROWS, "JC", options=plltool.StoneOptions(60, steps=2, sample_every=2), **QUICK
        ),
        3,
    ),
    "compare": (lambda at: plltool.compare(ROWS, CPU, CPU, model="JC"), None),
    "compare_likelihoods": (
        lambda at: plltool.compare_likelihoods(ROWS, TREE, {"a": CPU, "b": CPU, "c": CPU}, model="JC"),
        3,
    ),
}
HAVE_NO_TREE = ("marginal_likelihood", "select_model", "select_scheme", "compare", "compare_likelihoods")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("notebook")


@cache
def make(name, folder):
    return RESULTS[name][0](folder)


@pytest.mark.parametrize("name", RESULTS)
def test_what_a_notebook_shows(name, folder):
    result = make(name, folder)
    html = result._repr_html_()
    ElementTree.fromstring(html)  # well-formed
    elements = read_page(html)
    tags = [tag for tag, _, _ in elements]
    assert not {"script", "img", "iframe", "link", "object"} & set(tags)
    assert "http" not in html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert texts_of(elements, "p")[0] == repr(result).strip("<>")
    assert tags.count("svg") == (name not in HAVE_NO_TREE)
    if name not in HAVE_NO_TREE:
        tips = [text for text in texts_of(elements, "text") if text in ROWS]
        assert sorted(tips) == sorted(ROWS)
        assert "#333" not in html, "colours that do not change with the page"
    frame = result.to_dataframe()
    assert texts_of(elements, "th")[: len(frame.columns)] == list(frame.columns)
    assert tags.count("tr") == 1 + min(len(frame), 12)
    assert RESULTS[name][1] in (None, len(frame))


def test_every_result_with_a_table_is_shown(folder):
    """So that a new one is not forgotten."""
    classes = {own for name in plltool.__all__ if isinstance(own := getattr(plltool, name), type)}
    assert {own for own in classes if hasattr(own, "texts")} <= {own for own in classes if issubclass(own, Shown)}
    assert {own for own in classes if issubclass(own, Shown)} == {type(make(name, folder)) for name in RESULTS}


def frame_of(name, folder):
    return make(name, folder), make(name, folder).to_dataframe()


def test_tables_of_sites(folder):
    result, frame = frame_of("evaluate", folder)
    assert list(frame.site) == list(range(1, 11))
    assert frame.lnl.sum() == pytest.approx(result.lnl, abs=1e-9), "the alignment's lnL is the sum over its sites"
    assert np.array_equal(frame.rate, result.site_rates)


def test_tables_of_searches(folder):
    result, frame = frame_of("search", folder)
    assert frame.lnl.max() == pytest.approx(result.lnl, abs=1e-6)
    assert list(frame.distance) == list(result.start_distances)
    _, frame = frame_of("bootstrap", folder)
    assert list(frame.lnl) == list(make("bootstrap", folder).lnls)


def test_tables_of_branches(folder):
    _, frame = frame_of("supports", folder)
    by_taxa = dict(zip(frame.taxa, frame[FBP], strict=True))
    assert by_taxa == {("a", "b"): 50.0, ("d", "e"): 100.0}, "one of two trees has (a, b), both have (d, e)"
    assert list(frame.length) == [0.1, 0.1]
    _, frame = frame_of("concordance", folder)
    assert sorted(frame.gCF) == [50.0, 100.0]
    assert list(frame.gN) == [2, 2]


def test_tables_of_tests_and_places(folder):
    result, frame = frame_of("topology_tests", folder)
    assert np.array_equal(frame.au, result.tests.au, equal_nan=True)
    assert frame.delta.min() == 0.0
    result, frame = frame_of("place", folder)
    assert set(frame["query"]) == {"q", "r"}
    best = frame[frame.place == 1].set_index("query")
    ends = {name: result.tree.ends[branch] for name, branch in best.branch.items()}
    assert result.tree.names.index("b") in ends["q"], "q is b's sequence"
    assert result.tree.names.index("e") in ends["r"], "r is e's sequence"


def test_a_tree(folder):
    tree = search().tree
    elements = read_page(tree._repr_html_())
    assert sorted(text for text in texts_of(elements, "text") if text in ROWS) == sorted(ROWS)
    assert tree.draw()._repr_html_() == tree._repr_html_()
    assert "currentColor" in tree._repr_html_()
    assert "currentColor" not in tree.draw().svg(), "which other programs read"


def test_hostile_names():
    names = HOSTILE[:5]
    rows = dict(zip(names, ROWS.values(), strict=True))
    html = plltool.search(rows, "JC", effort="fast", **QUICK)._repr_html_()
    elements = read_page(html)
    assert not {"script", "img", "iframe", "b"} & {tag for tag, _, _ in elements}
    assert set(texts_of(elements, "text")) >= set(names)


def test_large_trees_are_collapsed():
    names = [f"t{k:03}" for k in range(300)]
    comb = names[0]
    for name in names[1:-2]:
        comb = f"({comb}:0.1,{name}:0.1)"
    newick = f"({comb}:0.1,{names[-2]}:0.1,{names[-1]}:0.1);"
    html = plltool.supports(newick, [newick])._repr_html_()
    assert len(html) < 200_000
    assert "clades are collapsed" in html
    assert "The first 12 of 297 rows of to_dataframe()" in html
    assert html.count("<tr>") == 1 + 12


def test_no_table():
    result = plltool.evaluate(ROWS, TREE, "JC", **QUICK)
    assert "<table>" not in result._repr_html_()
    with pytest.raises(plltool.InputError, match=r"^table of EvaluationResult: found no lnL and no rates of sites, "):
        result.to_dataframe()


@pytest.mark.parametrize(
    ("package", "work"), [("pandas", lambda: search().to_dataframe()), ("tqdm.auto", plltool.ProgressBar)]
)
def test_without_the_extra(monkeypatch, package, work):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(plltool.InputError, match=r"needs \w+: pip install 'plltool\[notebook\]'$"):
        work()


def test_extras_are_imported_when_they_are_asked_for():
    code = (
        "import plltool, sys; plltool.search, plltool.ProgressBar, plltool.Supports;"
        "print({'pandas', 'tqdm', 'IPython', 'plltool.reports.sections'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# --- the progress bar ------------------------------------------------------------------------------------------------


def test_the_bar_follows_a_search():
    stream = io.StringIO()
    with plltool.ProgressBar(file=stream, ncols=100) as bar:
        bar(Progress("start", 1, -10.0, 0, 0, 1.0))
        assert "start, round 1, lnL -10.000" in stream.getvalue()
        assert "%" not in stream.getvalue(), "nobody knows how long it takes"
        bar(Progress("spr", 2, -9.0, 3, 5, 30.0, stage_left=0.0, left=90.0))
    shown = stream.getvalue()
    assert " 25 %|" in shown, "30 of 120 seconds"
    assert "spr radius 5, round 2, lnL -9.000, about 01:30 left" in shown
    assert "100 %|" in shown.splitlines()[-1] or "100 %|" in shown.rpartition("\r")[2]


def test_the_bar_stays_where_a_run_fails():
    stream = io.StringIO()

    def fail():
        with plltool.ProgressBar(file=stream) as bar:
            bar(Progress("nni", 1, -9.0, 0, 1, 1.0, stage_left=0.0, left=1.0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "100 %" not in stream.getvalue()


def test_the_bar_as_a_listener():
    stream = io.StringIO()
    with plltool.ProgressBar(file=stream) as bar:
        found = plltool.search(ROWS, "JC", effort="fast", listener=bar, **QUICK)
    assert f"lnL {found.lnl:.3f}" in stream.getvalue()


def test_a_dated_tree_has_an_axis_of_years(folder):
    """As on its page: tips stand where their dates are."""
    across = columns_of(pictures_of(make("date", folder)._repr_html_())[0])
    first, *_, last = sorted((text for text in across if text not in ROWS), key=float)
    year = (across[last] - across[first]) / (float(last) - float(first))
    assert across["d"] - across["c"] == pytest.approx((DATES["d"] - DATES["c"]) * year, rel=1e-3)
