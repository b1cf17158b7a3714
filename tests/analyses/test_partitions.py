"""Likelihoods of alignments in parts, mixed data among them, against sums of the oracle's under every linkage."""

import numpy as np
import pytest
from oracles.likelihood import derivative, pruning
from oracles.models import components_of

from plltool.alignment.states import DNA, PROTEIN
from plltool.analyses.search.analysis import search
from plltool.constants import LINKAGES, MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine.composite import Composite
from plltool.engine.storage import Slots
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.io.newick import parse_newick
from plltool.model.vector import get_vector, set_vector
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import ModelOptimiser, optimise_model
from plltool.run.engines import open_engine
from plltool.run.evaluation import evaluate
from plltool.run.inputs import resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.memory import plan_memory, search_slots
from plltool.tree.splits import rf_distance
from plltool.tree_search.climb import apply_moves, find_moves

NAMES = ("a", "b", "c", "d", "e")
TREE = "(a:0.1,b:0.3,((c:0.2,d:0.15):0.05,e:0.4):0.12);"
SCHEME = r"""
GTR{1.2/3.4/0.8/1.1/4.1/1.0}+FU{0.3/0.2/0.26/0.24}+G4{0.6}%s, first = 1-40\2
LG+F+G2{0.9}%s, genes = 41-70
HKY{1.0/3.0}+F%s, second = 2-40\2
JC+G4{0.5}%s, rest = 71-75, 76-.
"""
SCALERS = (0.7, 1.9, 1.3, 0.4)


@pytest.fixture(scope="module")
def sequences():
    """80 columns, 41 to 70 of them proteins; taxon e has no data in the first part, and there are gaps."""
    rng = np.random.default_rng(5)
    rows = []
    for name in NAMES:
        dna = rng.choice(list("ACGTRN-"), 50, p=[0.3, 0.2, 0.2, 0.2, 0.04, 0.03, 0.03])
        protein = rng.choice([*PROTEIN.symbols, "X"], 30)
        if name == "e":
            dna[0:40:2] = "-"
        rows.append("".join([*dna[:40], *protein, *dna[40:]]))
    return dict(zip(NAMES, rows, strict=True))


def scheme(scaled=False):
    return SCHEME.strip() % (tuple(f"+BU{{{scaler}}}" for scaler in SCALERS) if scaled else ("",) * 4)


PARTS = {
    "first": (range(0, 40, 2), DNA),
    "genes": (range(40, 70), PROTEIN),
    "second": (range(1, 40, 2), DNA),
    "rest": (range(70, 80), DNA),
}


def as_masks(sequences, columns, space):
    sets = [[1 << state for state in np.flatnonzero(row)] for row in space.state_sets]
    masks = [sum(states) for states in sets]
    return [[masks[space.code_of[ord(row[column])]] for row in sequences.values()] for column in columns]


def oracle_parts(sequences, models, tree, lengths):
    """lnL of each part, everything but the models' values from the oracles; lengths (n_parts, n_edges)."""
    ends = [tuple(pair) for pair in tree.ends.tolist()]
    lnls = []
    for (columns, space), model, own in zip(PARTS.values(), models, lengths, strict=True):
        lnls.append(sum(pruning(ends, own, as_masks(sequences, columns, space), components_of(model))))
    return np.array(lnls)


def open_one(sequences, device, brlen):
    """A likelihood of the linkage, unlinked with lengths that differ; and the lengths of each part."""
    likelihood = Likelihood(sequences, TREE, scheme(brlen == "scaled"), brlen=brlen, device=device)
    if brlen == "unlinked":
        factors = 1 + np.arange(likelihood.lengths.size).reshape(likelihood.lengths.shape) % 5 / 5
        likelihood.lengths = likelihood.lengths * factors
    return likelihood


def lengths_of_parts(likelihood, lengths):
    """(n_parts, n_edges), whatever the linkage."""
    scalers = np.array([part.scaler for part in likelihood.parts])
    return lengths.T if lengths.ndim == 2 else scalers[:, None] * lengths


@pytest.mark.parametrize("brlen", LINKAGES)
def test_lnl_and_derivatives(sequences, device, brlen):
    with open_one(sequences, device, brlen) as likelihood:
        assert isinstance(likelihood.engine, Composite)  # of 4, 1 and 2 x 20 components and states
        models, tree, lengths = likelihood.models, likelihood.tree, likelihood.lengths
        expected = oracle_parts(sequences, models, tree, lengths_of_parts(likelihood, lengths))
        np.testing.assert_allclose(likelihood.part_lnl(), expected, rtol=1e-10)
        assert likelihood.lnl() == pytest.approx(expected.sum(), rel=1e-11)
        sites = likelihood.site_lnl()
        for lnl, (columns, _) in zip(expected, PARTS.values(), strict=True):
            assert sites[list(columns)].sum() == pytest.approx(lnl, rel=1e-10)
        lnl, first, second = likelihood.derivatives()
        assert lnl == pytest.approx(expected.sum(), rel=1e-11)
        for edge in [0, 3, 6] if brlen != "unlinked" else [(0, 1), (3, 0), (6, 3)]:

            def moved(length, edge=edge):
                changed = lengths.copy()
                changed[edge] = length
                return oracle_parts(sequences, models, tree, lengths_of_parts(likelihood, changed)).sum()

            d1, d2 = derivative(moved, lengths[edge], 1e-3)
            assert first[edge] == pytest.approx(d1, rel=1e-6, abs=1e-5)
            assert second[edge] == pytest.approx(d2, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("brlen", LINKAGES)
def test_gradient(sequences, brlen):
    """In every parameter, scalers and factors of lengths, against differences of the oracle."""
    free = "HKY+FO+G4, first = 1-40\\2\nLG+G2, genes = 41-70\nK80, second = 2-40\\2\nJC+G4, rest = 71-80"
    with Likelihood(sequences, TREE, free, brlen=brlen, device="numpy") as likelihood:
        optimiser = ModelOptimiser(likelihood._likelihood, scale=True)
        models, lengths, members = likelihood._likelihood.models, likelihood.lengths, optimiser.members
        own = [len(get_vector(model)) for model in models]
        factors = [own[-1:] for own in members]  # of each part's lengths, its scaler included
        assert [len(part) for part in members] == own if brlen == "scaled" else [n + 1 for n in own]
        assert len(set(np.concatenate(factors).tolist())) == (1 if brlen == "linked" else 4)
        start = optimiser.begin()
        start += np.random.default_rng(3).normal(0, 0.3, len(start))

        def oracle(vector):
            """lnL of each part."""
            here = [model.copy() for model in models]
            for model, part, n in zip(here, members, own, strict=True):
                set_vector(model, vector[part[:n]])
            longer = lengths.T if brlen == "unlinked" else np.tile(lengths, (4, 1))
            longer = longer * np.exp(vector[np.concatenate(factors)])[:, None]
            return oracle_parts(sequences, here, likelihood.tree, longer)

        values, slopes = optimiser.evaluate(start, np.ones(4, dtype=bool))
        np.testing.assert_allclose(values, -oracle(start), rtol=1e-11)
        for number, part in enumerate(members):
            for k, slope in zip(part, slopes[number], strict=True):
                step = 1e-4 * (np.arange(len(start)) == k)
                expected = (oracle(start + step) - oracle(start - step))[number] / 2e-4
                assert -slope == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("brlen", LINKAGES)
@pytest.mark.parametrize("scale", [False, True])
def test_factors_come_to_the_lengths(sequences, brlen, scale):
    """After an optimisation scalers have the mean 1 over sites, and other models none."""
    free = "HKY+FO+G4, first = 1-40\\2\nLG+G2, genes = 41-70\nK80, second = 2-40\\2\nJC+G4, rest = 71-80"
    with Likelihood(sequences, TREE, free, brlen=brlen, device="numpy") as likelihood:
        before = likelihood.lengths
        lnl = optimise_model(likelihood._likelihood, scale=scale)
        assert likelihood.lnl() == pytest.approx(lnl, rel=1e-12)
        weights = np.array([len(columns) for columns, _ in PARTS.values()]) / 80
        scalers = np.array([part.scaler for part in likelihood.parts])
        assert weights @ scalers == pytest.approx(1.0, rel=1e-12)
        assert (scalers == 1.0).all() == (brlen != "scaled")
        changed = likelihood.lengths / before
        np.testing.assert_allclose(changed, np.broadcast_to(changed[0], changed.shape), rtol=1e-12)
        assert (changed == 1.0).all() == (brlen != "scaled" and not scale)


def test_scalers_that_are_given_stay(sequences):
    """Of two parts one scaler is given, so the other has no mean to keep."""
    text = "JC+BU{2.0}, given = 1-40\nK80+G4, free = 71-80"
    with Likelihood(sequences, TREE, text, device="numpy") as likelihood:
        likelihood.optimise()
        given, free = likelihood.parts
        assert given.scaler == 2.0
        assert free.scaler not in (1.0, 2.0)


@pytest.mark.parametrize("brlen", LINKAGES)
def test_promised_moves_keep_their_promise(sequences, brlen):
    """Healed branches and optimised insertions: a move reaches just the lnL that was foretold."""
    slots = Slots(search_slots(5).least)
    data, models = resolve_inputs(sequences, scheme(), brlen)
    engine, _ = open_engine(data.patterns, models, slots, Hardware("numpy"))
    tree = parse_newick(TREE, "tree", NAMES)
    if brlen == "unlinked":
        tree = tree.unlink(4)
        tree.lengths *= 1 + np.arange(tree.lengths.size).reshape(tree.lengths.shape) % 5 / 5
    likelihood = TreeLikelihood(tree, models, engine)
    lnl = likelihood.lnl()
    moves = find_moves(likelihood, lnl, 3)
    assert len(moves) > 5
    assert moves.lengths.shape[1:] == ((4, 3) if brlen == "unlinked" else (3,))
    tried = 0
    for k in range(len(moves)):
        for _, undo in apply_moves(likelihood, moves, np.array([k])):
            assert likelihood.lnl() == pytest.approx(moves.lnl[k], rel=1e-10)
            undo.restore(likelihood.tree)
            likelihood.topology_changed()
            tried += 1
    assert tried > 3
    assert likelihood.lnl() == lnl


@pytest.mark.parametrize("brlen", ["linked", "unlinked"])
def test_little_memory_changes_no_bit(sequences, brlen):
    answers = []
    for memory in (None, 20_000):
        with Likelihood(sequences, TREE, scheme(), brlen=brlen, device="numpy", memory=memory) as likelihood:
            assert likelihood.engine.resident == (memory is None)
            answers.append([likelihood.site_lnl()[~np.isnan(likelihood.site_lnl())], *likelihood.derivatives()])
    for found, expected in zip(*answers, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("brlen", LINKAGES)
def test_search_and_back(sequences, brlen):
    """The result of a search, evaluated as it is from its own text, has its lnL."""
    text = "HKY+F+G4, first = 1-40\\2\nLG+G2, genes = 41-70\nK80, second = 2-40\\2"
    result = search(sequences, text, brlen=brlen, effort="fast", device="numpy")
    assert "10 columns are in no partition and left out, first column 71" in result.warnings[0]
    assert [part.name for part in result.parts] == ["first", "genes", "second"]
    assert [part.n_sites for part in result.parts] == [20, 30, 20]
    assert sum(part.lnl for part in result.parts) == pytest.approx(result.lnl, rel=1e-12)
    assert result.brlen == brlen
    weights = np.array([20, 30, 20]) / 70
    mean = weights @ [part.scaler for part in result.parts]
    if brlen == "scaled":  # the sequences are random, so that some length reaches its bound
        assert mean >= 1.0
        assert max(result.tree.lengths) == MAX_BRANCH_LENGTH
    else:
        assert mean == pytest.approx(1.0, rel=1e-12)
    trees = [part.newick for part in result.parts]
    if brlen == "unlinked":
        lengths = [parse_newick(newick, "part", NAMES) for newick in trees]
        assert all(rf_distance(tree, result.tree) == 0 for tree in lengths)
    else:
        assert trees == [None] * 3
        again = evaluate(sequences, result.newick, result.model, fixed=True, brlen=brlen, device="numpy")
        assert again.lnl == pytest.approx(result.lnl, rel=1e-12)
        assert [part.lnl for part in again.parts] == pytest.approx([part.lnl for part in result.parts], rel=1e-12)


@pytest.mark.parametrize("brlen", LINKAGES)
def test_duplicates_come_back(sequences, brlen):
    """Twins in all parts are searched once; with their branches the lnL is that of the whole alignment."""
    twins = sequences | {"twin": sequences["b"], "other": sequences["c"][:70] + sequences["a"][70:]}
    text = "HKY+F+G4, first = 1-20\nJC, second = 71-80"
    result = search(twins, text, brlen=brlen, effort="fast", device="numpy")
    tree = result.tree
    assert tree.n_taxa == 7
    assert tree.lengths[tree.edges[tree.names.index("twin"), 0]] == pytest.approx(MIN_BRANCH_LENGTH)
    identical = [warning for warning in result.warnings if "identical" in warning]
    assert len(identical) == 1
    assert "twin" in identical[0]
    assert "other" not in identical[0]  # it is as c in one part, and as a in the other
    assert sum(part.lnl for part in result.parts) == pytest.approx(result.lnl, rel=1e-12)
    if brlen != "unlinked":
        again = evaluate(twins, result.newick, result.model, fixed=True, brlen=brlen, device="numpy")
        assert again.lnl == pytest.approx(result.lnl, rel=1e-12)


@pytest.mark.parametrize("brlen", LINKAGES)
def test_other_programs(shared, device, brlen):
    """8 parts of 59 taxa: RAxML-NG 1.2.2 gives -55550.836925650 and IQ-TREE 3.1.3 -55550.8369, lengths linked."""
    tree, scheme = shared / "reference/trees/dna59.fixed.nwk", str(shared / "reference/dna59.fixed.part")
    found = evaluate(shared / "data/dna59.phy.gz", tree, scheme, fixed=True, brlen=brlen, device=device)
    assert found.lnl == pytest.approx(-55550.836925650, abs=1e-3)
    assert len(found.parts) == 8
    assert (
        "scalers of the branch lengths of partitions have no values; 1 is used" in found.warnings or brlen != "scaled"
    )


def test_parts_of_one_model_are_the_whole(sequences):
    """Linked parts with the same values give the lnL of the alignment in one piece."""
    dna = {name: row[:40] for name, row in sequences.items()}
    model = "HKY{1.0/2.0}+FU{0.3/0.2/0.2/0.3}+G4{0.7}"
    whole = evaluate(dna, TREE, model, fixed=True, device="numpy").lnl
    cut = evaluate(dna, TREE, f"{model}, a = 1-17\n{model}, b = 18-.", fixed=True, brlen="linked", device="numpy").lnl
    assert cut == pytest.approx(whole, rel=1e-12)


def test_what_does_not_fit_is_refused(sequences):
    with pytest.raises(
        InputError, match=r"partition 'a': found a scaler \(\+B\) in 'JC\+BU\{2\.0\}', expected none where"
    ):
        Likelihood(sequences, TREE, "JC+BU{2}, a = 1-40\nLG, b = 41-70", brlen="linked", device="numpy")
    for models in ([], ["JC", "LG"]):
        with pytest.raises(InputError, match=r"model: found \[.*\], expected a string, a file, or"):
            Likelihood(sequences, TREE, models, device="numpy")
    with pytest.raises(InputError, match="brlen: found 'joint', expected one of: linked, scaled, unlinked"):
        Likelihood(sequences, TREE, scheme(), brlen="joint", device="numpy")
    with Likelihood(sequences, TREE, scheme(), device="numpy") as likelihood:
        with pytest.raises(InputError, match="found 4 parts, each with a model: expected the attribute of one of"):
            likelihood.alpha = 0.5
        likelihood.parts[0].alpha = 0.5
        assert likelihood.models[0].alpha == 0.5
        with pytest.raises(
            InputError, match=r"^model: found models of 4 partitions for an alignment without partitions, exp"
        ):
            Likelihood(sequences, TREE, likelihood.models, device="numpy")
        with pytest.raises(InputError, match="found 1 models, expected one for each of 4 parts"):
            likelihood.likelihoods(["JC"])
        expected = evaluate(sequences, TREE, likelihood.model_string, fixed=True, device="numpy").lnl
        assert likelihood.likelihoods([likelihood.model_string])[0] == pytest.approx(expected, rel=1e-12)


def test_start_trees_of_another_linkage_are_refused(sequences):
    """Else the search would go on with lengths of parts, whatever the linkage says."""
    tree = parse_newick(TREE, "test", NAMES)
    for brlen, n_lengths in (("linked", 4), ("scaled", 4), ("unlinked", 3)):
        with pytest.raises(InputError, match=f"found branch lengths of {n_lengths} trees, expected 1"):
            search(sequences, scheme(), start=tree.unlink(n_lengths), brlen=brlen, effort="fast", device="numpy")


def test_lengths_that_nothing_is_known_of_stay(sequences):
    """Taxon e has no data in the first part: there its branch has whatever length it began with."""
    with Likelihood(sequences, TREE, scheme(), brlen="unlinked", device="numpy") as likelihood:
        branch = likelihood.tree.edges[NAMES.index("e"), 0]
        likelihood.optimise("lengths")
        assert likelihood.lengths[branch, 0] == 0.4
        assert likelihood.lengths[branch, 1] != 0.4


def test_memory_is_that_of_all_shards(sequences):
    """What is foretold is what a search holds, as for one part (`test_memory.py`)."""
    data, models = resolve_inputs(sequences, scheme())
    foretold = plan_memory(data.patterns, models, Hardware("numpy"))
    result = search(sequences, scheme(), effort="fast", device="numpy")
    assert len(result.layout["shards"]) == 3
    assert result.counters["peak_bytes"] == pytest.approx(foretold.n_bytes, rel=0.05)
    both = zip(data.patterns, models, strict=True)
    alone = [plan_memory([part], [model], Hardware("numpy")) for part, model in both]
    assert foretold.n_bytes > max(plan.n_bytes for plan in alone)


def test_the_work_of_other_processes_counts(sequences):
    """The same climbs, the same instructions; with several shards, too."""
    options = {"effort": "fast", "starts": 2, "device": "numpy"}
    alone, both = (search(sequences, scheme(), workers=n, **options).counters for n in (1, 2))
    assert both["instructions"] == alone["instructions"]
    assert both["requests"] == alone["requests"]
