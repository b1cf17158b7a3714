"""Proteins, binary and multistate data from file to tree, and their models beside other programs."""

import numpy as np
import pytest
from helpers import PROTEIN_SEQUENCES, cherries

from plltool.analyses.ancestral.analysis import ancestral_states
from plltool.analyses.search.analysis import search
from plltool.analyses.toolbox.check import check
from plltool.analyses.toolbox.simulate import simulate
from plltool.errors import InputError
from plltool.io.alignment_reader import read_alignment
from plltool.run.evaluation import evaluate

N_MORPHOLOGY = 166  # columns of cynmix.nex, the first ones


def comb(names):
    """The most unbalanced tree, all branches 0.1 long."""
    text = f"{names[0]}:0.1"
    for name in names[1:-2]:
        text = f"({text},{name}:0.1):0.1"
    return f"({text},{names[-2]}:0.1,{names[-1]}:0.1);"


def morphology(shared):
    """The morphology of cynmix.nex with ? for sets of states, which other programs do not read."""
    given = read_alignment(shared / "data/cynmix.nex")
    rows = zip(given.names, given.rows, strict=True)
    return {name: "".join(chr(b) if b < 128 else "?" for b in row[:N_MORPHOLOGY]) for name, row in rows}


def binary(shared):
    return {name: "".join(c if c in "01" else "?" for c in row) for name, row in morphology(shared).items()}


def avian(shared):
    return shared / "data/avian_ovomucoids.phy"


def twelve(_shared):
    rng = np.random.default_rng(1)
    return {f"t{i}": "".join("0123456789AB"[k] for k in np.append(rng.integers(0, 12, 39), 11)) for i in range(6)}


# lnL on `comb` by IQ-TREE 2.0.7 (-st MORPH or BIN, -blfix), which prints 4 digits; its names are MK, ORDERED, JC2, GTR2
IQTREE = [
    (morphology, "MK", -4342.4467),
    (morphology, "MK+G4{0.5}", -4415.7180),
    (morphology, "MK+F+G4{0.5}", -2984.6728),
    (morphology, "ORDERED+G4{0.5}", -3358.3791),
    (morphology, "MULTI8_MK+R2{0.5/1.5}{0.5/0.5}", -4317.0860),
    (morphology, "MK+I{0.1}+G4{0.5}", -4433.1068),
    (binary, "MK", -2172.6379),
    (binary, "JC2+G4{0.5}", -2246.7923),
    (binary, "GTR2+F{0.7,0.3}+G4{0.5}", -2179.5939),
    (binary, "BIN+F", -2109.7605),
    (twelve, "MK+G4{0.5}", -711.5992),
    (twelve, "MULTI12_MK+F", -782.9709),
    # proteins, on trees/avian.fixed.nwk; IQ-TREE has its model strings written out: MIX{LG4M1,...}*G4{0.7},
    # LG+FMIX{C10pi1:1:0.119...}+G4{0.7}, MIX{BurEX2:0.672...:0.4,...}. Its C60 is left out: it raises weights below
    # 0.001, as one of the 60 is
    (avian, "LG+IU{0.1}+G4{0.7}", -3152.8306),
    (avian, "Poisson", -3544.6241),
    (avian, "LG4M+G4{0.7}", -3149.7096),
    (avian, "LG4X+R4{0.2/0.6/1.2/2.5}{0.25/0.3/0.25/0.2}", -3140.4801),
    (avian, "LG+C10+G4{0.7}", -3165.2368),
    (avian, "LG+C20+G4{0.7}", -3128.8386),
    (avian, "LG+C30", -3179.6552),
    (avian, "LG+C40", -3170.6601),
    (avian, "LG+C50", -3170.0419),
    (avian, "EX2{0.4/0.6}+G4{0.7}", -3146.0099),
    (avian, "UL3{0.4/0.4/0.2}", -3181.6095),
]


@pytest.mark.parametrize(("make", "model", "expected"), IQTREE)
def test_another_programs_likelihood(shared, make, model, expected):
    data = make(shared)
    tree = comb(list(data)) if isinstance(data, dict) else shared / "reference/trees/avian.fixed.nwk"
    result = evaluate(data, tree, model, fixed=True, device="numpy")
    assert result.lnl == pytest.approx(expected, abs=1e-4)


TREE = "((a:0.1,b:0.2):0.1,c:0.3,(d:0.2,e:0.1):0.2);"
DIGITS = {
    "a": "0001020310?120-0112300",
    "b": "0001020311?120-0112301",
    "c": "0101220310?100-0110300",
    "d": "1101023012?021-1012330",
    "e": "1101023013?021-1012310",
}
LETTERS = {name: "".join("789A"[int(c)] if c.isdigit() else c for c in row) for name, row in DIGITS.items()}


SEARCHES = {
    "multistate": (DIGITS, "MULTI4_MK", ["ORDERED+FO", "MULTI4_GTR", "MULTI10_MK+R2"]),
    "protein": (PROTEIN_SEQUENCES, "LG", ["LG+I+G2", "LG4X", "EX2"]),
}


@pytest.mark.parametrize(
    ("kind", "model"), [(kind, model) for kind, (*_, models) in SEARCHES.items() for model in (None, *models)]
)
def test_search(kind, model):
    """lnL is that of the tree and model that are printed; taxa that share their changes end together."""
    data, default, _ = SEARCHES[kind]
    result = search(data, model, device="numpy")
    assert result.parameters["data"] == kind
    assert model is not None or result.model.startswith(f"{default}+G4{{")
    again = evaluate(data, result.newick, result.model, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(result.lnl, rel=1e-9)
    assert frozenset("de") in cherries(result.tree)


def test_labels_of_states_do_not_matter_to_mk():
    """With equal exchangeabilities and frequencies, which of as many states is called what is the same."""
    other = {name: row.translate(str.maketrans("0123", "3120")) for name, row in DIGITS.items()}
    found = [evaluate(data, TREE, "MK", fixed=True, device="numpy").lnl for data in (DIGITS, other)]
    assert found[1] == pytest.approx(found[0], rel=1e-12)


def test_ancestors_are_written_in_symbols():
    result = ancestral_states(LETTERS, TREE, "MK", device="numpy")
    assert result.ancestors[0].symbols == tuple("0123456789A")
    columns = zip(*LETTERS.values(), strict=True)
    known = [site for site, column in enumerate(columns) if set(column) - set("?-")]
    assert {row[site] for row in result.sequences().values() for site in known} <= set("789A")


def test_check_counts_states():
    facts = check(LETTERS, device="numpy")
    assert (facts["data"], facts["model"]) == ("multistate", "MULTI11_MK+G4")
    assert list(facts["frequencies"]) == list("0123456789A")
    assert any("the symbol A makes 11 states, of which only 4 occur" in line for line in facts["warnings"])


MIXED = {name: row[:6] + seq for (name, row), seq in zip(
    DIGITS.items(), ("ACGTACGTAC", "ACGTACGTAA", "ACCTACGAAC", "AGCTTCGAAC", "AGCTTCGAAT"), strict=True)}  # fmt: skip


def test_parts_of_different_numbers_of_states():
    """lnL of a whole is the sum over its parts, whatever their states; lengths are linked."""
    lines = "MULTI5_MK, one = 1-2\nBIN+FU{0.6/0.4}, two = 3-4\nORDERED, three = 5-6\nK80{2}, dna = 7-16"
    whole = evaluate(MIXED, TREE, lines, fixed=True, device="numpy", brlen="linked").lnl
    cuts = [((0, 2), "MULTI5_MK"), ((2, 4), "BIN+FU{0.6/0.4}"), ((4, 6), "ORDERED"), ((6, 16), "K80{2}")]
    parts = [
        evaluate({name: row[a:b] for name, row in MIXED.items()}, TREE, model, fixed=True, device="numpy").lnl
        for (a, b), model in cuts
    ]
    assert whole == pytest.approx(sum(parts), rel=1e-12)


def test_a_part_for_each_number_of_states():
    """Columns of DIGITS have two to four states: as many as their largest symbol says, at least two."""
    result = evaluate(DIGITS, TREE, "MULTI*_MK", fixed=True, device="numpy", brlen="linked")
    states = [max(2, *(int(c) + 1 for c in column if c.isdigit())) if set(column) & set("0123") else 2
              for column in zip(*DIGITS.values(), strict=True)]  # fmt: skip
    expected = 0.0
    for n in (2, 3, 4):
        own = {name: "".join(c for c, k in zip(row, states, strict=True) if k == n) for name, row in DIGITS.items()}
        expected += evaluate(own, TREE, f"MULTI{n}_MK", fixed=True, device="numpy").lnl
    assert result.lnl == pytest.approx(expected, rel=1e-12)
    assert [part.name for part in result.parts] == ["states_2", "states_3", "states_4"]


@pytest.mark.parametrize(
    ("model", "group", "expected"),
    [
        ("BIN+FU{0.3/0.7}", "frequencies", [0.3, 0.7]),
        ("MULTI3_GTR{0.5/2/1}+FU{0.5/0.3/0.2}", "rates", [0.5, 2, 1]),
        ("MULTI5_ORDERED+FU{0.4/0.2/0.2/0.1/0.1}", "frequencies", [0.4, 0.2, 0.2, 0.1, 0.1]),
    ],
)
def test_simulated_values_come_back(model, group, expected):
    made = simulate(TREE, model, 8000, seed=3)
    name = model.split("+")[0].split("{")[0]
    found = evaluate(made.as_sequences(), TREE, f"{name}+FO", device="numpy")
    assert list(found.parameters[group].values()) == pytest.approx(expected, rel=0.15)


def test_simulated_symbols():
    """Each of 40 states occurs in 2,000 columns of equal frequencies, and keeps its symbol."""
    made = simulate(TREE, "MULTI40_MK", 2000, seed=3)
    assert set("".join(made.sequences)) == set('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ!"#$')
    with pytest.raises(InputError, match="model 'MK' has as many states as the data, expected their number, such as M"):
        simulate(TREE, "MK", 10)


@pytest.mark.parametrize(
    ("data", "model", "message"),
    [
        (PROTEIN_SEQUENCES, "GTR+G4", "found protein data, expected DNA for model 'GTR+FO+G4'"),
        (
            dict(zip("abcde", ("ACGT", "ACGA", "ACTA", "AATA", "AATT"), strict=True)),
            "LG",
            "found DNA data, expected protein",
        ),
        (DIGITS, "GTR", "found multistate data, expected DNA for model 'GTR+FO'"),
        (DIGITS, "MULTI3_MK", "taxon 'a', site 8: found '3', expected multistate, that is one of -.012?"),
        (DIGITS, "BIN", "taxon 'a', site 6: found '2', expected multistate, that is one of -.01?"),
        ({**DIGITS, "e": "1101023013?021-10*2310"}, "MK", "taxon 'e', site 18: found '*', expected multistate"),
        (MIXED, "MK", "found digits in columns 1-6 and letters of DNA in columns 7-16"),
        (MIXED, None, '"MK+G4, digits = 1-6" and "GTR+F+G4, letters = 7-16"'),
        (MIXED, "HKY", '"MK+G4, digits = 1-6" and "HKY+FO, letters = 7-16"'),
        (
            {name: row + "A" for name, row in MIXED.items()} | {"a": MIXED["a"] + "1"},
            None,
            "site 1: found '0', expected DNA",
        ),
    ],
)
def test_data_that_do_not_fit(data, model, message):
    with pytest.raises(InputError) as caught:
        evaluate(data, TREE, model, device="numpy")
    assert message in str(caught.value)


def test_sites_under_a_mixture_sum_to_the_whole():
    result = evaluate(PROTEIN_SEQUENCES, TREE, "LG+C10+I{0.1}", fixed=True, device="numpy", site_lnl=True)
    assert result.site_lnl.shape == (26,)
    assert np.sum(result.site_lnl) == pytest.approx(result.lnl, rel=1e-12)
