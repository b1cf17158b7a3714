"""Gradients in the parameters of codon models against differences of the oracle."""

from pathlib import Path

import numpy as np
import pytest
from oracles.codons import columns, mixture, published, sense_codons, take_positions, unscaled
from oracles.likelihood import pruning
from oracles.substitution import gamma_category_means
from slopes import assert_slopes, disturb

import plltool

FIGURES = (Path(plltool.__file__).parent / "model" / "figures" / "codons.txt").read_text(encoding="utf-8")
STEP = 1e-4
TREE = "((a:0.1,b:0.3):0.2,c:0.15,(d:0.25,e:0.4):0.1);"
ENDS = [(0, 5), (1, 5), (5, 6), (2, 6), (6, 7), (3, 7), (4, 7)]
LENGTHS = [0.1, 0.3, 0.2, 0.15, 0.1, 0.25, 0.4]
MODELS = ["GY+F3X4", "GY1KTV+FE+G2", "MGK+F1X4+I", "M1a+F3X4", "M2a+FE", "M3+F1X4+G2", "ECMK07_GY2K"]
CASES = [  # devices know states and components only; compiling for another number of components takes 10 to 20 s
    *((text, {"device": "numpy"}) for text in MODELS),
    pytest.param("MGK+F1X4+I", {"device": "opencl"}, marks=pytest.mark.opencl),
    pytest.param("GY1KTV+FE+G2", {"device": "opencl", "vw": 32}, marks=[pytest.mark.opencl, pytest.mark.slow]),
]
AT_POSITIONS = np.array([[0.3, 0.2, 0.27, 0.23], [0.32, 0.24, 0.18, 0.26], [0.2, 0.3, 0.1, 0.4]])


def sequences():
    """Five sequences of 12 codons, with ambiguities and gaps."""
    rng = np.random.default_rng(61)
    codons = sense_codons(1)
    rows = []
    first = rng.integers(61, size=12)
    for _ in range(5):
        changed = np.where(rng.random(12) < 0.5, rng.integers(61, size=12), first)
        rows.append("".join(codons[k] for k in changed))
    rows[1] = "---" + rows[1][3:9] + "RAY" + rows[1][12:]
    rows[3] = rows[3][:6] + "A--" + rows[3][9:]
    return dict(zip("abcde", rows, strict=True))


def oracle_lnl(model):
    """lnL of a model's values, everything else from the oracles."""
    named, pi = model.rate_parameters, model.frequencies
    kappa = named.get("kappa", 1.0)
    at_positions = take_positions(pi, 1) if model.spec.name.startswith("MG") else None
    if model.spec.is_mixture:
        omegas = {"M1a": ("omega0", 1.0), "M2a": ("omega0", 1.0, "omega2"), "M3": ("omega0", "omega1", "omega2")}
        values = [named.get(omega, omega) for omega in omegas[model.spec.name]]
        components = mixture([unscaled(1, pi, omega, kappa) for omega in values], model.classes.weights, pi)
    elif model.spec.name == "ECMK07_GY2K":
        pi = published(FIGURES, "ECMK07")[1]
        components = mixture([published(FIGURES, "ECMK07", *named.values())[0]], [1.0], pi)
    else:
        kappas = (1.0, kappa) if model.spec.name.endswith("1KTV") else (kappa, 1.0)
        components = mixture([unscaled(1, pi, named["omega"], *kappas, at_positions)], [1.0], pi)
    pinv = model.pinv or 0.0
    rates = [1.0] if model.alpha is None else gamma_category_means(model.alpha, model.sites.n_categories)
    spread = [
        (w * (1 - pinv) / len(rates), f, q * r / (1 - pinv)) for w, f, q in components for r in rates
    ]  # fmt: skip
    if pinv:
        spread.insert(0, (pinv, pi, 0 * components[0][2]))
    return sum(pruning(ENDS, LENGTHS, columns(list(sequences().values()), 1), spread))


@pytest.mark.parametrize(
    ("text", "device"), CASES, ids=lambda one: one if isinstance(one, str) else "-".join(map(str, one.values()))
)
def test_every_parameter(text, device):
    with plltool.Likelihood(sequences(), TREE, text, **device) as likelihood:
        disturb(likelihood._likelihood, 0.2)
        assert_slopes(likelihood._likelihood, oracle_lnl, STEP, rel=1e-5, abs=1e-5)
