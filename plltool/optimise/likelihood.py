"""The likelihood of one tree on one engine: programs over the tree's branches, kept while the topology stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plltool.engine import program as prog
from plltool.engine.base import Engine
from plltool.model.model import Model
from plltool.tree.operations import ROOT, DirectedView, directed_slots
from plltool.tree.topology import FloatArray, IntArray, Tree


class TreeLikelihood:
    """Couples a tree, a model per part and an engine.

    The tree and the models may be changed by whoever holds them, who then says so: `topology_changed`,
    `model_changed`. Changed branch lengths need no notice: every request sends the lengths along.

    Attributes
    ----------
    tree, models, engine : what it was made of
    scratch : first slot that no directed CLA uses
    """

    def __init__(self, tree: Tree, models: Sequence[Model], engine: Engine):
        self.tree = tree
        self.models = list(models)
        self.engine = engine
        self.scratch = directed_slots(tree.n_taxa)
        self.topology_changed()
        self.model_changed()

    def topology_changed(self) -> None:
        """Forget everything derived from the topology."""
        self.view = DirectedView(self.tree)
        self._post_order: IntArray | None = None
        self._all_branches: IntArray | None = None

    def model_changed(self) -> None:
        """Send the models' eigensystems to the engine."""
        self.engine.set_model([model.components() for model in self.models])

    @property
    def n_scratch(self) -> int:
        """Slots beyond those of the directed CLAs."""
        return self.engine.n_slots - self.scratch

    @property
    def root_edge(self) -> tuple[int, int, int]:
        """(operand, operand, branch) at the root tip."""
        return ~ROOT, int(self.view.facing[ROOT, 0]), int(self.tree.edges[ROOT, 0])

    def _post_order_program(self) -> IntArray:
        if self._post_order is None:
            nodes, columns = self.view.preorder[::-1].T
            self._post_order = prog.newview(*self.view.sources(nodes, columns))
        return self._post_order

    def _all_branches_program(self) -> IntArray:
        """Post-order, then pre-order with each derivative right behind the CLA it needs."""
        if self._all_branches is None:
            view, edges = self.view, self.tree.edges
            nodes, columns = view.preorder.T
            steps = []
            for k in (1, 2):
                child = (columns + k) % 3
                branch = edges[nodes, child]
                steps.append(prog.newview(*view.sources(nodes, child)))
                value = prog.DERIVATIVE_VALUES * branch
                steps.append(prog.derivative(value, view.away[nodes, child], view.facing[nodes, child], branch))
            a, b, root = self.root_edge
            at_root = prog.derivative(prog.DERIVATIVE_VALUES * root, a, b, root)
            pre_order = np.stack(steps, axis=1).reshape(-1, prog.N_WORDS)
            self._all_branches = np.concatenate([self._post_order_program(), at_root, pre_order])
        return self._all_branches

    def part_lnl(self) -> FloatArray:
        """lnL of each part (n_parts,)."""
        a, b, root = self.root_edge
        program = np.concatenate([self._post_order_program(), prog.evaluate(0, a, b, root)])
        return self.engine.execute(program, self.tree.lengths, 1, request="lnl")[:, 0]

    def lnl(self) -> float:
        """Log-likelihood of the tree as it stands; one launch."""
        return float(self.part_lnl().sum())

    def site_lnl(self) -> FloatArray:
        """lnL of each pattern (n_patterns,), not weighted."""
        self.engine.run(self._post_order_program(), self.tree.lengths)
        return self.engine.site_lnl(*self.root_edge, self.tree.lengths)

    def responses(self) -> tuple[float, FloatArray, FloatArray]:
        """lnL and how it answers to each part's components; one launch.

        Returns
        -------
        lnl : float
        matrices : (n_parts, C, S, S), d lnL / d (left @ (rate * Q) @ right), all branches together
        masses : (n_parts, C, S), d lnL / d log(weight * frequency) at the root
        """
        layout = self.engine.layout
        squares, masses = layout.n_components * layout.n_states**2, layout.n_components * layout.n_states
        a, b, root = self.root_edge
        view, edges = self.view, self.tree.edges
        nodes, columns = view.preorder.T
        children = np.stack([(columns + 1) % 3, (columns + 2) % 3], axis=1).ravel()
        parents = np.repeat(nodes, 2)
        gradients = prog.gradient(
            1,
            np.append(a, view.away[parents, children]),
            np.append(b, view.facing[parents, children]),
            np.append(root, edges[parents, children]),
        )
        newviews = prog.newview(*view.sources(parents, children))
        pre_order = np.stack([newviews, gradients[1:]], axis=1).reshape(-1, prog.N_WORDS)
        at_root = [prog.evaluate(0, a, b, root), gradients[:1], prog.root(1 + squares, a, b, root)]
        program = np.concatenate([self._post_order_program(), *at_root, pre_order])
        values = self.engine.execute(program, self.tree.lengths, 1 + squares + masses, request="gradient")
        by_part = len(values), layout.n_components, layout.n_states
        matrices = values[:, 1 : 1 + squares].reshape(*by_part, layout.n_states)
        return float(values[:, 0].sum()), matrices, values[:, 1 + squares :].reshape(by_part)

    def all_derivatives(self, lengths: npt.ArrayLike | None = None) -> tuple[float, FloatArray]:
        """lnL, and (n_edges, 2) first and second derivatives in every branch length; one launch.

        Afterwards all directed CLAs belong to `lengths` (the tree's by default).
        """
        at = self.tree.lengths if lengths is None else np.asarray(lengths, dtype=np.float64)
        n = self.tree.n_edges
        values = self.engine.execute(
            self._all_branches_program(), at, prog.DERIVATIVE_VALUES * n, request="all branches"
        ).reshape(-1, n, prog.DERIVATIVE_VALUES)
        total = values.sum(axis=0)
        return float(total[self.root_edge[2], 0]), total[:, 1:]
