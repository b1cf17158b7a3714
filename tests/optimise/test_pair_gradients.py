"""Gradients in the parameters of models of doublets and genotypes against differences of the oracle."""

from itertools import product

import pytest
from oracles.codons import IUPAC
from oracles.likelihood import pruning
from oracles.substitution import gamma_category_means, q_matrix
from slopes import assert_slopes, disturb

import plltool
from plltool.model.vector import get_vector

TREE = "((a:0.1,b:0.3):0.2,c:0.15,(d:0.25,e:0.4):0.1);"
ENDS = [(0, 5), (1, 5), (5, 6), (2, 6), (6, 7), (3, 7), (4, 7)]
LENGTHS = [0.1, 0.3, 0.2, 0.15, 0.1, 0.25, 0.4]
ROWS = {"a": "ACGURCAGGU", "b": "GCGUGCACGC", "c": "GCAUGYA-GC", "d": "AUGUUWCAGU", "e": "ACGUGCAUNU"}
PAIRS = ["".join(pair) for pair in product("ACGT", repeat=2)]
STEMS = ", stems = 1:10 2:9 3:8 4:7 5:6"
GENOTYPES = "ACGT123456EFIJLP"
LETTERS = {"M": "1E", "R": "2F", "W": "3I", "S": "4J", "Y": "5L", "K": "6P", "N": GENOTYPES, "-": GENOTYPES}
SAMPLES = {"a": "A1CTRKNE", "b": "AAC6RGNM", "c": "EACTAK-1", "d": "CAGPGGSE", "e": "1ACTGG3I"}
DEVICES = [
    {"device": "numpy"},
    pytest.param({"device": "opencl"}, marks=pytest.mark.opencl),
    pytest.param({"device": "opencl", "vw": 32}, marks=[pytest.mark.opencl, pytest.mark.slow]),
]


def doublet_columns():
    allowed = [
        [[a + b for a, b in product(IUPAC[row[k]], IUPAC[row[9 - k]])] for row in ROWS.values()] for k in range(5)
    ]
    return [[sum(1 << PAIRS.index(pair) for pair in some) for some in column] for column in allowed]


def genotype_columns():
    columns = zip(*SAMPLES.values(), strict=True)
    return [[sum(1 << GENOTYPES.index(one) for one in LETTERS.get(c, c)) for c in column] for column in columns]


def oracle_lnl(model, columns):
    """lnL of a model's values, everything else from the oracles."""
    pi = model.frequencies
    q = q_matrix(model.exchangeabilities, pi)
    rates = [1.0] if model.alpha is None else gamma_category_means(model.alpha, model.sites.n_categories)
    return sum(pruning(ENDS, LENGTHS, columns, [(1 / len(rates), pi, q * rate) for rate in rates]))


@pytest.mark.parametrize("device", DEVICES, ids=lambda settings: "-".join(map(str, settings.values())))
@pytest.mark.parametrize(
    ("data", "text", "columns"),
    [
        (ROWS, f"S16A+FO+G2{STEMS}", doublet_columns()),
        (ROWS, f"S16+FE{STEMS}", doublet_columns()),
        (SAMPLES, "GT16+FO", genotype_columns()),
    ],
    ids=["S16A", "S16", "GT16"],
)
def test_every_parameter(data, text, columns, device):
    with plltool.Likelihood(data, TREE, text, **device) as likelihood:
        model = disturb(likelihood._likelihood, 0.2)
        n = len(get_vector(model))
        chosen = range(0, n, max(1, n // 12))
        # rounding of lnL over the step: 1e-10
        assert_slopes(likelihood._likelihood, lambda one: oracle_lnl(one, columns), 1e-3, chosen, abs=1e-6)
