"""How much of a traversal is repeated or wasted work: repeated subtree columns, and subtrees of gaps only.

    python scripts/benchmarks/measure_repeats.py ALIGNMENT:TREE ... [--output FILE.json]

A *subtree column* is a pattern restricted to the tips behind a CLA; patterns that share one share the CLA's entry (the
site repeats of Kobert, Stamatakis & Flouri 2017). The script counts over the CLAs of a post-order traversal from
plltool's root, and over all directed CLAs, which a round over all branches computes:

- repeats: (CLA, pattern) pairs whose subtree column an earlier pattern has
- gaps: pairs whose subtree column is undetermined everywhere, so that the entry is 1 for all states
- gap blocks, gap tiles: the same for whole blocks of 8 and tiles of 32 patterns
- gap products: the two products P x of the newview of a block whose operand, a tip or a CLA, is undetermined throughout
- inner products: the same among products whose operand is a CLA; tips are often looked up in tables
- block repeats: (CLA, block) pairs whose eight subtree columns are those of an earlier block, lane by lane
- tiles <= k: (CLA, tile) pairs with at most k distinct subtree columns
- packed: share of the blocks that remain if each tile packs its distinct subtree columns into blocks

The orders of the patterns are plltool's own (by state, the first taxon first); by state, with the taxa in the tree's
order; by their gaps, lexicographically; and clustered by their gaps (average linkage of Hamming distances, leaves of
the dendrogram from left to right). A gain is 1 / (1 - share saved), the speed-up of a traversal if finding, skipping
and copying cost nothing.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.cluster import hierarchy

import plltool
from plltool.alignment.patterns import compress
from plltool.run.inputs import resolve_inputs
from plltool.tree.operations import ROOT, DirectedView
from plltool.tree.topology import Tree

BLOCK, TILE = 8, 32
FEW = (4, 8, 16)

IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


def subtree_columns(
    tree: Tree, codes: npt.NDArray[np.uint8], tip_gaps: BoolArray
) -> tuple[IntArray, BoolArray, BoolArray]:
    """What lies behind every directed CLA; the CLAs of a post-order traversal come first.

    Returns
    -------
    classes : int32 (3 (n_taxa - 2), n_patterns), equal where two patterns of a CLA have the same subtree column
    gaps : bool (3 (n_taxa - 2), 2, n_patterns), whether it is undetermined behind each operand of the CLA's newview
    inner : bool (3 (n_taxa - 2), 2), whether that operand is a CLA
    """
    view = DirectedView(tree)
    nodes, columns = view.preorder.T
    children = np.stack([(columns + 1) % 3, (columns + 2) % 3], axis=1).ravel()
    post_order = np.column_stack(view.sources(nodes[::-1], columns[::-1]))
    pre_order = np.column_stack(view.sources(np.repeat(nodes, 2), children))
    newviews = [(slot, (a, b)) for slot, a, _, b, _ in np.concatenate([post_order, pre_order]).tolist()]
    place = {slot: index for index, (slot, _) in enumerate(newviews)}
    classes = np.empty((len(newviews), codes.shape[1]), dtype=np.int32)
    gaps = np.empty((len(newviews), 2, codes.shape[1]), dtype=bool)
    for index, (_, operands) in enumerate(newviews):
        pairs = np.zeros(codes.shape[1], dtype=np.int64)
        for k, operand in enumerate(operands):
            behind = codes[~operand] if operand < 0 else classes[place[operand]]
            pairs = pairs * (int(behind.max()) + 1) + behind
            gaps[index, k] = tip_gaps[~operand] if operand < 0 else gaps[place[operand]].all(axis=0)
        classes[index] = np.unique(pairs, return_inverse=True)[1]
    return classes, gaps, np.array([operands for _, operands in newviews]) >= 0


def cluster_order(gaps: BoolArray) -> npt.NDArray[np.intp]:
    """An order of the patterns (n_patterns,) that puts those with similar gaps (n_taxa, n_patterns) side by side."""
    distinct, group = np.unique(gaps.T, axis=0, return_inverse=True)
    if len(distinct) < 3:
        return np.argsort(group.ravel(), kind="stable")
    leaves = hierarchy.leaves_list(hierarchy.linkage(distinct, "average", metric="hamming"))
    place = np.empty(len(leaves), dtype=np.intp)
    place[leaves] = np.arange(len(leaves))
    return np.argsort(place[group.ravel()], kind="stable")


def whole_groups(flags: BoolArray, size: int) -> float:
    """The share of groups of `size` patterns, the last axis, whose flags are all set; a short last group counts."""
    short = -flags.shape[-1] % size
    padded = np.pad(flags, [(0, 0)] * (flags.ndim - 1) + [(0, short)], constant_values=True)
    return float(padded.reshape(*flags.shape[:-1], -1, size).all(axis=-1).mean())


def distinct_per_tile(classes: IntArray) -> IntArray:
    """The number of distinct subtree columns of each tile, (n, tiles); padding repeats the last pattern."""
    short = -classes.shape[1] % TILE
    tiles = np.sort(np.pad(classes, ((0, 0), (0, short)), mode="edge").reshape(len(classes), -1, TILE), axis=-1)
    return 1 + np.count_nonzero(np.diff(tiles, axis=-1), axis=-1).astype(np.int32)


def block_repeats(classes: IntArray) -> float:
    """Share of (CLA, block) pairs that equal an earlier pair; only whole blocks count."""
    n_blocks = classes.shape[1] // BLOCK
    blocks = classes[:, : n_blocks * BLOCK].reshape(len(classes), n_blocks, BLOCK)
    n_distinct = [len(np.unique(row, axis=0)) for row in blocks]
    return 1 - float(np.mean(n_distinct)) / n_blocks


def bound(saved: float) -> float:
    """The speed-up of a traversal that saves this share of its work."""
    return 1 / (1 - saved)


def measure(alignment_path: str, tree_path: str) -> list[dict[str, object]]:
    """A row for each set of CLAs and each order of the patterns."""
    data, _ = resolve_inputs(alignment_path, None)
    patterns = compress(data.alignments[0])
    codes = patterns.codes
    n_taxa, n_patterns = codes.shape
    tip_gaps = codes == patterns.states.all_states_code
    tree = plltool.read_tree(tree_path, data.names)
    classes, gaps, inner = subtree_columns(tree, codes, tip_gaps)
    along_tree = [ROOT, *(node for node, _, _ in tree.directed_from(ROOT) if tree.is_tip(node))]
    orders = {
        "as is": np.arange(n_patterns),
        "by tree": np.lexsort(codes[along_tree[::-1]]),
        "gaps": np.lexsort(tip_gaps[::-1]),
        "clustered": cluster_order(tip_gaps),
    }
    rows = []
    for label, part in (("post-order", slice(0, n_taxa - 2)), ("directed", slice(None))):
        undetermined = gaps[part].all(axis=1)
        n_distinct = classes[part].max(axis=1) + 1
        repeats = 1 - n_distinct.sum() / (len(n_distinct) * n_patterns)
        whole = {
            "alignment": Path(alignment_path).name,
            "tree": Path(tree_path).name,
            "taxa": n_taxa,
            "patterns": n_patterns,
            "undetermined": float(tip_gaps.mean()),
            "clas": label,
            "repeats": float(repeats),
            "gaps": float(undetermined.mean()),
            "gain_repeats": bound(repeats),
            "gain_gaps": bound(undetermined.mean()),
        }
        for name, order in orders.items():
            products = whole_groups(gaps[part][:, :, order], BLOCK)
            inner_products = whole_groups(gaps[part][inner[part]][:, order], BLOCK)
            distinct = distinct_per_tile(classes[part][:, order])
            repeated = block_repeats(classes[part][:, order])
            packed = np.mean(-(-distinct // BLOCK) * BLOCK / TILE)
            rows.append(
                whole
                | {"order": name, "gap_products": products, "gap_inner_products": inner_products}
                | {"gap_blocks": whole_groups(undetermined[:, order], BLOCK)}
                | {"gap_tiles": whole_groups(undetermined[:, order], TILE)}
                | {f"tiles_of_{k}": float(np.mean(distinct <= k)) for k in FEW}
                | {"block_repeats": repeated, "packed": float(packed)}
                | {"gain_gap_products": bound(products), "gain_gap_inner_products": bound(inner_products)}
                | {"gain_block_repeats": bound(repeated)}
                | {"gain_packed": float(1 / packed)}
            )
    return rows


COLUMNS = {
    "alignment": ("alignment", "14"),
    "clas": ("CLAs", "11"),
    "order": ("order", "10"),
    "undetermined": ("undet.", "7.1%"),
    "repeats": ("repeats", "8.1%"),
    "gaps": ("gaps", "7.1%"),
    "gap_blocks": ("gap blocks", "11.1%"),
    "gap_tiles": ("gap tiles", "10.1%"),
    "gap_products": ("gap products", "13.1%"),
    "gap_inner_products": ("inner products", "15.1%"),
    "block_repeats": ("block repeats", "14.1%"),
    "tiles_of_4": ("tiles <= 4", "11.1%"),
    "tiles_of_8": ("<= 8", "7.1%"),
    "tiles_of_16": ("<= 16", "7.1%"),
    "packed": ("packed", "7.1%"),
    "gain_repeats": ("gain: repeats", "14.2f"),
    "gain_gaps": ("gaps", "6.2f"),
    "gain_gap_products": ("gap products", "13.2f"),
    "gain_gap_inner_products": ("inner products", "15.2f"),
    "gain_block_repeats": ("block repeats", "14.2f"),
    "gain_packed": ("packed", "7.2f"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="ALIGNMENT:TREE")
    parser.add_argument("--output", help="write the table as JSON")
    options = parser.parse_args()
    print(" ".join(f"{head:>{form.split('.')[0]}}" for head, form in COLUMNS.values()))
    rows = []
    for pair in options.sets:
        found = measure(*pair.split(":"))
        for row in found:
            print(" ".join(f"{row[key]:>{form}}" for key, (_, form) in COLUMNS.items()), flush=True)
        rows += found
    if options.output:
        record = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "rows": rows}
        Path(options.output).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
