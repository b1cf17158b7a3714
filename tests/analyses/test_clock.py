"""`plltool.sample` with a clock: runs that go on, files that other programs read, and bad input."""

import re

import dendropy
import numpy as np
import pytest
from interruptions import assert_pieces_make

import plltool
from plltool.errors import CheckpointError, InputError

FEW = plltool.SampleOptions(generations=40, chains=2, sample_every=5, burnin=0.4)


@pytest.fixture(scope="module")
def dated(data_dir):
    """Six taxa of the example, 200 sites, and their dates."""
    rows = plltool.read_alignment(data_dir / "dated.fasta")
    taken = list(zip(rows.names, rows.rows, strict=True))[::4]
    dates = dict(line.split("\t") for line in (data_dir / "dated.tsv").read_text().splitlines()[1:])
    return {name: row[:200].decode() for name, row in taken}, {name: dates[name] for name, _ in taken}


@pytest.mark.parametrize(("clock", "prior"), [("strict", "constant"), ("relaxed", "skygrid(5,30)"), ("strict", "yule")])
def test_a_stopped_run_ends_with_the_same_bits(dated, clock, prior, tmp_path, always, monkeypatch):
    monkeypatch.setattr("plltool.analyses.sampling.joint_moves.FIRST_STATES", 4)
    rows, dates = dated
    settings = {"clock": clock, "dates": dates, "tree_prior": prior, "device": "numpy", "options": FEW, "seed": 5}
    whole = plltool.sample(rows, "HKY+FO", workers=1, **settings)
    folder = tmp_path / "kept"
    kept = settings | {"checkpoint": folder, "workers": 1}
    assert_pieces_make(whole, lambda listener: plltool.sample(rows, "HKY+FO", listener=listener, **kept), each=3)
    others = plltool.sample(rows, "HKY+FO", workers=2, **settings)
    assert others.texts()["run1.t"] == whole.texts()["run1.t"]
    shifted = settings | {"dates": {name: f"19{date[2:]}" for name, date in dates.items()}}
    with pytest.raises(CheckpointError, match="heights of tips: the checkpoint has"):
        plltool.sample(rows, "HKY+FO", checkpoint=folder, **shifted)


def test_trees_in_time_are_read_by_other_programs(dated):
    rows, dates = dated
    asked = {"clock": "relaxed", "dates": dates, "tree_prior": "exponential", "device": "numpy", "workers": 1}
    found = plltool.sample(rows, "JC", options=FEW, **asked)
    texts = found.texts()
    assert texts["run1.p"].splitlines()[1].split("\t")[4:] == [
        *("treeHeight", "clockRate", "clockSpread", "popSize", "growthRate")
    ]
    years = {name: year_of(date) for name, date in dates.items()}
    heights = found.samples.numbers()[0, :, found.samples.columns.index("treeHeight")]
    trees = dendropy.TreeList.get(data=texts["run1.t"], schema="nexus", preserve_underscores=True)
    assert len(trees) == len(found.samples)
    for tree, height in zip(trees, heights, strict=True):
        assert tree.is_rooted
        for leaf in tree.leaf_node_iter():  # 6 digits are written
            depth = height - max(years.values()) + years[leaf.taxon.label]
            assert leaf.distance_from_root() == pytest.approx(depth, abs=1e-3)
            assert float(leaf.annotations["rate"].value) > 0
    (mcc,) = dendropy.TreeList.get(data=texts["mcc.nex"], schema="nexus", preserve_underscores=True)
    root = mcc.seed_node.annotations
    low, high = map(float, root["height_95%_HPD"].value)
    assert low <= float(root["height"].value) <= high
    behind = np.concatenate([heights[found.first :], found.samples.numbers(found.first)[1, :, 3]])
    assert float(root["height"].value) == pytest.approx(behind.mean(), rel=1e-5)
    for name in ("mcc.nwk", "consensus.nwk"):
        tree = dendropy.Tree.get(data=texts[name], schema="newick", preserve_underscores=True)
        assert {leaf.taxon.label for leaf in tree.leaf_node_iter()} == set(rows)
    shares = [float(line.split("\t")[0]) for line in texts["credible.tsv"].splitlines()[1:]]
    assert 0.95 <= sum(shares) <= 1.0 + 1e-9
    record = found.as_record()
    assert record["time"]["latest"] == pytest.approx(max(years.values()))
    assert record["time"]["nodes"][0]["taxa"] == found.names
    assert set(record["priors"]) == {"tree", "clock rate", "clock spread", "population", "growth"}
    assert all(0 < len(own["taxa"]) < 6 for own in record["splits"])


def year_of(date):
    """The middle of a day as a year, by the calendar of numpy."""
    day = np.datetime64(date)
    first = day.astype("datetime64[Y]")
    whole = (first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")
    return int(str(first)) + ((day - first.astype("datetime64[D]")).astype(int) + 0.5) / whole.astype(int)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"dates": None}, "clock strict: found neither dates of the taxa nor calibrations, expected a table"),
        ({"clock": None}, "dates: found them without a clock, expected --clock strict or relaxed"),
        ({"clock": None, "dates": None, "tree_prior": "yule"}, "tree prior: found 'yule' without a clock, expected"),
        (
            {"clock": None, "dates": None, "clock_priors": plltool.ClockPriors(rate="exponential(3)")},
            "clock priors: found them without a clock, expected --clock strict or relaxed",
        ),
        ({"clock": "loose"}, "clock: found 'loose', expected"),
        ({"tree_prior": "yuel"}, "tree prior: found 'yuel', expected constant, exponential, skygrid"),
        ({"tree_prior": "birth-death(1,2)"}, "tree prior: found 'birth-death(1,2)', expected constant"),
        ({"tree_prior": "yule(1.5)"}, "tree prior: found 'yule(1.5)', expected the share of the lineages"),
        ({"clock_priors": plltool.ClockPriors(turnover="uniform(0,2)")}, "prior of turnover: found uniform(0"),
        ({"tree_prior": "constant(3,4)"}, "tree prior: found 'constant(3,4)', expected constant"),
        ({"tree_prior": "skygrid(1,4)"}, "tree prior: found 1 sizes in 4 years, expected 2 to 1000 sizes"),
        ({"tree_prior": "skygrid(4,1e)"}, "tree prior: found 'skygrid(4,1e)', expected constant"),
        ({"outgroup": ["v01"]}, "clock strict: found an outgroup, expected none: a clock finds the root"),
        ({"model": "UNREST"}, "model 'UNREST' is not time-reversible, but this analysis needs a time-reversible model"),
        ({"clock_priors": plltool.ClockPriors(rate="normal(0,1)")}, "prior of rate: found 'normal(0,1)', expected"),
        ({"clock_priors": plltool.ClockPriors(growth="normal(0,-1)")}, "expected a mean and a positive standard dev"),
    ],
)
def test_bad_input_of_clocks(dated, changed, expected):
    rows, dates = dated
    asked = {"clock": "strict", "dates": dates, "model": "JC", "options": FEW} | changed
    with pytest.raises(InputError, match=re.escape(expected)) as error:
        plltool.sample(rows, device="numpy", **asked)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("1996-1995", "dates: taxon 'v05': found a range from 1996 to 1995, expected the earlier date first"),
        ("1996-02-31", "dates: taxon 'v05': found '1996-02-31' as a date, expected a year"),
        (float("inf"), "dates: taxon 'v05': found 'inf' as a date"),
    ],
)
def test_impossible_dates(dated, date, expected):
    rows, dates = dated
    with pytest.raises(InputError, match=re.escape(expected)):
        plltool.sample(rows, "JC", clock="strict", dates=dates | {"v05": date}, options=FEW, device="numpy")


def test_dates_that_are_all_unknown(dated):
    rows, dates = dated
    with pytest.raises(InputError, match=r"^dates: found only dates that are unknown, expected at least one"):
        plltool.sample(rows, "JC", clock="strict", dates=dict.fromkeys(dates, "?"), options=FEW, device="numpy")


def test_a_taxon_that_the_table_lacks(dated, tmp_path):
    rows, dates = dated
    table = tmp_path / "dates.tsv"
    table.write_text("name\tdate\n" + "".join(f"{name}\t{date}\n" for name, date in dates.items() if name != "v09"))
    with pytest.raises(InputError, match=r"dates.tsv: found no date of 'v09', expected one of each taxon"):
        plltool.sample(rows, "JC", clock="strict", dates=table, options=FEW, device="numpy")
