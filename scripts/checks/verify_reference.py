"""Compare likelihoods of fixed trees, and of optimised branch lengths, with those of other programs.

    python scripts/checks/verify_reference.py DATA_DIR REFERENCE_DIR [--device numpy --device opencl] [--set NAME ...]

DATA_DIR holds NAME.phy or NAME.phy.gz; REFERENCE_DIR holds fixed.json, trees/NAME.{fixed,start}.nwk and partition files
with all values, NAME.fixed.part, as tests/README.md describes. The script prints one line per value. It exits with 1 if
one differs by more than its tolerance: 1e-3 lnL for fixed trees, 0.05 for lengths optimised from 0.1, 1e-6 and 5.

It also compares the rows of reference_rows.json: codons, morphology, doublets, models that are not time-reversible,
corrections for ascertainment bias, +COV, under IQ-TREE, RAxML 8, codeml and MrBayes. Most are made by
`make_reference_rows.py`; --set chooses those whose data have one of the names, and REFERENCE_DIR plays no part in them.

With --rival PROGRAM, the path of IQ-TREE 2, the same models are also optimised on NAME.fixed.nwk by both programs: all
lengths, and all parameters but frequencies, which are plltool's. plltool may end at most 0.01 lower. With --optimise
the same holds for the rows, whose values are those that the other program ended with, unless they were given to it.
"""

import argparse
import json
import logging
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import plltool
from plltool.alignment.facts import may_be_invariable
from plltool.constants import LINKAGES, LINKED
from plltool.io.bridge import alignment_from_object
from plltool.model.partition import cut_alignment
from plltool.model.scheme import PartSpec

REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = Path(__file__).parent / "reference_rows.json"
FIXED_TOLERANCE = 1e-3
LENGTHS_TOLERANCE = 0.05
OPTIMISED_TOLERANCE = 0.01
FILES = {"avian": "avian_ovomucoids"}  # sets with a shorter name in fixed.json
START_LENGTHS = (0.1, 1e-6, 5.0)
PARTITIONED = {"dna59": -55550.836925650}  # lnL under NAME.fixed.part, lengths linked: RAxML-NG 1.2.2, IQ-TREE 3.1.3


def find_alignment(folder: Path, name: str) -> Path | None:
    """The alignment NAME in `folder`, plain or compressed."""
    name = FILES.get(name, name)
    return next((path for path in (folder / f"{name}.phy", folder / f"{name}.phy.gz") if path.exists()), None)


def take_data(folder: Path, name: str, take: Mapping[str, Any]) -> dict[str, str]:
    """The sequences of a file in `folder`, or else in data/, or what a row takes of them.

    `columns` are the first and the last one, from 1; `symbols` are kept, all others become ``?``, among them sets of
    states, which not all programs read; with `variable`, columns that may be invariable are left out.
    """
    paths = (folder / name, folder / f"{name}.gz", REPOSITORY / "data" / name)
    given = plltool.read_alignment(next(path for path in paths if path.exists()))
    first, last = take.get("columns", (1, None))
    rows = {taxon: row[first - 1 : last] for taxon, row in zip(given.names, given.rows, strict=True)}
    allowed = take.get("symbols")
    if allowed:
        kept_bytes = allowed.encode()
        rows = {taxon: bytes(b if b in kept_bytes else ord("?") for b in row) for taxon, row in rows.items()}
    texts = {taxon: row.decode("ascii") for taxon, row in rows.items()}
    if take.get("variable"):
        (part,) = cut_alignment(alignment_from_object(texts), (PartSpec(None),)).parts
        kept = np.sort(part.sites[~may_be_invariable(part.alignment)])
        texts = {taxon: "".join(row[k] for k in kept) for taxon, row in texts.items()}
    return texts


def check(label: str, found: float, expected: float, tolerance: float) -> bool:
    """Print one comparison and return whether it holds."""
    good = abs(found - expected) <= tolerance
    verdict = "ok  " if good else "FAIL"
    print(f"{verdict} {label:58s} {found:18.6f} {expected:18.6f} {found - expected:+11.2e}", flush=True)
    return good


def evaluate(label: str, *given: Any, **how: Any) -> plltool.EvaluationResult | None:
    """What plltool finds; None for a model that it does not accept."""
    try:
        return plltool.evaluate(*given, **how)
    except plltool.InputError as error:
        print(f"skip {label}: {str(error).split('; accepted')[0]}")
        return None


def check_fixed(name: str, alignment: Any, trees: Path, rows: dict[str, Any], device: str) -> bool:
    """Fixed tree, lengths and parameters."""
    good = True
    for label, row in rows.items():
        accepted = row[row["accept"]]
        given = alignment, trees / f"{name}.fixed.nwk", accepted["model"]
        result = evaluate(f"{name} {label}", *given, fixed=True, device=device)
        if result is not None:
            good &= check(f"{device} {name} {label}", result.lnl, accepted["lnl"], FIXED_TOLERANCE)
    return good


def check_parts(name: str, alignment: Path, reference: Path, device: str) -> bool:
    """Fixed tree, lengths and parameters of each part: linked, with scalers of 1, and unlinked with equal lengths."""
    tree, scheme = reference / "trees" / f"{name}.fixed.nwk", reference / f"{name}.fixed.part"
    good = True
    for brlen in LINKAGES:
        found = plltool.evaluate(alignment, tree, str(scheme), fixed=True, brlen=brlen, device=device).lnl
        good &= check(f"{device} {name} in parts, {brlen}", found, PARTITIONED[name], FIXED_TOLERANCE)
    return good


def row_label(row: Mapping[str, Any]) -> str:
    """What a row is called: its data, its models without values, and the program."""
    model = re.sub(r"\{[^}]*\}|,.*", "", row["model"]).replace("\n", " and ")
    return f"{row['data'].split('.')[0]} {model} {row['program'].split(',')[0]}"


def check_rows(folder: Path, rows: Sequence[Mapping[str, Any]], devices: Sequence[str], optimise: bool) -> bool:
    """Rows of other programs with all values fixed; with `optimise` also with none, where a higher lnL passes."""
    good = True
    worst: dict[str, float] = {}
    for row in rows:
        data = take_data(folder, row["data"], row["take"])
        label = row_label(row)
        for device in devices:
            found = plltool.evaluate(data, row["tree"], row["fixed"], fixed=True, brlen=LINKED, device=device).lnl
            worst["fixed"] = max(worst.get("fixed", 0.0), abs(found - row["lnl"]))
            good &= check(f"{device} {label}", found, row["lnl"], FIXED_TOLERANCE)
        if optimise and not row.get("given"):
            found = plltool.evaluate(data, row["tree"], row["model"], brlen=LINKED, threads=1).lnl
            worst["optimised, below"] = max(worst.get("optimised, below", 0.0), row["lnl"] - found)
            good &= check(f"{label} optimised", min(found, row["lnl"]), row["lnl"], OPTIMISED_TOLERANCE)
            if found > row["lnl"]:
                print(f"     higher by {found - row['lnl']:.4f}")
    for what, difference in worst.items():
        print(f"worst difference of {len(rows)} rows, {what}: {difference:.6f}")
    return good


def check_lengths(name: str, alignment: Any, trees: Path, row: dict[str, Any], device: str) -> bool:
    """Branch lengths optimised under a fixed model from several starts; a higher lnL passes, too."""
    good = True
    for start in START_LENGTHS:
        tree = plltool.read_tree(trees / f"{name}.start.nwk", alignment.names)
        tree.lengths[:] = start
        with plltool.Likelihood(alignment, tree, row["model"], device=device) as likelihood:
            found = likelihood.optimise("lengths")
        expected = row["raxml_ng"]
        good &= check(f"{device} {name} lengths from {start:g}", min(found, expected), expected, LENGTHS_TOLERANCE)
    return good


def check_optimised(name: str, alignment: Path, tree: Path, rows: dict[str, Any], rival: str) -> bool:
    """Lengths and parameters optimised by both programs; a higher lnL passes."""
    good = True
    for label, row in rows.items():
        ours = re.sub(r"(?<!\+FU)\{[^}]*\}", "", row["raxml_ng"]["model"]).replace("+IU", "+I")
        theirs = re.sub(r"\{[^}]*\}", "", row["iqtree3"]["model"])
        result = evaluate(f"{name} {label}", alignment, tree, ours, threads=1)
        if result is None:
            continue
        frequencies = ",".join(repr(value) for value in result.parameters["frequencies"].values())
        expected = optimise_with(rival, alignment, tree, re.sub(r"\+F\b", f"+F{{{frequencies}}}", theirs))
        good &= check(f"{name} {label} optimised", min(result.lnl, expected), expected, OPTIMISED_TOLERANCE)
        if result.lnl > expected:
            print(f"     higher by {result.lnl - expected:.4f}")
    return good


def optimise_with(program: str, alignment: Path, tree: Path, model: str) -> float:
    """The lnL that IQ-TREE prints after it has optimised lengths and model on a tree."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder, "run")
        given = [program, "-s", str(alignment), "-te", str(tree), "-m", model, "--keep-ident", "--epsilon", "0.001"]
        subprocess.run([*given, "-nt", "1", "-pre", str(prefix), "-quiet"], check=True)
        report = prefix.with_suffix(".iqtree").read_text()
    found = re.search(r"Log-likelihood of the tree: (\S+)", report)
    if found is None:
        raise SystemExit(f"{program} printed no lnL for {alignment} under {model}")
    return float(found[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--device", action="append", help="default: numpy and opencl")
    parser.add_argument("--rival", help="IQ-TREE 2, with which optimised lnL is compared")
    parser.add_argument("--set", action="append", help="default: every set of fixed.json, and all rows")
    parser.add_argument("--optimise", action="store_true", help="also optimise the models of the rows")
    arguments = parser.parse_args()
    logging.getLogger("plltool").setLevel(logging.ERROR)
    reference = json.loads((arguments.reference / "fixed.json").read_text())
    good = True
    devices = arguments.device or ("numpy", "opencl")
    rows = json.loads(ROWS.read_text())
    if arguments.set:
        rows = [row for row in rows if Path(row["data"]).stem in arguments.set]
    good &= check_rows(arguments.data, rows, devices, arguments.optimise)
    for name in arguments.set or reference:
        if name not in reference:
            continue
        path = find_alignment(arguments.data, name)
        if path is None:
            print(f"skip {name}: no alignment")
            continue
        try:
            alignment = plltool.read_alignment(path)
        except plltool.InputError as error:
            print(f"skip {name}: {error}")
            continue
        trees, of_set = arguments.reference / "trees", reference[name]
        of_lengths = of_set.pop("bl_optimised", None)
        for device in devices:
            good &= check_fixed(name, alignment, trees, of_set, device)
            if name in PARTITIONED:
                good &= check_parts(name, path, arguments.reference, device)
            if of_lengths is not None:
                good &= check_lengths(name, alignment, trees, of_lengths, device)
        if arguments.rival:
            good &= check_optimised(name, path, trees / f"{name}.fixed.nwk", of_set, arguments.rival)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
