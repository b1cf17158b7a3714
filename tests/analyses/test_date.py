"""Trees in time: recovered from simulated data, equal to those of the treetime command, read by other programs."""

import io
import math
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import dendropy
import numpy as np
import pytest
from scipy.linalg import expm
from tree_samples import sides_of_root

import plltool
from plltool.analyses.dating import treetime as dating
from plltool.errors import InputError
from plltool.io.table_reader import match_dates, read_dates
from plltool.run.inputs import resolve_inputs

treetime = pytest.importorskip("treetime", reason="TreeTime is not installed: pip install plltool[dating]")
phylo = pytest.importorskip("Bio.Phylo")

DATA = Path(__file__).resolve().parents[2] / "data"
FASTA, DATES, TRUE_TREE = DATA / "dated.fasta", DATA / "dated.tsv", DATA / "dated.nwk"
RATE, ROOT = 0.004, 1980.27  # of the simulation
QUICK = {"device": "numpy"}
MODEL = "HKY{5.0}+FU{0.30/0.20/0.22/0.28}"
SOME = ("v01", "v02", "v05", "v08", "v11", "v14", "v17", "v20", "v23")  # taxa: with nine TreeTime is quick
LENGTHS = {"lengths": "input", "fixed": True}


@cache
def some_taxa():
    """Sequences and dates of some taxa, and the true tree in substitutions."""
    data = plltool.read_alignment(FASTA)
    rows = {name: row.decode() for name, row in zip(data.names, data.rows, strict=True) if name in SOME}
    tree = dendropy.Tree.get(path=TRUE_TREE, schema="newick")
    tree.retain_taxa_with_labels(SOME)
    tree.scale_edges(RATE)
    dates = {row.name: tuple(row.date) for row in read_dates(DATES) if row.name in SOME}
    return rows, tree.as_string("newick", suppress_rooting=True), dates


def date_some(dates=None, model=MODEL, **settings):
    rows, tree, known = some_taxa()
    return plltool.date(rows, tree, dates or known, model, **LENGTHS | settings, **QUICK)


@pytest.fixture(scope="module")
def strict():
    """The tree of some taxa under a strict clock."""
    return date_some()


def test_a_strict_clock_is_recovered():
    """Intervals of 90 %, of one seed: TreeTime's regression, and its dates, hold the truth."""
    result = plltool.date(FASTA, TRUE_TREE, DATES, MODEL, **QUICK)  # the true tree and model
    clock = result.dated.clock
    assert clock.interval[0] < RATE < clock.interval[1]
    assert clock.rate == pytest.approx(RATE, rel=0.2)
    assert result.root.interval[0] < ROOT < result.root.interval[1]
    assert result.root.year == pytest.approx(ROOT, abs=2.0)
    assert result.dated.lengths == "joint"
    truth = {row.name: row.date.first for row in read_dates(DATES)}
    assert {node.name: node.year for node in result.dated.dates if node.name in truth} == pytest.approx(truth, abs=1e-4)


def test_what_is_written_agrees_with_itself(strict):
    """Lengths are differences of dates; the table of tips has the distances of the regression."""
    result = strict
    tree = dendropy.Tree.get(data=result.dated_newick, schema="newick", preserve_underscores=True)
    years = {node.name: node.year for node in result.dated.dates}
    for node in tree.preorder_node_iter():
        if node.parent_node is not None:
            own = node.taxon.label if node.taxon else node.label
            assert node.edge.length == pytest.approx(years[own] - years[node.parent_node.label], abs=1e-9)
    rows = [line.split("\t") for line in result.format_regression().splitlines()[1:]]
    assert {row[0] for row in rows} == set(result.tree.names)
    slope, _ = np.polyfit([float(row[1]) for row in rows], [float(row[2]) for row in rows], 1)
    assert slope == pytest.approx(result.dated.clock.rate, rel=0.15), "the clock also weighs shared ancestry"
    table = [line.split("\t") for line in result.format_dates().splitlines()]
    assert [len(row) for row in table] == [7] * (1 + len(years))


def test_nexus_is_read_by_others(strict):
    result = strict
    tree = dendropy.Tree.get(data=result.dated_nexus(), schema="nexus", extract_comment_metadata=True)
    assert tree.is_rooted
    found = {
        (node.taxon.label if node.taxon else node.label): node.annotations.values_as_dict()
        for node in tree.preorder_node_iter()
    }
    last = max(node.year for node in result.dated.dates)
    for node in result.dated.dates:
        own = found[node.name]
        assert float(own["year"]) == pytest.approx(node.year, abs=1e-4)
        assert float(own["height"]) == pytest.approx(last - node.year, abs=1e-4)
        assert [float(end) for end in own["height_range"]] == pytest.approx(
            [last - node.interval[1], last - node.interval[0]], abs=1e-4
        )
    other = phylo.read(io.StringIO(result.dated_nexus()), "nexus")
    assert sorted(tip.name for tip in other.get_terminals()) == sorted(result.tree.names)


@pytest.mark.slow
def test_the_treetime_command_finds_the_same(strict, tmp_path):
    """Given the lengths alone, so that both have the same input."""
    (_, tree, dates), result = some_taxa(), strict
    assert result.dated.lengths == "input"
    (tmp_path / "tree.nwk").write_text(tree)
    table = "".join(f"{name},{first!r}\n" for name, (first, _) in dates.items())
    (tmp_path / "dates.csv").write_text("name,date\n" + table)
    command = [sys.executable, "-m", "treetime", "--tree", "tree.nwk", "--dates", "dates.csv"]
    command += ["--sequence-length", "800", "--branch-length-mode", "input", "--covariation", "--confidence"]
    subprocess.run([*command, "--outdir", "out"], cwd=tmp_path, check=True, capture_output=True)
    rate = re.search(r"--rate:\s+(\S+)", (tmp_path / "out" / "molecular_clock.txt").read_text())
    assert float(rate[1]) == pytest.approx(result.dated.clock.rate, rel=5e-4), "it prints four digits"
    rows = [line.split("\t") for line in (tmp_path / "out" / "dates.tsv").read_text().splitlines()[2:]]
    theirs = sorted(tuple(map(float, row[2:5])) for row in rows)
    own = sorted((node.year, *node.interval) for node in result.dated.dates)
    assert np.array(own) == pytest.approx(np.array(theirs), abs=0.02), "its searches end on grids"


def test_an_outgroup_is_one_side_of_the_root():
    result = date_some(outgroup="v01,v02", clock_rate=RATE)
    assert {"v01", "v02"} in sides_of_root(result.dated_newick)
    with pytest.raises(InputError, match="the outgroup of 2 taxa is not one clade"):
        date_some(outgroup="v01,v23")


def test_a_given_rate_stays():
    result = date_some(clock_rate=0.005)
    assert result.dated.clock.rate == pytest.approx(0.005, rel=1e-12)
    assert result.dated.clock.interval is None
    wide = date_some(clock_rate=0.005, clock_error=0.001)
    assert np.ptp(wide.root.interval) > 1.2 * np.ptp(result.root.interval)


def test_priors_and_relaxed_clocks(strict):
    result = date_some(coalescent="const", relaxed=(1.0, 0.5), clock_rate=RATE)
    assert result.dated.clock.coalescent_time == pytest.approx(8.0, rel=0.6), "one draw of a coalescent tree"
    assert len({node.rate for node in result.dated.dates}) > 3
    assert {node.rate for node in strict.dated.dates} == {1.0}


def test_unknown_and_uncertain_dates():
    dates = some_taxa()[2]
    known, middle = dates["v11"][0], dates["v20"][0]
    result = date_some(dates | {"v11": None, "v20": (middle - 0.5, middle + 0.5)}, clock_rate=RATE)
    own = {node.name: node for node in result.dated.dates}
    assert own["v11"].interval is None
    assert own["v11"].year == pytest.approx(known, abs=8.0)
    assert middle - 0.501 <= own["v20"].year <= middle + 0.501
    tips = {tip.name: tip.year for tip in result.dated.tips}
    assert sorted(tips) == sorted({*SOME} - {"v11"})
    assert tips["v20"] == pytest.approx(middle)


@pytest.mark.parametrize(("model", "alphabet"), [(MODEL, "ACGT"), ("LG", "ACDEFGHIKLMNPQRSTVWY")])
def test_the_model_is_handed_over_as_it_is(model, alphabet):
    """TreeTime's probabilities of change are those of the model's rate matrix."""
    rows = {name: alphabet + alphabet[:1] + tail for name, tail in (("a", "-"), ("b", "N"), ("c", alphabet[1]))}
    data, models = resolve_inputs(rows, model)
    sites = dating.SiteData.of(data, models)
    assert sorted("".join(sites.rows).replace("N", "").replace("X", "")) == sorted(
        "".join(row for row in rows.values()).replace("N", "").replace("-", "")
    )
    symbols = list(models[0].spec.symbols)
    q = models[0].rate_matrices()[0][0]
    order = [symbols.index(letter) for letter in alphabet]
    expected = expm(0.3 * q)[np.ix_(order, order)]
    given = dating._as_gtr(sites)
    assert list(given.alphabet) == list(alphabet)
    assert np.max(np.abs(given.expQt(0.3).T - expected)) < 1e-9


@pytest.mark.parametrize("model", ["HKY+G4", "HKY+I", "LG4X", "MK"])
def test_other_models_are_not_handed_over(model):
    letters = "ARNDQ" if model == "LG4X" else "01201" if model == "MK" else "ACGTA"
    data, models = resolve_inputs({name: letters[k:] + letters[:k] for k, name in enumerate("abcd")}, model)
    assert dating.SiteData.of(data, models) is None


def test_rates_across_sites_leave_the_lengths_as_they_are():
    with_gamma = {"model": MODEL + "+G4{0.5}", "clock_rate": RATE}
    assert date_some(lengths="auto", **with_gamma).dated.lengths == "input"
    with pytest.raises(InputError, match=r"lengths: found 'joint', expected 'input', or DNA or proteins in one part"):
        date_some(lengths="joint", **with_gamma)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"root": "mid"}, "root: found 'mid', expected one of: best, min-dev, oldest"),
        ({"lengths": "own"}, "lengths: found 'own', expected one of"),
        ({"coalescent": "no"}, "coalescent: found 'no', expected one of"),
        ({"clock_rate": -1.0}, "clock_rate: found -1, expected a number above 0"),
        ({"clock_error": 0.1}, "clock_error: found no clock_rate"),
        ({"relaxed": (-1.0, 0.0)}, "relaxed: found a negative number"),
        ({"dates": {"v01": 2001.0}}, "taxa with a date: found 1, expected at least 3"),
        ({"dates": {"v02": "May"}}, "dates: taxon 'v02': found 'May' as a date"),
        ({"dates": {"v02": (2002.0, 2001.0)}}, "dates: taxon 'v02': found a range from 2002 to 2001"),
        ({"dates": dict.fromkeys(SOME, None)}, "taxa with a date: found 0, expected at least 3"),
        ({"dates": dict.fromkeys(SOME, 2000.0)}, "dates: TreeTime found no dated tree .*--clock-rate gives the rate"),
        ({"model": "UNREST"}, "not time-reversible"),
    ],
)
def test_refused(settings, problem):
    with pytest.raises(InputError, match=problem):
        date_some(**settings)


def test_dates_of_other_taxa_are_told(tmp_path):
    (tmp_path / "more.tsv").write_text(DATES.read_text() + "v99\t2001\n")
    _, _, _, remarks = match_dates(tmp_path / "more.tsv", None, None, plltool.read_alignment(FASTA).names)
    (remark,) = remarks
    assert remark.endswith("more.tsv: 1 date of taxa that are not in the alignment, first 'v99' (line 26)")


def test_missing_dates_and_scalars_of_other_libraries():
    pandas = pytest.importorskip("pandas")
    missing = {"a": math.nan, "b": pandas.NaT, "c": pandas.NA, "d": np.float32("nan"), "e": np.datetime64("NaT")}
    found, *_ = match_dates(missing, None, None, list("abcde"))
    assert set(found.values()) == {None}
    known = {"a": np.datetime64("2011-02-01"), "b": pandas.Timestamp(2011, 2, 1), "c": np.float64(2011 + 31.5 / 365)}
    found, *_ = match_dates(pandas.Series(known), None, None, list("abc"))
    assert {date.first for date in found.values()} == {2011 + 31.5 / 365}


def test_taxa_without_a_date_count_as_unknown():
    """The tree is that of the same table with a ? for them, and a warning names them."""
    told = some_taxa()[2] | {"v02": None, "v08": None}
    left_out = {name: date for name, date in told.items() if date}
    found, expected = date_some(left_out, clock_rate=RATE), date_some(told, clock_rate=RATE)
    assert found.dated_newick == expected.dated_newick
    assert "dates: no date is given for 'v02', 'v08'; it is taken as unknown" in found.warnings
    assert not any("no date is given" in warning for warning in expected.warnings)


def test_without_treetime(monkeypatch):
    monkeypatch.setattr("plltool.analyses.dating.analysis.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"^dates of a tree need TreeTime: pip install 'plltool\[dating\]'$"):
        date_some()
