"""How far gene trees and sites agree with the branches of a tree: `concordance`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from os import PathLike
from typing import Any, Unpack

import numpy as np

from plltool.alignment.patterns import batches
from plltool.analyses.supports.support import load_target
from plltool.arrays import FloatArray, IndexArray, slices
from plltool.constants import DEFAULT_LINKAGE, DEFAULT_SEED, GCF, IC, ICA, QCF, QUARTET_VALUES, SCF, SCFL, SITE_QUARTETS
from plltool.errors import InputError, check_least
from plltool.io.files import Recorded, nan_to_null, tabbed
from plltool.io.newick_writer import write_nexus, written_label
from plltool.io.tree_files import read_gene_trees
from plltool.model.partition import Dataset
from plltool.progress import log
from plltool.reports.blocks import Row
from plltool.reports.methods import read_table
from plltool.reports.shown import Shown
from plltool.reports.tree_blocks import Drawn
from plltool.run.evaluation import EvaluationSettings, evaluate_and_ask
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, cut_inputs, resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.results import Result
from plltool.run.supports import BRANCH, NOT_AVAILABLE, Supports
from plltool.schema import Keys
from plltool.seeds import QUARTETS, generator
from plltool.settings import takes_keywords
from plltool.tree.concordance import (
    GeneTree,
    Surroundings,
    count_genes,
    find_surroundings,
    internode_certainty,
    quartet_shares,
)
from plltool.tree.splits import branch_splits, everyone, members_of
from plltool.tree.topology import Tree

COLUMN_OF_KIND = {GCF: "gCF", QCF: "qCF", SCF: "sCF", SCFL: "sCFL", IC: "IC", ICA: "ICA"}
FACTORS = (GCF, SCF, SCFL)  # the kinds in the labels of the main tree
NUMBER = "_N"  # the end of the name of a column with numbers in place of per cent


@dataclass(frozen=True, eq=False, repr=False)
class Concordance(Recorded, Shown):
    """Concordance factors of the inner branches of a tree.

    The columns of its table are ID, those of `columns`, Label and Length, see `format_table`.

    Around a branch there are four subtrees A, B and C, D. A has the first taxon of the tree by name, and C the first
    taxon of the other end. The branch is AB|CD; its first interchange is AC|BD, its second AD|BC. Branches at nodes of
    more than three branches have no interchanges.

    Attributes
    ----------
    supports : the tree with what there is of "gcf", "scf", "scfl", "qcf", "ic" and "ica"
    columns : (n_branches,) what is known of each inner branch, in their order, by the names of the table; NaN where
        nothing tells. See `describe_columns`
    around : for each of the branches a taxon of A, B, C and D; None at nodes of more than three branches
    labels : (n_branches,) what the tree had at its inner branches before
    evaluation : the tree with its likelihood, where it was needed
    seed : of the quartets; None if there were none
    """

    supports: Supports
    columns: dict[str, FloatArray]
    around: tuple[tuple[str, ...] | None, ...]
    labels: tuple[str, ...]
    evaluation: Result | None
    seed: int | None

    def __repr__(self) -> str:
        kinds = ", ".join(self.supports.kinds)
        return f"<Concordance: {kinds}, {len(self.labels)} branches, {self.supports.tree.n_taxa} taxa>"

    def _drawn(self) -> Drawn | None:
        return self.newick(), ()

    def _rows(self) -> Sequence[Row]:
        tree = self.supports.tree
        known = 1.0 if self.supports.has_lengths else np.nan
        lengths = [known * float(np.mean(tree.lengths[branch])) for branch in self.supports.branches]
        values = [column.tolist() for column in self.columns.values()]
        names = "ID", *self.columns, "Label", "Length"
        rows = zip(range(1, len(self.labels) + 1), *values, self.labels, lengths, strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def newick(self) -> str:
        """The tree with labels such as ``97/85.71/40.2``: what it had before, and gCF, sCF and likelihood's sCF."""
        kinds = [kind for kind in FACTORS if kind in self.supports.kinds]
        columns = [self.supports.labels_of(kind) for kind in kinds]
        rows = zip(self._spread(self.labels), *columns, strict=True)
        return self.supports.newick_with([written_label("/".join(filter(None, row))) for row in rows])

    def branch_newick(self) -> str:
        """The tree with the number of each branch in the table as its label."""
        return self.supports.newick_with(self._spread([str(number) for number in range(1, len(self.labels) + 1)]))

    def nexus(self) -> str:
        """The tree as NEXUS, all columns being named annotations such as ``[&gCF=50,gN=12]``, which FigTree reads."""
        texts = [[f"{name}={_show(row[name])}" for name in ("ID", *self.columns)] for row in self._rows()]
        marks = self._spread([f"[&{','.join(row)}]" for row in texts])
        return write_nexus(self.supports.newick_with(marks), "concordance")

    def describe_columns(self) -> dict[str, str]:
        """What each column of the table means."""
        meanings, shares = read_table("concordance.txt"), {name: name.removesuffix(NUMBER) for name in self.columns}
        return {name: meanings.get(name, f"{share} as a number") for name, share in shares.items()}

    def format_table(self) -> str:
        """A table separated by tabs, with a row for each inner branch and the columns of IQ-TREE's .cf.stat files.

        Lines that begin with # say what the columns mean. NA stands where nothing tells.
        """
        lines = [
            ["# Concordance factors of the branches AB|CD of a tree; NA: nothing tells"],
            ["# ID: number of the branch"],
            *([f"# {name}: {meaning}"] for name, meaning in self.describe_columns().items()),
            ["# Label: what the tree had at the branch before"],
            ["# Length: branch length"],
            ["ID", *self.columns, "Label", "Length"],
        ]
        for row in self._rows():
            values = [_show(row[name]) for name in ("ID", *self.columns)]
            lines.append([*values, row["Label"] or NOT_AVAILABLE, _show(row["Length"], 10)])
        return tabbed(lines)

    @Keys(
        "seed command:str?",
        {"evaluation": Result},
        like=Supports,
        branches=[Keys("id:int", like=BRANCH, around=(None, [str]), columns=dict[str, float | None])],
        columns=dict[str, str],
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The supports, with all columns and a quartet of taxa around each branch, and the evaluation, if any."""
        record = self.supports.as_record()
        for k, row in enumerate(record["branches"]):
            row["id"] = k + 1
            row["around"] = None if self.around[k] is None else list(self.around[k] or ())
            row["columns"] = {name: nan_to_null(float(values[k])) for name, values in self.columns.items()}
        record |= {"columns": self.describe_columns(), "seed": self.seed, "command": command}
        return record if self.evaluation is None else record | {"evaluation": self.evaluation.as_record(command)}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool concordance` writes, by the ends of their names; `command` as for `as_record`."""
        return {
            "cf.nwk": self.newick() + "\n",
            "cf.branch.nwk": self.branch_newick() + "\n",
            "cf.nex": self.nexus(),
            "cf.stat": self.format_table(),
            "cf.json": self.to_json(command) + "\n",
        }

    def _spread(self, labels: Sequence[str]) -> list[str]:
        whole = [""] * self.supports.tree.n_edges
        for branch, label in zip(self.supports.branches.tolist(), labels, strict=True):
            whole[branch] = label
        return whole


def _show(value: float, digits: int = 6) -> str:
    return NOT_AVAILABLE if math.isnan(value) else f"{value:.{digits}g}"


PAIRS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))  # the subtrees that have the same state: the first two, the last two


def draw_quartets(ends: Sequence[Sequence[IndexArray]], number: int, rng: np.random.Generator) -> IndexArray:
    """Quartets of taxa around a branch: (n, 4), each with a taxon of two subtrees at each end.

    `ends` are the taxa of each subtree at both ends, two or more at each. The `number` is drawn with replacement; if
    there are no more, and each end has two subtrees, all are taken.
    """
    if all(len(end) == 2 for end in ends):
        sides = [taxa for end in ends for taxa in end]
        if np.prod([float(len(taxa)) for taxa in sides]) <= number:
            return np.array(list(product(*(taxa.tolist() for taxa in sides))))
        return np.column_stack([rng.choice(taxa, number) for taxa in sides])
    chosen = [[end[k] for end in ends for k in rng.permutation(len(end))[:2]] for _ in range(number)]
    return np.array([[rng.choice(taxa) for taxa in sides] for sides in chosen])


def count_sites(states: IndexArray, weights: FloatArray, quartets: IndexArray) -> FloatArray:
    """The number of sites that agree with AB|CD, AC|BD and AD|BC: (n_quartets, 3), from (n_quartets, 4) taxa.

    `states` are (n_taxa, n_patterns), negative where the state is not known.
    """
    counts = np.empty((len(quartets), len(PAIRS)))
    step = max(1, QUARTET_VALUES // max(1, 4 * states.shape[1]))
    for some in slices(len(quartets), step):
        own = states[quartets[some]]
        known = (own >= 0).all(axis=1)
        for k, (a, b, c, d) in enumerate(PAIRS):
            agree = (own[:, a] == own[:, b]) & (own[:, c] == own[:, d]) & (own[:, a] != own[:, c])
            counts[some, k] = (agree & known) @ weights
    return counts


def expect_sites(states: FloatArray, weights: FloatArray) -> FloatArray:
    """The expected number of sites that agree with AB|CD, AC|BD and AD|BC: (3,).

    `states` (4, n_patterns, n_states) are the probabilities at the roots of A, B, C and D, which are independent.
    """
    same = states.prod(axis=0).sum(axis=1)
    pairs = [(states[a] * states[b]).sum(axis=1) * (states[c] * states[d]).sum(axis=1) - same for a, b, c, d in PAIRS]
    return np.asarray(np.stack(pairs) @ weights)


def average(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean shares of three kinds of sites, over the quartets that have any, or NaN, and mean numbers: (3,), (3,)."""
    totals = counts.sum(axis=1)
    has_any = totals > 0
    shares = counts[has_any] / totals[has_any, None]
    return shares.mean(axis=0) if len(shares) else np.full(len(PAIRS), np.nan), counts.mean(axis=0)


@takes_keywords(EvaluationSettings)
def concordance(
    tree: TreeLike,
    gene_trees: str | PathLike[str] | Sequence[TreeLike] | None = None,
    alignment: AlignmentLike | None = None,
    model: ModelLike | None = None,
    *,
    quartets: int = SITE_QUARTETS,
    likelihood: bool = False,
    seed: int = DEFAULT_SEED,
    **settings: Unpack[EvaluationSettings],
) -> Concordance:
    """Concordance factors: how many gene trees, and how many sites, agree with each inner branch of a tree.

    Parameters
    ----------
    tree : file, Newick string, Tree, or tree of dendropy, Biopython or ete; nodes may have any number of branches
    gene_trees : a file of trees (Newick or NEXUS), Newick text, or several of these or of trees. They may lack taxa and
        have multifurcations; roots are ignored. They give the gene concordance factor (Minh, Hahn & Lanfear 2020), the
        quartet support, and internode certainty (Salichos, Stamatakis & Rokas 2014)
    alignment : of all taxa of the tree, as for `plltool.search`; it gives the site concordance factor
    quartets : number of quartets that are drawn around each branch for it (Minh, Hahn & Lanfear 2020); 0 for none
    likelihood : also compute it from the likelihoods of the states at the roots of the four subtrees around each branch
        (Mo et al. 2023); expected numbers take the place of random states
    model, settings : for `likelihood`, as for `plltool.evaluate`; branch lengths and parameters are optimised. The
        model has to be time-reversible then
    seed : of the quartets

    Raises InputError if there are neither gene trees nor an alignment, or one of them or the tree cannot be used, and
    DeviceError if the device cannot be used.
    """
    check_least("quartets", quartets, 0)
    check_least("seed", seed, 0)
    if gene_trees is None and alignment is None:
        raise InputError("concordance: found neither gene trees nor an alignment, expected at least one")
    if alignment is None and likelihood:
        raise InputError("concordance: found no alignment, expected one for site concordance by likelihood")
    data = None
    if alignment is not None:
        prepare = resolve_inputs if likelihood else cut_inputs  # without likelihoods the model says what data are
        data = prepare(alignment, model, settings.get("brlen", DEFAULT_LINKAGE))[0]
    target = load_target(tree, None if data is None else data.names, ordered=True)
    around = find_surroundings(target.tree, target.added)
    if not around:
        raise InputError("concordance: the tree has no internal branches")
    names = target.tree.names
    columns: dict[str, FloatArray] = {}
    numbers: dict[str, int] = {}
    if gene_trees is not None:
        if isinstance(gene_trees, (str, PathLike)):
            gene_trees = [gene_trees]
        if isinstance(gene_trees, Tree) or not isinstance(gene_trees, Iterable):
            found = f"found an object of type {type(gene_trees).__name__}"
            raise InputError(f"gene trees: {found}, expected a file, or a list")
        genes = read_gene_trees(list(gene_trees), names)
        check_least("number of gene trees", len(genes), 1)
        columns |= _gene_columns(around, genes)
        numbers[GCF] = len(genes)
    if data is not None and quartets:
        columns |= _site_columns(around, _count_by_quartets(around, data, quartets, seed))
        numbers[SCF] = quartets
    evaluation = None
    if data is not None and likelihood:
        ask = partial(_expect, around=around)
        evaluation = evaluate_and_ask(ask, SiteEvaluation, data, target.tree, model, {"states": True}, **settings)
        columns |= _site_columns(around, list(evaluation.site_counts[:, None]), "L")
    if gene_trees is not None:
        shares = 100 * quartet_shares(around, genes, target.tree.n_taxa)
        columns |= zip(("qCF", "qDF1", "qDF2"), shares.T, strict=True)
        numbers[QCF] = len(genes)
        columns |= _certainty_columns(target.tree, around, genes, numbers)
    values = {}
    for kind, name in COLUMN_OF_KIND.items():
        if name in columns:
            values[kind] = np.full(target.tree.n_edges, np.nan)
            values[kind][[place.branch for place in around]] = columns[name]
    supports = Supports(target.tree, values, numbers, added=target.added, has_lengths=target.has_lengths)
    supports = supports.with_outgroup(settings.get("outgroup"))
    of_subtrees = [[names[next(members_of(own.taxa))] for own in place.subtrees] for place in around]
    taxa = tuple(tuple(own) if place.is_resolved else None for own, place in zip(of_subtrees, around, strict=True))
    labels = tuple(target.labels[place.branch] for place in around)
    return Concordance(supports, columns, taxa, labels, evaluation, seed if data is not None and quartets else None)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SiteEvaluation(Result):
    """An evaluation of a tree; expected numbers of sites (n_branches, 3) agree with branches and interchanges."""

    site_counts: FloatArray


def _gene_columns(around: Sequence[Surroundings], genes: Sequence[GeneTree]) -> dict[str, FloatArray]:
    """Decisive gene trees with each branch, with its interchanges, and with none of them."""
    counts = count_genes(around, genes).astype(np.float64)
    total = counts[:, -1]
    with_polyphyly = np.column_stack([counts[:, :-1], total - counts[:, :-1].sum(axis=1)])
    with_polyphyly[[not place.is_resolved for place in around], 1:3] = np.nan
    columns = {}
    for name, own in zip(("gCF", "gDF1", "gDF2", "gDFP"), with_polyphyly.T, strict=True):
        columns[name] = 100 * np.divide(own, total, out=np.full_like(own, np.nan), where=total > 0)
        columns[name + NUMBER] = own
    return columns | {"gN": total}


def _certainty_columns(
    tree: Tree, around: Sequence[Surroundings], genes: Sequence[GeneTree], numbers: dict[str, int]
) -> dict[str, FloatArray]:
    """Internode certainty, if any gene tree has all taxa; their number goes to `numbers`."""
    n_complete = sum(gene.taxa == everyone(tree.n_taxa) for gene in genes)
    if not n_complete:
        log.info("no gene tree has all taxa: no internode certainty")
        return {}
    numbers |= dict.fromkeys((IC, ICA), n_complete)
    splits = branch_splits(tree)
    values = internode_certainty([splits[place.branch] for place in around], genes, tree.n_taxa)
    return dict(zip(("IC", "ICA"), values.T, strict=True))


def _site_columns(
    around: Sequence[Surroundings], counts: Sequence[FloatArray], kind: str = ""
) -> dict[str, FloatArray]:
    """Decisive sites that agree with each branch and with its interchanges, from counts (n_quartets, 3) of each."""
    shares, numbers = (np.array(values).reshape(-1, len(PAIRS)) for values in zip(*map(average, counts), strict=True))
    totals = numbers.sum(axis=1)
    shares, unresolved = 100 * shares, [not place.is_resolved for place in around]
    shares[unresolved, 1:] = numbers[unresolved, 1:] = np.nan
    columns: dict[str, FloatArray] = {}
    for k, name in enumerate((f"sCF{kind}", f"sDF{kind}1", f"sDF{kind}2")):
        columns |= {name: shares[:, k], name + NUMBER: numbers[:, k]}
    return columns | {f"sN{kind}": totals}


def _count_by_quartets(around: Sequence[Surroundings], data: Dataset, quartets: int, seed: int) -> list[FloatArray]:
    """Sites that agree with each branch and its interchanges, for quartets of taxa around it: (n_quartets, 3) each."""
    states, weights = [], []
    for part in data.patterns:
        sets = part.states.state_sets
        own = np.where(sets.sum(axis=1) == 1, sets.argmax(axis=1), -1)[part.codes]  # -1 for ambiguities
        # others can be decisive for no quartet
        decisive = np.sum([(own == k).sum(axis=0) >= 2 for k in range(part.states.n_states)], axis=0) >= 2
        states.append(own[:, decisive])
        weights.append(part.weights[decisive])
    joined, weight = np.concatenate(states, axis=1), np.concatenate(weights)
    counts = []
    for number, place in enumerate(around):
        ends = [[np.fromiter(members_of(subtree.taxa), np.intp) for subtree in end] for end in place.ends]
        drawn = draw_quartets(ends, quartets, generator(seed, QUARTETS, number))
        counts.append(count_sites(joined, weight, drawn))
    return counts


def _expect(likelihood: Likelihood, around: Sequence[Surroundings]) -> dict[str, Any]:
    """The expected numbers of sites by the states around each branch, in batches.

    They are means over pairs of subtrees where an end has more than two. Sites at which one of the four subtrees has no
    data are left out.
    """
    counts = np.zeros((len(around), len(PAIRS)))
    for some in batches(len(around), 4 * sum(part.n_patterns * part.states.n_states for part in likelihood.patterns)):
        subtrees = [subtree for place in around[some] for subtree in place.subtrees]
        nodes, columns = np.array([(subtree.node, subtree.column) for subtree in subtrees]).T
        for part, own in zip(likelihood.patterns, likelihood.node_states((nodes, columns)), strict=True):
            has_data = part.codes != part.states.all_states_code
            known = np.stack([has_data[list(members_of(subtree.taxa))].any(axis=0) for subtree in subtrees])
            first = 0
            for row, place in zip(counts[some], around[some], strict=True):
                middle, last = first + len(place.ends[0]), first + len(place.subtrees)
                pairs = [combinations(range(first, middle), 2), combinations(range(middle, last), 2)]
                chosen = [[*one, *other] for one, other in product(*pairs)]
                sums = [expect_sites(own[four], part.weights * known[four].all(axis=0)) for four in chosen]
                row += np.mean(sums, axis=0)
                first = last
    return {"site_counts": counts}
