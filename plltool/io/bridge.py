"""Trees and alignments of other libraries: dendropy, Biopython, ete, scikit-bio, pandas and numpy.

Objects are told apart by their attributes, so that none of these libraries is imported. Names are kept byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from plltool.alignment.alignment import MIN_TAXA, Sequences, to_bytes
from plltool.alignment.spaces import detect_states
from plltool.alignment.states import DNA, PROTEIN
from plltool.constants import NO_NODE
from plltool.errors import InputError, show_name, show_object
from plltool.io.newick import is_length
from plltool.tree.rooted_nodes import RootedNodes
from plltool.tree.topology import Tree

if TYPE_CHECKING:
    import Bio.Phylo.BaseTree
    import dendropy

ACCEPTED_TREES = "a file, Newick text, a plltool Tree, or a tree of dendropy, Biopython (Bio.Phylo), ete or scikit-bio"
ACCEPTED_ALIGNMENTS = (
    "a file, a mapping of names to sequences, (name, sequence) pairs, (names, 2-D array of characters), a pandas Series"
    " or DataFrame with names as index, a table of names and sequences (pandas or polars), or an alignment of"
    " Biopython, dendropy or scikit-bio"
)
TreeObject: TypeAlias = Any  # see `nodes_from_object`
AlignmentObject: TypeAlias = Any  # see `alignment_from_object`
_DENDROPY_STATES = {"dna": DNA, "protein": PROTEIN}  # by the data type of a matrix


def nodes_from_object(given: TreeObject) -> tuple[RootedNodes, str]:
    """A tree of dendropy, Biopython, ete or scikit-bio as it stands, with nodes of any degree, and what errors call it.

    A tip of a dendropy tree has the name of its taxon, or its own if it has no taxon; ete3 gives a branch without a
    length the length 1.
    """
    root: Any = getattr(given, "root", None)
    children_of: Callable[[Any], Any]
    if hasattr(given, "seed_node"):
        library, root, children_of, length_of = "dendropy", given.seed_node, methodcaller("child_nodes"), "edge_length"
    elif hasattr(root, "clades"):
        library, children_of, length_of = "Biopython", attrgetter("clades"), "branch_length"
    elif hasattr(given, "children") and hasattr(given, "name") and (hasattr(given, "dist") or hasattr(given, "length")):
        library, length_of = ("ete", "dist") if hasattr(given, "dist") else ("scikit-bio", "length")
        root, children_of = given, attrgetter("children")
    else:
        raise InputError(f"tree: found {_describe_type(given)}, expected {ACCEPTED_TREES}")
    name = f"{library} tree"
    nodes = RootedNodes()
    stack = [(root, NO_NODE)]
    while stack:
        item, parent = stack.pop()
        node = nodes.add(parent)
        length = getattr(item, length_of)
        if length is not None:
            if not is_length(length):
                raise InputError(f"{name}: found a branch of length {length}, expected a finite number")
            nodes.set_length(node, float(length))
        children = list(children_of(item))
        stack += [(child, node) for child in reversed(children)]
        if not children:
            if library == "dendropy":
                label = item.label if item.taxon is None else item.taxon.label
            else:
                label = item.name or (None if library == "ete" else item.name)
            if label is None:
                raise InputError(f"{name}: found a tip without a name, expected one")
            nodes.labels[node] = label
    return nodes, name


def to_dendropy(tree: Tree) -> dendropy.Tree:
    """See `Tree.to_dendropy`."""
    import dendropy

    taxa = [dendropy.Taxon(label=name) for name in tree.names]
    root = int(tree.neighbours[0, 0])
    made = {root: dendropy.Node()}
    for node, parent, branch in tree.shown_from(root):
        taxon = taxa[node] if tree.is_tip(node) else None
        made[node] = dendropy.Node(taxon=taxon, edge_length=float(tree.lengths[branch]))
        made[parent].add_child(made[node])
    shown = taxa[tree.is_rooted :]
    result = dendropy.Tree(taxon_namespace=dendropy.TaxonNamespace(shown), seed_node=made[root])
    result.is_rooted = tree.is_rooted
    return result


def to_biopython(tree: Tree) -> Bio.Phylo.BaseTree.Tree:
    """See `Tree.to_biopython`."""
    try:
        from Bio.Phylo.BaseTree import Clade
        from Bio.Phylo.BaseTree import Tree as BiopythonTree
    except ImportError:
        raise ImportError("Tree.to_biopython needs Biopython: pip install biopython") from None
    root = int(tree.neighbours[0, 0])
    made = {root: Clade()}
    for node, parent, branch in tree.shown_from(root):
        name = tree.names[node] if tree.is_tip(node) else None
        made[node] = Clade(branch_length=float(tree.lengths[branch]), name=name)
        made[parent].clades.append(made[node])
    return BiopythonTree(root=made[root], rooted=tree.is_rooted)


def alignment_from_object(given: AlignmentObject, least: int = MIN_TAXA) -> Sequences:
    """Read the `least` or more sequences in an object; their characters decide what kind of data they are.

    Accepted are

    - a mapping of names to sequences,
    - a sequence of pairs (name, sequence),
    - a pair (names, array), the array (n_taxa, n_sites) of characters,
    - a pandas Series of sequences, or DataFrame of sequences or of characters, whose index holds the names,
    - a table as in `split_table`,
    - a Biopython MultipleSeqAlignment, Alignment, or list of SeqRecord, whose ids are the names,
    - a dendropy DnaCharacterMatrix or ProteinCharacterMatrix,
    - a scikit-bio TabularMSA, or list of its sequences, whose metadata have the names as id.

    A sequence is text, bytes, a list or array of single characters or an array of their bytes (uint8), a Biopython Seq
    or SeqRecord, or an object that is as long as its text, such as a scikit-bio DNA.
    """
    if hasattr(given, "data_type") and hasattr(given, "taxon_namespace"):
        return _read_matrix(given, least)
    source = "the mapping given" if isinstance(given, Mapping) else f"the {type(given).__name__} given"
    names, sequences = _split_alignment(given)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{source}: found {_describe_type(name)} as a taxon name, expected text")
    pairs = zip(names, sequences, strict=True)
    rows = tuple(_read_sequence(row, f"{source}: taxon {show_name(name)}") for name, row in pairs)
    return Sequences(tuple(map(str, names)), rows, source, detect_states(rows), least=least)


def split_table(given: Any) -> tuple[list[Any], list[Any]] | None:
    """Names and values of a DataFrame of pandas or polars: two columns, or one whose index has names; None if neither.

    Of pandas, two columns beside an index of texts are none: that has the names.
    """
    columns = list(given.columns) if hasattr(given, "to_numpy") and hasattr(given, "columns") else []
    index = list(given.index) if hasattr(given, "iloc") else []
    if len(columns) != 2 - any(isinstance(name, str) for name in index):
        return None
    *names, values = (list(given[column]) for column in columns)
    return names[0] if names else index, values


def _split_alignment(given: AlignmentObject) -> tuple[list[Any], list[Any]]:
    """Names and sequences of as many taxa; InputError for what is not accepted."""
    if table := split_table(given):
        return table
    if isinstance(given, Mapping):
        return list(given), list(given.values())
    if hasattr(given, "index") and hasattr(given, "to_numpy"):  # pandas
        return list(given.index), list(given.to_numpy())
    if hasattr(given, "coordinates") and hasattr(given, "sequences"):  # Bio.Align.Alignment
        return [record.id for record in given.sequences], [given[row] for row in range(len(given))]
    if isinstance(given, tuple) and len(given) == 2 and getattr(given[1], "ndim", 0) == 2:
        names, array = list(given[0]), list(given[1])
        if len(names) != len(array):
            raise InputError(f"alignment: found {len(names)} names for {len(array)} rows, expected a name for each row")
        return names, array
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, np.ndarray)):
        items = list(given)
        if items and all(hasattr(item, "id") and hasattr(item, "seq") for item in items):
            return [item.id for item in items], items
        if items and all("id" in getattr(item, "metadata", ()) for item in items):  # scikit-bio
            return [item.metadata["id"] for item in items], items
        if items and all(isinstance(item, (tuple, list)) and len(item) == 2 for item in items):
            return [name for name, _ in items], [sequence for _, sequence in items]
    raise InputError(f"alignment: found {_describe_type(given)}, expected {ACCEPTED_ALIGNMENTS}")


def _read_sequence(given: Any, where: str) -> bytes:
    """A sequence as bytes, one for each site unless a character is not ASCII."""
    if hasattr(given, "seq"):  # Bio.SeqRecord
        return _read_sequence(given.seq, where)
    if isinstance(given, (str, bytes)):
        return to_bytes(given)
    if isinstance(given, bytearray) or hasattr(given, "__bytes__") or getattr(given, "dtype", "") == np.uint8:
        return bytes(given)
    if isinstance(given, (list, tuple, np.ndarray)):
        characters = given.tolist() if isinstance(given, np.ndarray) else given
        for position, character in enumerate(characters, 1):
            if not (isinstance(character, (str, bytes)) and len(character) == 1):
                raise InputError(f"{where}, position {position}: found {show_object(character)}, expected a character")
        return b"".join(map(to_bytes, characters))
    if hasattr(given, "__len__") and len(str(given)) == len(given):
        return to_bytes(str(given))
    raise InputError(f"{where}: found {_describe_type(given)}, expected text or single characters")


def _read_matrix(matrix: dendropy.CharacterMatrix, least: int) -> Sequences:
    """The sequences that a dendropy matrix has, in its order; a cell is the letter for its states, ``-`` or ``?``."""
    if matrix.data_type not in _DENDROPY_STATES:
        expected = "a DnaCharacterMatrix or a ProteinCharacterMatrix; other data are not supported"
        raise InputError(f"alignment: found a {type(matrix).__name__}, expected {expected}")
    names = tuple(taxon.label for taxon in matrix)
    rows = tuple(
        to_bytes("".join(_cell_symbol(matrix, name, cell) for cell in enumerate(matrix[taxon], start=1)))
        for name, taxon in zip(names, matrix, strict=True)
    )
    return Sequences(names, rows, "the dendropy matrix", _DENDROPY_STATES[matrix.data_type], told=True, least=least)


def _cell_symbol(matrix: dendropy.CharacterMatrix, name: str, cell: tuple[int, dendropy.StateIdentity]) -> str:
    """The IUPAC letter of one cell, given as (position, state)."""
    position, state = cell
    if state.symbol is not None:
        return str(state.symbol)
    for ambiguity in matrix.default_state_alphabet.ambiguous_state_iter():
        if ambiguity.symbol is not None and set(ambiguity.fundamental_symbols) == set(state.fundamental_symbols):
            return str(ambiguity.symbol)
    raise InputError(f"taxon {name!r}, position {position}: found {state}, which no IUPAC letter stands for")


def _describe_type(given: object) -> str:
    """The type of an object, with its module unless it is built in."""
    kind = type(given)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"an object of type {name}"
