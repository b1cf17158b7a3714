"""Models of parts: IQ-TREE's optima of the schemes, merging by hand and of simulated parts, and the search after it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from small_alignments import PRIMATES_TREE as TREE

import plltool
from plltool.analyses.selection.merging import Grouping, PartGroup, distinct_names
from plltool.model.model_string import parse_model

# What iqtree2 2.0.7 -s data/primates.phy -te TREE -p (scaled), -q (linked) or -Q (unlinked) says of these schemes: lnL,
# number of parameters, BIC. Its own choice for scaled lengths, -m MF+MERGE, has BIC 11134.1174
IQTREE = {
    "scaled": ({"pos1_rna": "HKY+FO+G4", "pos2": "HKY+FO+IO", "pos3": "TN93+FO+R2"}, -5425.9836, 40, 11123.9740),
    "linked": ({"pos1": "TN93+FO+G4", "pos2_rna": "HKY+FO+G4", "pos3": "TN93+FO"}, -5538.1645, 37, 11327.9353),
    "unlinked": ({"pos1_pos2_rna": "TPM2uf+FO+G4", "pos3": "TN93+FO"}, -5451.9655, 53, 11264.3401),
}


@pytest.mark.parametrize(
    "brlen",
    ["scaled", pytest.param("linked", marks=pytest.mark.slow), pytest.param("unlinked", marks=pytest.mark.slow)],
)
def test_no_scheme_is_below_that_of_iqtree(brlen, data_dir):
    expected, lnl, n_parameters, bic = IQTREE[brlen]
    choice = plltool.select_scheme(
        data_dir / "primates.phy",
        data_dir / "primates.part",
        TREE,
        merge="greedy",
        brlen=brlen,
        free_rates=brlen == "scaled",
        threads=1,
    )
    assert {part.name: part.best.name for part in choice.parts} == expected
    assert choice.lnl > lnl - 0.01
    assert choice.n_parameters == n_parameters
    assert choice.bic == pytest.approx(bic - 2 * (choice.lnl - lnl), abs=2e-4), "IQ-TREE prints 4 digits"


SMALL = "((a:0.2,b:0.2):0.2,(c:0.2,d:0.2):0.2,e:0.4);"
SITES = 200
MODELS = {  # two kinds of parts, which differ in their exchangeabilities and frequencies
    "a": "GTR{1/8/1/1/8/1}+FU{0.4/0.1/0.1/0.4}",
    "b": "GTR{1/1/6/1/1/6}+FU{0.1/0.4/0.4/0.1}",
}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Four parts, a b a b, and their partition file."""
    made = [plltool.simulate(SMALL, MODELS[kind], SITES, seed=seed) for seed, kind in enumerate("abab")]
    rows = {name: "".join(part.sequences[part.names.index(name)] for part in made) for name in made[0].names}
    lines = [f"DNA, p{k} = {k * SITES + 1}-{(k + 1) * SITES}" for k in range(4)]
    file = tmp_path_factory.mktemp("scheme") / "four.part"
    file.write_text("\n".join(lines))
    return rows, file


SETTINGS = {"free_rates": False, "threads": 1}


@pytest.fixture(scope="module")
def choice(simulated):
    return plltool.select_scheme(*simulated, merge="greedy", seed=3, **SETTINGS)


def test_parts_that_evolve_alike_are_merged(choice, simulated):
    assert [part.members for part in choice.parts] == [("p0", "p2"), ("p1", "p3")]
    assert [part.sites for part in choice.parts] == ["1-200, 401-600", "201-400, 601-800"]
    scores = [merged.score for merged in choice.merges]
    assert scores == sorted(scores, reverse=True)
    again = plltool.evaluate(simulated[0], choice.newick, choice.as_record()["model"], fixed=True, device="numpy")
    assert again.lnl == pytest.approx(choice.lnl, rel=1e-9)


def test_all_parts_begin_together_where_each_of_them_ended(simulated, monkeypatch):
    """At their own rates, before everything is optimised together."""
    monkeypatch.setattr("plltool.analyses.selection.analysis.polish", lambda _: None)
    settings = SETTINGS | {"candidates": ["JC", "HKY", "GTR"], "device": "numpy"}
    parts = plltool.select_scheme(*simulated, seed=3, **settings).parts
    assert [part.lnl for part in parts] == pytest.approx([part.best.lnl for part in parts], abs=1e-6)


def test_of_the_models_given_only_the_kind_of_data_counts(simulated):
    """Models that need a root are no exception."""
    settings = SETTINGS | {"candidates": ["JC", "HKY", "GTR"]}
    schemes = [
        plltool.select_scheme(simulated[0], f"{first}, a = 1-60\n{second}, b = 61-120", **settings).scheme
        for first, second in (("DNA", "DNA"), ("UNREST+G4", "RY5.6b"))
    ]
    assert schemes[0] == schemes[1]


def test_a_search_chooses_the_same_models_with_the_same_digits(choice, simulated):
    rows, file = simulated
    settings = {"effort": "fast", "seed": 3, "threads": 1}
    found = plltool.search(rows, "test+merge", partitions=file, **settings)
    assert found.choice.summary() == choice.summary()
    assert found.as_record()["model_choice"] == choice.as_record()["model_choice"]
    plain = plltool.search(rows, choice.scheme, **settings)
    assert (found.lnl, found.newick, found.model) == (plain.lnl, plain.newick, plain.model)


# --- merging by hand: lnL of each group of parts from a table ------------------------------------------------

N_SITES = 100
COLUMNS = np.arange(N_SITES // 4)[:, None]  # of each part; one column makes a site
PARAMETERS = 10


class TableFitter:
    """Stands in for a fitter: the lnL of a group is given, whatever its data."""

    def __init__(self, lnls):
        self._lnls = lnls
        self.asked = []

    def fit_of(self, data, model, tree, lnl):
        return SimpleNamespace(data=data, model=model, tree=tree, lnl=lnl)

    def run(self, steps):
        if hasattr(steps[0], "specs"):
            return [[step.sources[0]] for step in steps]
        fits = []
        for step in steps:
            self.asked.append(name := step.fit.data)
            fits.append(fit(name, self._lnls[name], 0.1))
        return fits


def fit(name, lnl, rate, model="JC"):
    spec = parse_model(model)
    return SimpleNamespace(
        data=name, model=None, tree=None, lnl=lnl, spec=spec, n_parameters=PARAMETERS, overall_rate=rate
    )


@pytest.fixture
def by_hand(monkeypatch):
    """A function that merges parts a, b, c, d, each of lnL -100, and returns the scheme and what was tried."""
    join = "plltool.analyses.selection.merging._join"
    monkeypatch.setattr(join, lambda pair: "".join(sorted(part.name for group in pair for part in group.parts)))

    def merge(lnls, algorithm, percent=100.0, models=("JC",) * 4, columns=(COLUMNS,) * 4):
        parts = [
            SimpleNamespace(name=name, ranges=name, sites=np.arange(N_SITES // 4), columns=own)
            for name, own in zip("abcd", columns, strict=True)
        ]
        rates = [0.1, 1.0, 0.11, 5.0]
        groups = [
            PartGroup((part,), fit(part.name, -100.0, rate, model))
            for part, rate, model in zip(parts, rates, models, strict=True)
        ]
        scheme, fitter = Grouping(groups, "BIC", 5), TableFitter(lnls)
        scheme.merge(fitter, algorithm, percent)
        return scheme, fitter.asked

    return merge


SAVED = PARAMETERS * math.log(N_SITES) / 2  # lnL that a merge may cost: 23.03
PAIRS = {"ab": -205.0, "ac": -215.0, "ad": -300.0, "bc": -300.0, "bd": -300.0, "cd": -210.0}
TRIPLES = {"abc": -330.0, "abd": -330.0, "acd": -400.0, "bcd": -400.0}


def test_greedy_merges_the_best_pair_of_each_round(by_hand):
    scheme, asked = by_hand(PAIRS | TRIPLES | {"abcd": -500.0}, "greedy")
    assert [group.name for group in scheme.groups] == ["a_b", "c_d"]
    assert [(one.first, one.second) for one in scheme.merges] == [("a", "b"), ("c", "d")]
    start = 45 * math.log(N_SITES) + 800
    gains = [2 * SAVED - 10, 2 * SAVED - 20]
    assert [one.score for one in scheme.merges] == pytest.approx([start - gains[0], start - sum(gains)], rel=1e-12)
    assert asked == ["ab", "ac", "ad", "bc", "bd", "cd", "abc", "abd", "abcd"]  # each once


def test_rclusterf_merges_disjoint_pairs_in_one_round(by_hand):
    scheme, asked = by_hand(PAIRS | TRIPLES | {"abcd": -500.0}, "rclusterf")
    assert [group.name for group in scheme.groups] == ["a_b", "c_d"]
    assert asked == ["ab", "ac", "ad", "bc", "bd", "cd", "abcd"]


def test_rcluster_tries_the_pairs_of_most_similar_rates(by_hand):
    """Logarithms of the rates: a and c differ by 0.1, b and d by 1.6, all others by more."""
    scheme, asked = by_hand(PAIRS | TRIPLES, "rcluster", 20.0)  # 2 of 6 pairs, 1 of 3
    assert asked == ["ac", "bd"]  # b and d again, in the second round
    assert [group.name for group in scheme.groups] == ["a_c", "b", "d"]


def test_parts_with_corrections_of_their_own_stay_apart(by_hand):
    """Two parts with 5 unseen sites each have 10 together, so no common model describes them."""
    lnls = dict.fromkeys(PAIRS, -200.0)
    scheme, asked = by_hand(lnls, "greedy", models=("JC+ASC_FELS{5}",) * 2 + ("JC+ASC_STAM{1/2/3/4}",) * 2)
    assert (asked, len(scheme.groups)) == ([], 4)
    scheme, asked = by_hand(lnls, "greedy", models=("JC+ASC", "K80", "JC+ASC", "JC+ASC_FELS{5}"))
    assert asked == ["ac"]
    assert [group.name for group in scheme.groups] == ["a_c", "b", "d"]


def test_merged_parts_have_names_of_their_own():
    """Parts a, b and a_b: the group of a and b gets a number, since that of a_b alone keeps its name."""
    parts = {name: SimpleNamespace(name=name) for name in ("a", "b", "a_b", "c", "b_c")}
    groups = [("a", "b"), ("a_b",), ("c",)]
    made = [PartGroup(tuple(parts[name] for name in names), None) for names in groups]
    assert distinct_names(made) == ["a_b_2", "a_b", "c"]
    made = [PartGroup(tuple(parts[name] for name in names), None) for names in [("a", "b_c"), ("a_b", "c")]]
    assert distinct_names(made) == ["a_b_c", "a_b_c_2"]


def test_parts_of_codons_merge_only_if_no_codon_is_torn(by_hand):
    """Columns are read from left to right, so codons 1 3 5 and 2 4 6 would become 1 2 3 and 4 5 6."""
    columns = [np.array(rows) for rows in ([[0, 2, 4]], [[1, 3, 5]], [[6, 7, 8], [12, 14, 15]], [[9, 10, 11]])]
    _, asked = by_hand(dict.fromkeys(PAIRS, -200.0) | dict.fromkeys(TRIPLES, -400.0), "greedy", columns=columns)
    assert asked == ["ac", "ad", "bc", "bd", "cd", "acd"]


def test_a_merge_that_costs_more_than_it_saves_is_not_made(by_hand):
    scheme, _ = by_hand(dict.fromkeys(PAIRS, -200 - SAVED - 0.01), "greedy")
    assert not scheme.merges
    scheme, _ = by_hand({pair: -200 - SAVED + 0.01 * (pair == "cd") for pair in PAIRS} | TRIPLES, "greedy")
    assert [(one.first, one.second) for one in scheme.merges] == [("c", "d")]


# --- bad requests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"merge": "best"}, "merge: found 'best', expected one of: greedy, rcluster, rclusterf"),
        ({"merge": "rcluster", "percent": 0}, "percent: found 0, expected more than 0 and at most 100"),
        ({"merge": "rcluster", "brlen": "linked"}, "merge: found 'rcluster' with linked lengths"),
        ({"brlen": "equal"}, "brlen: found 'equal', expected one of: linked, scaled, unlinked"),
        ({"partitions": "DNA, a = 1-14\nGT10, b = 15-24"}, "partition 'b': .*no candidates for genotype data"),
        ({"criterion": "DIC"}, "criterion: found 'DIC'"),
        ({"partitions": "GTR+G4"}, r"partitions: found a model, 'GTR\+FO\+G4', expected a file with the partitions"),
        ({"partitions": "DNA, a = 1-14\nDNA, b = 15-24", "criterion": "AICc"}, "24 sites are too few for AICc"),
    ],
)
def test_bad_requests(settings, message, simulated):
    rows, file = simulated
    settings = {"partitions": file, "device": "numpy"} | settings
    with pytest.raises(plltool.InputError, match=message):
        plltool.select_scheme(rows, settings.pop("partitions"), **settings)


@pytest.mark.parametrize(
    ("word", "with_partitions", "message"),
    [
        ("HKY", True, "model: found 'HKY' beside partitions, expected 'auto' to choose one for each partition"),
        ("auto+ASC", True, r"model: found 'auto\+ASC' beside partitions, expected \+ASC in the lines of partitions"),
        ("auto+MERGE", False, r"model: found 'auto\+MERGE' without partitions, expected a file with the partitions"),
    ],
)
def test_words_that_do_not_go_with_partitions_or_without(word, with_partitions, message, simulated):
    rows, file = simulated
    with pytest.raises(plltool.InputError, match=message):
        plltool.search(rows, word, partitions=file if with_partitions else None, device="numpy")


def test_partitions_without_a_model_have_the_models_in_their_file(simulated):
    rows, file = simulated
    settings = {"effort": "fast", "device": "numpy"}
    found, expected = plltool.search(rows, partitions=file, **settings), plltool.search(rows, file, **settings)
    assert found.lnl == expected.lnl
    assert found.model == expected.model


def test_the_default_model_is_announced(simulated, caplog):
    caplog.set_level("INFO", logger="plltool")
    plltool.search(simulated[0], effort="fast", device="numpy")
    assert "model: GTR+F+G4, the default; search --model auto chooses one" in caplog.text
    caplog.clear()
    plltool.search(simulated[0], "GTR+F+G4", effort="fast", device="numpy")
    assert "the default" not in caplog.text
