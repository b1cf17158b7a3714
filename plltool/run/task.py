"""What a run works on: patterns and models of all parts, without identical sequences, and what trees must obey.

Also the identity of a run: all that its result depends on, by which a checkpoint recognises its own run.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import AnyArray, FloatArray
from plltool.constants import DEFAULT_LINKAGE, DEFAULT_SEED, UNLINKED
from plltool.errors import InputError, check_least, list_names
from plltool.io.tree_files import read_constraint
from plltool.model.model import Model
from plltool.model.partition import Dataset, without_duplicates
from plltool.progress import announce
from plltool.run.inputs import TreeLike, as_tree, link_lengths
from plltool.seeds import STARTS, generator
from plltool.tree.constraint import Constraint
from plltool.tree.moves import random_tree
from plltool.tree.topology import Tree, restore_duplicates, restrict_tree
from plltool.tree_search.effort import SearchPlan
from plltool.tree_search.parsimony import parsimony_tree


@dataclass(frozen=True, eq=False)
class Task:
    """Patterns, models, constraint and seed of a run; it can be sent to other processes."""

    all_names: tuple[str, ...]  # all taxa
    # one taxon of each group of identical sequences, except for those that the constraint separates
    names: tuple[str, ...]
    groups: list[list[int]]  # the taxa of `all_names` that each of `names` stands for, see `without_duplicates`
    parts: list[Patterns]  # the patterns of each part
    models: list[Model]  # the model of each part, with its start values
    seed: int = DEFAULT_SEED  # of all random choices
    unlinked: bool = False  # whether each part has branch lengths of its own
    whole_constraint: Constraint | None = None  # on trees of `all_names`; None if every tree will do
    constraint: Constraint | None = None  # on trees of `names`, likewise

    @classmethod
    def of(
        cls,
        data: Dataset,
        models: list[Model],
        seed: int = DEFAULT_SEED,
        brlen: str = DEFAULT_LINKAGE,
        constraint: TreeLike | None = None,
        all_taxa: bool = False,
    ) -> Self:
        """The task of an alignment; with `all_taxa`, identical sequences are kept.

        Raises InputError if the seed is negative, or the constraint cannot be used.
        """
        check_least("seed", seed, 0)
        whole = None if constraint is None else read_constraint(constraint, data.names)
        groups = [[taxon] for taxon in range(data.n_taxa)]
        reduced, own = data, whole
        if not all_taxa:
            reduced, groups = without_duplicates(data, None if whole is None else whole.attachments.tolist())
            own = None if whole is None else whole.restrict(reduced.names)
        unlinked = brlen == UNLINKED and len(models) > 1
        return cls(data.names, reduced.names, groups, reduced.patterns, models, seed, unlinked, whole, own)

    @property
    def n_lengths(self) -> int:
        return len(self.parts) if self.unlinked else 1

    @property
    def n_patterns(self) -> int:
        return sum(part.n_patterns for part in self.parts)

    def whole(self, tree: Tree, groups: Sequence[Sequence[int]] | None = None) -> Tree:
        """A tree of `names` with all taxa; `groups` may have the same taxa in another order."""
        if len(self.names) == len(self.all_names):
            return tree
        return restore_duplicates(tree, self.all_names, self.groups if groups is None else groups)

    def reduce(self, tree: Tree) -> Tree:
        """A tree of all taxa without identical sequences, with as many lengths of each branch as the task has."""
        return restrict_tree(link_lengths(tree, self.n_lengths), self.names)

    def read_tree(self, given: TreeLike, what: str) -> Tree:
        """A tree of all taxa that obeys the constraint; errors as for `as_tree`, which call it `what`."""
        tree = as_tree(given, self.all_names, self.unlinked)
        if self.whole_constraint is not None and (split := self.whole_constraint.violated_split(tree)) is not None:
            sides = " | ".join(map(list_names, split))
            raise InputError(f"{what} breaks the constraint, it lacks the split {sides}")
        return tree

    def parsimony_tree(
        self, rng: np.random.Generator, parts: Sequence[Patterns] = (), weights: FloatArray | None = None
    ) -> Tree:
        """A parsimony tree of the patterns of all parts, or of others; `weights` (n_patterns,) in place of theirs."""
        given = parts or self.parts
        masks = np.concatenate([part.masks for part in given], axis=1)
        if weights is None:
            weights = np.concatenate([part.weights for part in given])
        tree = parsimony_tree(masks, weights, self.names, rng, self.constraint)
        return tree.unlink(len(self.parts)) if self.unlinked else tree

    def start_tree(self, kind: str | Tree, number: int) -> Tree:
        """Start tree `number`, from 0, of a kind in START_KINDS, or a copy of the one given."""
        if isinstance(kind, Tree):
            return kind.copy()
        rng = generator(self.seed, STARTS, number)
        if kind != "random":
            announce(f"parsimony start tree {number + 1}")
            return self.parsimony_tree(rng)
        tree = random_tree(self.names, rng) if self.constraint is None else self.constraint.random_tree(rng)
        return tree.unlink(len(self.parts)) if self.unlinked else tree


DIGEST_LETTERS = 16
RECORDED_APART = ("version", "alignment", "brlen", "seed")  # items of an identity that a record has under other names


def describe_start(start: str | Tree) -> str:
    """The kind of start tree, or a digest of the tree that was given."""
    if isinstance(start, str):
        return start
    return "tree " + _digest_arrays(start.neighbours, start.edges, start.ends, start.lengths)


def describe_plan(plan: SearchPlan) -> dict[str, Any]:
    """The fields of a plan by their names, and a digest of the constraint."""
    return vars(plan) | describe_constraint(plan.constraint)


def describe_constraint(constraint: Constraint | None) -> dict[str, Any]:
    digest = None if constraint is None else "tree " + _digest_arrays(constraint.tips, constraint.parents)
    return {"constraint": digest}


def _digest_arrays(*arrays: AnyArray) -> str:
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return hashlib.sha256(content).hexdigest()[:DIGEST_LETTERS]
