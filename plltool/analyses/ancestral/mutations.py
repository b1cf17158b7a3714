"""Mutations: where the states at the two ends of a branch differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import IndexArray
from plltool.tree.topology import Tree

ANY_OF = "/"  # between the states that an ambiguous tip may have


class Mutation(NamedTuple):
    """A change on a branch.

    Attributes
    ----------
    branch, parent, node : the branch, its node towards the root, and the other one
    part, site : the part, by its number, and the first column of the site, from 0
    before, after : names of the states at the parent and at the node, such as "A"; "C/T" at an ambiguous tip
    """

    branch: int
    parent: int
    node: int
    part: int
    site: int
    before: str
    after: str

    @property
    def label(self) -> str:
        """Such as A12G; sites count from 1."""
        return f"{self.before}{self.site + 1}{self.after}"


def find_mutations(
    tree: Tree, root: int, patterns: Patterns, states: IndexArray, order: IndexArray, sites: Sequence[int], part: int
) -> Iterator[Mutation]:
    """The mutations of one part, branch by branch away from the root, site by site.

    A tip whose state is not known mutates only if none of the states that it may have is that of its parent.

    Parameters
    ----------
    states : (n_taxa - 2, n_patterns) states of the inner nodes
    order : (n,) the pattern of each site
    sites : (n,) the first column of each site
    part : number of the part
    """
    space = patterns.states
    for node, parent, branch in tree.ordered_from(root):
        above = states[parent - tree.n_taxa]
        if tree.is_tip(node):
            differs = ~space.state_sets[patterns.codes[node], above]
        else:
            differs = states[node - tree.n_taxa] != above
        for k in np.flatnonzero(differs[order]).tolist():
            pattern = order[k]
            if tree.is_tip(node):
                allowed = np.flatnonzero(space.state_sets[patterns.codes[node, pattern]])
                after = ANY_OF.join(space.symbols[state] for state in allowed)
            else:
                after = space.symbols[states[node - tree.n_taxa, pattern]]
            yield Mutation(branch, parent, node, part, sites[k], space.symbols[above[pattern]], after)
