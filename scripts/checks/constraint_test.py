"""Search under random constraints: does the tree have every split of the constraint, and how much lnL does it cost?

    python scripts/checks/constraint_test.py ALIGNMENT [--constraints 10] [--seed 1] -- OPTIONS OF plltool search

Three kinds of constraints take turns: a few random nested groups of all taxa; a backbone without most of the taxa; and
groups of a tree that a free search found, half of them with an extra taxon, so that they contradict the data a little.
dendropy reads constraint and result, and splits are compared as sets of names. A start tree that breaks the constraint
must be refused, and the error must name a split that the tree lacks. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dendropy
import numpy as np

RUN = "from plltool.cli import main; main(prog_name='plltool')"
DEFAULT_OPTIONS = ["--effort", "fast", "--threads", "1"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignment", type=Path)
    parser.add_argument("--constraints", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="seed of the constraints")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep constraints and results there")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = sys.argv[at + 1 :] or DEFAULT_OPTIONS
    given = parser.parse_args(sys.argv[1:at])
    rng = np.random.default_rng(given.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        free, seconds = search(given.alignment, folder / "free", options)
        print(f"free: lnL {free['lnl']:.3f}, {seconds:.1f} s", flush=True)
        names, sides = read_sides(free["tree"])
        failures = 0
        for number in range(given.constraints):
            kind, text = draw(number, names, sides, rng)
            path = folder / f"{number}.nwk"
            path.write_text(text + "\n")
            found, seconds = search(given.alignment, folder / str(number), [*options, "--constraint", str(path)])
            members, wanted = read_sides(text)
            lacking = wanted - restrict(read_sides(found["tree"])[1], members)
            verdict = "all there" if not lacking else f"{len(lacking)} LACKING"
            broken = wanted - restrict(sides, members)
            if broken:
                refusal = refused(given.alignment, folder, path, free["tree"], options)
                is_right = any(names_split(refusal, split) for split in broken)
                verdict += ", start tree refused" if is_right else f", NOT REFUSED AS EXPECTED: {refusal}"
            failures += "LACKING" in verdict or "NOT" in verdict
            print(
                f"{number} {kind}: {len(members)} taxa, {len(wanted)} splits, {len(broken)} of them not in the free"
                f" tree: lnL {found['lnl']:.3f} ({found['lnl'] - free['lnl']:+.3f}), {seconds:.1f} s: {verdict}",
                flush=True,
            )
    print(f"{given.constraints - failures} of {given.constraints} as expected")
    return failures > 0


def search(alignment: Path, prefix: Path, options: list[str]) -> tuple[dict, float]:
    """The record of a search, and its seconds."""
    began = time.monotonic()
    command = [sys.executable, "-c", RUN, "search", str(alignment), "--prefix", str(prefix), "--redo", "--quiet"]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    return json.loads(Path(f"{prefix}.json").read_text()), time.monotonic() - began


def refused(alignment: Path, folder: Path, constraint: Path, start: str, options: list[str]) -> str:
    """The error of a search that starts from a tree; empty if it does not fail."""
    (folder / "start.nwk").write_text(start + "\n")
    command = [sys.executable, "-c", RUN, "search", str(alignment), "--prefix", str(folder / "refused"), "--redo"]
    more = ["--constraint", str(constraint), "--start", str(folder / "start.nwk"), "--quiet", "--perturbations", "0"]
    done = subprocess.run([*command, *options, *more], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode == 1 else ""


def names_split(error: str, split: frozenset) -> bool:
    """Whether an error names this split; it may list the first few names of a side and count the rest."""
    match = re.search(r"it lacks the split (.*) \| (.*)", error)
    if match is None:
        return False
    told = [(set(re.findall(r"'([^']*)'", side)), re.search(r" and (\d+) more", side)) for side in match.groups()]
    sides = sorted(split, key=lambda side: not told[0][0] <= side)
    return all(
        listed <= side and len(listed) + int(more[1] if more else 0) == len(side)
        for (listed, more), side in zip(told, sides, strict=True)
    )


# --- splits, as frozensets of two frozensets of names ---------------------------------------------------


def read_sides(newick: str) -> tuple[frozenset, set]:
    """The names of a tree's taxa, and its nontrivial splits."""
    tree = dendropy.Tree.get(data=newick, schema="newick", preserve_underscores=True, rooting="force-unrooted")
    everyone = frozenset(leaf.taxon.label for leaf in tree.leaf_node_iter())
    clades = [frozenset(leaf.taxon.label for leaf in node.leaf_iter()) for node in tree.preorder_internal_node_iter()]
    return everyone, nontrivial((clade, everyone - clade) for clade in clades)


def restrict(splits: set, members: frozenset) -> set:
    return nontrivial((side & members for side in split) for split in splits)


def nontrivial(pairs) -> set:
    made = (frozenset(pair) for pair in pairs)
    return {split for split in made if len(split) == 2 and min(map(len, split)) > 1}


# --- constraints ----------------------------------------------------------------------------------------


def draw(number: int, names: frozenset, sides: set, rng: np.random.Generator) -> tuple[str, str]:
    """A kind of constraint and its Newick text."""
    everyone = [str(name) for name in rng.permutation(sorted(names))]
    if number % 3 == 0:
        return "nested groups", as_newick(join(everyone[: len(everyone) // 2], 4, rng) + everyone[len(everyone) // 2 :])
    if number % 3 == 1:
        return "backbone", as_newick(join(everyone[: max(6, len(everyone) // 6)], 3, rng))
    return "groups of the free tree", as_newick(groups_of(everyone, sides, rng))


def join(parts: list, n_left: int, rng: np.random.Generator) -> list:
    """Join parts to groups, groups to larger groups and so on, until `n_left` remain; nested lists."""
    parts = list(parts)
    while len(parts) > n_left:
        size = min(len(parts) - n_left + 1, int(rng.integers(2, 6)))
        chosen = sorted(rng.choice(len(parts), size, replace=False).tolist(), reverse=True)
        parts.append([parts.pop(k) for k in chosen])
    return parts


def groups_of(everyone: list, sides: set, rng: np.random.Generator) -> list:
    """Some disjoint clades of a tree, every second one with a taxon from elsewhere."""
    clades = sorted(sorted(min(split, key=lambda side: (len(side), sorted(side)))) for split in sides)
    left, groups = set(everyone), []
    for number in rng.permutation(len(clades)).tolist():
        group = list(clades[number])
        if left.issuperset(group) and 3 <= len(group) <= len(left) - 3 and len(groups) < 6:
            left.difference_update(group)
            if len(groups) % 2:
                group.append(sorted(left)[int(rng.integers(len(left)))])
                left.remove(group[-1])
            groups.append(group)
    return [*groups, *sorted(left)]


def as_newick(parts: list) -> str:
    return nested_text(parts) + ";"


def nested_text(part: list | str) -> str:
    if isinstance(part, list):
        return "(" + ",".join(map(nested_text, part)) + ")"
    return "'" + part.replace("'", "''") + "'"


if __name__ == "__main__":
    sys.exit(main())
