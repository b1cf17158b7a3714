"""What each strategy of `plltool.optimise.polish` gains: evaluations of given trees with each switched off in turn.

    python scripts/benchmarks/measure_polish.py ALIGNMENT=TREE ... [--samples 20] [--seed 1] [--output FILE.json]
        [--device NAME]

Besides each alignment, samples of a quarter of its columns (at least 100) are evaluated on the same trees, one
alignment after the other. A gain is lnL with all strategies less lnL without the one. Prints the largest for each.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rivals import commit, make_parser, save, today

import plltool
from plltool.optimise import lengths, polish
from plltool.optimise.coupling import Coupling

RATES = "+G4"


def keep(likelihood: Any, *arguments: Any) -> float:
    """In place of a strategy: lnL as it is."""
    return float(likelihood.lnl())


def begin_once(optimiser: polish.ModelOptimiser, lnl: float, precision: float) -> tuple[float, polish.Other]:
    """The start with the lengths first, alone."""
    polish.smooth(optimiser.likelihood, precision)
    return optimiser.run(precision), polish.Other()


def alone(_: Coupling, steps: np.ndarray, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """No steps together."""
    return steps, np.zeros(steps.shape[1:], dtype=bool)


STRATEGIES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "joint steps": (polish, "climb_ridge", keep),
    "revival": (polish, "revive_rates", keep),
    "scales": (polish, "try_scales", keep),
    "given lengths first": (polish, "_begin", begin_once),
    "coupling": (lengths.Coupling, "couple", alone),
    "other optima of parts": (polish.ModelOptimiser, "explore", lambda optimiser, *_: optimiser.likelihood.lnl()),
}


@contextmanager
def without(name: str) -> Iterator[None]:
    owner, attribute, instead = STRATEGIES[name]
    with patch.object(owner, attribute, instead):
        yield


def evaluate(data: dict[str, str], tree: str, model: str, device: str) -> tuple[float, float]:
    """lnL of the optimised tree, and seconds of processor time."""
    with plltool.Likelihood(data, tree, model, device=device) as likelihood:
        began = time.process_time()
        return likelihood.optimise(), time.process_time() - began


def draw_cases(pairs: list[str], n_samples: int, seed: int) -> Iterator[tuple[str, dict[str, str], str, str]]:
    """Name, sequences, tree and model of each case."""
    rng = np.random.default_rng(seed)
    for turn in range(len(pairs) + n_samples):
        path, tree = pairs[turn % len(pairs)].split("=")
        whole = plltool.read_alignment(path)
        rows, name = [np.frombuffer(row, dtype=np.uint8) for row in whole.rows], Path(path).name
        if turn >= len(pairs):
            columns = rng.choice(len(rows[0]), max(100, len(rows[0]) // 4), replace=False)
            rows, name = [row[columns] for row in rows], f"{name}, {len(columns)} columns"
        data = {taxon: row.tobytes().decode() for taxon, row in zip(whole.names, rows, strict=True)}
        model = "LG" if whole.states and whole.states.name == "protein" else "GTR+F"
        yield name, data, tree, model + (RATES, "+I+G4", "+R4")[turn % 3]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("pairs", nargs="+", metavar="ALIGNMENT=TREE")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, data, tree, model in draw_cases(asked.pairs, asked.samples, asked.seed):
        try:
            lnl, seconds = evaluate(data, tree, model, asked.device)
        except plltool.InputError as error:  # such as a base that does not occur, under +F
            rows.append({"name": name, "error": str(error)})
            continue
        row: dict[str, Any] = {"name": name, "model": model, "lnl": round(lnl, 4), "seconds": round(seconds, 2)}
        for strategy in STRATEGIES:
            with without(strategy):
                other, spent = evaluate(data, tree, model, asked.device)
            row[strategy] = {"gain": round(lnl - other, 4), "seconds": round(seconds - spent, 2)}
        rows.append(row)
        print(row, flush=True)
        done = [row for row in rows if "lnl" in row]
        most = {strategy: max(row[strategy]["gain"] for row in done) for strategy in STRATEGIES}
        if asked.output:
            record = {"date": today(), "commit": commit(), "most": most, "cases": rows}
            save(asked.output, record)
    print(most)


if __name__ == "__main__":
    main()
