"""Probabilities of the states of ancestors: `ancestral_states`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from plltool.alignment.partition import Part
from plltool.alignment.patterns import Patterns
from plltool.analyses.evaluate import EvaluationSettings, evaluate_and_ask
from plltool.analyses.likelihood import Likelihood
from plltool.arrays import FloatArray, IndexArray
from plltool.io.newick_writer import find_root
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike
from plltool.run.keywords import takes_keywords
from plltool.run.results import Result
from plltool.run.rooting import OutgroupLike, mean_tree, usable_outgroup, write_rooted
from plltool.tree.topology import Tree

NODE = "Node"  # and a number from 1


@dataclass(frozen=True, eq=False)
class AncestralPart:
    """The states at the inner nodes in one part of the alignment.

    Attributes
    ----------
    name : name of the part
    columns : (n, width) the columns of each site, from 0, ascending; a codon has three
    symbols : the name of each state
    probabilities : (n_nodes, n, n_states), in the order of `AncestralResult.nodes`; each row sums to 1
    """

    name: str
    columns: IndexArray
    symbols: tuple[str, ...]
    probabilities: FloatArray

    @property
    def sites(self) -> IndexArray:
        """(n,) the first column of each site."""
        return self.columns[:, 0]


@dataclass(frozen=True, eq=False, repr=False)
class AncestralResult(Result):
    """The result of a reconstruction of ancestral states.

    Attributes
    ----------
    nodes : names of the inner nodes; `nodes[k]` is node n_taxa + k of `tree`
    ancestors : states of these nodes, part by part
    labelled : the tree as Newick, with the names of the inner nodes
    """

    nodes: tuple[str, ...] = field(kw_only=True)
    ancestors: tuple[AncestralPart, ...] = field(kw_only=True)
    labelled: str = field(kw_only=True)

    def sequences(self) -> dict[str, str]:
        """The most probable sequence of each inner node, by its name; "-" for sites that are in no part."""
        letters = np.full((len(self.nodes), self.n_sites), "-")
        for part in self.ancestors:
            letters[:, part.columns] = np.array([list(symbol) for symbol in part.symbols])[
                part.probabilities.argmax(axis=2)
            ]
        return {node: "".join(row) for node, row in zip(self.nodes, letters, strict=True)}

    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The record of any result, with the most probable sequences and the tree that names the nodes."""
        return super().as_record(command) | {"ancestors": {"tree": self.labelled, "sequences": self.sequences()}}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool ancestral` writes, by the ends of their names; `command` as for `as_record`."""
        return {
            "state": self.format_states(),
            "state.nwk": self.labelled + "\n",
            "ancestral.json": self.to_json(command) + "\n",
        }

    def format_states(self) -> str:
        """A table separated by tabs: node, part if there are several, site from 1, most probable state, probabilities.

        Its columns are those of IQ-TREE's .state files. Nodes are in the order of their names. There is a header at the
        top, and before each part of another kind of data.
        """
        several = len(self.ancestors) > 1
        order = sorted(range(len(self.nodes)), key=lambda k: int(self.nodes[k].removeprefix(NODE)))
        lines: list[str] = []
        symbols: tuple[str, ...] = ()
        for part in self.ancestors:
            if part.symbols != symbols:
                symbols = part.symbols
                lines.append("\t".join(["Node", *["Part"] * several, "Site", "State", *(f"p_{s}" for s in symbols)]))
            best = part.probabilities.argmax(axis=2)
            for k in order:
                node = self.nodes[k]
                head = f"{node}\t{part.name}" if several else node
                for column, site in enumerate(part.sites.tolist()):
                    numbers = "\t".join([f"{p:.5f}" for p in part.probabilities[k, column].tolist()])
                    lines.append(f"{head}\t{site + 1}\t{symbols[best[k, column]]}\t{numbers}")
        return "\n".join(lines) + "\n"


@takes_keywords(EvaluationSettings)
def ancestral_states(
    alignment: AlignmentLike, tree: TreeLike, model: ModelLike | None = None, **settings: Unpack[EvaluationSettings]
) -> AncestralResult:
    """Marginal probabilities of the states at all inner nodes (Yang, Kumar & Nei 1995).

    Branch lengths and model parameters are optimised. Parameters and errors as for `evaluate`.
    """

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        shown = mean_tree(likelihood.tree, np.array([len(part.sites) for part in likelihood.data.parts]))
        nodes, labelled = name_nodes(shown, settings.get("outgroup"))
        columns = zip(likelihood.data.parts, likelihood.patterns, likelihood.node_states(), strict=True)
        ancestors = tuple(_in_order_of_sites(*column) for column in columns)
        return {"nodes": nodes, "ancestors": ancestors, "labelled": labelled}

    return evaluate_and_ask(ask, AncestralResult, alignment, tree, model, {"states": True}, **settings)


def _in_order_of_sites(part: Part, patterns: Patterns, states: FloatArray) -> AncestralPart:
    """The states of a part, from those of its patterns (n_nodes, n_patterns, n_states)."""
    order = np.argsort(part.sites)
    site_pattern = patterns.site_pattern[order]
    return AncestralPart(part.name, part.columns[order], patterns.states.symbols, states[:, site_pattern])


def name_nodes(tree: Tree, outgroup: OutgroupLike | None = None) -> tuple[tuple[str, ...], str]:
    """Names of the inner nodes, and the tree as Newick with these names; Node1 is the root of this text.

    See `usable_outgroup` for an outgroup that is not one clade.
    """
    root = find_root(tree, usable_outgroup(tree, outgroup)[0])
    visits = [(node, branch) for node, _, branch in tree.ordered_from(root) if not tree.is_tip(node)]
    names, labels = [""] * (tree.n_taxa - 2), [""] * tree.n_edges
    names[root - tree.n_taxa] = f"{NODE}1"
    for number, (node, branch) in enumerate(visits, start=2):
        names[node - tree.n_taxa] = labels[branch] = f"{NODE}{number}"
    return tuple(names), write_rooted(tree, outgroup, labels)[0].removesuffix(";") + f"{NODE}1;"
