"""All supports of a search's tree at once: those that each analysis makes by itself, under the terms of the search."""

import re

import numpy as np
import pytest
from interruptions import PowerCut, Stop

from plltool.analyses.search.analysis import search
from plltool.analyses.supports import ultrafast
from plltool.analyses.supports.bootstrap import bootstrap
from plltool.analyses.supports.search_supports import search_supports
from plltool.analyses.supports.support import supports
from plltool.analyses.supports.ultrafast import ultrafast_bootstrap
from plltool.errors import InputError
from plltool.io import checkpoint as files
from plltool.progress import StopSearch
from plltool.tree.splits import branch_splits
from plltool.tree_search.effort import SearchOptions

DEVICE = {"device": "numpy"}
ALONE = {"workers": 1, **DEVICE}
QUICK = {"options": SearchOptions("fast", radii=(1,)), "workers": 1}


@pytest.fixture(scope="module")
def best(few):
    return search(few, "HKY", seed=3, effort="default", outgroup=[[*few][2]], **DEVICE)


def by_split(found):
    """Values of the kinds by split; branches may be numbered in any way."""
    rows = np.column_stack([*found.values.values()])[found.tree.is_inner_branch].tolist()
    inner = np.array(branch_splits(found.tree), dtype=object)[found.tree.is_inner_branch]
    return dict(zip(inner, rows, strict=True))


def test_the_same_supports_as_those_made_one_by_one(few, best, monkeypatch):
    monkeypatch.setattr(ultrafast, "UFBOOT_STEP", 2)
    monkeypatch.setattr(ultrafast, "UFBOOT_MOST", 4)
    heard = []
    found = search_supports(best, ("tbe", "ufboot", "fbp"), replicates=3, listener=heard.append, **QUICK, **DEVICE)
    assert not found.interrupted
    assert {event.stage for event in heard} == {"ufboot", "bootstrap"}
    made = bootstrap(few, best.models, replicates=3, seed=3, **QUICK, **DEVICE)
    assert found.bootstrap.lnls == made.lnls
    mapped = supports(best.tree, made.trees, ("tbe", "fbp"))
    estimated = ultrafast_bootstrap(few, best.tree, best.models, seed=3, **ALONE)
    assert found.supports.kinds == ("tbe", "ufboot", "fbp")
    for other in (mapped, estimated):
        for kind in other.kinds:
            assert by_split(found.supports.in_order([kind])) == by_split(other.in_order([kind]))
            assert found.supports.n_replicates[kind] == other.n_replicates[kind]
    unlabelled = re.sub(r"\)[0-9./]+:", "):", found.supports.newick())
    assert unlabelled == best.newick, "with the outgroup of the search"
    assert repr(found.supports) == "<Supports: tbe, ufboot, fbp, 5 branches, 8 taxa>"


def test_the_tree_of_parts_and_the_constraint_of_the_search(few, tmp_path):
    scheme = tmp_path / "scheme"
    scheme.write_text("HKY, one = 1-70\nJC, two = 71-150\n")
    names = [*few]
    settings = {"constraint": f"(({names[0]},{names[5]}),{names[1]},{names[2]});", "brlen": "unlinked"}
    best = search(few, scheme, effort="fast", **settings, **DEVICE)
    found = search_supports(best, ("fbp", "sh-alrt", "abayes"), replicates=2, **QUICK, **DEVICE)
    for tree in found.bootstrap.trees:
        assert tree.lengths.shape[1] == 2
        within = [names[0], names[5]]
        sides = [{tree.names[i] for i in range(8) if split >> i & 1} for split in branch_splits(tree)]
        quartet = [side & {*within, names[1], names[2]} for side in sides]
        assert set(within) in quartet or {names[1], names[2]} in quartet
    record = found.supports.as_record()
    assert [len(row["lnl"]) for row in record["branches"]] == [3] * 5
    assert list(record["kinds"]) == ["fbp", "sh-alrt", "abayes"]


def test_an_interruption_leaves_what_was_made(best):
    stop = Stop()
    found = search_supports(best, ("fbp", "ufboot", "abayes"), replicates=3, listener=stop, **QUICK, **DEVICE)
    assert found.interrupted
    assert [event.stage for event in stop.heard] == ["ufboot"]
    assert found.supports.kinds == ("ufboot",)
    assert found.bootstrap is None


# --- better trees ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def poor(few):
    """A search that was stopped after its first round, from a random tree; two taxa are the same."""
    twins = few | {"twin": few[[*few][1]]}
    return search(twins, "HKY", seed=3, start="random", effort="fast", listener=Stop(), **DEVICE)


@pytest.fixture
def _soon_settled(monkeypatch):
    """Adopt after 4 excursions and make 2 more; every state is written."""
    monkeypatch.setattr(files, "CHECKPOINT_PATIENCE", 0.0)
    for name, value in (("STEP", 2), ("LEAST", 4), ("DIFFERENCE", 1.0)):
        monkeypatch.setattr(ultrafast, f"UFBOOT_{name}", value)


@pytest.mark.usefixtures("_soon_settled")
def test_a_better_tree_is_adopted(few, poor):
    heard = []
    kinds = ("ufboot", "sh-alrt")
    found = search_supports(poor, kinds, listener=heard.append, **ALONE)
    better = found.result
    assert better.lnl > poor.lnl + 1
    alone = search(poor.data, "HKY", effort="fast", **DEVICE)
    assert better.lnl > alone.lnl - 0.05  # what the default criteria leave open
    assert (found.supports.tree.ends == better.tree.ends).all()
    assert found.supports.better is None
    stages = [event.stage for event in heard]
    assert stages[:4] == stages[-2:] * 2 == ["ufboot"] * 4
    assert "polish" in stages
    rose = f"the search continued from it, and its lnL rose from {poor.lnl:.6f} to {better.lnl:.6f}"
    assert better.warnings[-1] == f"the ultrafast bootstrap met a better tree; {rose}"
    assert better.start_lnls == poor.start_lnls
    assert len(better.trace) == len(poor.trace) + len(stages) - 6
    neighbours = search_supports(better, ("sh-alrt",), **DEVICE).supports
    assert by_split(found.supports.in_order(["sh-alrt"])) == by_split(neighbours)
    assert search_supports(better, ("ufboot",), **ALONE).result is better


@pytest.mark.usefixtures("_soon_settled")
def test_an_adoption_stopped_at_every_step_and_resumed(poor, tmp_path):
    whole, listen = [], Stop(error=PowerCut)
    expected = search_supports(poor, ("ufboot",), listener=whole.append, **ALONE)
    folders = {"ufboot_checkpoint": tmp_path / "ufboot", "adopted_checkpoint": tmp_path / "adopted"}
    for _ in whole:
        with pytest.raises(PowerCut):
            search_supports(poor, ("ufboot",), listener=listen, **folders, **ALONE)
    found = search_supports(poor, ("ufboot",), listener=listen, **folders, **ALONE)
    assert [(event.stage, event.round, event.lnl.hex()) for event in listen.heard] == [
        (event.stage, event.round, event.lnl.hex()) for event in whole
    ]
    assert found.supports.values["ufboot"].tobytes() == expected.supports.values["ufboot"].tobytes()
    assert (found.result.lnl.hex(), found.result.newick) == (expected.result.lnl.hex(), expected.result.newick)
    assert found.result.warnings == expected.result.warnings


@pytest.mark.usefixtures("_soon_settled")
def test_an_interrupted_adoption_leaves_the_tree_before(poor):
    def stop(event):
        if event.stage != "ufboot":
            raise StopSearch

    found = search_supports(poor, ("ufboot", "sh-alrt"), listener=stop, **ALONE)
    assert found.interrupted
    assert found.result is poor
    assert found.supports.kinds == ("ufboot",)
    assert found.supports.better.lnl > poor.lnl + 1


@pytest.mark.usefixtures("_soon_settled")
def test_the_checkpoint_of_an_earlier_better_tree_makes_room(few, poor, tmp_path):
    expected = search_supports(poor, ("ufboot",), **ALONE)
    folder = tmp_path / "adopted"
    search(few, "JC", checkpoint=folder, effort="fast", **DEVICE)
    found = search_supports(poor, ("ufboot",), adopted_checkpoint=folder, **ALONE)
    assert found.result.lnl.hex() == expected.result.lnl.hex()


def test_errors(best):
    with pytest.raises(InputError, match="supports: found 'tbe' without replicates, expected their number"):
        search_supports(best, ("sh-alrt", "tbe"), **DEVICE)
    with pytest.raises(InputError, match="found 'x', expected some of: fbp, tbe, rootstrap, ufboot, sh-alrt, abayes"):
        search_supports(best, ["x"], **DEVICE)
