"""Gradients in the rates of directed models, and in weights of rays, on devices, against the oracle's differences."""

import numpy as np
import pytest
from oracles.ascertainment import correction
from oracles.likelihood import derivative
from slopes import assert_slopes, disturb

import plltool
from tests.optimise.test_parameter_gradients import oracle_with_root

STEP = 1e-4
TREE = f"((a:0.1,b:0.3):{0.2 / 3!r},(c:0.15,(d:0.25,e:0.4):0.1):{0.4 / 3!r});"
ENDS = np.array([(0, 5), (1, 5), (5, 6), (2, 6), (6, 7), (3, 7), (4, 7)])  # the root lies at a third of the third one
LENGTHS = np.array([0.1, 0.3, 0.2, 0.15, 0.1, 0.25, 0.4])
SETS = {"A": 1, "C": 2, "G": 4, "T": 8, "R": 5, "Y": 10, "-": 15}
DEVICES = [
    pytest.param({"device": "opencl"}, marks=pytest.mark.opencl),
    pytest.param({"device": "opencl", "vw": 32}, marks=pytest.mark.opencl),
]
# A model and the index of its device: both devices have 1 and 4 components, which share compiled kernels.
CASES = [("RY8.8", 0), ("RY8.8", 1), ("WS5.16+I", 0), ("RY6.17a+G4", 0), ("UNREST+G4", 1), ("MK3.4+G4", 1)]


def sequences():
    """Five sequences of 12 bases, with ambiguities and gaps."""
    rng = np.random.default_rng(8)
    first = rng.integers(4, size=12)
    rows = [np.where(rng.random(12) < 0.5, rng.integers(4, size=12), first) for _ in range(5)]
    texts = ["".join("ACGT"[k] for k in row) for row in rows]
    return dict(zip("abcde", ["RY" + texts[0][2:], *texts[1:4], texts[4][:-3] + "---"], strict=True))


@pytest.mark.parametrize(
    ("text", "device"),
    [pytest.param(text, *DEVICES[number].values, marks=pytest.mark.opencl) for text, number in CASES],
    ids=[f"{text}-{number}" for text, number in CASES],
)
def test_every_parameter(text, device):
    codes = np.array([[SETS[letter] for letter in row] for row in sequences().values()])
    with plltool.Likelihood(sequences(), TREE, text, **device) as likelihood:
        inner = likelihood._likelihood
        disturb(inner, 0.4)
        assert_slopes(inner, lambda one: oracle_with_root((ENDS, LENGTHS, codes), one), STEP, rel=1e-6, abs=1e-6)


def variable_columns():
    """The codes (5, n) of the columns that cannot be invariable, and their sequences."""
    names = list(sequences())
    rows = np.array([list(row) for row in sequences().values()])
    codes = np.array([[SETS[letter] for letter in row] for row in rows])
    varies = np.bitwise_and.reduce(codes) == 0
    return codes[:, varies], dict(zip(names, map("".join, rows[:, varies]), strict=True))


CORRECTED = [("UNREST+ASC", ()), ("STRSYM+G4+ASC_FELS{25}", (25,)), ("RY8.8+ASC_STAM{9/0/4/3.5}", (9, 0, 4, 3.5))]


@pytest.mark.parametrize("device", [{"device": "numpy"}, *DEVICES], ids=["numpy", "opencl", "opencl-32"])
@pytest.mark.parametrize(("text", "unseen"), CORRECTED)
def test_corrections_for_ascertainment_bias(text, unseen, device):
    """Sites that were not seen have a root, too."""
    codes, rows = variable_columns()

    def oracle(model, lengths=LENGTHS):
        alike = [oracle_with_root((ENDS, lengths, np.full((5, 1), 1 << state)), model) for state in range(4)]
        added = correction(model.spec.ascertainment.kind, unseen, alike, codes.shape[1])
        return oracle_with_root((ENDS, lengths, codes), model) + added

    with plltool.Likelihood(rows, TREE, text, **device) as likelihood:
        inner = likelihood._likelihood
        model = disturb(inner, 0.4)
        assert_slopes(inner, oracle, STEP, rel=1e-6, abs=1e-6)
        by_length = likelihood.derivatives()[1]
        tips = [likelihood.tree.edges[1 + tip, 0] for tip in (0, 4)]

    for tip, branch in zip((0, 6), tips, strict=True):

        def longer(step, tip=tip):
            return oracle(model, LENGTHS + step * (np.arange(7) == tip))

        assert by_length[branch] == pytest.approx(derivative(longer, 0.0, STEP)[0], rel=1e-6, abs=1e-6)
