"""The end of an optimisation is an optimum: L-BFGS-B gains nothing from there; and given lengths may be better."""

import numpy as np
import pytest
from analyses.test_rooted import IQTREE_TREE, PRIMATES
from check_optima import go_on
from small_alignments import primates

import plltool
from plltool.optimise.lengths import smooth
from plltool.optimise.models import ModelOptimiser
from plltool.optimise.polish import Other, _begin, _climb_together, polish
from plltool.run.messages import remarks_on_optima
from plltool.tree.moves import random_tree


def sample_of_primates(data_dir, seed):
    """Some taxa and columns, and a random tree of them."""
    rng = np.random.default_rng(seed)
    whole = plltool.read_alignment(data_dir / "primates.phy")
    rows = np.array([np.frombuffer(row, dtype="S1") for row in whole.rows])
    taxa = np.sort(rng.choice(len(rows), int(rng.integers(4, 9)), replace=False))
    cells = rows[taxa][:, rng.choice(rows.shape[1], int(rng.integers(100, 301)))]
    names = tuple(f"t{k}" for k in range(len(taxa)))
    return {name: row.tobytes().decode() for name, row in zip(names, cells, strict=True)}, random_tree(names, rng)


@pytest.mark.parametrize(
    ("seed", "model"), [(0, "GTR+FO+G4"), (7, "TIM2+F+R3"), (8, "TIM2+F+R3"), (10, "TIM2+F+R3"), (6, "GTR+FO+I+G4")]
)
def test_nothing_is_gained_by_going_on_with_all_variables_together(data_dir, seed, model):
    """On a random tree; lengths and parameters in turn end lower."""
    data, tree = sample_of_primates(data_dir, seed)
    with plltool.Likelihood(data, tree, model, device="numpy") as likelihood:
        lnl = likelihood.optimise()
        assert go_on(likelihood) < lnl + 0.01


def test_given_lengths_with_a_model_that_fits_them_may_be_the_better_start(data_dir):
    """The lengths that a search found never lead below its lnL, even if the present model would lead away from them."""
    data = primates(data_dir, 8, 600)
    tree = random_tree(sorted(data), np.random.default_rng(1))
    with plltool.Likelihood(data, tree, "GTR+F+G4", device="numpy") as likelihood:
        best, found, models = likelihood.optimise(), likelihood.tree, likelihood.models
    with plltool.Likelihood(data, found, models[0].to_string(), device="numpy") as likelihood:
        assert likelihood.lnl() == pytest.approx(best, abs=1e-9)
    with plltool.Likelihood(data, found, "GTR+F+G4", device="numpy") as likelihood:
        assert likelihood.lnl() < best - 10, "the start values of the model fit badly"
        assert likelihood.optimise() > best - 0.01


@pytest.mark.opencl
@pytest.mark.parametrize(("brlen", "reached"), [("linked", -3833.64), ("scaled", -3766.59), ("unlinked", -3759.34)])
def test_codon_positions_of_very_different_rates(shared, brlen, reached):
    """From the lengths of a tree of 8 taxa; expected is what RAxML-NG 1.2.2 reaches."""
    files = [shared / "data" / "constraints" / f"dna8.{end}" for end in ("fa", "tree", "part")]
    if not files[0].exists():
        pytest.skip(f"no {files[0]}")
    assert plltool.evaluate(*files, brlen=brlen, device="opencl").lnl > reached - 0.005


def test_two_optima_are_reported_only_if_their_lengths_differ():
    """Twice the sum, or half of it, makes two optima; nan stands for none."""
    lengths = np.array([1.0, 2.0])
    found = [Other(-1.0, length).is_other_than(lengths) for length in (6.1, 5.9, 1.6, 1.4, np.nan)]
    assert found == [True, False, False, True, False]
    tree = random_tree(["a", "b", "c"], np.random.default_rng(1))
    tree.lengths[:] = 1.0
    assert remarks_on_optima(-10.0, tree, Other()) == []
    (remark,) = remarks_on_optima(-10.0, tree, Other(-12.5, 6.1))
    assert "-10.00 with a sum of 3," in remark
    assert "-12.50 with a sum of 6.1" in remark


def test_the_better_of_two_starts_is_kept(data_dir):
    """Good lengths and a poor model: the start that keeps the lengths is ahead; the other has not reached the end."""
    data = primates(data_dir, 8, 600)
    tree = random_tree(sorted(data), np.random.default_rng(1))
    with plltool.Likelihood(data, tree, "GTR+F+G4", device="numpy") as likelihood:
        likelihood.optimise()
        found = likelihood.tree
    ends = []
    for is_model_first in (False, True):
        with plltool.Likelihood(data, found, "GTR+F+G4", device="numpy") as likelihood:
            inner = likelihood._likelihood
            optimiser = ModelOptimiser(inner, scale=True)
            if is_model_first:
                optimiser.run(0.1)
                ends.append(smooth(inner, 0.1))
            else:
                ends.append(_begin(optimiser, inner.lnl(), 0.1)[0])
            assert inner.lnl() == pytest.approx(ends[-1], abs=1e-9)
    assert ends[0] >= ends[1]


def test_free_rates_leave_nothing_to_a_quasi_newton_search(data_dir):
    """Here the fast category is saturated, so the slowest rate is tiny beside it; with a ratio of 1e-5, 0.3 is lost."""
    rng = np.random.default_rng(15)
    sequences = plltool.read_alignment(data_dir / "primates.phy")
    taxa, sites = rng.choice(12, 6, replace=False), np.sort(rng.choice(898, 250, replace=False))
    cells = sequences.columns(sites)
    rows = {f"t{number}": cells[taxon].decode() for number, taxon in enumerate(taxa.tolist())}
    tree = random_tree(sorted(rows), rng)
    with plltool.Likelihood(rows, tree, "HKY+F+R4", device="numpy") as likelihood:
        lnl = likelihood.optimise()
        assert go_on(likelihood) < lnl + 0.01


def test_what_is_worse_is_undone(data_dir):
    """Steps together that do not reach the lnL that is asked for leave no trace."""
    data, tree = sample_of_primates(data_dir, 3)
    with plltool.Likelihood(data, tree, "HKY+FO+I+G4", device="numpy") as likelihood:
        inner = likelihood._likelihood
        before, lnl = inner.fit(), inner.lnl()
        assert _climb_together(ModelOptimiser(inner, scale=True), ["alpha", "pinv"], lnl + 1e3) == (lnl + 1e3, False)
        np.testing.assert_array_equal(inner.tree.lengths, before.tree.lengths)
        assert inner.models[0].sites == before.models[0].sites
        assert inner.lnl() == pytest.approx(lnl, rel=1e-14)


def test_a_rare_fast_rate_is_found(data_dir):
    """Columns of one tree, and a few of a tree that is 100 times as long; the values of the truth are a lower bound."""
    tree = random_tree([f"t{k}" for k in range(8)], np.random.default_rng(2))
    tree.lengths[:] = 0.02
    rates = "JC+R3{0.2/1/60}{0.6/0.39/0.01}"
    data = plltool.simulate(tree, rates, 2000, seed=1).as_sequences()
    with plltool.Likelihood(data, tree, rates, device="numpy") as likelihood:
        expected = likelihood.optimise()
    with plltool.Likelihood(data, tree, "JC+R3", device="numpy") as likelihood:
        assert likelihood.optimise() > expected - 0.01


def test_no_fixed_rates_over_sites_are_better(data_dir):
    """The maximum over all rates is at least that with any of them fixed; the first starts lead to another optimum."""
    data, tree = sample_of_primates(data_dir, 111)

    def optimise(model):
        with plltool.Likelihood(data, tree, model, device="numpy") as likelihood:
            return likelihood.optimise()

    lnl = optimise("HKY+F+I+G4")
    assert all(optimise(f"HKY+F+I{{{pinv}}}+G4{{{alpha}}}") < lnl for pinv in (0.01, 0.1, 0.3) for alpha in (0.1, 0.3))


def test_a_directed_model_reaches_the_optimum_of_another_program():
    """Some weights of rays end almost at 0; lnL is that of IQ-TREE 2.0.7, -m RY6.17a+G4 -te IQTREE_TREE."""
    with plltool.Likelihood(PRIMATES, IQTREE_TREE, "RY6.17a+G4") as likelihood:
        assert polish(likelihood._likelihood) > -5903.99850252


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_root_moves_along_its_branch(share):
    """Near an end one of the two lengths there has hardly any slope; lnL is that of IQ-TREE 2.0.7, -m STRSYM."""
    both = 0.3133336537 + 2.893039877e-06
    start = IQTREE_TREE.replace("0.3133336537", repr(share * both)).replace("2.893039877e-06", repr((1 - share) * both))
    end = plltool.evaluate(PRIMATES, start, "STRSYM", device="numpy").lnl
    assert end == pytest.approx(-6074.9860, abs=0.001)
