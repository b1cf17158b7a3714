"""All supports of a search's tree at once: those that each analysis makes by itself, under the terms of the search."""

import re

import numpy as np
import pytest

from plltool.analyses.bootstrap import bootstrap
from plltool.analyses.search import search
from plltool.analyses.search_supports import search_supports
from plltool.analyses.support import supports
from plltool.analyses.ultrafast import ultrafast_bootstrap
from plltool.errors import InputError
from plltool.tree.splits import branch_splits
from plltool.tree_search.effort import SearchOptions
from plltool.tree_search.progress import StopSearch

DEVICE = {"device": "numpy"}
QUICK = {"options": SearchOptions("fast", radii=(1,)), "workers": 1}


@pytest.fixture(scope="module")
def few(data_dir):
    """Name to sequence: 8 taxa of the hard set."""
    records = (data_dir / "hard.fasta").read_text().split(">")[1:9]
    return {name: "".join(lines)[:150] for name, *lines in map(str.split, records)}


@pytest.fixture(scope="module")
def best(few):
    return search(few, "HKY", seed=3, effort="fast", outgroup=[[*few][2]], **DEVICE)


def by_split(found):
    """Values of the kinds by split; branches may be numbered in any way."""
    rows = np.column_stack([*found.values.values()])[found.tree.is_inner_branch].tolist()
    inner = np.array(branch_splits(found.tree), dtype=object)[found.tree.is_inner_branch]
    return dict(zip(inner, rows, strict=True))


def test_the_same_supports_as_those_made_one_by_one(few, best):
    heard = []
    found = search_supports(best, ("tbe", "ufboot", "fbp"), replicates=3, listener=heard.append, **QUICK, **DEVICE)
    assert not found.interrupted
    assert {event.stage for event in heard} == {"ufboot", "bootstrap"}
    made = bootstrap(few, best.models, replicates=3, seed=3, **QUICK, **DEVICE)
    assert found.bootstrap.lnls == made.lnls
    mapped = supports(best.tree, made.trees, ("tbe", "fbp"))
    ultrafast = ultrafast_bootstrap(few, best.tree, best.models, seed=3, **DEVICE)
    assert found.supports.kinds == ("tbe", "ufboot", "fbp")
    for other in (mapped, ultrafast):
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
    def stop(event):
        assert event.stage == "ufboot"
        raise StopSearch

    found = search_supports(best, ("fbp", "ufboot", "abayes"), replicates=3, listener=stop, **QUICK, **DEVICE)
    assert found.interrupted
    assert found.supports.kinds == ("ufboot",)
    assert found.bootstrap is None


def test_errors(best):
    with pytest.raises(InputError, match="supports: found 'tbe' without replicates, expected their number"):
        search_supports(best, ("sh-alrt", "tbe"), **DEVICE)
    with pytest.raises(InputError, match="supports: found 'x', expected some of: fbp, tbe, ufboot, sh-alrt, abayes"):
        search_supports(best, ["x"], **DEVICE)
