"""Exchange of trees and alignments with dendropy; names are preserved byte for byte, underscores included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from plltool.alignment.states import DNA, PROTEIN, StateSpace
from plltool.errors import InputError
from plltool.io.newick import RootedNodes, is_length, ordered_from, unrooted_tree
from plltool.tree.topology import NO_NODE, Tree

if TYPE_CHECKING:
    import dendropy

DENDROPY_TREE = "dendropy tree"  # what errors call it

DendropyMatrix: TypeAlias = "dendropy.DnaCharacterMatrix | dendropy.ProteinCharacterMatrix"


def to_dendropy(tree: Tree) -> dendropy.Tree:
    """Make an unrooted dendropy tree, seeded at the inner node next to tip 0.

    Its taxon namespace holds the names in the tree's order; children are in the order that `write_newick`
    gives them; lengths are in expected substitutions per site.
    """
    import dendropy

    taxa = [dendropy.Taxon(label=name) for name in tree.names]
    root = int(tree.neighbours[0, 0])
    made = {root: dendropy.Node()}
    for node, parent, branch in ordered_from(tree, root):
        taxon = taxa[node] if tree.is_tip(node) else None
        made[node] = dendropy.Node(taxon=taxon, edge_length=float(tree.lengths[branch]))
        made[parent].add_child(made[node])
    result = dendropy.Tree(taxon_namespace=dendropy.TaxonNamespace(taxa), seed_node=made[root])
    result.is_rooted = False
    return result


def from_dendropy(dtree: dendropy.Tree, names: Sequence[str] | None = None, resolve_seed: int | None = None) -> Tree:
    """Make a tree of a dendropy tree; the root and missing lengths are treated as in `parse_newick`.

    Parameters
    ----------
    dtree : a tree, rooted or not; the name of a tip is its taxon's label, or its own if it has no taxon.
    names : the names in the order in which tips shall be numbered, else they are numbered as they come.
    resolve_seed : as in `parse_newick`.

    Raises
    ------
    InputError
        If a tip has no name, a length is negative or not finite, a taxon occurs twice, the taxa are not
        `names`, there are fewer than three, or a node has too many branches and there is no seed.
    """
    return unrooted_tree(rooted_nodes(dtree, DENDROPY_TREE), DENDROPY_TREE, names, resolve_seed)


def rooted_nodes(dtree: dendropy.Tree, source: str) -> RootedNodes:
    """A dendropy tree as it stands, with nodes of any degree; InputError if a tip has no name or a length is wrong."""
    nodes = RootedNodes()
    numbers: dict[dendropy.Node | None, int] = {None: NO_NODE}
    for dnode in dtree.preorder_node_iter():
        node = numbers[dnode] = nodes.add(numbers[dnode.parent_node])
        if dnode.edge_length is not None:
            nodes.set_length(node, _checked_length(dnode.edge_length, source))
        if dnode.is_leaf():
            label = dnode.label if dnode.taxon is None else dnode.taxon.label
            if label is None:
                raise InputError(f"{source}: found a tip without a taxon or label, expected a name")
            nodes.labels[node] = label
    return nodes


def alignment_from_dendropy(matrix: DendropyMatrix) -> tuple[tuple[str, ...], tuple[str, ...], StateSpace]:
    """The names, sequences and states of a DNA or protein matrix, in the order of its taxon namespace.

    Cells become IUPAC letters, ``-`` or ``?``; a polymorphic cell becomes the ambiguity code of its states.

    Returns
    -------
    names, sequences : both (n_taxa,); taxa without a sequence are left out.
    states : DNA or PROTEIN

    Raises
    ------
    InputError
        If the matrix is neither a DNA nor a protein matrix or a cell has no IUPAC letter.
    """
    import dendropy

    if not isinstance(matrix, (dendropy.DnaCharacterMatrix, dendropy.ProteinCharacterMatrix)):
        raise InputError(f"found a {type(matrix).__name__}, expected a DnaCharacterMatrix or a ProteinCharacterMatrix")
    names = tuple(taxon.label for taxon in matrix)
    sequences = tuple(
        "".join(_cell_symbol(matrix, name, cell) for cell in enumerate(matrix[taxon], start=1))
        for name, taxon in zip(names, matrix, strict=True)
    )
    return names, sequences, DNA if isinstance(matrix, dendropy.DnaCharacterMatrix) else PROTEIN


def _cell_symbol(matrix: DendropyMatrix, name: str, cell: tuple[int, dendropy.StateIdentity]) -> str:
    """The IUPAC letter of one cell, given as (position, state)."""
    position, state = cell
    if state.symbol is not None:
        return str(state.symbol)
    for ambiguity in matrix.default_state_alphabet.ambiguous_state_iter():
        if ambiguity.symbol is not None and set(ambiguity.fundamental_symbols) == set(state.fundamental_symbols):
            return str(ambiguity.symbol)
    raise InputError(f"taxon {name!r}, position {position}: found {state}, which no IUPAC letter stands for")


def _checked_length(length: float, source: str) -> float:
    """The length as a float; InputError if it cannot be one."""
    if not is_length(length):
        raise InputError(f"{source}: found a branch of length {length}, expected a finite number")
    return float(length)
