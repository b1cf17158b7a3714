"""Sets of states under parsimony (Fitch 1971): what informed moves know of the data before likelihoods are computed.

The sets of a node are one of Python's integers: a plane for each state, one after another, with a bit for each site. So
an operation on a few integers handles all sites at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.alignment.patterns import Patterns
from plltool.analyses.sampling.tree import ROOT, Topology


class FitchSets:
    """The sets of the tips, and how those of other nodes follow from them.

    Sites count as often as they occur. Those at which all trees have as many changes are left out.

    Parameters
    ----------
    parts : the patterns of each part, of the same taxa

    Attributes
    ----------
    n_sites : number of sites that are not left out
    tips : (n_taxa,)
    """

    def __init__(self, parts: Sequence[Patterns]):
        masks = [
            np.repeat(part.masks[:, kept], part.weights[kept].astype(np.intp), axis=1)
            for part in parts
            for kept in [is_informative(part.masks, part.states.n_states)]
        ]
        self.n_sites = sum(own.shape[1] for own in masks)
        n_states = max(part.states.n_states for part in parts)
        self._shifts = [self.n_sites << k for k in range((n_states - 1).bit_length())]
        self._sites = (1 << self.n_sites) - 1
        self.tips = [
            sum(_as_bits([own[tip] >> state & 1 for own in masks]) << state * self.n_sites for state in range(n_states))
            for tip in range(masks[0].shape[0])
        ]

    def join(self, a: int, b: int) -> int:
        """The sets of a node with the neighbours a and b: what they share, or all of both where that is nothing."""
        both = a & b
        shared = self._any(both)
        for shift in self._shifts:
            shared |= shared << shift
        either = a | b
        return both | (either ^ (either & shared))

    def changes(self, a: int, b: int) -> int:
        """The number of sites where two nodes share no state."""
        return self.n_sites - self._any(a & b).bit_count()

    def _any(self, sets: int) -> int:
        """A bit for each site whose set is not empty."""
        for shift in self._shifts:
            sets |= sets >> shift
        return sets & self._sites

    def below(self, topology: Topology) -> list[int]:
        """(n_nodes,) the sets of the subtrees below all nodes; those of tip 0 are its own."""
        left, right = topology.left, topology.right
        found = self.tips + [0] * (topology.n_taxa - 2)
        for node in topology.postorder():
            found[node] = self.join(found[left[node]], found[right[node]])
        return found

    def insertions(self, rest: Topology, below: Sequence[int], subtree: int) -> dict[int, int]:
        """The changes that a subtree adds on each branch of a tree, by the node below the branch (Goloboff 1996).

        Parameters
        ----------
        rest : the tree
        below : (n_nodes,) the sets of its subtrees
        subtree : the sets at the top of what is inserted
        """
        found: dict[int, int] = {}
        stack = [(rest.top, below[ROOT])]
        while stack:
            node, above = stack.pop()
            found[node] = self.changes(self.join(above, below[node]), subtree)
            if node >= rest.n_taxa:
                left, right = rest.left[node], rest.right[node]
                stack += ((left, self.join(above, below[right])), (right, self.join(above, below[left])))
        return found


def is_informative(masks: npt.NDArray[Any], n_states: int) -> npt.NDArray[np.bool_]:
    """(n_patterns,) whether trees may differ in changes: two states may each be those of two taxa.

    Taxa that may have any state do not count.
    """
    known = masks != (1 << n_states) - 1
    frequent = [((masks >> state & 1 != 0) & known).sum(axis=0) >= 2 for state in range(n_states)]
    return np.asarray(np.sum(frequent, axis=0) >= 2)


def _as_bits(rows: Sequence[npt.NDArray[Any]]) -> int:
    """Zeros and ones as the bits of a number, the first as the lowest."""
    return int.from_bytes(np.packbits(np.concatenate(rows).astype(np.uint8), bitorder="little").tobytes(), "little")
