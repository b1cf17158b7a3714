"""What each strategy of `plltool.optimise.polish` gains: evaluations of given trees with each switched off in turn.

    python scripts/benchmarks/measure_polish.py ALIGNMENT=TREE ... [--samples 20] [--models MODEL,...] [--parts scaled]
        [--seed 1] [--output FILE.json] [--device NAME]

Besides each alignment, samples of a quarter of its columns (at least 100) are evaluated on the same trees, one
alignment after the other. A gain is lnL with all strategies less lnL without the one. Prints the largest for each,
and the sums of launches that they take. With --parts the columns are drawn at random into two or three parts.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rivals import commit, make_parser, save, today

import plltool
from plltool.optimise import polish
from plltool.optimise.likelihood import TreeLikelihood

RATES = ("+G4", "+I+G4", "+R4")


def keep(_: Any, *arguments: Any) -> float:
    """In place of a strategy: lnL as it is."""
    return float(arguments[-1])


def keep_first(_: Any, lnl: float, **keywords: Any) -> float:
    """Likewise, where more than lnL is asked for."""
    return lnl


def begin_once(optimiser: polish.ModelOptimiser, lnl: float, precision: float) -> tuple[float, polish.Other]:
    """The start with the lengths first, alone."""
    polish.smooth(optimiser.likelihood, precision)
    return optimiser.run(precision), polish.Other()


STRATEGIES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "joint steps": (polish, "_climb_together", lambda *arguments: (keep(*arguments), False)),
    "scales": (polish, "try_scales", keep_first),
    "other rates over sites": (polish, "_try_other_rates", keep),
    "given lengths first": (polish, "_begin", begin_once),
    "other optima of parts": (polish.ModelOptimiser, "explore", lambda optimiser, *_: optimiser.likelihood.lnl()),
}


@contextmanager
def without(name: str) -> Iterator[None]:
    owner, attribute, instead = STRATEGIES[name]
    with patch.object(owner, attribute, instead):
        yield


def evaluate(data: Any, tree: str, model: str, brlen: str, device: str) -> tuple[float, int]:
    """lnL of the optimised tree, and the number of launches."""
    n_launches = 0

    def count(method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **keywords: Any) -> Any:
            nonlocal n_launches
            n_launches += 1
            return method(*arguments, **keywords)

        return counted

    with ExitStack() as stack:
        for name in ("_execute", "rate_matrix_gradient", "likelihoods"):
            stack.enter_context(patch.object(TreeLikelihood, name, count(getattr(TreeLikelihood, name))))
        likelihood = stack.enter_context(plltool.Likelihood(data, tree, model, brlen=brlen, device=device))
        return likelihood.optimise(), n_launches


def into_parts(model: str, n_sites: int, rng: np.random.Generator) -> str:
    """The text of a partition file: each column is in one of two or three parts of any size."""
    n_parts = int(rng.integers(2, 4))
    part = rng.choice(n_parts, n_sites, p=rng.dirichlet(np.ones(n_parts)))
    columns = [", ".join(map(str, np.flatnonzero(part == number) + 1)) for number in range(n_parts)]
    return "".join(f"{model}, p{number} = {own}\n" for number, own in enumerate(columns) if own)


def draw_cases(asked: argparse.Namespace) -> Iterator[tuple[str, Any, str, str]]:
    """Name, sequences, tree and model, or file of partitions, of each case."""
    rng = np.random.default_rng(asked.seed)
    pairs = asked.pairs
    for turn in range(len(pairs) + asked.samples):
        path, tree = pairs[turn % len(pairs)].split("=")
        whole = plltool.read_alignment(path)
        rows, name = [np.frombuffer(row, dtype=np.uint8) for row in whole.rows], Path(path).name
        if turn >= len(pairs):
            columns = rng.choice(len(rows[0]), max(100, len(rows[0]) // 4), replace=False)
            rows, name = [row[columns] for row in rows], f"{name}, {len(columns)} columns"
        data = {taxon: row.tobytes().decode() for taxon, row in zip(whole.names, rows, strict=True)}
        is_protein = whole.states and whole.states.name == "protein"
        models = asked.models.split(",") if asked.models else [("LG" if is_protein else "GTR+F") + one for one in RATES]
        model = models[turn % len(models)]
        if asked.parts:
            with tempfile.NamedTemporaryFile("w", suffix=".part") as file:
                file.write(into_parts(model, len(rows[0]), rng))
                file.flush()
                yield name, data, tree, file.name
        else:
            yield name, data, tree, model


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("pairs", nargs="+", metavar="ALIGNMENT=TREE")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--models", help="models or files of partitions, in turn; by default GTR or LG")
    parser.add_argument("--parts", action="store_true", help="draw the columns into two or three parts")
    parser.add_argument("--brlen", default="linked")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    strategies = asked.strategies.split(",")
    for name, data, tree, model in draw_cases(asked):
        try:
            lnl, launches = evaluate(data, tree, model, asked.brlen, asked.device)
        except plltool.InputError as error:  # such as a base that does not occur, under +F
            rows.append({"name": name, "error": str(error)})
            continue
        row: dict[str, Any] = {"name": name, "model": Path(model).name, "lnl": round(lnl, 4), "launches": launches}
        for strategy in strategies:
            with without(strategy):
                other, fewer = evaluate(data, tree, model, asked.brlen, asked.device)
            row[strategy] = {"gain": round(lnl - other, 4), "launches": launches - fewer}
        rows.append(row)
        print(row, flush=True)
        done = [row for row in rows if "lnl" in row]
        most = {strategy: max(row[strategy]["gain"] for row in done) for strategy in strategies}
        if asked.output:
            record = {"date": today(), "commit": commit(), "most": most, "cases": rows}
            save(asked.output, record)
    print(most)
    print({name: sum(row[name]["launches"] for row in done) for name in strategies}, sum(r["launches"] for r in done))


if __name__ == "__main__":
    main()
