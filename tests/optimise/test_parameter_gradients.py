"""Gradients in the optimiser's own parameters, of models of every kind, against differences of the oracle."""

import numpy as np
import pytest
from five_taxa import LENGTHS, ROOTED, STEMS, TREE, columns_of, lnl_of, rows_of
from oracles.ascertainment import correction
from oracles.likelihood import derivative
from slopes import assert_slopes, disturb

import plltool
from plltool.model.model_string import parse_model
from plltool.model.vector import get_bounds, get_vector, parameter_slopes, scale_slope, set_vector
from plltool.optimise.bounded import Curvatures
from plltool.optimise.density import model_slopes

pytestmark = pytest.mark.usefixtures("unoptimised")
STEP = 1e-4
NUMPY, OPENCL, LANES = {"device": "numpy"}, {"device": "opencl"}, {"device": "opencl", "vw": 32}
ON_NUMPY = {  # kind of data: models
    4: "K80 HKY+FO GTR+FO GTR+FO+G4 TN93+FO+G2 010021+G4 JC+I HKY+FO+I+G4 JC+GA4 K80+R3 GTR+FO+I+R2 "
    "UNREST STRSYM+G4 UNREST+I+G2 RY8.8 WS5.16+I+R2 MK3.4+G2 "
    "MIX{GTR+FO,HKY+FO:2,K80{3}} MIX{TN93+F,HKY+FO}+I+G2 MIX{HKY+FO:1:0.3,JC:2:0.7}+R2",
    20: "LG+G2 WAG+FO LG+I+R2 GTR20 LG4M LG4X EX2+G2 UL3+I LG+C10+G2 LG+C10+I LG+C10+FO+I GTR20+C10+FE+G2",
    61: "GY+F3X4 GY1KTV+FE+G2 MGK+F1X4+I M1a+F3X4 M2a+FE M3+F1X4+G2 ECMK07_GY2K",
    2: "BIN+G2 JC2+I",
    3: "MULTI3_GTR+G2",
    5: "MULTI5_ORDERED+FO+R2",
    10: "MULTI10_GTR",
    12: "MULTI12_ORDERED+FO+I",
    "GT10": "GT10+G2",
    "genotypes": "GT16+FO",
    "doublets": "S16A+FO+G2 S16+FE",
}
ON_DEVICES = [  # few models to a device: those with as many states and components share compiled kernels
    *((4, text, OPENCL) for text in ("RY8.8", "WS5.16+I", "RY6.17a+G4")),
    *((4, text, LANES) for text in ("RY8.8", "UNREST+G4", "MK3.4+G4")),
    *((kind, text, LANES) for kind, text in ((2, "BIN+G2"), (3, "MULTI3_GTR+G2"))),
    *((2, "JC2+I", OPENCL), (5, "MULTI5_ORDERED+FO+R2", OPENCL), (12, "MULTI12_ORDERED+FO+I", OPENCL)),
    *(
        (10, "MULTI10_GTR", OPENCL),
        ("GT10", "GT10+G2", OPENCL),
        (61, "MGK+F1X4+I", OPENCL),
        ("genotypes", "GT16+FO", OPENCL),
    ),
    *(("doublets", "S16A+FO+G2", OPENCL), ("doublets", "S16+FE", OPENCL)),
]
SLOW = [(61, "GY1KTV+FE+G2"), ("genotypes", "GT16+FO"), ("doublets", "S16A+FO+G2"), ("doublets", "S16+FE")]
CASES = [
    *((kind, text, NUMPY) for kind, texts in ON_NUMPY.items() for text in texts.split()),
    *(pytest.param(*case, marks=pytest.mark.opencl) for case in ON_DEVICES),
    *(pytest.param(*case, LANES, marks=[pytest.mark.opencl, pytest.mark.slow]) for case in SLOW),
]


def open_likelihood(rows, text, settings=NUMPY):
    is_directed = parse_model(text.partition(", ")[0]).is_directed
    return plltool.Likelihood(rows, ROOTED if is_directed else TREE, text, **settings)


@pytest.mark.parametrize(("kind", "text", "settings"), CASES)
def test_every_parameter(kind, text, settings):
    """Of many parameters some, a dozen where the oracle is quick."""
    rows, tips = rows_of(kind, 12 if kind in (20, 61) else 24)
    most = 6 if kind in (20, 61) else 12
    columns = columns_of(tips)
    with open_likelihood(rows, f"{text}, {STEMS}" if kind == "doublets" else text, settings) as likelihood:
        inner = likelihood._likelihood
        n = len(get_vector(disturb(inner, 0.2)))
        # rounding of lnL over the step: 1e-10
        chosen = range(0, n, max(1, n // most))
        assert_slopes(inner, lambda one: lnl_of(one, columns), 1e-3, chosen, rel=1e-6, abs=1e-6)


def test_almost_no_invariable_sites():
    """A step of the difference is many times the share itself, in which the likelihood of a site is linear."""
    rows, tips = rows_of(4)
    with open_likelihood(rows, "JC+I") as likelihood:
        (model,) = likelihood._likelihood.models
        low, step = get_bounds(model)[0][0], 1e-3
        set_vector(model, [low])
        likelihood._likelihood.model_changed()
        _, matrices, masses = likelihood._likelihood.rate_matrix_gradient()
    moved = model.copy()
    set_vector(moved, [low + step])
    expected = (lnl_of(moved, columns_of(tips)) - lnl_of(model, columns_of(tips))) / step
    # rel: the step is a share of 1e-6 of the sites; lnL is curved, and the ratio an exponential function of the vector
    assert parameter_slopes(model, ["pinv"], matrices[0], masses[0])[0] == pytest.approx(expected, rel=5e-3)


CIRCLE = "UNREST{9/1/1/1/9/1/1/1/9/9/1/1}+G2{0.7}"  # rates that circle A C G T A, so that two eigenvalues are complex


@pytest.mark.parametrize("text", ["HKY+FO", "JC+I+G4", "K80+R3", CIRCLE])
def test_factor_of_all_lengths(text):
    rows, tips = rows_of(4)
    with open_likelihood(rows, text) as likelihood:
        (model,) = likelihood._likelihood.models
        assert text != CIRCLE or np.any(model.components().rotations != 0)
        _, matrices, _ = likelihood._likelihood.rate_matrix_gradient()
    expected = derivative(lambda step: lnl_of(model, columns_of(tips), LENGTHS * np.exp(step)), 0.0, STEP)[0]
    assert scale_slope(model, matrices[0]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "scaled"), [("JC+I+G4", True), ("K80+G4", True), ("TN93+FE+G4", False), ("K80", True)]
)
def test_a_few_slopes_for_optimisers_are_differences(text, scaled):
    """They are the exact ones, also where an element cannot grow, and the first ones are none."""
    with open_likelihood(rows_of(4)[0], text) as likelihood:
        inner, (model,) = likelihood._likelihood, likelihood._likelihood.models
        names, vector, ends = model.free_parameters, get_vector(model), get_bounds(model)
        for at in (vector, [*vector[:-1], ends[-1][1]]):
            set_vector(model, at)
            inner.model_changed()
            known = Curvatures(1)
            expected, (exact,) = model_slopes(inner, [names], [scaled], curvatures=known)
            (lnl,), (slopes,) = model_slopes(inner, [names], [scaled], curvatures=known)
            assert inner.engine.counters.requests["likelihoods"]
            assert len(slopes) == len(vector) + scaled
            assert lnl == pytest.approx(expected[0], rel=1e-13)
            assert slopes == pytest.approx(exact, rel=1e-3, abs=1e-4)
        assert inner.engine.counters.requests["gradient"] == 2


@pytest.mark.parametrize("settings", [NUMPY, pytest.param(OPENCL | {"precision": "mixed"}, marks=pytest.mark.opencl)])
def test_more_slopes_and_those_in_mixed_precision_are_no_differences(settings):
    with open_likelihood(rows_of(4)[0], "GTR+FO+G4" if settings is NUMPY else "JC+G4", settings) as likelihood:
        known = Curvatures(1)
        for _ in range(2):
            model_slopes(likelihood._likelihood, [likelihood.models[0].free_parameters], curvatures=known)
        assert likelihood.engine.counters.requests == {"gradient": 2}


CORRECTED = [("UNREST+ASC", ()), ("STRSYM+G4+ASC_FELS{25}", (25,)), ("RY8.8+ASC_STAM{9/0/4/3.5}", (9, 0, 4, 3.5))]
ANYWHERE = [NUMPY, *(pytest.param(own, marks=pytest.mark.opencl) for own in (OPENCL, LANES))]


@pytest.mark.parametrize("settings", ANYWHERE)
@pytest.mark.parametrize(("text", "unseen"), CORRECTED)
def test_corrections_for_ascertainment_bias(text, unseen, settings):
    """Sites that were not seen have a root, too."""
    rows, tips = rows_of(4)
    varies = ~tips.all(axis=0).any(axis=1)
    columns = columns_of(tips[:, varies])
    rows = {name: "".join(np.array(list(row))[varies]) for name, row in rows.items()}

    def oracle(model, lengths=LENGTHS):
        alike = [lnl_of(model, [[1 << state] * 5], lengths) for state in range(4)]
        added = correction(model.spec.ascertainment.kind, unseen, alike, len(columns))
        return lnl_of(model, columns, lengths) + added

    with open_likelihood(rows, text, settings) as likelihood:
        model = disturb(likelihood._likelihood, 0.4)
        assert_slopes(likelihood._likelihood, oracle, STEP, rel=1e-6, abs=1e-6)
        by_length = likelihood.derivatives()[1]
        tips = [likelihood.tree.edges[1 + tip, 0] for tip in (0, 4)]
    for tip, branch in zip((0, 6), tips, strict=True):

        def longer(step, tip=tip):
            return oracle(model, LENGTHS + step * (np.arange(7) == tip))

        assert by_length[branch] == pytest.approx(derivative(longer, 0.0, STEP)[0], rel=1e-6, abs=1e-6)
