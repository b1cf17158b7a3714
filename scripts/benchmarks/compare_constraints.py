"""Compare constrained searches with free ones: splits of the free search's own tree must cost nothing.

    python scripts/benchmarks/compare_constraints.py ALIGNMENT ... [--seeds 1 2 3] [--output FILE.json]

For each alignment and seed a free search finds a tree, and searches with the same seed are constrained by splits of it:
all of them; each with probability a half; those that half of the taxa have; and all but one, in whose place stands that
of a nearest-neighbour interchange, so that it is wrong. dendropy reads the trees, and splits are compared as sets of
names. A search that lacks one is told as LACKING, and the exit status is 1.
"""

import re
import sys
import time
from pathlib import Path
from typing import Any

import dendropy
import numpy as np
from rivals import make_parser, save, today

import plltool

MODELS = {"DNA": "GTR+F+G4", "protein": "LG+F+G4"}
KINDS = ("all", "half", "taxa", "wrong")

Side = frozenset[str]


def read_sides(newick: str) -> tuple[Side, set[Side]]:
    """The taxa of a tree, and its splits: the side of each inner branch without the first taxon."""
    tree = dendropy.Tree.get(data=newick, schema="newick", preserve_underscores=True, rooting="force-unrooted")
    everyone = frozenset(leaf.taxon.label for leaf in tree.leaf_node_iter())
    below = [frozenset(leaf.taxon.label for leaf in node.leaf_iter()) for node in tree.postorder_node_iter()]
    return everyone, restrict(set(below), everyone)


def restrict(sides: set[Side], members: Side) -> set[Side]:
    """The splits of the `members`."""
    first = min(members)
    found = {members - side if first in side else members & side for side in sides}
    return {side for side in found if 1 < len(side) < len(members) - 1}


def write_constraint(sides: set[Side], members: Side) -> str:
    """A tree over the members with these splits, which are compatible, as Newick text."""
    groups: dict[Side, list[str]] = {}
    left = {name: quote(name) for name in members}
    for side in sorted(sides, key=len):
        inside = sorted({text for name, text in left.items() if name in side})
        groups[side] = inside
        joined = f"({','.join(inside)})"
        left |= dict.fromkeys(side, joined)
    return f"({','.join(sorted(set(left.values())))});"


def quote(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def interchange(sides: set[Side], members: Side, rng: np.random.Generator) -> set[Side]:
    """The splits with one in place of another that its nearest-neighbour interchange has."""
    for side in rng.permutation(np.array(sorted(sides, key=sorted), dtype=object)):
        inner = [own for own in sides if own < side] + [frozenset([name]) for name in side]
        parts = [own for own in inner if not any(own < other for other in inner)]
        outer = [own for own in sides if own > side] or [members - {min(members)}]
        rest = [own for own in sides if own <= min(outer, key=len) - side]
        rest += [frozenset([name]) for name in min(outer, key=len) - side]
        beside = [own for own in rest if not any(own < other for other in rest)]
        if len(parts) == 2 and len(beside) >= 1:
            return (sides - {side}) | {parts[0] | beside[0]}
    raise ValueError("no inner branch of a binary tree")


def draw(kind: str, sides: set[Side], everyone: Side, rng: np.random.Generator) -> tuple[set[Side], Side]:
    """The splits of a constraint of this kind, and its members."""
    if kind == "taxa":
        chosen = rng.choice(sorted(everyone), max(4, len(everyone) // 2), replace=False)
        members = frozenset(map(str, chosen))
        return restrict(sides, members), members
    if kind == "half":
        return {side for side in sorted(sides, key=sorted) if rng.random() < 0.5}, everyone
    return (sides if kind == "all" else interchange(sides, everyone, rng)), everyone


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("alignments", nargs="+", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    asked = parser.parse_args()
    sets: dict[str, Any] = {}
    n_lacking = 0
    for path in asked.alignments:
        data = plltool.read_alignment(path)
        model = MODELS.get(data.states.name if data.states else "")
        name = re.sub(r"\.(fasta|phy)(\.gz)?$", "", path.name)
        rows = sets[name] = {"taxa": data.n_taxa, "sites": data.n_sites, "runs": []}
        for seed in asked.seeds:
            began = time.process_time()
            free = plltool.search(data, model, seed=seed, threads=1)
            seconds = time.process_time() - began
            everyone, sides = read_sides(free.newick)
            run: dict[str, Any] = {"seed": seed, "free": {"lnl": round(free.lnl, 3), "seconds": round(seconds, 2)}}
            for number, kind in enumerate(KINDS):
                wanted, members = draw(kind, sides, everyone, np.random.default_rng([seed, number]))
                began = time.process_time()
                text = write_constraint(wanted, members)
                found = plltool.search(data, model, seed=seed, threads=1, constraint=text)
                seconds = time.process_time() - began
                lacking = wanted - restrict(read_sides(found.newick)[1], members)
                n_lacking += len(lacking)
                run[kind] = {
                    "splits": len(wanted),
                    "lacking": len(lacking),
                    "gain": round(found.lnl - free.lnl, 3),
                    "seconds": round(seconds, 2),
                }
                verdict = f"{len(lacking)} LACKING" if lacking else ""
                print(name, seed, kind, run[kind], f"free {run['free']['seconds']} s", verdict, flush=True)
            rows["runs"].append(run)
            record = {"date": today(), "sets": sets}
            save(asked.output, record)
    return int(n_lacking > 0)


if __name__ == "__main__":
    sys.exit(main())
