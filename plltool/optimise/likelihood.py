"""The likelihood of one tree on one engine: programs over the tree's branches, kept as long as the topology stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from plltool.arrays import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray
from plltool.engine import program as prog
from plltool.engine.contract import DERIVATIVE_VALUES, INSTRUCTION_WORDS, InstructionWord
from plltool.engine.layout import Layout
from plltool.engine.requests import Clas, Holder
from plltool.errors import EngineError
from plltool.model.components import Components, partners
from plltool.model.model import Model
from plltool.tree.constraint import Constraint
from plltool.tree.operations import ROOT, DirectedView, directed_slots
from plltool.tree.topology import Tree

Value = TypeVar("Value", bound=np.generic)
Index = TypeVar("Index", bound=np.signedinteger[Any])


def _add_tables(tables: FloatArray) -> FloatArray:
    """The gradient (C, S, S) from the sums of four tables of differences (4, C, S, S), see `pmatrices.cl`."""
    other = partners(tables.shape[-1])
    return np.asarray(tables[0] + tables[1][:, other] + tables[2][:, :, other] + tables[3][:, other][:, :, other])


def add_linked(values: FloatArray, lengths: FloatArray) -> FloatArray:
    """Values (n, n_parts, k) as they belong to `lengths`: summed to (n, k) if the parts share their lengths."""
    return values.sum(axis=1) if lengths.ndim == 1 else values


class Fit(NamedTuple):
    """Tree and models, as they were at a time."""

    tree: Tree
    models: list[Model]


class Derivatives(NamedTuple):
    """The answer of `TreeLikelihood.all_derivatives` at some lengths."""

    lengths: FloatArray
    lnl: FloatArray
    slopes: FloatArray


class TreeLikelihood:
    """Couples a tree, a model per part and an engine.

    If parts have lengths of their own, the tree's lengths have a last axis for the parts: (n_edges, n_parts)
    (`Tree.unlink`). Code that works element by element serves both shapes; the engine gets the lengths transposed.
    Under a process that is not time-reversible (`is_rooted`) the tree has a root: its tip 0 stands for it and has no
    data, see `plltool.tree.rooted`. P matrices then have a direction, and programs say which branches they pass against
    it. Other code may change the tree and the models, and must then call `topology_changed` or `model_changed`. Changed
    branch lengths need no call: every request sends the lengths. What changes the topology obeys the `constraint`, as
    the tree does.
    """

    def __init__(self, tree: Tree, models: Sequence[Model], engine: Holder, constraint: Constraint | None = None):
        self.tree = tree
        self.models = list(models)
        self.engine = engine
        self.constraint = constraint
        # (n_parts,) number of sites: sums of pattern weights
        self.part_sites = np.add.reduceat(engine.weights, np.cumsum((0, *engine.part_patterns[:-1])))
        self._screen: Screen | None = None
        self.is_rooted = not all(part.is_reversible for part in self._components())
        self.topology_changed()
        self.model_changed()

    def topology_changed(self) -> None:
        """Forget everything derived from the topology."""
        self._use_view(DirectedView(self.tree))

    def _forget(self) -> None:
        """Forget what was made or found out with lengths."""
        self._prepared: Clas | None = None
        self._derivatives: Derivatives | None = None

    def _use_view(self, view: DirectedView) -> None:
        self.view = view
        self._programs: dict[tuple[object, ...], IntArray] = {}
        self._forget()

    def admits(self, tree: Tree) -> bool:
        """Whether a tree obeys the constraint, if there is one."""
        return self.constraint is None or self.constraint.is_obeyed_by(tree)

    def fit(self) -> Fit:
        """A copy of tree and models, for `restore`."""
        return Fit(self.tree.copy(), [model.copy() for model in self.models])

    def set_tree(self, tree: Tree) -> None:
        """Take over the branches and lengths of a tree of the same taxa."""
        self.tree.assign(tree)
        self.topology_changed()

    def restore(self, fit: Fit) -> None:
        """Let tree and models be what they were, bit for bit."""
        has_moved = not self.tree.has_topology_of(fit.tree)
        self.tree.assign(fit.tree)
        if has_moved:
            self.topology_changed()
        for model, before in zip(self.models, fit.models, strict=True):
            model.assign(before)
        self.model_changed()

    def model_changed(self) -> None:
        """Send the models' eigensystems to the engine."""
        parts = self._components()
        self._shapes = [(part.n_components, part.n_states) for part in parts]
        self.engine.set_model(parts)
        self._forget()
        if self._screen is not None:
            self._screen.is_stale = True

    def _components(self) -> list[Components]:
        """The model of each part, as the engine sees it."""
        return [model.components() for model in self.models]

    @property
    def has_site_rates(self) -> bool:
        """Whether sites of any part have per-site rates (+PSR)."""
        return any(model.has_site_rates for model in self.models)

    @contextmanager
    def reweighted(self, weights: FloatArray) -> Iterator[None]:
        """Give patterns `weights` (n_patterns,) for a while; CLAs stay valid."""
        own = self.engine.weights
        self._set_weights(weights)
        try:
            yield
        finally:
            self._set_weights(own)

    @contextmanager
    def any_root(self) -> Iterator[Clas]:
        """Directed CLAs, for a while, of a tree whose root is where they meet; nothing else may be asked for."""
        rooted, self.is_rooted = self.is_rooted, False
        self._use_view(self.view)
        try:
            yield self.directed()
        finally:
            self.is_rooted = rooted
            self._use_view(self.view)

    def _set_weights(self, weights: FloatArray) -> None:
        self.engine.set_weights(weights)
        self._derivatives = None
        if self._screen is not None:
            self._screen.engine.set_weights(weights)

    def start_screening(self, category_of: IndexArray | None = None) -> IndexArray | None:
        """Open the `screen`, in which each pattern has one component, and return which (n_patterns,).

        By default it is the one that has the largest share of the pattern's likelihood on the current tree; patterns of
        parts with per-site rates have their own in any case. Returns None if there is no screen, see there.
        """
        if self.engine.make_screen is None:
            return None
        if category_of is None:
            category_of = np.concatenate([np.argmax(lnl, axis=0) for lnl in self.component_lnl()])
        screen = self.engine.open_screen(category_of)
        screen.set_weights(self.engine.weights)
        self._screen = Screen(self, screen, self.split_patterns(category_of))
        return category_of

    @property
    def screen(self) -> TreeLikelihood | None:
        """A rough likelihood of the same tree under the same models, several times as fast, for a choice of moves.

        Each pattern has only the component that suits it best, so that CLAs have one component instead of all. None
        before `start_screening`, and where the engine offers none, see `plltool.run.engines`.
        """
        screen = self._screen
        if screen is not None:
            screen.follow(self)
        return screen

    def split_patterns(self, values: npt.NDArray[Value]) -> list[npt.NDArray[Value]]:
        """Split values (..., n_patterns) by parts."""
        return np.split(values, np.cumsum(self.engine.part_patterns)[:-1], axis=-1)

    @property
    def scratch(self) -> int:
        """The first slot behind the directed CLAs."""
        return directed_slots(self.tree.n_taxa)

    @property
    def n_scratch(self) -> int:
        """The number of slots behind the directed CLAs."""
        return self.engine.n_slots - self.scratch

    # --- programs -------------------------------------------------------------------------------------------

    def _once(self, make: Callable[..., IntArray], *arguments: object) -> IntArray:
        """The program that `make` makes, with branches in `DirectedView.branch_order`, until the topology changes.

        P matrices are then stored in the order in which they are read: lnL of 1,288 taxa takes 0.93 times as long.
        """
        name = (make.__name__, *arguments)
        if name not in self._programs:
            self._programs[name] = prog.renumber_branches(make(*arguments), lambda at: self.view.branch_place[at])
        return self._programs[name]

    def _toward_root(self, slots: IntArray) -> tuple[IntArray, IntArray]:
        """The newviews of a post-order, with node u's CLA in ``slots[u]``, and the operand of each node (n_nodes,)."""
        tree, descent = self.tree, self.view.descent
        nodes, columns = self.view.preorder[::-1].T
        everyone = np.arange(tree.n_nodes, dtype=np.int32)
        operands = np.where(everyone < tree.n_taxa, ~everyone, slots)
        first = tree.neighbours[nodes, (columns + 1) % 3]
        second = descent.sibling[first]
        ends = [values[own] for own in (first, second) for values in (operands, descent.branch)]
        return prog.newview(slots[nodes], *ends), operands

    def _root_operands(self, operands: IntArray) -> tuple[int, int, int]:
        """The operands a, b of the root tip's branch, and that branch."""
        top = int(self.view.descent.order[0])
        return ~ROOT, int(operands[top]), int(self.view.descent.branch[top])

    def _likelihood_program(self) -> IntArray:
        """A post-order on a stack, and the lnL where it ends."""
        program, operands = self._toward_root(self.view.descent.depth)
        return np.concatenate([program, prog.evaluate(0, *self._root_operands(operands))])

    def _round_program(self, number: Callable[[IntArray, IntArray, IntArray], IntArray]) -> IntArray:
        """A post-order, then a pre-order in which an instruction for each branch follows the CLA that it needs.

        ``number(a, b, branch)`` makes the instructions of the branches; a is on the side of the root tip.
        """
        tree, descent = self.tree, self.view.descent
        post_order, operands = self._toward_root(np.arange(tree.n_nodes, dtype=np.int32) - tree.n_taxa)
        stack = tree.n_taxa - 2 + descent.depth
        top, below = descent.order[0], descent.order[1:]
        parent, sibling = descent.parent[below], descent.sibling[below]
        facing_parent = np.where(parent == top, ~ROOT, stack[parent])  # the CLA of the side with the root tip
        beside = operands[sibling], descent.branch[sibling]
        newviews = prog.newview(stack[below], facing_parent, self.against(descent.branch[parent], True), *beside)
        beyond = np.append(np.int32(~ROOT), stack[below])
        numbers = number(beyond, operands[descent.order], descent.branch[descent.order])
        pre_order = np.stack([newviews, numbers[1:]], axis=1).reshape(-1, INSTRUCTION_WORDS)
        return np.concatenate([post_order, numbers[:1], pre_order])

    def _all_branches_program(self) -> IntArray:
        return self._round_program(lambda a, b, branch: prog.slopes(DERIVATIVE_VALUES * branch, a, b, branch))

    def _gradient_program(self, squares: int, masses: int) -> IntArray:
        """lnL, the `squares` of the gradient in the rate matrix, and the `masses` of that at the root."""
        gradients = self._round_program(lambda a, b, branch: prog.rate_matrix_gradient(1, a, b, branch))
        at = self.tree.n_taxa - 2  # behind the post-order, whose CLAs of the root's branch are still there
        ends = self._root_operands(np.arange(self.tree.n_nodes, dtype=np.int32) - self.tree.n_taxa)
        at_root = [prog.evaluate(0, *ends), prog.mass_gradient(1 + squares, *ends)]
        return np.concatenate([gradients[:at], *at_root, gradients[at:]])

    def _directed_program(self) -> IntArray:
        """All directed CLAs: a post-order, then a pre-order."""
        view = self.view
        nodes, columns = view.preorder.T
        children = np.stack([(columns + 1) % 3, (columns + 2) % 3], axis=1).ravel()
        post_order = self._newviews(nodes[::-1], columns[::-1])
        return np.concatenate([post_order, self._newviews(np.repeat(nodes, 2), children)])

    def _newviews(self, nodes: IntArray, columns: IntArray) -> IntArray:
        slot, a, branch_a, b, branch_b = self.view.sources(nodes, columns)
        up_a, up_b = (self.view.toward_root[nodes, (columns + turn) % 3] for turn in (1, 2))
        return prog.newview(slot, a, self.against(branch_a, up_a), b, self.against(branch_b, up_b))

    def against(self, branches: npt.NDArray[Index], up: BoolArray | bool) -> npt.NDArray[Index]:
        """The branches as instructions name them, if those that are `up` lead to the root from where they are read."""
        return np.where(up, ~branches, branches) if self.is_rooted else branches

    def _sent(self, lengths: FloatArray) -> FloatArray:
        """Lengths as the engine gets them, (n_edges,) or (n_parts, n_edges); 0 for branches that were `added`."""
        if self.tree.added is not None:
            lengths = lengths.copy()
            lengths[self.tree.added] = 0.0
        return lengths[self.view.branch_order].T

    def _execute(self, program: IntArray, lengths: FloatArray, n_values: int, kind: str) -> FloatArray:
        """Run a program that overwrites the directed CLAs; its own CLAs are not read afterwards."""
        self._prepared = None
        return self.engine.execute(prog.Request(program, n_values, kind, keep=False), self._sent(lengths))

    # --- requests -------------------------------------------------------------------------------------------

    def part_lnl(self) -> FloatArray:
        """lnL of each part (n_parts,)."""
        return self._execute(self._once(self._likelihood_program), self.tree.lengths, 1, "lnl")[:, 0]

    def lnl(self) -> float:
        """Log-likelihood of the tree as it stands; one launch."""
        return float(self.part_lnl().sum())

    def likelihoods(self, models: Sequence[Sequence[Model]]) -> FloatArray:
        """lnL (n_models, n_parts) of the tree under other models, each with one model per part; few launches."""
        self._prepared = None
        components = [[model.components() for model in parts] for parts in models]
        program = self._once(self._likelihood_program)
        a, b, branch = program[-1, [InstructionWord.A, InstructionWord.B, InstructionWord.PB]].tolist()
        lengths = self._sent(self.tree.lengths)
        return self.engine.likelihoods(program[:-1], (a, b, branch), lengths, components)

    def site_lnl(self, impossible: bool = False, parts: BoolArray | None = None) -> FloatArray:
        """lnL of each pattern (n_patterns,), not weighted; -inf where it is none, if it may be `impossible`.

        `parts` (n_parts,) are those that are wanted, None for all; values of others may be anything. Where a part has a
        correction for ascertainment bias, each of its sites has an equal share of it, unless `impossible`.
        """
        self._prepared = None
        program = self._once(self._likelihood_program)
        request = prog.Request(program, 1, "site lnl", impossible=impossible, parts=parts)
        return self.engine.execute_sites(request, self._sent(self.tree.lengths))[0]

    def component_lnl(self) -> list[FloatArray]:
        """For each part (n_components, n_patterns): lnL of each pattern and component, with the component's weight.

        Each component takes one launch with weight 1. Its value is -inf if it is impossible, or so unlikely that the
        number cannot be represented. Parts with per-site rates have one row, in which each pattern has its own rate.
        With frequencies of each site there is a row for each rate.
        """
        parts = [model.components() for model in self.models]
        n_rows = [part.n_each for part in parts]
        rows = []
        try:
            for c in range(max(n_rows)):
                pairs = zip(parts, n_rows, strict=True)
                self.engine.set_model([part if n == 1 else part.alone(min(c, n - 1)) for part, n in pairs])
                rows.append(self.split_patterns(self.site_lnl(impossible=True)))
        finally:
            self.model_changed()
        of_parts = []
        for number, (part, n) in enumerate(zip(parts, n_rows, strict=True)):
            own = np.stack([row[number] for row in rows[:n]])
            of_parts.append(own + np.log(part.weights[:n])[:, None])
        return of_parts

    def rate_matrix_gradient(
        self, parts: BoolArray | None = None
    ) -> tuple[FloatArray, list[FloatArray], list[FloatArray]]:
        """lnL of each part, and its gradient in the part's rate matrices and masses; a launch for each shape of parts.

        Only `parts` (n_parts,) are wanted; None for all. The answers of others may be anything finite. Returns

        lnl : (n_parts,)
        matrices : of each part (C, S, S), d lnL / d (left @ (rate * Q) @ right), all branches together
        masses : of each part (C, S), d lnL / d log(weight * frequency) at the root
        """

        def request(layout: Layout) -> prog.Request:
            squares, masses = layout.gradient_values, layout.n_components * layout.n_states
            program = self._once(self._gradient_program, squares, masses)
            return prog.Request(program, 1 + squares + masses, "gradient", keep=False, parts=parts)

        self._prepared = None
        values = self.engine.execute_shaped(request, self._sent(self.tree.lengths))
        matrices, masses = [], []
        for row, shape in zip(values, self._shapes, strict=True):
            n_masses = shape[0] * shape[1]
            tables = row[1 : len(row) - n_masses].reshape(-1, *shape, shape[1])
            matrices.append(tables[0] if len(tables) == 1 else _add_tables(tables))
            masses.append(row[len(row) - n_masses :].reshape(shape))
        return np.array([row[0] for row in values]), matrices, masses

    def all_derivatives(self, lengths: ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
        """lnL, and first and second derivatives in all branch lengths, at `lengths`, by default the tree's; one launch.

        Returns lnL (), or (n_parts,) where parts have lengths of their own, and slopes (n_edges, 2) or (n_edges,
        n_parts, 2), which are 0 for branches that were `added`.
        """
        at = self.tree.lengths if lengths is None else np.asarray(lengths, dtype=np.float64)
        n = self.tree.n_edges
        values = self._execute(self._once(self._all_branches_program), at, DERIVATIVE_VALUES * n, "all branches")
        by_edge = add_linked(values.reshape(-1, n, DERIVATIVE_VALUES).swapaxes(0, 1), at)
        if self.tree.added is not None:
            by_edge[self.tree.added, ..., 1:] = 0.0
        root = int(self.tree.edges[ROOT, 0])
        lnl, slopes = by_edge[root, ..., 0], by_edge[..., 1:]
        self._derivatives = Derivatives(at.copy(), lnl.copy(), slopes.copy())  # callers may change theirs
        return lnl, slopes

    def known_derivatives(self, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`all_derivatives`, without a launch if that was asked last at these lengths and nothing else has changed."""
        known = self._derivatives
        if known is not None and np.array_equal(known.lengths, lengths):
            return known[1:]
        return self.all_derivatives(lengths)

    def directed(self) -> Clas:
        """All directed CLAs (`DirectedView`) for the current topology, models and lengths; recomputed only if stale."""
        lengths = self._sent(self.tree.lengths)
        if self._prepared is None or not np.array_equal(self._prepared.lengths, lengths):
            self._prepared = self.engine.prepare(self._once(self._directed_program), lengths)
        return self._prepared


class Screen(TreeLikelihood):
    """The rough likelihood that belongs to another one, see `TreeLikelihood.screen`.

    Its `engine` has the same patterns, sorted by category. `category_of` has for each part the component of each
    pattern, unless the model says it (+PSR). It `is_stale` if the models have changed since the engine got them.
    """

    def __init__(self, of: TreeLikelihood, engine: Holder, category_of: Sequence[IndexArray]):
        self._category_of = category_of
        self.is_stale = False
        super().__init__(of.tree, of.models, engine, of.constraint)

    def _components(self) -> list[Components]:
        pairs = zip([model.components() for model in self.models], self._category_of, strict=True)
        return [part if part.category_of is not None else part.one_for_each_pattern(of) for part, of in pairs]

    def follow(self, of: TreeLikelihood) -> None:
        """Take over what has changed in the likelihood that it belongs to."""
        self.tree, self.models = of.tree, of.models
        if self.view is not of.view:
            self._use_view(of.view)
        if self.is_stale:
            self.model_changed()
            self.is_stale = False


def side_by_side(starts: Sequence[Sequence[Model]]) -> list[list[Model]]:
    """The first model of each part, the second of each, and so on; where a part has fewer, its last one again."""
    return [[own[min(k, len(own) - 1)] for own in starts] for k in range(max(map(len, starts)))]


def possible_likelihoods(likelihood: TreeLikelihood, tried: Sequence[Sequence[Model]]) -> FloatArray:
    """`TreeLikelihood.likelihoods`, (n_tried, n_parts); -inf where some pattern cannot be represented."""
    try:
        return likelihood.likelihoods(tried)
    except EngineError:
        if len(tried) == 1:
            return np.full((1, len(tried[0])), -np.inf)
        return np.concatenate([possible_likelihoods(likelihood, [models]) for models in tried])
