"""Probabilities of the states of ancestors, their joint states, and mutations: `ancestral_states`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np

from plltool.alignment.patterns import Patterns, batches
from plltool.alignment.states import join_cells, spell
from plltool.arrays import FloatArray, IndexArray
from plltool.constants import NODE
from plltool.errors import check_one_of
from plltool.io.alignment_formats import format_fasta, format_table
from plltool.io.files import tabbed
from plltool.io.newick_writer import find_root, write_newick, write_nexus
from plltool.model.components import Components
from plltool.reports.blocks import Row
from plltool.reports.tree_blocks import Drawn
from plltool.run.evaluation import EvaluationSettings, evaluate_and_ask
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike
from plltool.run.likelihood import Likelihood
from plltool.run.results import Result
from plltool.run.rooting import OutgroupLike, mean_tree, usable_outgroup, write_rooted
from plltool.schema import Keys
from plltool.settings import takes_keywords
from plltool.tree.topology import Tree


def joint_states(
    tree: Tree, lengths: FloatArray, components: Components, patterns: Patterns
) -> tuple[FloatArray, IndexArray]:
    """The most probable states of all inner nodes together, where branches have these `lengths` (n_edges,).

    Where sites have rates or classes of a mixture, the category of a site is chosen together with its states, and under
    a covarion model whether each node is on or off. Everything is computed on the host, in logarithms.

    Returns (n_patterns,) log-probability of these states, their category and the data, and (n_taxa - 2, n_patterns) the
    states of the data.
    """
    with np.errstate(divide="ignore"):  # a change may be impossible
        changes = np.log(np.stack([components.transition_matrices(float(length)) for length in lengths], axis=1))
        masses = np.log(components.masses())
        n_hidden = components.n_states // patterns.states.n_states
        tips = np.log(np.tile(patterns.states.tips, n_hidden).astype(np.float64))  # of each code
    best = np.full(patterns.n_patterns, -np.inf)
    states = np.zeros((tree.n_taxa - 2, patterns.n_patterns), dtype=np.intp)
    for some in batches(patterns.n_patterns, tree.n_nodes * components.n_states):
        for change, mass in zip(changes, masses, strict=True):
            value, own = _trace(tree, change, mass, tips[patterns.codes[:, some]])
            better = value > best[some]
            best[some] = np.where(better, value, best[some])
            states[:, some] = np.where(better, own, states[:, some])
    return best, states % patterns.states.n_states


def _trace(tree: Tree, changes: FloatArray, mass: FloatArray, tips: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Values and states of one component: (n_patterns,), (n_taxa - 2, n_patterns).

    `changes` (n_edges, n_states, n_states) and `mass` (n_states,) are logarithms of the transition probabilities and of
    the component's weight times its frequencies; so are `tips` (n_taxa, n_patterns, n_states) of likelihoods.
    """
    n_taxa, n_patterns, n_states = tips.shape
    root = int(tree.neighbours[0, 0])
    visits = [visit for visit in tree.directed_from(root) if not (tree.is_rooted and visit[0] == 0)]
    values = np.zeros((tree.n_nodes, n_patterns, n_states))
    values[:n_taxa] = tips
    choices = np.empty((tree.n_nodes, n_patterns, n_states), dtype=np.uint8)
    for node, parent, branch in reversed(visits):
        for state in range(n_states):
            options = values[node] + changes[branch, state]
            choices[node, :, state] = options.argmax(axis=1)
            values[parent, :, state] += options.max(axis=1)
    at_root = values[root] + mass
    found: IndexArray = np.empty((tree.n_nodes, n_patterns), dtype=np.intp)
    found[root] = at_root.argmax(axis=1)
    for node, parent, _ in visits:
        found[node] = choices[node, np.arange(n_patterns), found[parent]]
    return at_root.max(axis=1), found[n_taxa:]


ANY_OF = "/"  # between the states that an ambiguous tip may have


class Mutation(NamedTuple):
    """A change on a branch, from its node towards the root to the other one, in the first column of a site, from 0.

    The states before and after are named, such as "A"; "C/T" at an ambiguous tip.
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

    A tip whose state is not known mutates only if none of the states that it may have is that of its parent. `states`
    are those of the inner nodes (n_taxa - 2, n_patterns); `order` and `sites` (n,) are the pattern and the first column
    of each site.
    """
    space, state_codes = patterns.states, patterns.states.state_codes
    for node, parent, branch in tree.ordered_from(root):
        above = states[parent - tree.n_taxa]
        codes = patterns.codes[node] if tree.is_tip(node) else state_codes[states[node - tree.n_taxa]]
        differs = ~space.state_sets[codes, above]
        for k in np.flatnonzero(differs[order]).tolist():
            pattern = order[k]
            after = ANY_OF.join(space.symbols[state] for state in np.flatnonzero(space.state_sets[codes[pattern]]))
            yield Mutation(branch, parent, node, part, sites[k], space.symbols[above[pattern]], after)


STATE_KINDS = MARGINAL, JOINT = "marginal", "joint"


@dataclass(frozen=True, eq=False)
class AncestralPart:
    """The states at the inner nodes in one part of the alignment."""

    name: str
    columns: IndexArray  # (n, width) the columns of each site, from 0, ascending; a codon has three
    symbols: tuple[str, ...]  # the name of each state
    probabilities: FloatArray  # (n_nodes, n, n_states), in the order of `AncestralResult.nodes`; each row sums to 1
    joint: IndexArray  # (n_nodes, n) the most probable states of all nodes together
    joint_lnl: float  # log-probability of these states, the categories of the sites, and the data

    @property
    def sites(self) -> IndexArray:
        """(n,) the first column of each site."""
        return self.columns[:, 0]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AncestralResult(Result):
    """The result of a reconstruction of ancestral states.

    The columns of its table are node, parent, site (from 1), before and after: the mutations by marginal states.

    Attributes
    ----------
    nodes : names of the inner nodes; `nodes[k]` is node n_taxa + k of `tree`
    ancestors : states of these nodes, part by part
    labelled : the tree as Newick, with the names of the inner nodes
    mutations : on the branches, away from Node1, by the kind of states that they come from: "marginal", "joint"
    """

    nodes: tuple[str, ...]
    ancestors: tuple[AncestralPart, ...]
    labelled: str
    mutations: dict[str, tuple[Mutation, ...]]

    def _drawn(self) -> Drawn | None:
        return self.labelled, ()

    def _rows(self) -> Sequence[Row]:
        return [
            {"node": self.name_of(own.node), "parent": self.name_of(own.parent), "site": own.site + 1}
            | {"before": own.before, "after": own.after}
            for own in self.mutations[MARGINAL]
        ]

    def sequences(self, kind: str = MARGINAL) -> dict[str, str]:
        """The most probable sequence of each inner node, by its name; "-" for sites that are in no part.

        `kind` is "marginal", the most probable state of each node, or "joint", those of all nodes together. Where
        states have names, these are separated by tabs.
        """
        check_one_of("kind", kind, STATE_KINDS)
        written = []
        for part in self.ancestors:
            states = part.joint if kind == JOINT else part.probabilities.argmax(axis=2)
            written.append(spell(states, part.symbols, part.columns.shape[1]))
        cells = np.full((len(self.nodes), self.data.n_columns), "-", dtype=np.result_type(*written))
        for part, texts in zip(self.ancestors, written, strict=True):
            cells[:, part.columns.ravel()] = texts
        return dict(zip(self.nodes, join_cells(cells), strict=True))

    @Keys(ancestors=Keys(tree=str, sequences=dict[str, str], joint_sequences=dict[str, str], joint_lnl=float))
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The record of any result, with the most probable sequences and the tree that names the nodes."""
        joint = {"joint_sequences": self.sequences(JOINT), "joint_lnl": sum(part.joint_lnl for part in self.ancestors)}
        ancestors = {"tree": self.labelled, "sequences": self.sequences(), **joint}
        return super().as_record(command) | {"ancestors": ancestors}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool ancestral` writes, by the ends of their names; `command` as for `as_record`."""
        rows = list(self.sequences(JOINT).values())
        has_names = any(len(symbol) > part.columns.shape[1] for part in self.ancestors for symbol in part.symbols)
        ending, write = ("tsv", format_table) if has_names else ("fasta", format_fasta)
        return {
            "state": self.format_states(),
            "state.nwk": self.labelled + "\n",
            f"joint.{ending}": write(self.nodes, rows),
            "mutations.tsv": self.format_mutations(),
            "mutations.nex": self.mutations_nexus(),
            "ancestral.json": self.to_json(command) + "\n",
        }

    def name_of(self, node: int) -> str:
        """The name of a node of `tree`, a taxon or an inner node."""
        return self.tree.names[node] if self.tree.is_tip(node) else self.nodes[node - self.tree.n_taxa]

    def format_mutations(self) -> str:
        """A table separated by tabs: a row for each mutation, and whether marginal and joint states have it (1 or 0).

        It gives the node below the branch, its parent, the part if there are several, the site from 1, and both states.
        """
        several = len(self.ancestors) > 1
        rows = [["Node", "Parent", *["Part"] * several, "Site", "From", "To", "Marginal", "Joint"]]
        found = {kind: set(self.mutations[kind]) for kind in STATE_KINDS}
        root = self.nodes.index(f"{NODE}1") + self.tree.n_taxa
        branches = {branch: k for k, (_, _, branch) in enumerate(self.tree.ordered_from(root))}
        for own in sorted(set().union(*found.values()), key=lambda own: (branches[own.branch], own.site, own)):
            name = [self.ancestors[own.part].name] * several
            ends = [self.name_of(own.node), self.name_of(own.parent), *name]
            flags = [str(int(own in found[kind])) for kind in STATE_KINDS]
            rows.append([*ends, str(own.site + 1), own.before, own.after, *flags])
        return tabbed(rows)

    def mutations_nexus(self) -> str:
        """The tree as NEXUS; branches have their mutations by joint states: ``[&mutations="A12G C30T",number=2]``."""
        labels: list[list[str]] = [[] for _ in range(self.tree.n_edges)]
        for own in self.mutations[JOINT]:
            labels[own.branch].append(own.label)
        marks = [f'[&mutations="{" ".join(own)}",number={len(own)}]' for own in labels]
        outgroup = usable_outgroup(self.tree, self.outgroup)[0]
        return write_nexus(write_newick(self.tree, outgroup=outgroup, marks=marks), "mutations")

    def format_states(self) -> str:
        """A table separated by tabs: node, part if there are several, site from 1, most probable state, probabilities.

        Its columns are those of IQ-TREE's .state files. Nodes are in the order of their names. There is a header at the
        top, and before each part of another kind of data.
        """
        several = len(self.ancestors) > 1
        order = sorted(range(len(self.nodes)), key=lambda k: int(self.nodes[k].removeprefix(NODE)))
        rows: list[list[str]] = []
        symbols: tuple[str, ...] = ()
        for part in self.ancestors:
            if part.symbols != symbols:
                symbols = part.symbols
                rows.append(["Node", *["Part"] * several, "Site", "State", *(f"p_{s}" for s in symbols)])
            best = part.probabilities.argmax(axis=2)
            for k in order:
                head = [self.nodes[k], *[part.name] * several]
                for column, site in enumerate(part.sites.tolist()):
                    numbers = [f"{p:.5f}" for p in part.probabilities[k, column].tolist()]
                    rows.append([*head, str(site + 1), symbols[best[k, column]], *numbers])
        return tabbed(rows)


@takes_keywords(EvaluationSettings)
def ancestral_states(
    alignment: AlignmentLike, tree: TreeLike, model: ModelLike | None = None, **settings: Unpack[EvaluationSettings]
) -> AncestralResult:
    """Marginal probabilities of the states at all inner nodes (Yang, Kumar & Nei 1995), joint states, and mutations.

    Joint states are the most probable states of all nodes together (Pupko et al. 2000), see `joint_states`. Mutations
    are where the states at the ends of a branch differ. Branch lengths and model parameters are optimised. Parameters
    and errors as for `evaluate`.
    """

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        shown = mean_tree(likelihood.tree, np.array([part.n_sites for part in likelihood.data.parts]))
        nodes, labelled = name_nodes(shown, settings.get("outgroup"))
        root = nodes.index(f"{NODE}1") + shown.n_taxa
        ancestors = []
        mutations: dict[str, list[Mutation]] = {kind: [] for kind in STATE_KINDS}
        for number, states in enumerate(likelihood.node_states()):
            part, patterns = likelihood.data.parts[number], likelihood.patterns[number]
            lengths = likelihood.lengths if likelihood.lengths.ndim == 1 else likelihood.lengths[:, number]
            values, joint = joint_states(shown, lengths, likelihood.models[number].components(), patterns)
            order = np.argsort(part.sites)
            order = order[part.sites[order] < likelihood.data.n_columns]  # not constant sites that were added
            site_pattern = patterns.site_pattern[order]
            sites = part.sites[order].tolist()
            for kind, own in ((MARGINAL, states.argmax(axis=2)), (JOINT, joint)):
                mutations[kind] += find_mutations(shown, root, patterns, own, site_pattern, sites, number)
            lnl = float(values @ patterns.weights)
            of_sites = states[:, site_pattern], joint[:, site_pattern]
            ancestors.append(AncestralPart(part.name, part.columns[order], patterns.states.symbols, *of_sites, lnl))
        return {
            "nodes": nodes,
            "ancestors": tuple(ancestors),
            "labelled": labelled,
            "mutations": {kind: tuple(own) for kind, own in mutations.items()},
        }

    return evaluate_and_ask(ask, AncestralResult, alignment, tree, model, {"states": True}, **settings)


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
