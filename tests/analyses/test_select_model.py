"""The choice of a model: scores by hand, IQ-TREE's optima, nested models in order, and the search that follows."""

import contextlib
import itertools
import json
import math

import pytest
from interruptions import Stop
from small_alignments import PRIMATES_TREE as TREE
from small_alignments import primates as taxa

import plltool
from plltool.alignment.spaces import codon_space
from plltool.alignment.states import DNA, GENOTYPES, PROTEIN, multistate_space
from plltool.analyses.selection.course import Selection
from plltool.analyses.selection.model_fits import Begin, Carry, Fit, PartData
from plltool.constants import LINKAGES
from plltool.model.candidates import Candidates, information_score, is_nested, score_weights, substitution_models
from plltool.model.model import Model
from plltool.model.model_string import parse_model

# lnL, number of parameters and BIC of iqtree2 2.0.7 -s data/primates.phy -te TREE -m CODE+FO+RATES
IQTREE = {
    "HKY+FO+G4": (-5711.9406, 26, 11600.6857),
    "HKY+FO+R3": (-5709.6677, 29, 11616.5404),
    "HKY+FO+IO+G4": (-5711.9406, 27, 11607.4859),
    "TPM2uf+FO+G4": (-5710.1001, 27, 11603.8048),
    "TN93+FO+G4": (-5710.5602, 27, 11604.7249),
}
# the same for the bases in other letters: C and T against A and G, all four as states, and variable columns only
IQTREE_RECODED = {
    "binary": {
        "JC2+G4": (-2118.2094, 22, 4386.0225),
        "BIN+FO+G4": (-2110.7872, 23, 4377.9783),
        "BIN+FO+R2": (-2110.7703, 24, 4384.7448),
        "BIN+FO+IO+G4": (-2110.7722, 24, 4384.7485),
    },
    "four states": {"MULTI4_GTR+FO+G4": (-5708.9329, 30, 11621.8710)},
    "variable": {
        "JC2+G4+ASC_LEWIS": (-1135.7146, 22, 2394.1002),
        "BIN+FO+ASC_LEWIS": (-1136.4570, 22, 2395.5850),
        "BIN+FO+G4+ASC_LEWIS": (-1135.4608, 23, 2399.1685),
    },
}
BEST_RECODED = {"binary": "BIN+FO+G4", "four states": "MULTI4_GTR+FO+G4", "variable": "JC2+ASC_LEWIS"}


def test_scores_by_hand():
    assert information_score("AIC", -100.0, 5, 50) == 210.0
    assert information_score("BIC", -100.0, 5, 50) == pytest.approx(200 + 5 * math.log(50), rel=1e-15)
    assert information_score("AICc", -100.0, 5, 50) == pytest.approx(210 + 60 / 44, rel=1e-15)
    assert information_score("AICc", -100.0, 5, 6) == math.inf


def test_weights_by_hand():
    assert score_weights([10.0, 12.0, math.inf]).tolist() == pytest.approx(
        [1 / (1 + math.exp(-1)), math.exp(-1) / (1 + math.exp(-1)), 0.0], rel=1e-15
    )


NESTED = """
JC<GTR K80<HKY TPM2<TIM2uf+R3 GTR+G4<GTR+I+G4 GTR+I<GTR+I+G4 GTR+G4<GTR+R4 GTR+I+G4<GTR+R5 GTR+R4<GTR+R5 LG<LG+G4
JC+ASC<GTR+ASC JC2<BIN MULTI3_MK<MULTI3_GTR+G4 MULTI3_MK+FO<MULTI3_GTR GY0K+F3X4<GY+F3X4 MG<MGK+G4
GY0K+F3X4<GY1KTV+F3X4 ECMK07<ECMK07_GY+G4 ECMK07_GY0K<ECMK07_GY2K ECMK07_GY1KTV<ECMK07_GY2K ECMK07_GY<ECMK07_GY2K+G4
MGK<MG2K GTR+G4<UNREST+G4 RY5.6b<UNREST STRSYM<UNREST+I LG+F<NONREV LG+C10<LG+C10+G4
"""
NOT_NESTED = """
GTR<JC HKY<SYM TIM2<TIM3uf HKY+F<HKY GTR+I+G4<GTR+G4 GTR+G4<GTR+R3 GTR+I+G4<GTR+R4 GTR+R4<GTR+G4 LG<WAG+G4 LG<LG+F
JC+ASC<GTR BIN<JC2 MULTI3_ORDERED<MULTI3_GTR MULTI3_MK<MULTI3_ORDERED MULTI3_MK<MULTI4_GTR GY+F3X4<GY0K+F3X4
GY+F1X4<GY+F3X4 MG<GY+F3X4 GY+F3X4<GY1KTV+F3X4 GY+F3X4<M3+F3X4 GY0K+F3X4<CODON2_GY+F3X4 ECMK07_GY0K<ECMK07
ECMK07_GY<ECMK07_GY1KTV ECMK07_GY2K<ECMK07_GY GY+F3X4<M1a+F3X4 ECMrest<ECMK07_GY ECMK07<ECMK07_GY+F
GY0K+F<ECMrest_GY+F UNREST<GTR UNREST<RY5.6b LG<UNREST LG<LG+C10+G4
"""


@pytest.mark.parametrize(
    ("pair", "expected"), [*((pair, True) for pair in NESTED.split()), *((pair, False) for pair in NOT_NESTED.split())]
)
def test_which_models_are_nested(pair, expected):
    narrow, wide = map(parse_model, pair.split("<"))
    assert is_nested(narrow, wide) is expected


def test_the_candidates_are_those_of_modelfinder():
    assert len(set(substitution_models(DNA))) == 22
    proteins = substitution_models(PROTEIN)
    assert {"LG", "LG+F", "WAG", "WAG+F", "JTT", "mtZOA+F"} <= set(proteins)
    assert not {"Poisson", "GTR20", "LG4X"} & set(proteins)


@pytest.mark.parametrize(
    ("n_states", "expected"),
    [
        (2, {"BIN+FO", "JC2"}),
        (5, {f"MULTI5_{kind}" for kind in ("GTR+FO", "ORDERED+FO", "MK+FO", "ORDERED", "MK")}),
        (20, {f"MULTI20_{kind}" for kind in ("ORDERED+FO", "MK+FO", "ORDERED", "MK")}),
    ],
)
def test_the_candidates_of_multistate_data(n_states, expected):
    found = [str(parse_model(name)) for name in substitution_models(multistate_space(n_states))]
    assert len(found) == len(expected)
    assert set(found) == expected


@pytest.mark.parametrize(("code", "prefix"), [(1, ""), (2, "CODON2_")])
def test_the_candidates_of_codons(code, prefix):
    """Published figures are of the standard code; ECMrest, with one base at a time, needs one kappa at most."""
    products = [f"{name}+{mode}" for name in ("GY", "MGK", "GY0K", "MG") for mode in ("F3X4", "F1X4")]
    expected = {prefix + name for name in (*products, "GY+F", "GY0K+F")}
    if code == 1:
        published = ["ECMK07", *(f"ECMK07_{form}" for form in ("GY0K", "GY", "GY1KTV", "GY2K"))]
        published += ["ECMrest", "ECMrest_GY0K", "ECMrest_GY"]
        expected |= {name + mode for name in published for mode in ("", "+F", "+F1X4", "+F3X4")}
    found = [str(parse_model(name)) for name in substitution_models(codon_space(code))]
    assert set(found) == expected
    assert len(found) == len(expected)


def test_other_data_have_no_candidates():
    with pytest.raises(plltool.InputError, match="no candidates for genotype data, expected DNA, proteins, codons"):
        substitution_models(GENOTYPES)


@pytest.fixture(scope="module", params=[pytest.param("numpy", marks=pytest.mark.slow), "auto"])
def choice(request, data_dir):
    return plltool.select_model(data_dir / "primates.phy", TREE, device=request.param, threads=1)


def assert_not_below(choice, expected, tolerance=0.01, last_digit=2e-4):
    """Each of the models has the lnL of IQ-TREE or a higher one, as many parameters, and the BIC that follows."""
    found = {own.name: own for own in choice.candidates}
    for name, (lnl, n_parameters, bic) in expected.items():
        assert found[name].lnl > lnl - tolerance, name
        assert found[name].n_parameters == n_parameters
        assert found[name].bic == pytest.approx(bic - 2 * (found[name].lnl - lnl), abs=last_digit), "of IQ-TREE"


def test_no_optimum_is_below_that_of_iqtree(choice):
    assert_not_below(choice, IQTREE)
    assert choice.best.name == "HKY+FO+G4"
    assert choice.best.bic == min(own.bic for own in choice.candidates)


def test_candidates_are_fitted_or_left_out(choice):
    fitted = [own.name for own in choice.candidates]
    assert len({*fitted, *choice.left_out}) == len(fitted) + len(choice.left_out) == 22 * 13
    for weight in ("aic_weight", "aicc_weight", "bic_weight"):
        assert sum(getattr(own, weight) for own in choice.candidates) == pytest.approx(1.0, abs=1e-12)


def test_the_lnl_of_the_best_is_that_of_its_model_and_tree(choice):
    again = plltool.evaluate(choice.data, choice.newick, choice.best.model, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(choice.lnl, rel=1e-11)


# lnL of iqtree2 2.0.7 -s abglobin.nuc -st CODON -te TREE -m NAME+G4 for the alpha and beta globins of 5 taxa
GLOBINS = {"ECMK07": -2912.9569, "ECMK07_GY0K": -2907.4232, "ECMK07_GY1KTV": -2901.3442, "ECMK07_GY2K": -2898.2447}


@pytest.mark.parametrize(("names", "best"), [(tuple(GLOBINS), "ECMK07_GY2K"), (tuple(GLOBINS)[:3], "ECMK07_GY1KTV")])
def test_a_model_is_tried_again_after_a_special_case_of_it(names, best):
    """Its start, 100 below its optimum, did not look as if it could compete."""
    candidates = Candidates((names[0], *reversed(names[1:])), ("", "+G4"), frozenset())
    selection = Selection(PartData(None), candidates, "BIC", 285)

    def answer(step):
        if isinstance(step, Begin):
            return optimum(step.spec)
        if isinstance(step, Carry):
            closest = max(step.sources, key=lambda source: source.lnl)
            return [start(spec, closest) for spec in step.specs]
        return optimum(step.fit.spec)

    def optimum(spec):
        return Fit(None, Model(spec), None, GLOBINS[spec.name] - 50 * (spec.sites.kind == "equal"), 7)

    def start(spec, source):
        is_far = spec.name == "ECMK07_GY2K" and source.spec.name == "ECMK07"
        return Fit(None, Model(spec), None, -3000.0 if is_far else source.lnl, 7)

    steps = selection.steps()
    step = next(steps)
    with contextlib.suppress(StopIteration):
        while True:
            step = steps.send(answer(step))
    assert selection.best.spec.name == best
    assert f"{best}+G4" not in selection.left_out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["primates.phy", "hard.fasta", "simulated.fasta", *LINKAGES])
def test_no_model_ends_below_one_that_is_nested_in_it(name, data_dir):
    """Of a whole alignment, or of any part of the primates, whatever the linkage."""
    asked = {"criterion": "AIC", "threads": 1}
    if name in LINKAGES:
        files = (data_dir / "primates.phy", data_dir / "primates.part")
        tables = {part.name: part.candidates for part in plltool.select_scheme(*files, brlen=name, **asked).parts}
    else:
        tables = {name: plltool.select_model(data_dir / name, **asked).candidates}
    for table, candidates in tables.items():
        pairs = [
            (narrow, wide)
            for narrow, wide in itertools.permutations(candidates, 2)
            if is_nested(parse_model(narrow.name), parse_model(wide.name))
        ]
        assert len(pairs) > 20
        for narrow, wide in pairs:
            assert wide.lnl > narrow.lnl - 0.01, (table, narrow.name, wide.name)


def test_the_same_call_gives_the_same_digits(small):
    first, second = (plltool.select_model(small, free_rates=False, device="numpy") for _ in range(2))
    assert [own.lnl for own in first.candidates] == [own.lnl for own in second.candidates]
    assert not any("+R" in own.name for own in first.candidates)
    assert not any("+R" in name for name in first.left_out)


def recode(data_dir, what):
    """The primates with digits in place of bases."""
    lines = (data_dir / "primates.phy").read_text().splitlines()[1:]
    digits = str.maketrans("ACGT-", "0123?" if what == "four states" else "0101?")
    names, rows = zip(*[line.split() for line in lines], strict=True)
    columns = zip(*(row.translate(digits) for row in rows), strict=True)
    kept = [column for column in columns if what != "variable" or len({*column} - {"?"}) > 1]
    return dict(zip(names, map("".join, zip(*kept, strict=True)), strict=True))


# Four states have the kernels of DNA; those of two states would be compiled for each number of rate categories.
@pytest.mark.parametrize(("what", "device"), [("binary", "numpy"), ("variable", "numpy"), ("four states", "auto")])
def test_binary_and_multistate_data(what, device, data_dir):
    rows = recode(data_dir, what)
    kinds = {"free_rates": what != "four states", "ascertainment": what == "variable"}
    choice = plltool.select_model(rows, TREE, device=device, threads=1, **kinds)
    assert_not_below(choice, IQTREE_RECODED[what])
    assert choice.best.name == BEST_RECODED[what]
    names = {*choice.left_out, *(own.name for own in choice.candidates)}
    assert all(("+ASC_LEWIS" in name) == (what == "variable") for name in names)
    assert any("+IO" in name for name in names) == (what != "variable")


@pytest.mark.parametrize(
    ("name", "length", "tree", "free_rates"),
    [pytest.param("WAG", 0.2, None, False, marks=pytest.mark.slow), ("MULTI4_ORDERED", 0.3, TREE, True)],
)
def test_simulated_data(name, length, tree, free_rates):
    """They are given the model of the simulation, or one that fits no worse."""
    lengthened = TREE.replace(",", f":{length},").replace(")", f":{length})")
    made = plltool.simulate(lengthened, f"{name}+G4{{0.5}}", 300, seed=5)
    rows = dict(zip(made.names, made.sequences, strict=True))
    choice = plltool.select_model(rows, tree, free_rates=free_rates, threads=1)
    truth = plltool.evaluate(choice.data, tree or choice.newick, f"{name}+G4", threads=1)
    assert choice.best.name.startswith(name)
    assert choice.best.bic <= 22 * math.log(300) - 2 * truth.lnl + 0.02


LYSOZYME = "((Hsa_Human,Hla_gibbon),((Cgu/Can_colobus,Pne_langur),Mmu_rhesus),(Ssc_squirrelM,Cja_marmoset));"
# The same of iqtree2 2.0.7 -s lysozymeSmall.nuc -st CODON -te LYSOZYME -m MODEL. Its -m MF gives MG+F1X4+I BIC 1877.15,
# where kappa stays what it was under MGK; optimised alone this model has BIC 1915.08
IQTREE_CODONS = {
    "GY+F3X4+G4": (-895.048, 23, 1902.050),
    # From the branch lengths that plltool found; from its own start IQ-TREE ends in other optima, 2 units lower.
    "ECMK07_GY2K+G4": (-894.3813, 15, 1861.7755),
    "ECMrest_GY+G4": (-899.7402, 14, 1867.6258),
}


@pytest.mark.slow
def test_codons(shared):
    data = plltool.read_alignment(shared / "data" / "lysozymeSmall.nuc", "codon")
    choice = plltool.select_model(data, LYSOZYME, free_rates=False, threads=1)
    assert choice.best.name == "ECMK07_GY2K+G4"
    assert_not_below(choice, IQTREE_CODONS, last_digit=2e-3)


def test_candidates_of_the_users(data_dir):
    """Two matrices with weights that are free, beside alpha and the lengths of 9 branches."""
    whole = plltool.read_alignment(data_dir / "primates.phy")
    rows = dict(zip(whole.names[:6], whole.rows[:6], strict=True))
    also = ["MIX{K80{12}+FU{0.32/0.31/0.1/0.27},K80{4}+FU{0.3/0.3/0.1/0.3}}", "JC"]
    settings = {"candidates": ["JC", "HKY"], "free_rates": False, "device": "numpy"}
    choice = plltool.select_model(rows, also=also, **settings)
    assert choice.best.name.startswith("MIX{1.0/12.0/1.0/1.0/12.0/1.0|1.0/4.0/")
    assert choice.best.n_parameters == 1 + 1 + 9
    assert len({*(own.name for own in choice.candidates), *choice.left_out}) == 4 * 3
    found = plltool.evaluate(rows, choice.newick, choice.best.name, device="numpy")
    assert found.lnl == pytest.approx(choice.lnl, abs=0.01)


def test_candidates_by_name(data_dir):
    """Names of other programs mean the same here; the best model is that of IQ-TREE's choice among all."""
    names = {"alignment": data_dir / "primates.phy", "candidates": ("hky", "K2P"), "free_rates": False}
    choice = plltool.select_model(tree=TREE, device="numpy", **names)
    considered = {*(own.name for own in choice.candidates), *choice.left_out}
    assert {name.split("+")[0] for name in considered} == {"HKY", "K80"}
    assert choice.best.name == "HKY+FO+G4"
    assert choice.best.bic == pytest.approx(IQTREE["HKY+FO+G4"][2], abs=0.02)
    names |= {"alignment": taxa(data_dir, 5, 300), "partitions": "DNA, a = 1-100\nDNA, b = 101-300"}
    parts = plltool.select_scheme(device="numpy", **names)
    assert {own.best.name.split("+")[0] for own in parts.parts} <= {"HKY", "K80"}


CIRCLE = "UNREST{9/1/1/1/9/1/1/1/9/9/1/1}"  # bases change mostly in the order A C G T A
OF_CIRCLE = "((a:0.2,b:0.2):0.1,(c:0.3,(d:0.1,e:0.2):0.1):0.1);"
# lnL, number of parameters and BIC of iqtree2 2.0.7 -te "((a,b),c,(d,e));" -m NAME+FO+RATES, for 500 sites with seed 5
IQTREE_CIRCLE = {
    "UNREST": (-2433.9196, 19, 4985.9168),  # its 12.12
    "UNREST+G4": (-2433.9208, 20, 4992.1337),
    "RY5.6b+G4": (-2480.9901, 13, 5042.7701),
}


@pytest.fixture(scope="module")
def circle():
    made = plltool.simulate(OF_CIRCLE, CIRCLE, 500, seed=5)
    return dict(zip(made.names, made.sequences, strict=True))


@pytest.mark.parametrize("device", ["numpy", pytest.param("auto", marks=pytest.mark.slow)])
def test_models_with_a_root_are_candidates(circle, device):
    """Each has its best root, whose two branches count as two lengths; all reversible ones are special cases."""
    settings = {"also": ["UNREST", "RY5.6b"], "free_rates": False, "device": device, "threads": 1}
    choice = plltool.select_model(circle, "((a,b),c,(d,e));", **settings)
    assert choice.best.name == "UNREST"
    assert_not_below(choice, IQTREE_CIRCLE, tolerance=0.011)  # 0.0099 is found: the top is flat
    fixed = plltool.evaluate(circle, choice.newick, choice.best.model, fixed=True, device="numpy")
    assert fixed.lnl == pytest.approx(choice.lnl, rel=1e-11)
    assert not choice.newick.startswith("(a:"), "two branches at the root"
    under_gamma = {own.name: own.lnl for own in choice.candidates if own.name.endswith("+G4")}
    assert under_gamma["UNREST+G4"] > max(under_gamma.values()) - 0.011  # as above


def test_a_root_that_is_given_stays_on_its_branch(circle):
    """The lnL is that of the root there, although another branch has a higher one; only these models have a root."""
    given = "(c,((a,b),(d,e)));"
    alone = {"device": "numpy", "threads": 1}
    choice = plltool.select_model(circle, given, candidates=["GTR"], also=["UNREST"], free_rates=False, **alone)
    [found] = [own for own in choice.candidates if own.name == "UNREST+G4"]
    there = plltool.evaluate(circle, given, "UNREST+G4", **alone)
    free = plltool.evaluate(circle, "((a,b),c,(d,e));", "UNREST+G4", **alone)
    assert found.lnl == pytest.approx(there.lnl, abs=0.02), "tolerance of the optimisation"
    assert found.lnl < free.lnl - 0.5
    assert not any("root" in warning for warning in choice.warnings)


SHORT = dict(zip("abcde", ["ACGTACGTAA", "ACGTACGTAC", "ACGAACGAAG"] * 2, strict=False))
CONSTANT = {"a": "010101", "b": "100101", "c": "110110", "d": "00011?"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"also": ["LG"]}, r"found 'LG', of protein data, expected a candidate for DNA data"),
        ({"also": ["HKY+G4"]}, r"found 'HKY\+FO\+G4' as a candidate, expected a substitution model without"),
        ({"also": ["UNREST+I"]}, r"found 'UNREST\+IO' as a candidate, expected a substitution model without"),
        ({"candidates": ["JC", "LG"]}, "candidates: found 'LG', expected one of: GTR, "),
        ({"candidates": ["JC", "HKY+F"]}, r"candidates: found 'HKY\+F', expected one of: GTR, "),
        ({"candidates": ["JC", "HKY85x"]}, "HKY85x"),
        ({"criterion": "DIC"}, "criterion: found 'DIC', expected one of: BIC, AIC, AICc"),
        ({"alignment": SHORT, "criterion": "AICc"}, "10 sites are too few for AICc with 16 parameters"),
        ({"alignment": "morphology.nex"}, r"found several kinds of data \(Standard, DNA\), expected"),
        (
            {"alignment": CONSTANT, "tree": "(a,b);", "ascertainment": True},  # before a tree is read or a model fitted
            "found 2 columns in which all .*, first column 3; expected variable",
        ),
    ],
)
def test_what_is_refused(data_dir, settings, message):
    alignment = settings.get("alignment", "primates.phy")
    given = settings | {"alignment": data_dir / alignment if isinstance(alignment, str) else alignment}
    with pytest.raises(plltool.InputError, match=message):
        plltool.select_model(device="numpy", **given)


SEARCH = {"effort": "fast", "seed": 3, "device": "numpy"}


@pytest.fixture(scope="module")
def small(data_dir):
    return taxa(data_dir, 4, 200)


@pytest.fixture(scope="module")
def found(small):
    return plltool.search(small, "TEST", **SEARCH)


def test_a_search_under_the_chosen_model(found, small):
    plain = plltool.search(small, found.choice.best.name, **SEARCH)
    assert (found.lnl, found.newick, found.model) == (plain.lnl, plain.newick, plain.model)
    record = found.as_record()["model_choice"]
    assert record["best"] == found.choice.best.name
    assert "model_choice" not in plain.as_record()
    json.dumps(record, allow_nan=False)


def test_a_search_that_is_interrupted_goes_on_under_the_same_model(found, small, tmp_path):
    stopped = plltool.search(small, "TEST", checkpoint=tmp_path / "c", listener=Stop(), **SEARCH)
    assert stopped.interrupted
    resumed = plltool.search(small, "TEST", checkpoint=tmp_path / "c", **SEARCH)
    assert (resumed.lnl, resumed.newick, resumed.model) == (found.lnl, found.newick, found.model)


@pytest.mark.parametrize(
    ("word", "choice"),
    [("auto", {}), ("aicc", {"criterion": "AICc"}), ("test+asc", {"free_rates": False, "ascertainment": True})],
)
def test_words_for_a_choice(word, choice, data_dir):
    rows = dict(list(recode(data_dir, "variable").items())[:5])
    columns = [column for column in zip(*rows.values(), strict=True) if len({*column} - {"?"}) > 1]
    few = dict(zip(rows, map("".join, zip(*columns, strict=True)), strict=True))
    searched = plltool.search(few, word, **SEARCH)
    expected = plltool.select_model(few, seed=3, device="numpy", **choice)
    assert searched.choice.candidates == expected.candidates
    assert searched.model.startswith(expected.best.name.partition("+")[0])


def test_a_choice_takes_no_other_word():
    with pytest.raises(plltool.InputError, match=r"^model 'auto\+G4': 'auto' at character 1: unknown model"):
        plltool.search(dict.fromkeys("abcd", "ACGT"), "auto+G4")
