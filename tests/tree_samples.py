"""Sets of trees that several test folders share: alike, so that they share splits, as plltool and dendropy see them."""

import dendropy
import numpy as np

from plltool.io.newick_writer import write_newick
from plltool.tree.moves import random_tree


def similar_trees(n_taxa, n_trees, swaps, seed):
    """Newick texts of trees that differ by swapped taxa and by their lengths."""
    rng = np.random.default_rng(seed)
    names = [f"t{i}" for i in range(n_taxa)]
    base = random_tree(names, rng)
    texts = []
    for _ in range(n_trees):
        tree = base.copy()
        tree.lengths[:] = rng.exponential(0.1, tree.n_edges)
        order = list(names)
        for _ in range(swaps):
            i, j = rng.integers(n_taxa, size=2)
            order[i], order[j] = order[j], order[i]
        tree.names = tuple(order)
        texts.append(write_newick(tree))
    return texts


def mixed_trees(n_taxa, n_trees, swaps, seed):
    """The same, some with all branches, some without a third of them, some without any."""
    rng = np.random.default_rng(seed)
    trees = dendropy_list(similar_trees(n_taxa, n_trees, swaps, seed))
    for number, tree in enumerate(trees):
        share = (0, 1 / 3, 1 / 3, 1)[number % 4]
        for node in [*tree.preorder_internal_node_iter(exclude_seed_node=True)]:
            if rng.random() < share:
                node.edge.collapse()
    return [tree.as_string("newick", suppress_rooting=True).strip() for tree in trees]


def dendropy_list(texts):
    return dendropy.TreeList.get(data="\n".join("[&U]" + text for text in texts), schema="newick")


def sides_of_root(newick):
    """The names behind each branch of the root of a Newick text, as dendropy reads it."""
    root = dendropy.Tree.get(data=newick, schema="newick", preserve_underscores=True).seed_node
    return [{leaf.taxon.label for leaf in child.leaf_iter()} for child in root.child_nodes()]


def dendropy_sides(tree):
    """Of every branch of a dendropy tree the set of names below it, as frozensets."""
    return [frozenset(leaf.taxon.label for leaf in node.leaf_iter()) for node in tree if node.parent_node is not None]
