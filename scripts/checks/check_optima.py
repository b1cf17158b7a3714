"""Whether the optimisation of a fixed tree ends at an optimum: scipy's L-BFGS-B goes on from where it ends.

    python scripts/checks/check_optima.py ALIGNMENT ... [--cases 300] [--seed 1] [--least 0.01] [--output FILE.json]

Each case draws 4 to 12 taxa and 100 to 600 columns of one of the alignments, a random tree or one searched under JC or
LG, and a model. A gain means that the end was no optimum. Prints the cases that gain more than --least, and how many
there are.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

import plltool
from plltool.tree.moves import random_tree

DNA_MODELS = ("GTR", "SYM", "TVM", "TIM2", "HKY")
PROTEIN_MODELS = ("LG", "WAG", "JTT")
FREQUENCIES = ("+F", "+FO")
RATES = ("", "+G4", "+I", "+I+G4", "+R3", "+R4")


def go_on(likelihood: plltool.Likelihood) -> float:
    """lnL where L-BFGS-B ends, from where the likelihood is."""

    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = likelihood.value_and_grad(vector)
        return -value, -np.array(gradient)

    bounds = np.array(likelihood.vector_bounds())
    options = {"maxiter": 500, "maxfun": 1500, "ftol": 1e-14}
    best = minimize(loss, likelihood.vector(), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return -float(best.fun)


def draw_case(paths: list[Path], rng: np.random.Generator) -> tuple[dict[str, str], plltool.Tree, str, str]:
    """Sequences, a tree, a model, and what the case is called."""
    while True:
        path = paths[int(rng.integers(len(paths)))]
        data = plltool.read_alignment(path)
        kind = data.states.name if data.states else ""
        rows = np.array([np.frombuffer(row, dtype=np.uint8) for row in data.rows])
        taxa = rng.choice(len(rows), min(len(rows), int(rng.integers(4, 13))), replace=False)
        columns = rng.choice(rows.shape[1], min(rows.shape[1], int(rng.integers(100, 601))), replace=False)
        cells = [rows[taxon, columns].tobytes().decode() for taxon in taxa]
        if len(set(cells)) == len(cells) and all(set(row.upper()) - set("-?NX") for row in cells):
            break
    alignment = {f"t{number}": row for number, row in enumerate(cells)}
    families = PROTEIN_MODELS if kind == "protein" else DNA_MODELS
    model = str(rng.choice(families)) + str(rng.choice(FREQUENCIES)) + str(rng.choice(RATES))
    if rng.random() < 0.5:
        tree, how = random_tree(sorted(alignment), rng), "random"
    else:
        found = plltool.search(alignment, "LG" if kind == "protein" else "JC", effort="fast", device="numpy")
        tree, how = found.tree, "searched"
    return alignment, tree, model, f"{path.name} {len(taxa)} x {len(columns)} {how}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignments", nargs="+", type=Path)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=0.01)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for number in range(asked.cases):
        rng = np.random.default_rng([asked.seed, number])
        try:
            alignment, tree, model, name = draw_case(asked.alignments, rng)
            with plltool.Likelihood(alignment, tree, model, device="numpy") as likelihood:
                lnl = likelihood.optimise()
                gain = go_on(likelihood) - lnl
        except plltool.InputError as error:  # such as a base that does not occur, under +F
            rows.append({"case": number, "error": str(error)})
            continue
        rows.append({"case": number, "name": name, "model": model, "lnl": round(lnl, 4), "gain": round(gain, 5)})
        gains = [row["gain"] for row in rows if "gain" in row]
        over = sum(one > asked.least for one in gains)
        if gain > asked.least:
            print(rows[-1], flush=True)
        if gain > asked.least or number % 10 == 9 or number == asked.cases - 1:
            print(f"{over} of {len(gains)} cases gain more than {asked.least:g}, at most {max(gains):.4f}", flush=True)
    if asked.output:
        record = {"date": datetime.now(UTC).date().isoformat(), "seed": asked.seed, "least": asked.least, "cases": rows}
        asked.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
