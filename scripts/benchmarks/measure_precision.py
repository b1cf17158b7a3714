"""How far single and mixed precision are from double: lnL, the lnL of single sites, and slopes in branch lengths.

    python scripts/benchmarks/measure_precision.py FOLDER [--device D] [--output FILE.json]

Each alignment of the list is evaluated on its start tree, FOLDER/reference/trees/NAME.start.nwk, under
GTR+F+G4{0.3}, with lengths and parameters as given. Slopes are the first derivatives of lnL in the branch lengths;
their differences are relative to the largest of them.
"""

from pathlib import Path
from typing import Any

import numpy as np
from rivals import make_parser, save, today

import plltool

SETS = ("dna59", "dna101", "dna125", "dna150", "dna218", "dna354", "dna500", "dna1288")
RATES = "GTR{1.2/3.4/0.8/1.1/4.1/1.0}+F+G4{0.3}"


def measure(alignment: Path, tree: Path, device: str, precision: str) -> dict[str, Any]:
    """lnL, the lnL of each site and the slope in each branch length."""
    with plltool.Likelihood(alignment, tree, RATES, device=device, precision=precision) as likelihood:
        lnl, slopes, _ = likelihood.derivatives()
        return {"lnl": lnl, "sites": likelihood.site_lnl(), "slopes": slopes, "reason": likelihood.reason}


def compare(found: dict[str, Any], exact: dict[str, Any]) -> dict[str, float]:
    """Differences of one precision from double."""
    difference = abs(found["lnl"] - exact["lnl"])
    return {
        "lnl": difference,
        "lnl_relative": difference / abs(exact["lnl"]),
        "site_lnl": float(np.abs(found["sites"] - exact["sites"]).max()),
        "slope": float(np.abs(found["slopes"] - exact["slopes"]).max() / np.abs(exact["slopes"]).max()),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    sets: dict[str, Any] = {}
    for name in SETS:
        plain = asked.folder / "data" / f"{name}.phy"
        alignment = plain if plain.exists() else plain.with_suffix(".phy.gz")
        tree = asked.folder / "reference" / "trees" / f"{name}.start.nwk"
        exact = measure(alignment, tree, asked.device, "double")
        sets[name] = {
            precision: compare(measure(alignment, tree, asked.device, precision), exact)
            for precision in ("mixed", "single")
        }
        print(name, sets[name], flush=True)
    record = {"date": today(), "version": plltool.__version__, "model": RATES, "reason": exact["reason"], "sets": sets}
    save(asked.output, record)


if __name__ == "__main__":
    main()
