"""BEAGLE's own examples (tinytest, matrixtest, complextest), with the likelihoods of PAUP and BEAST that they print."""

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

from plltool.beagle import Flag, Instance

NONE = Instance.NONE
ENTRIES = Path(__file__).with_name("examples.fasta").read_text(encoding="utf-8").split(">")[1:]
ROWS = ["".join(entry.split()[1:]) for entry in ENTRIES]
PARTIALS = dict(zip("ACGT-", [*np.eye(4), np.ones(4)], strict=True))
LENGTHS = 0.1, 0.1, 0.2, 0.1  # of ((0, 1)3, 2)4, by the lower node
GAMMA = 0.03338775, 0.25191592, 0.82026848, 2.89442785
JC = np.full((4, 4), 1 / 3) - 4 / 3 * np.eye(4)
CYCLE = np.roll(np.eye(4), 1, axis=1) - np.eye(4)  # each state becomes the next one
QUARTER_TURNS = np.pi / 2 * np.arange(4)


def set_matrices(instance, q, rates):
    instance.set_transition_matrices(range(4), [[expm(q * rate * length) for rate in rates] for length in LENGTHS])


def set_jc(instance, q, rates):
    values, vectors = np.linalg.eigh(q)
    instance.set_eigen_decomposition(0, vectors, vectors.T, values)
    instance.update_transition_matrices(0, range(4), None, None, LENGTHS)


def set_cycle(instance, q, rates):
    """Eigenvalues 0, -1 + i, -1 - i and -2; the real and the imaginary part of a vector are beside each other."""
    vectors = np.stack([np.ones(4), np.cos(QUARTER_TURNS), np.sin(QUARTER_TURNS), [1, -1, 1, -1]], axis=1)
    instance.set_eigen_decomposition(0, vectors, np.linalg.inv(vectors), [0, -1, -1, -2, 0, 1, -1, 0])
    instance.update_transition_matrices(0, range(4), None, None, LENGTHS)


@pytest.mark.parametrize("scaling", [Flag.SCALING_MANUAL, Flag.SCALING_AUTO, Flag.SCALING_ALWAYS, None], ids=str)
@pytest.mark.parametrize(
    "framework",
    [
        pytest.param(Flag.FRAMEWORK_CPU, id="numpy"),
        pytest.param(Flag.FRAMEWORK_OPENCL, id="opencl", marks=pytest.mark.opencl),
    ],
)
@pytest.mark.parametrize(
    ("set_up", "q", "rates", "lnl"),
    [
        pytest.param(set_jc, JC, GAMMA, -1498.89812, id="tinytest"),
        pytest.param(set_jc, JC, (1, 1, 1, 1), -1574.63623, id="tinytest, equal rates"),
        pytest.param(set_matrices, JC, (1, 1, 1, 1), -1574.63623, id="matrixtest"),
        pytest.param(set_cycle, CYCLE, (1, 1, 1, 1), -1665.38544, id="complextest"),
        pytest.param(set_matrices, CYCLE, (1, 1, 1, 1), -1665.38544, id="complextest, matrices given"),
    ],
)
def test_likelihoods_of_other_programs(set_up, q, rates, lnl, framework, scaling):
    eigen = Flag.EIGEN_COMPLEX if set_up is set_cycle else Flag.EIGEN_REAL
    flags = framework | eigen | (scaling or Flag(0))
    by_hand = scaling is Flag.SCALING_MANUAL
    with Instance(3, 5, 0, 4, len(ROWS[0]), 1, 4, 4, 3, requirement_flags=flags) as instance:
        for tip, row in enumerate(ROWS):
            instance.set_tip_partials(tip, [PARTIALS[base] for base in row])
        instance.set_category_rates(rates)
        instance.set_category_weights(0, [0.25] * 4)
        instance.set_state_frequencies(0, [0.25] * 4)
        instance.set_pattern_weights(np.ones(len(ROWS[0])))
        set_up(instance, q, rates)
        cumulative = 2 if by_hand else NONE
        if by_hand:
            instance.reset_scale_factors(cumulative)
        writes = (0, 1) if by_hand else (NONE, NONE)
        instance.update_partials([[3, writes[0], NONE, 0, 0, 1, 1], [4, writes[1], NONE, 2, 2, 3, 3]], cumulative)
        if scaling is Flag.SCALING_AUTO:  # tinytest names buffers of partials
            instance.accumulate_scale_factors([3, 4], NONE)
        assert instance.calculate_root_log_likelihoods([4], [0], [0], [cumulative]) == pytest.approx(lnl, abs=6e-6)
        assert instance.get_site_log_likelihoods().sum() == pytest.approx(lnl, abs=6e-6)
