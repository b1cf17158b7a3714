"""Compare constrained searches with free ones: every split of the constraint must be there, and true ones cost nothing.

    python scripts/benchmarks/compare_constraints.py ALIGNMENT ... [--kind KIND ...] [--seeds 1 2 3]
        [--output FILE.json]

For each alignment and seed a free search finds a tree, and searches with the same seed are constrained, by splits of
that tree: all of them; each with probability a half; those that half of the taxa have ("taxa"); all but one, in whose
place stands that of a nearest-neighbour interchange ("wrong"); a few disjoint clades, half of them with another taxon
("clades"). Or by random ones: nested groups of half of the taxa ("nested"); a backbone of few taxa. dendropy reads the
trees, and splits are compared as sets of names. A start tree that breaks the constraint must be refused, by an error
that names a split that it lacks. A search that lacks one is told as LACKING, and the exit status is 1.
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
KINDS = ("all", "half", "taxa", "wrong", "clades", "nested", "backbone")
CLADES, LEAST = 6, 3  # of the constraint "clades": their number, and the taxa in and beside them

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
    left = {name: "'" + name.replace("'", "''") + "'" for name in members}
    for side in sorted(sides, key=len):
        joined = f"({','.join(sorted({text for name, text in left.items() if name in side}))})"
        left |= dict.fromkeys(side, joined)
    return f"({','.join(sorted(set(left.values())))});"


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


def join(names: list[str], n_left: int, rng: np.random.Generator) -> set[Side]:
    """Groups of the names, groups of groups and so on, until `n_left` are left."""
    parts, sides = [frozenset([name]) for name in names], set[Side]()
    while len(parts) > n_left:
        size = min(len(parts) - n_left + 1, int(rng.integers(2, 6)))
        chosen = sorted(rng.choice(len(parts), size, replace=False).tolist(), reverse=True)
        parts.append(frozenset().union(*(parts.pop(k) for k in chosen)))
        sides.add(parts[-1])
    return sides


def choose_clades(sides: set[Side], everyone: Side, rng: np.random.Generator) -> set[Side]:
    """Some disjoint clades, every second one with a taxon from elsewhere."""
    left, groups = set(everyone), set[Side]()
    for side in rng.permutation(np.array(sorted(sides, key=sorted), dtype=object)):
        group = set(side if 2 * len(side) <= len(everyone) else everyone - side)
        if left >= group and LEAST <= len(group) <= len(left) - LEAST and len(groups) < CLADES:
            left -= group
            if len(groups) % 2:
                group.add(str(rng.choice(sorted(left))))
                left -= group
            groups.add(frozenset(group))
    return groups


def draw(kind: str, sides: set[Side], everyone: Side, rng: np.random.Generator) -> str:
    """A constraint of this kind, from the splits of a tree."""
    names = [str(name) for name in rng.permutation(sorted(everyone))]
    if kind == "taxa":
        members = frozenset(names[: max(4, len(names) // 2)])
        return write_constraint(restrict(sides, members), members)
    if kind == "backbone":
        members = frozenset(names[: max(6, len(names) // 6)])
        return write_constraint(join(sorted(members), 3, rng), members)
    chosen = {
        "all": lambda: sides,
        "half": lambda: {side for side in sorted(sides, key=sorted) if rng.random() < 0.5},
        "wrong": lambda: interchange(sides, everyone, rng),
        "clades": lambda: choose_clades(sides, everyone, rng),
        "nested": lambda: join(names[: len(names) // 2], 4, rng),
    }[kind]()
    return write_constraint(chosen, everyone)


def is_refused(given: dict[str, Any], newick: str, text: str, broken: set[Side], members: Side) -> bool:
    """Whether a search from this tree fails with an error that names one of the splits that the tree breaks.

    The error may list the first few names of a side and count the rest.
    """
    try:
        plltool.search(**given, start=newick, constraint=text, options=plltool.SearchOptions("fast", perturbations=0))
    except plltool.InputError as error:
        told = re.search(r"it lacks the split (.*) \| (.*)", str(error))
        listed = [set(re.findall(r"'([^']*)'", side)) for side in told.groups()] if told else []
        more = [re.search(r" and (\d+) more", side) for side in told.groups()] if told else []
        sizes = [len(names) + int(rest[1] if rest else 0) for names, rest in zip(listed, more, strict=True)]
        pairs = [pair for side in broken for pair in ((side, members - side), (members - side, side))]
        return any(
            all(names <= side and size == len(side) for names, size, side in zip(listed, sizes, pair, strict=True))
            for pair in pairs
            if listed
        )
    return False


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("alignments", nargs="+", type=Path)
    parser.add_argument("--kind", action="append", choices=KINDS, help="default: all of them")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    asked = parser.parse_args()
    sets: dict[str, Any] = {}
    n_wrong = 0
    for path in asked.alignments:
        data = plltool.read_alignment(path)
        model = MODELS.get(data.states.name if data.states else "")
        name = re.sub(r"\.(fasta|phy)(\.gz)?$", "", path.name)
        rows = sets[name] = {"taxa": data.n_taxa, "sites": data.n_sites, "runs": []}
        for seed in asked.seeds:
            given = {"alignment": data, "model": model, "seed": seed, "threads": 1}
            began = time.process_time()
            free = plltool.search(**given)
            seconds = time.process_time() - began
            everyone, sides = read_sides(free.newick)
            run: dict[str, Any] = {"seed": seed, "free": {"lnl": round(free.lnl, 3), "seconds": round(seconds, 2)}}
            for kind in asked.kind or KINDS:
                text = draw(kind, sides, everyone, np.random.default_rng([seed, KINDS.index(kind)]))
                members, wanted = read_sides(text)
                began = time.process_time()
                found = plltool.search(**given, constraint=text)
                seconds = time.process_time() - began
                lacking, broken = (wanted - restrict(own, members) for own in (read_sides(found.newick)[1], sides))
                refused = not broken or is_refused(given, free.newick, text, broken, members)
                n_wrong += len(lacking) + (not refused)
                run[kind] = {
                    "splits": len(wanted),
                    "lacking": len(lacking),
                    "gain": round(found.lnl - free.lnl, 3),
                    "seconds": round(seconds, 2),
                }
                verdict = f"{len(lacking)} LACKING " * bool(lacking) + "START TREE NOT REFUSED" * (not refused)
                print(name, seed, kind, run[kind], f"free {run['free']['seconds']} s", verdict, flush=True)
            rows["runs"].append(run)
            save(asked.output, {"date": today(), "sets": sets})
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
