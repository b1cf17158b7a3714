"""Likelihoods of alignments in parts, mixed data among them, against sums of the oracle's under every linkage."""

import numpy as np
import pytest
from oracles.likelihood import derivative, pruning
from oracles.substitution import gamma_category_means, q_matrix

from plltool.alignment.states import DNA, PROTEIN
from plltool.api import Likelihood
from plltool.engine.shards import Shards

NAMES = ("a", "b", "c", "d", "e")
TREE = "(a:0.1,b:0.3,((c:0.2,d:0.15):0.05,e:0.4):0.12);"
SCHEME = r"""
GTR{1.2/3.4/0.8/1.1/4.1/1.0}+FU{0.3/0.2/0.26/0.24}+G4{0.6}%s, first = 1-40\2
LG+F+G2{0.9}%s, genes = 41-70
HKY{1.0/3.0}+FC%s, second = 2-40\2
JC+G4{0.5}%s, rest = 71-75, 76-.
"""
SCALERS = (0.7, 1.9, 1.3, 0.4)
DEVICES = ["numpy", pytest.param("opencl", marks=pytest.mark.opencl)]


@pytest.fixture(scope="module")
def sequences():
    """80 columns, 41 to 70 of them proteins; taxon e has no data in the first part, and there are gaps."""
    rng = np.random.default_rng(5)
    rows = []
    for name in NAMES:
        dna = rng.choice(list("ACGTRN-"), 50, p=[0.3, 0.2, 0.2, 0.2, 0.04, 0.03, 0.03])
        protein = rng.choice(list(PROTEIN.symbols + "X"), 30)
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
        q = q_matrix(model.exchangeabilities, model.frequencies)
        n = model.sites.n_categories if model.alpha else 1
        rates = gamma_category_means(model.alpha, n) if model.alpha else [1.0]
        components = [(1 / n, model.frequencies, q * rate) for rate in rates]
        lnls.append(sum(pruning(ends, own, as_masks(sequences, columns, space), components)))
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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("brlen", ["linked", "scaled", "unlinked"])
def test_lnl_and_derivatives(sequences, device, brlen):
    with open_one(sequences, device, brlen) as likelihood:
        assert isinstance(likelihood.engine, Shards)  # of 4, 1 and 2 x 20 components and states
        models, tree, lengths = likelihood.models, likelihood.tree, likelihood.lengths
        expected = oracle_parts(sequences, models, tree, lengths_of_parts(likelihood, lengths))
        np.testing.assert_allclose(likelihood.part_lnl(), expected, rtol=1e-10)
        assert likelihood.lnl() == pytest.approx(expected.sum(), rel=1e-11)
        sites = likelihood.site_lnl()
        for lnl, (columns, _) in zip(expected, PARTS.values(), strict=True):
            assert sites[list(columns)].sum() == pytest.approx(lnl, rel=1e-10)
        lnl, first, second = likelihood.derivatives()
        assert lnl == pytest.approx(expected.sum(), rel=1e-11)
        for edge in ([0, 3, 6] if brlen != "unlinked" else [(0, 1), (3, 0), (6, 3)]):

            def moved(length, edge=edge):
                changed = lengths.copy()
                changed[edge] = length
                return oracle_parts(sequences, models, tree, lengths_of_parts(likelihood, changed)).sum()

            d1, d2 = derivative(moved, lengths[edge], 1e-3)
            assert first[edge] == pytest.approx(d1, rel=1e-6, abs=1e-5)
            assert second[edge] == pytest.approx(d2, rel=1e-4, abs=1e-3)
