"""Posterior rates of sites beside a sum over all histories; standard errors of lengths beside an inverse Hessian."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from oracles.likelihood import derivative, dna_columns, mixed_derivative, pruning, site_likelihood
from oracles.substitution import gamma_category_means, q_matrix

from plltool.cli import main
from plltool.run.evaluation import evaluate
from plltool.run.likelihood import Likelihood
from plltool.tree.splits import branch_splits

NAMES = ("a", "b", "c", "d")
ROWS = ("ACGTACGTAA", "ACGTCCGAAA", "ACTTACG-AC", "ACGTAAGTAG")
TREE = "(a:0.1,b:0.2,(c:0.15,d:0.3):0.05);"
FREQUENCIES = [0.3, 0.2, 0.2, 0.3]
ALIGNMENT = dict(zip(NAMES, ROWS, strict=True))


@pytest.mark.parametrize("invariable", [False, True])
def test_rates_are_those_of_the_sum_over_all_histories(invariable):
    model = f"HKY{{1/3}}+FU{{0.3/0.2/0.2/0.3}}{'+IU{0.4}' if invariable else ''}+G4{{0.6}}"
    rates, weights = gamma_category_means(0.6, 4), np.full(4, 0.25)
    if invariable:
        rates, weights = np.append(0.0, rates / 0.6), np.append(0.4, 0.6 * weights)
    q = q_matrix([1, 3, 1, 1, 3, 1], FREQUENCIES)
    with Likelihood(ALIGNMENT, TREE, model, device="numpy", lnl_only=True) as likelihood:
        tree, found, lnl = likelihood.tree, likelihood.site_rates(), likelihood.lnl()
        best = likelihood.site_categories()
        assert likelihood.lnl() == lnl  # the model is what it was
    for site, sets in enumerate(dna_columns(ALIGNMENT, NAMES)):
        shares = [
            weight * site_likelihood(tree.ends.tolist(), tree.lengths, sets, [(1.0, FREQUENCIES, q * rate)])
            for rate, weight in zip(rates, weights, strict=True)
        ]
        assert found[site] == pytest.approx(np.dot(shares, rates) / sum(shares), rel=1e-10)
        assert best[site] == np.argmax(shares)


def test_categories_of_a_mixture_are_sums_over_its_classes():
    rates, classes = gamma_category_means(0.6, 4), [([1] * 6, [0.94, 0.02, 0.02, 0.02]), ([1] * 6, [0.25] * 4)]
    model = "MIX{F81+FU{0.94/0.02/0.02/0.02}:1:0.4,JC:1:0.6}+G4{0.6}"
    with Likelihood(ALIGNMENT, TREE, model, device="numpy") as likelihood:
        tree, best = likelihood.tree, likelihood.site_categories()
    for site, sets in enumerate(dna_columns(ALIGNMENT, NAMES)):
        mixed = list(zip((0.4, 0.6), classes, strict=True))
        kinds = [[(share, own[1], q_matrix(*own) * rate) for share, own in mixed] for rate in rates]
        assert best[site] == np.argmax([site_likelihood(tree.ends.tolist(), tree.lengths, sets, own) for own in kinds])


def test_rates_of_parts_are_relative_to_their_own(tmp_path):
    model = tmp_path / "parts"
    model.write_text("JC+G4{0.5}+BU{0.5}, x = 1-4\nJC+G4{0.5}+BU{5}, y = 6-10\n")
    with Likelihood(ALIGNMENT, TREE, str(model), device="numpy") as likelihood:
        rates = likelihood.site_rates()
    assert np.isnan(rates[4])
    assert (rates[[0, 1, 2, 3, 5, 6, 7, 8, 9]] < 4).all()


def draw_rows(seed, n=80):
    """Sequences whose columns are constant but for a few, of which some tell the first two from the others."""
    rng = np.random.default_rng(seed)
    states = np.zeros((len(NAMES), n), dtype=int)
    states[2:, ::9] = 1
    changed = rng.random(states.shape) < [[0.1], [0.3], [0.2], [0.15]]
    return ["".join("ACGT"[k] for k in row) for row in np.where(changed, rng.integers(0, 4, states.shape), states)]


def test_errors_of_lengths_are_those_of_the_inverse_hessian():
    """Of lnL by Felsenstein's pruning in logarithms, differentiated twice numerically."""
    rows = draw_rows(3)
    alignment = dict(zip(NAMES, rows, strict=True))
    with Likelihood(alignment, TREE, "HKY{1/3}+FU{0.3/0.2/0.2/0.3}", device="numpy") as likelihood:
        likelihood.optimise("lengths")
        tree, errors = likelihood.tree, likelihood.length_errors()
    assert np.isfinite(errors).all()
    columns, counts = np.unique(dna_columns(alignment, NAMES), axis=0, return_counts=True)
    components = [(1.0, FREQUENCIES, q_matrix([1, 3, 1, 1, 3, 1], FREQUENCIES))]

    def lnl(moved):
        lengths = tree.lengths.copy()
        lengths[list(moved)] = list(moved.values())
        return pruning(tree.ends.tolist(), lengths, columns, components) @ counts

    steps = 0.02 * tree.lengths
    hessian = np.empty((tree.n_edges, tree.n_edges))
    for i in range(tree.n_edges):
        hessian[i, i] = derivative(lambda t, i=i: lnl({i: t}), tree.lengths[i], steps[i])[1]
        for j in range(i):
            both = lambda t, u, i=i, j=j: lnl({i: t, j: u})  # noqa: E731
            hessian[i, j] = mixed_derivative(both, tree.lengths[i], tree.lengths[j], steps[i], steps[j])
            hessian[j, i] = hessian[i, j]
    expected = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    np.testing.assert_allclose(errors, expected, rtol=1e-4)  # steps of 1e-5, times about ten


def test_errors_in_single_precision():
    """Within a few per cent, which is what steps of a hundredth leave open."""
    alignment = dict(zip(NAMES, draw_rows(3), strict=True))
    found = [
        evaluate(alignment, TREE, "JC", length_errors=True, precision=precision, device="numpy").length_errors
        for precision in ("double", "single")
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=0.03)


def test_lengths_that_the_data_do_not_determine_have_no_error():
    """The last sequence is a gap: its own length is not known, and of two branches next to it only the sum."""
    alignment = dict(zip(NAMES, [*draw_rows(4)[:3], "-" * 80], strict=True))
    result = evaluate(alignment, TREE, "JC", length_errors=True, device="numpy")
    tree = result.tree
    assert np.isfinite(result.length_errors[tree.edges[:2, 0]]).all()
    assert np.isnan(result.length_errors).sum() == 3
    rows = result.as_record()["branches"]
    assert [row["taxa"] for row in rows if row["error"] is not None] == [["a"], ["b"]]


def test_errors_of_unlinked_lengths_are_those_of_each_part(tmp_path):
    rows = draw_rows(5, 160)
    model = tmp_path / "parts"
    model.write_text("JC, x = 1-80\nK80{2}, y = 81-160\n")
    alignment = dict(zip(NAMES, rows, strict=True))
    both = evaluate(alignment, TREE, str(model), brlen="unlinked", length_errors=True, device="numpy")
    for number, name in enumerate(("JC", "K80{2}")):
        part = {taxon: row[80 * number : 80 * number + 80] for taxon, row in alignment.items()}
        alone = evaluate(part, both.parts[number].newick, name, length_errors=True, fixed=True, device="numpy")
        found = branch_splits(alone.tree, both.tree.names)
        order = [found.index(split) for split in branch_splits(both.tree)]
        np.testing.assert_allclose(both.length_errors[:, number], alone.length_errors[order], rtol=1e-6)


def test_command(tmp_path):
    alignment, tree, rates = tmp_path / "x.fasta", tmp_path / "t.nwk", tmp_path / "rates.tsv"
    alignment.write_text("".join(f">{name}\n{row}\n" for name, row in zip(NAMES, ROWS, strict=True)))
    tree.write_text(TREE)
    arguments = ["evaluate", str(alignment), "--tree", str(tree), "--model", "JC+G4{0.5}", "--device", "numpy"]
    arguments.append("--fixed")
    result = CliRunner().invoke(main, [*arguments, "--site-rates", str(rates), "--length-errors", "--json"])
    assert result.exit_code == 0, result.stderr
    assert len(json.loads(result.stdout)["branches"]) == 5
    lines = rates.read_text().splitlines()
    assert lines[0] == "site\trate"
    assert len(lines) == 11
    sites = tmp_path / "s.sitelh"
    assert CliRunner().invoke(main, [*arguments, "--site-lnl", str(sites)]).exit_code == 0
    assert sites.read_text().startswith("1 10\nTree1")
