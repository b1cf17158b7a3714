#!/usr/bin/env python3
"""Time gradients of the likelihood against the likelihood itself: 16 to 2,048 taxa, 4, 20, 61 and 122 states.

    python scripts/benchmarks/time_gradients.py [--device auto] [--taxa N ...] [--states N ...] [--output FILE.json]

Trees are random, and alignments evolved along them under the model. Each row has processor seconds on one thread,
after all branch lengths have changed: of lnL, of the slopes in all branch lengths, and of the whole gradient, which
includes those in all free parameters of the model; and of the P matrices alone, on the device and by numpy in one
product for all branches. The shortest repetition counts.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rivals import make_parser, save, today

import plltool
from plltool.engine import program as prog
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.moves import random_tree

MODELS = {  # by number of states: to simulate, to evaluate, columns of a pattern, patterns
    4: ("GTR{1/4/1/1/4/1}+FE+G4{0.5}", "GTR+FO+G4", 1, 256),
    20: ("LG+G4{0.5}", "LG+FO+G4", 1, 256),
    61: ("GY{0.2/2.0}+FE", "GY+FE", 3, 128),
    122: ("GY{0.2/2.0}+FE+COV{1/1}", "GY+FE+COV", 3, 128),
}
TAXA = (16, 64, 256, 1024, 2048)
SECONDS = 1.0  # of repetitions of each measurement


def shortest(work: Callable[[int], object]) -> float:
    """Processor seconds of the shortest of some repetitions, whose numbers `work` gets; the first does not count."""
    work(0)
    seconds: list[float] = []
    while sum(seconds) < SECONDS and len(seconds) < 50:
        began = time.process_time()
        work(len(seconds) + 1)
        seconds.append(time.process_time() - began)
    return min(seconds)


def time_matrices(likelihood: TreeLikelihood, lengths: np.ndarray) -> dict[str, float]:
    """Processor seconds of the P matrices of all branches: a program of one instruction needs all of them."""
    parts = likelihood.models[0].components()
    n_branches = len(lengths)
    request = prog.Request(prog.evaluate(0, ~0, ~1, 0), 1, "matrices")

    def on_device(number: int) -> None:
        likelihood.engine.execute(request, lengths * (1 + 1e-6 * number))

    def one_product(number: int) -> np.ndarray:
        t = (lengths * (1 + 1e-6 * number))[:, None, None]
        grow = np.expm1(parts.eigenvalues * parts.rates[:, None] * t)  # branch, component, state
        product = (parts.right * grow[:, :, None, :]) @ parts.left
        return np.maximum(product + np.eye(parts.n_states), 0.0)

    return {
        "matrices": n_branches * parts.n_components,
        "matrices_seconds": shortest(on_device),
        "numpy_matrices_seconds": shortest(one_product),
    }


def measure(n_states: int, n_taxa: int, device: str) -> dict[str, Any]:
    """One row."""
    simulated, model, width, n_patterns = MODELS[n_states]
    rng = np.random.default_rng([n_states, n_taxa])
    tree = random_tree([f"t{number}" for number in range(n_taxa)], rng)
    tree.lengths[:] = rng.exponential(0.1, tree.lengths.shape)
    data = plltool.simulate(tree, simulated, width * n_patterns, seed=1).as_sequences()
    with plltool.Likelihood(data, tree, model, device=device, threads=1) as likelihood:
        lengths = likelihood.lengths

        def changed(ask: Callable[[], object]) -> Callable[[int], None]:
            def work(number: int) -> None:
                likelihood.lengths = lengths * (1 + 1e-6 * number)
                ask()

            return work

        questions: dict[str, Callable[[], object]] = {
            "lnl_seconds": likelihood.lnl,
            "lengths_seconds": lambda: likelihood.gradient(model=False),
            "gradient_seconds": likelihood.gradient,
        }
        seconds = {name: shortest(changed(ask)) for name, ask in questions.items()}
        return {
            "states": n_states,
            "taxa": n_taxa,
            "patterns": likelihood.engine.n_patterns,
            "model": model,
            "elements": len(likelihood.vector()),
            "device": likelihood.engine.device_name,
            "driver": likelihood.engine.driver,
            "layout": likelihood.engine.describe(),
            **seconds,
            "lengths_ratio": seconds["lengths_seconds"] / seconds["lnl_seconds"],
            "gradient_ratio": seconds["gradient_seconds"] / seconds["lnl_seconds"],
            **time_matrices(likelihood._likelihood, np.clip(lengths, 1e-6, 100.0)),
        }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--taxa", type=int, nargs="+", default=TAXA)
    parser.add_argument("--states", type=int, nargs="+", choices=tuple(MODELS), default=tuple(MODELS))
    options = parser.parse_args()
    rows = []
    print("states  taxa patterns     lnL ms  lengths ms gradient ms  ratios          matrices: n, ms, numpy ms")
    for n_states in options.states:
        for n_taxa in options.taxa:
            row = measure(n_states, n_taxa, options.device)
            rows.append(row)
            times = [1e3 * row[f"{name}_seconds"] for name in ("lnl", "lengths", "gradient")]
            print(
                f"{n_states:6d} {n_taxa:5d} {row['patterns']:8d} " + " ".join(f"{value:11.2f}" for value in times)
                + f" {row['lengths_ratio']:6.2f} {row['gradient_ratio']:6.2f}   {row['matrices']:7d}"
                f" {1e3 * row['matrices_seconds']:9.2f} {1e3 * row['numpy_matrices_seconds']:9.2f}",
                flush=True,
            )  # fmt: skip
    save(options.output, {"date": today(), "version": plltool.__version__, "rows": rows})


if __name__ == "__main__":
    main()
