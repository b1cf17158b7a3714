"""Models that a file defines, and mixtures of models: likelihoods of IQ-TREE, values, errors."""

from pathlib import Path

import numpy as np
import pytest
from helpers import PROTEIN_SEQUENCES
from refusals import refused

from plltool.errors import InputError
from plltool.io.model_reader import read_model, read_scheme
from plltool.model.mixtures import read_matrices, read_profiles
from plltool.model.model import Model
from plltool.run.evaluation import evaluate
from plltool.run.likelihood import Likelihood

DATA = Path(__file__).resolve().parents[2] / "data"
FILE = str(DATA / "models.nex")
TREE = "((a:0.1,b:0.2):0.1,c:0.3,(d:0.2,e:0.1):0.2);"
LOWER = "\n".join(" ".join(f"{1 + (i * j) % 7 / 10}" for j in range(i)) for i in range(1, 20))
FREQUENCIES = [" ".join(f"{share / 50:g}" for share in shares * 5) for shares in ([1, 2, 3, 4], [4, 3, 2, 1])]
PROTEINS = f"""#nexus
begin models;
  model mine = {LOWER}
    {FREQUENCIES[0]};
  [a mixture of it and a published one]
  model both = MIX{{mine:0.6:0.4,LG:1.2:0.6}};
  frequency outer = {FREQUENCIES[1]};
  frequency half = FMIX{{outer:1:0.5,C10pi2:1:0.5}};
end;
"""
# lnL of IQ-TREE 2.0.7 on trees/NAME.fixed.nwk (-te -blfix -mdef) with these definitions; it prints 4 digits
OF_PROTEINS = [
    ("mine{FILE}", -3563.7928),
    ("mine{FILE}+F+G4{0.5}", -3473.9130),
    ("both{FILE}", -3213.6412),
    ("both{FILE}+G4{0.5}", -3182.0657),
    ("WAG+half{FILE}", -3281.7618),
    ("mine{FILE}+half{FILE}+I{0.1}", -3604.5499),
]
OF_BASES = [
    ("HKY{4.5}+two{FILE}", -6290.8713),
    ("HKY{4.5}+two{FILE}+G4{0.5}", -6105.0490),
    ("usual{FILE}", -6105.0490),
    ("fast_slow{FILE}", -6483.1974),
    ("fast_slow{FILE}+G4{0.5}", -6244.3257),
]


@pytest.fixture
def define(write):
    """A function that writes a file of these definitions."""
    return lambda text: write(f"#NEXUS\nbegin models;\n{text}\nend;\n", "models.nex")


@pytest.mark.parametrize(("model", "expected"), OF_PROTEINS)
def test_proteins_as_in_iqtree(shared, write, model, expected):
    alignment, tree = shared / "data/avian_ovomucoids.phy", shared / "reference/trees/avian.fixed.nwk"
    model = model.replace("FILE", write(PROTEINS))
    result = evaluate(alignment, tree, model, fixed=True, device="numpy")
    assert result.lnl == pytest.approx(expected, abs=1e-4)
    assert evaluate(alignment, tree, result.model, fixed=True, device="numpy").lnl == pytest.approx(result.lnl, 1e-12)


@pytest.mark.parametrize(("model", "expected"), OF_BASES)
def test_bases_as_in_iqtree(shared, model, expected):
    tree = shared / "reference/trees/primates.fixed.nwk"
    model = model.replace("FILE", FILE)
    result = evaluate(DATA / "primates.phy", tree, model, fixed=True, device="numpy")
    assert result.lnl == pytest.approx(expected, abs=1e-4)


def test_weights_are_optimised_as_in_iqtree(shared):
    """Branch lengths stay: -6161.2359, weights 0.6562, 0.2031 and 0.1407; the class of the data's frequencies first."""
    model = f"HKY{{4.5}}+three{{{FILE}}}"
    tree = (shared / "reference/trees/primates.fixed.nwk").read_text()
    with Likelihood(DATA / "primates.phy", tree, model, device="numpy") as likelihood:
        assert likelihood.optimise("class_weights") == pytest.approx(-6161.2359, abs=1e-3)
        assert likelihood.model.classes.weights == pytest.approx([0.6562, 0.2031, 0.1407], abs=1e-3)
        assert likelihood.model.n_free_parameters == 2 + 3  # weights, and frequencies that were counted


@pytest.mark.opencl
@pytest.mark.parametrize("model", ["both{FILE}+G2{0.7}", "mine{FILE}+half{FILE}+I{0.1}"])
def test_opencl_is_numpy(write, model):
    model = model.replace("FILE", write(PROTEINS))
    found = [evaluate(PROTEIN_SEQUENCES, TREE, model, fixed=True, device=device).lnl for device in ("numpy", "opencl")]
    assert found[1] == pytest.approx(found[0], rel=1e-11)


def test_rows_of_the_lower_triangle(define):
    """AC, then AG CG, then AT CT GT; GTR has them row by row of the upper triangle."""
    path = define("model low = 1 2 4 3, 5, 6  0.1 0.2 0.3 0.4;")
    model = Model(read_model(f"low{{{path}}}"))
    assert model.exchangeabilities == pytest.approx(np.array([1, 2, 3, 4, 5, 6]) / 6)
    assert model.frequencies == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert str(read_model(f"LOW{{{path}}}+FE+G4")).endswith("+FE+G4")
    assert str(read_model(f"LOW{{{path}}}+G4")).endswith("+FU{0.1/0.2/0.3/0.4}+G4")


def test_classes_have_their_values(define):
    path = define(
        "frequency f = 0.4 0.3 0.2 0.1; model a = K80{3}; model b = GTR{1/2/3/4/5/6}+f; model m = MIX{a:2:1,b:1:3};"
    )
    spec = read_model(f"m{{{path}}}+R2")
    classes = read_matrices(spec.name)
    assert classes.exchangeabilities / classes.exchangeabilities[:, -1:] == pytest.approx(
        np.array([[1, 3, 1, 1, 3, 1], np.arange(1, 7) / 6])
    )
    assert classes.frequencies == pytest.approx(np.array([[0.25] * 4, [0.4, 0.3, 0.2, 0.1]]))
    assert classes.rates == pytest.approx([2, 1])
    assert spec.class_weights == (0.25, 0.75)
    assert read_model(str(spec)) == spec
    assert (spec.data, Model(spec).free_parameters) == ("DNA", ("free_rates",))


def test_a_class_of_its_own_comes_first(define):
    path = define("frequency f = 0.4 0.3 0.2 0.1; frequency m = FMIX{f:3:0.7,optimized:2:0.3};")
    spec = read_model(f"GTR+m{{{path}}}")
    assert str(spec) == "GTR+FMIX{0.4/0.3/0.2/0.1}{2.0/3.0}{0.3/0.7}+FO"
    assert read_model(str(spec)) == spec
    model = Model(spec)
    assert model.free_parameters == ("rates", "frequencies")
    assert model.classes.rates.tolist() == [2.0, 3.0]
    assert model.classes.frequencies[1] == pytest.approx([0.4, 0.3, 0.2, 0.1])
    assert read_profiles(spec.profiles)[0].tolist() == [1.0]


def test_mixtures_without_a_file():
    spec = read_model("MIX{LG:1:0.5,JTT:2:0.5}+G4")
    assert read_matrices(spec.name).frequencies[0] == pytest.approx(Model(read_model("LG")).frequencies)
    assert spec.class_weights == (0.5, 0.5)
    assert Model(read_model("LG+FMIX{C10pi1,C10pi2}")).free_parameters == ("class_weights",)
    whole, profiles = (str(read_model(f"LG+FMIX{{{names}}}")) for names in ("C10pi1,C10pi10", "C10pi10,C10pi1"))
    assert whole != profiles


def test_lines_of_a_partition():
    text = f"MIX{{K80{{3}}:0.5,JC}}+G4, a = 1-10\nHKY+two{{{FILE}}}, b = 11-20"
    scheme = read_scheme(text)
    assert [part.name for part in scheme] == ["a", "b"]
    assert scheme[1].model == read_model(f"HKY+two{{{FILE}}}")


TEN = "1 2 3 4 5 6 0.1 0.2 0.3 0.4"


@pytest.mark.parametrize(
    ("text", "model", "message"),
    [
        ("model a = 1 2 x;", "a", r"line 3: model 'a': found 'x', expected a number in place 3"),
        ("model a = 1 2 3;", "a", r"line 3: model 'a': found 3 numbers, expected 10 \(4 states\) or 210 \(20 states\)"),
        (f"model a = {TEN}; model b = a+q;", "b", r"line 3: model 'b': model .*'\+q'.* unknown part of a model"),
        (
            f"model a = {TEN};\nmodel A = JC;",
            "a",
            r"line 4: model 'A': the name is used twice, first at line 3: model 'a'",
        ),
        ("model a = b+G4;\nmodel b = a;", "a", r"line 3: model 'a': the definition refers to itself"),
        ("model a = MIX{a,LG};", "a", r"line 3: model 'a': the definition refers to itself"),
        ("frequency f = 0.5 0.5;", "JC+f", r"'\+FU\{0.5/0.5\}'.* expected 4 base frequencies"),
        ("frequency f = 0.5 0.5;", "f", r"line 3: frequency 'f': found a frequency in front, expected a model"),
        ("model a = JC;", "JC+a", r"line 3: model 'a': found a model behind a plus sign, expected a frequency"),
        ("frequency f = LG;", "JC+f", r"line 3: frequency 'f': found 'LG', expected numbers or FMIX\{...\}"),
        ("model a = JC;", "b", r"models.nex: found no definition of 'b', expected one of: 'a'"),
        ("modl a = JC;", "a", r"line 3: found 'modl a = JC', expected 'model NAME = ... ;' or"),
        ("model a JC;", "a", r"line 3: found 'model a JC', expected 'model NAME = ... ;' or"),
        ("model mix = JC;", "a", r"line 3: model 'mix': the name is reserved"),
        ("model a = MIX{UNREST,JC};", "a", r"found 'UNREST' in a mixture, expected a reversible model of DNA"),
        ("model a = MIX{LG+G4{1},LG};", "a", r"found 'LG\+G4\{1.0\}' in a mixture, expected a reversible model"),
        ("model a = MIX{JC,LG};", "a", r"expected 6 exchangeabilities in each class, found 190"),
        ("model a = MIX{JC:1:2:3};", "a", r"found 'JC:1:2:3' in a mixture, expected NAME:RATE:WEIGHT"),
        ("model a = MIX{JC:x};", "a", r"found 'x' in 'JC:x', expected a number, the rate or weight"),
        ("model a = MIX{JC:1:1,F81};", "a", r"found 1 weights for 2 classes, expected all or none"),
        ("model a = MIX{JC:0,JC};", "a", r"rates of classes must be positive numbers, .* found 0"),
        ("frequency f = FMIX{g};", "JC+f", r"found 'g' in a mixture, expected a frequency that the file defines"),
        ("frequency f = FMIX{C10pi11};", "LG+f", r"found 'C10pi11' in a mixture"),
        ("frequency f = FMIX{empirical};", "LG+f", r"found no profile in a mixture, expected at least one"),
        ("frequency f = FMIX{empirical,equal,C10pi1};", "LG+f", r"found 2 classes that are not profiles"),
        ("frequency f = FMIX{C10pi1};", "JC+f", r"expected 4 base frequencies"),
        ("frequency f = FMIX{C10pi1};", "EX2+f", r"profiles need a single DNA or protein matrix in front"),
    ],
)
def test_errors_tell_the_line(define, text, model, message):
    path = define(text)
    name, plus, part = model.partition("+")
    model = f"{name}+{part}{{{path}}}" if plus else f"{name}{{{path}}}"
    with pytest.raises(InputError, match=rf"\A.*{message}.*\Z"):
        read_model(model)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("begin models; end;", "found no #NEXUS in the first line"),
        ("#NEXUS begin sets; end;", "found no 'begin models;'"),
        ("#NEXUS begin models; model a = JC;", "the block 'models' has no 'end;'"),
        ("#NEXUS begin models; model a = JC end", "line 1: found 'model a = JC end', expected"),
    ],
)
def test_files_that_define_nothing(write, text, message):
    with refused(message):
        read_model(f"a{{{write(text)}}}")


def test_no_file():
    with pytest.raises(InputError, match=r"^model 'mine\{no_such_file\}': found .* the name of a file$"):
        read_model("mine{no_such_file}")
