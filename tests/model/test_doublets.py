"""Doublets against matrices written out pair by pair, and against RAxML 8 (`-A S16A -S stems.str`)."""

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from oracles.codons import IUPAC
from oracles.likelihood import pruning
from oracles.substitution import q_matrix
from refusals import refused
from verify_reference import ROWS, row_label

from plltool.analyses.ancestral.analysis import ancestral_states
from plltool.analyses.toolbox.simulate import simulate
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.run.evaluation import evaluate
from plltool.run.inputs import resolve_inputs

DATA = Path(__file__).resolve().parents[2] / "data"
ALIGNMENT, STRUCTURE = str(DATA / "stems.phy"), str(DATA / "stems.str")
PAIRS = ["".join(pair) for pair in product("ACGT", repeat=2)]
TREE = "((a:0.1,b:0.2):0.3,c:0.1,d:0.2);"
BRANCHES, LENGTHS = [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)], [0.1, 0.2, 0.3, 0.1, 0.2]
SEQUENCES = {"a": "ACGUGRN-", "b": "GCGUGCAU", "c": "GCAUGYAU", "d": "AUGUUWC?"}
COLUMNS = [(1, 8), (2, 7), (3, 6)]  # from 1: bases that pair; 4 and 5 are left over
# Savill, Hoyle & Higgs 2001: alpha_s, alpha_d, beta, gamma, epsilon; None where nothing changes
CHANGES = {
    ("AT", "GT"): 0, ("CG", "TG"): 0, ("GC", "GT"): 0, ("TA", "TG"): 0,
    ("AT", "GC"): 1, ("CG", "TA"): 1,
    ("AT", "CG"): 2, ("AT", "TA"): 2, ("GC", "TG"): 2, ("GT", "TA"): 2, ("GC", "TA"): 2, ("CG", "GC"): 2,
    ("AA", "AT"): 3, ("AC", "GC"): 3, ("GA", "TA"): 3,
    ("AA", "AC"): 4, ("CC", "CT"): 4, ("GG", "AG"): 4,
    ("AA", "CC"): None, ("AA", "GC"): None, ("CC", "GG"): None, ("AT", "GG"): None,
}  # fmt: skip


def masks(rows):
    allowed = [["".join(p) for p in product(*(IUPAC[row[c - 1]] for c in pair))] for pair in COLUMNS for row in rows]
    codes = [sum(1 << PAIRS.index(pair) for pair in some) for some in allowed]
    return [codes[k : k + len(rows)] for k in range(0, len(codes), len(rows))]


def braces(values):
    return "{" + "/".join(map(repr, values)) + "}"


@pytest.mark.parametrize(("name", "values"), [("S16A{2/3/5/7/11}", (2, 3, 5, 7, 11)), ("S16B", (1, 1, 1, 1, 1))])
def test_kinds_of_changes(name, values):
    model = Model(parse_model(name + "+FE"))
    found = dict(zip(combinations(PAIRS, 2), model.exchangeabilities.tolist(), strict=True))
    relative = {pair: rate / found[("AA", "AT")] for pair, rate in found.items()}
    for pair, kind in CHANGES.items():
        expected = 0.0 if kind is None else values[kind] / values[3]
        assert relative[tuple(sorted(pair))] == pytest.approx(expected, abs=1e-10), pair
    changing = sum(rate > 1e-6 for rate in relative.values())
    assert changing == 15 + 48 - 4  # pairs that hold; one base of 16 pairs differs
    assert parse_model(str(model.spec)) == model.spec


def test_free_parameters():
    counts = [Model(parse_model(f"{name}+FE")).n_free_parameters for name in ("S16", "S16A", "S16B")]
    assert counts == [119, 4, 0]
    assert Model(parse_model("S16"), np.full(16, 1 / 16)).n_free_parameters == 119 + 15


def test_likelihood_is_the_oracles(device):
    """All 120 exchangeabilities and frequencies differ; letters for several bases, gaps and unknown bases."""
    rng = np.random.default_rng(1)
    rates, frequencies = rng.uniform(0.2, 2, 120).round(3), rng.uniform(1, 3, 16)
    frequencies /= frequencies.sum()
    given = f"S16{braces(rates.tolist())}+FU{braces(frequencies.tolist())}"
    model = f"{given}, stems = 7:2, 3:6 1:8"
    components = [(1.0, frequencies, q_matrix(rates, frequencies))]
    expected = pruning(BRANCHES, LENGTHS, masks(list(SEQUENCES.values())), components).sum()
    found = evaluate(SEQUENCES, TREE, model, fixed=True, device=device).lnl
    assert found == pytest.approx(expected, rel=1e-11)  # exchangeabilities are divided by the last one


STEM_ROWS = [row for row in json.loads(ROWS.read_text(encoding="utf-8")) if row["data"] == "stems.phy"]


@pytest.mark.parametrize("row", STEM_ROWS, ids=row_label)
def test_likelihood_is_that_of_raxml(row):
    """RAxML 8.2.12, `-f e -m GTRGAMMA -A S16 -S data/stems.str`; its values have six decimals."""
    options = {"brlen": "linked", "device": "numpy"}
    found = evaluate(ALIGNMENT, row["tree"], row["fixed"], fixed=True, **options).lnl
    assert found == pytest.approx(row["lnl"], abs=1e-4)
    assert evaluate(ALIGNMENT, row["tree"], row["model"], **options).lnl > row["lnl"] - 0.01


def test_partition_is_written_and_read():
    data, models = resolve_inputs(SEQUENCES, "S16B, stems = 8:1 2:7\nJC, loops = 3-6")
    stems = data.parts[0]
    assert stems.ranges == "1:8, 2:7"
    assert sorted(map(tuple, stems.columns.tolist())) == [(0, 7), (1, 6)]
    again, _ = resolve_inputs(SEQUENCES, f"{models[0].spec}, stems = {stems.ranges}")
    np.testing.assert_array_equal(again.parts[0].alignment.codes, stems.alignment.codes)


def test_counted_frequencies():
    """An ambiguous pair counts for each pair that it may be, and one without data not at all."""
    data = {"a": "AU", "b": "AU", "c": "RU", "d": "-N"}
    model = resolve_inputs(data, "S16B, stems = 1:2")[1][0]
    assert dict(zip(PAIRS, model.frequencies.tolist(), strict=True)) == pytest.approx(
        dict.fromkeys(PAIRS, 0.0) | {"AT": 2.5 / 3, "GT": 0.5 / 3}, abs=1e-6
    )


def test_simulated_pairs_stand_in_their_columns():
    shares = [0.0001] * 16
    shares[PAIRS.index("AG")] = 1 - 15 * 0.0001
    model = f"S16B+FU{braces(shares)}, stems = 1:4 2:3"
    assert set(simulate(TREE, model, 4, seed=1).sequences) == {"AAGG"}


def test_simulated_values_come_back(tmp_path):
    """Of 3,000 pairs; rates are relative to gamma, and standard errors about a tenth."""
    tree, path = "((a:0.1,b:0.2):0.05,(c:0.3,d:0.08):0.12,(e:0.15,f:0.2):0.2);", tmp_path / "stems.part"
    stems = " ".join(f"{2 * k + 1}:{2 * k + 2}" for k in range(3000))
    made = simulate(tree, f"S16A{{2/3/5/7/11}}+FE, stems = {stems}", 6000, seed=3)
    path.write_text(f"S16A+FE, stems = {stems}\n")
    found = evaluate(made.as_sequences(), tree, path, device="numpy")
    rates = list(found.models[0].rate_parameters.values())
    assert rates == pytest.approx([2 / 7, 3 / 7, 5 / 7, 1, 11 / 7], rel=0.3)
    assert found.tree.lengths.sum() == pytest.approx(1.4, rel=0.05)


def test_ancestors_have_both_bases():
    rows = dict.fromkeys("abcd", "AAGU")
    found = ancestral_states(rows, TREE, "S16B+FE, stems = 1:4 2:3", device="numpy").sequences()
    assert set(found.values()) == {"AAGT"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("S16", "expected pairs of columns in a partition file, such as 5:70 or pairs{FILE}, for model 'S16+F'"),
        ("S16, stems = 1-8", "partition 'stems': found single columns, expected pairs of columns"),
        ("S16, stems = 1:8 2", "partition 'stems': found single columns"),
        (
            "GTR, stems = 1:8",
            "partition 'stems': found pairs of columns, expected ranges, or a model of pairs such as S16",
        ),
        ("S16, stems = 1:8 2:8", "column 8 is already in partition 'stems'"),
        ("S16, stems = 1:9", "found columns 1:9, expected columns within 1-8"),
        ("S16, stems = 3:3", "partition 'stems': found '3:3', expected two different columns"),
        ("S16{1/2}, s = 1:8", "expected 120 exchangeabilities (AA-AC AA-AG .. TG-TT), found 2"),
        ("S16A{1/2}, s = 1:8", "expected 5 values (alpha_s, alpha_d, beta, gamma, epsilon), found 2"),
        ("S16B{1}, s = 1:8", "the exchangeabilities of this model are fixed"),
    ],
)
def test_errors(model, message):
    with refused(message):
        resolve_inputs(SEQUENCES, model)
