"""Posterior rates of sites beside a sum over all histories; standard errors of lengths beside a closed form."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from oracles.likelihood import site_likelihood
from oracles.substitution import gamma_category_means, q_matrix

from plltool.api import Likelihood, evaluate
from plltool.cli import main

NAMES = ("a", "b", "c", "d")
ROWS = ("ACGTACGTAA", "ACGTCCGAAA", "ACTTACG-AC", "ACGTAAGTAG")
TREE = "(a:0.1,b:0.2,(c:0.15,d:0.3):0.05);"
FREQUENCIES = [0.3, 0.2, 0.2, 0.3]
CODES = {"A": 1, "C": 2, "G": 4, "T": 8, "-": 15}


@pytest.mark.parametrize("invariable", [False, True])
def test_rates_are_those_of_the_sum_over_all_histories(invariable):
    model = f"HKY{{1/3}}+FU{{0.3/0.2/0.2/0.3}}{'+IU{0.4}' if invariable else ''}+G4{{0.6}}"
    rates, weights = gamma_category_means(0.6, 4), np.full(4, 0.25)
    if invariable:
        rates, weights = np.append(0.0, rates / 0.6), np.append(0.4, 0.6 * weights)
    q = q_matrix([1, 3, 1, 1, 3, 1], FREQUENCIES)
    with Likelihood(dict(zip(NAMES, ROWS, strict=True)), TREE, model, device="numpy", lnl_only=True) as likelihood:
        tree, found, lnl = likelihood.tree, likelihood.site_rates(), likelihood.lnl()
        assert likelihood.lnl() == lnl  # the model is what it was
    for site, column in enumerate(zip(*ROWS, strict=True)):
        sets = [CODES[letter] for letter in column]
        shares = [
            weight * site_likelihood(tree.ends.tolist(), tree.lengths, sets, [(1.0, FREQUENCIES, q * rate)])
            for rate, weight in zip(rates, weights, strict=True)
        ]
        assert found[site] == pytest.approx(np.dot(shares, rates) / sum(shares), rel=1e-10)


def test_rates_of_parts_are_relative_to_their_own(tmp_path):
    model = tmp_path / "parts"
    model.write_text("JC+G4{0.5}+BU{0.5}, x = 1-4\nJC+G4{0.5}+BU{5}, y = 6-10\n")
    with Likelihood(dict(zip(NAMES, ROWS, strict=True)), TREE, str(model), device="numpy") as likelihood:
        rates = likelihood.site_rates()
    assert np.isnan(rates[4])
    assert (rates[[0, 1, 2, 3, 5, 6, 7, 8, 9]] < 4).all()


def test_the_error_of_a_distance():
    """Two sequences (the others are gaps) under Jukes and Cantor: p (1 - p) / (n (1 - 4 p / 3)^2), their 1969."""
    n, n_different = 200, 30
    rows = {"a": "A" * n, "b": "C" * n_different + "A" * (n - n_different), "c": "-" * n, "d": "-" * n}
    p = n_different / n
    expected = math.sqrt(p * (1 - p) / n) / (1 - 4 * p / 3)
    result = evaluate(rows, "(a:0.1,b:0.1,(c:0.1,d:0.1):0.1);", "JC", length_errors=True, device="numpy")
    tree = result.tree
    assert tree.lengths[tree.edges[:2, 0]].sum() == pytest.approx(-0.75 * math.log(1 - 4 * p / 3), abs=1e-3)
    assert result.length_errors[tree.edges[:2, 0]] == pytest.approx([expected] * 2, rel=0.02)  # not quite converged
    assert np.isnan(result.length_errors[tree.edges[2, 0]])
    rows = result.as_record()["branches"]
    assert [row["taxa"] for row in rows if len(row["taxa"]) == 1 and row["error"] is not None] == [["a"], ["b"]]


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
