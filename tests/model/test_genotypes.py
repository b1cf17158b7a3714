"""GT10 and GT16 against their definitions, worked out allele by allele."""

from itertools import combinations

import numpy as np
import pytest
from oracles.likelihood import pruning
from oracles.substitution import q_matrix

from plltool.analyses.toolbox.simulate import simulate
from plltool.errors import InputError
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.run.evaluation import evaluate

# CellPhy's states and their order
GENOTYPES = dict(zip("ACGTMRWSYK", ("AA", "CC", "GG", "TT", "AC", "AG", "AT", "CG", "CT", "GT"), strict=True))
RATES = dict(zip(("AC", "AG", "AT", "CG", "CT", "GT"), (1.5, 4.0, 0.8, 1.2, 5.0, 1.0), strict=True))
FREQUENCIES = [0.2, 0.15, 0.1, 0.15, 0.05, 0.1, 0.05, 0.05, 0.1, 0.05]
GIVEN = "GT10{1.5/4/0.8/1.2/5/1}+FU{" + "/".join(map(str, FREQUENCIES)) + "}"


def exchangeability(one, other):
    """0 unless the two can be written with one allele in common; then that of the alleles that differ."""
    for x in {one, one[::-1]}:
        for y in {other, other[::-1]}:
            if x[0] == y[0]:
                return RATES["".join(sorted(x[1] + y[1]))]
    return 0.0


TREE = "((a:0.1,b:0.2):0.3,c:0.1,d:0.2);"


def assert_lnl(data, sets, exchangeabilities, frequencies, model, device):
    """That of the oracle, which takes `sets` as bit masks of characters."""
    columns = [[sets[c] for c in column] for column in zip(*data.values(), strict=True)]
    components = [(1.0, np.array(frequencies), q_matrix(exchangeabilities, frequencies))]
    branches = [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)]
    expected = pruning(branches, [0.1, 0.2, 0.3, 0.1, 0.2], columns, components).sum()
    found = evaluate(data, TREE, model, fixed=True, device=device).lnl
    assert found == pytest.approx(expected, rel=1e-9)  # the exchangeability of 1e-12 in place of 0


def test_likelihood_is_the_oracles():
    data = {"a": "AMCTRKN", "b": "AACYRG?", "c": "MACTAK-", "d": "CAGTGGS"}
    sets = {letter: 1 << state for state, letter in enumerate(GENOTYPES)} | dict.fromkeys("N?-", 1023)
    own = [exchangeability(a, b) for a, b in combinations(GENOTYPES.values(), 2)]
    assert_lnl(data, sets, own, FREQUENCIES, GIVEN, "numpy")
    with pytest.raises(InputError, match="taxon 'a', site 1: found 'B', expected genotype, that is one of ACEFGI"):
        evaluate({**data, "a": "BMCTRKN"}, "((a,b),c,d);", GIVEN, device="numpy")
    with pytest.raises(InputError, match="expected 6 rates separated by slashes"):
        parse_model("GT10{1/2}")


# the states of GT16 in CellPhy's order, and the characters of those that are no homozygotes
PHASED = dict(
    zip(
        "ACGT123456EFIJLP",
        ("AA", "CC", "GG", "TT", "AC", "AG", "AT", "CG", "CT", "GT", "CA", "GA", "TA", "GC", "TC", "TG"),
        strict=True,
    )
)
SHARES = [0.13, 0.11, 0.09, 0.07, *[0.05] * 12]
GIVEN16 = "GT16{1.5/4/0.8/1.2/5/1}+FU{" + "/".join(map(str, SHARES)) + "}"


def phased_exchangeability(one, other):
    """That of the alleles that differ; 0 if those of both haplotypes do."""
    changed = [sorted(pair) for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    return RATES["".join(changed[0])] if len(changed) == 1 else 0.0


@pytest.mark.parametrize(
    ("given", "states", "exchangeability", "n_positive", "n_free"),
    [
        (GIVEN, GENOTYPES, exchangeability, 45 - 6 - 12 - 3, 5 + 9),  # not AA and CC; AA and CG; AC and GT
        (GIVEN16, PHASED, phased_exchangeability, 16 * 6 / 2, 5 + 15),
    ],
    ids=["GT10", "GT16"],
)
def test_exchangeabilities(given, states, exchangeability, n_positive, n_free):
    model = Model(parse_model(given))
    expected = [exchangeability(a, b) for a, b in combinations(states.values(), 2)]
    assert model.exchangeabilities == pytest.approx(expected, abs=1e-11)
    assert sum(rate > 0 for rate in expected) == n_positive
    assert model.spec.symbols == tuple(states)
    assert Model(parse_model(given.partition("{")[0])).n_free_parameters == n_free
    assert parse_model(str(model.spec)) == model.spec


def test_likelihood_with_phase_is_the_oracles(device):
    """Letters such as M are heterozygotes of unknown phase: either of two states."""
    data = {"a": "A1CTRKNE", "b": "AAC6RG?M", "c": "EACTAK-1", "d": "CAGPGGSe"}
    sets = {character: 1 << state for state, character in enumerate(PHASED)} | dict.fromkeys("N?-", (1 << 16) - 1)
    sets |= {letter: sets[a] | sets[b] for letter, a, b in ("M1E", "R2F", "W3I", "S4J", "Y5L", "K6P", "eEE")}
    own = [phased_exchangeability(a, b) for a, b in combinations(PHASED.values(), 2)]
    assert_lnl(data, sets, own, SHARES, GIVEN16, device)


def test_phase_does_not_matter_to_gt10():
    rows = {"a": "A1CTRK", "b": "AAC6RG", "c": "EACTAK", "d": "CAGPGG"}
    plain = {name: row.translate(str.maketrans("1E6P", "MMKK")) for name, row in rows.items()}
    found = [evaluate(data, TREE, GIVEN, fixed=True, device="numpy").lnl for data in (rows, plain)]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["GT10", "GT16"])
def test_simulated_rates_come_back(name):
    """Of 4,000 sites; standard errors are about a tenth."""
    tree = "((a:0.1,b:0.2):0.05,(c:0.3,d:0.08):0.12,(e:0.15,f:0.2):0.2);"
    made = simulate(tree, name + "{1.5/4/0.8/1.2/5/1}+FE", 4000, seed=3)
    found = evaluate(made.as_sequences(), tree, name + "+FE", device="numpy")
    assert found.models[0].ratios("rates").tolist() == pytest.approx([1.5, 4, 0.8, 1.2, 5], rel=0.3)
    assert found.tree.lengths.sum() == pytest.approx(1.4, rel=0.05)
