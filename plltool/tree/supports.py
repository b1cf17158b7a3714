"""What many trees say: their consensus, how often they have the branches of one tree, and whether they suffice.

Tests of bootstrap replicates (Pattengale et al. 2010) cut them into random halves BOOTSTOP_CUTS times. If nearly all
pairs of halves agree, more replicates would hardly change the supports.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import MAJORITY
from plltool.errors import InputError, check_one_of, show_object
from plltool.tree.splits import TreeSet, branch_splits, inner_splits, members_of
from plltool.tree.topology import Tree

RULES = STRICT, MAJORITY_RULE, EXTENDED = "strict", "majority", "extended"


@dataclass(frozen=True, eq=False)
class Consensus:
    """A consensus tree, whose nodes may have many branches."""

    names: tuple[str, ...]  # the taxa
    splits: tuple[int, ...]  # its inner branches, as `TreeSet.splits`
    shares: FloatArray  # (n_splits,) the share of the trees that have each split
    # (n_splits,) mean length of each in the trees that have it, NaN if one of these trees gives none
    lengths: FloatArray
    pendants: FloatArray  # (n_taxa,) mean lengths of the branches at the tips, likewise

    def __repr__(self) -> str:
        return f"<Consensus: {len(self.names)} taxa, {len(self.splits)} of {len(self.names) - 3} internal branches>"


def make_consensus(trees: TreeSet, rule: str = MAJORITY_RULE, threshold: float = MAJORITY) -> Consensus:
    """The consensus tree of some trees.

    rule : "strict", splits in all trees; "majority", splits in more than `threshold` of them (Margush & McMorris 1981);
        "extended", those of the majority and then others, the most frequent first (ties: the one seen first), that
        contradict none taken before (the extended majority rule of Felsenstein's PHYLIP)
    threshold : a share from 0.5 to below 1
    """
    check_one_of("rule", rule, RULES)
    if not (isinstance(threshold, Real) and MAJORITY <= threshold < 1):
        raise InputError(f"threshold: found {show_object(threshold)}, expected a share from {MAJORITY} to below 1")
    counts = trees.counts
    if rule == STRICT:
        chosen = np.flatnonzero(counts == trees.n_trees)
    else:
        chosen = np.flatnonzero(counts > threshold * trees.n_trees)
        if rule == EXTENDED:
            chosen = extend(trees, counts, chosen)
    lengths = np.bincount(trees.members, weights=trees.lengths, minlength=len(counts))[chosen] / counts[chosen]
    splits = tuple(trees.splits[number] for number in chosen.tolist())
    return Consensus(trees.names, splits, counts[chosen] / trees.n_trees, lengths, trees.pendants.mean(axis=0))


def extend(trees: TreeSet, counts: IndexArray, chosen: IndexArray) -> IndexArray:
    """The numbers `chosen` and then other splits compatible with all before, by `counts`, largest first."""
    most = len(trees.names) - 3
    result = chosen.tolist()
    taken = set(result)
    holding: list[list[int]] = [[] for _ in trees.names]  # for each taxon the splits taken that have it
    for number in result:
        _enter(trees.splits[number], holding)
    for number in np.argsort(-counts, kind="stable").tolist():
        if len(result) == most or not counts[number]:
            break
        if number not in taken and _fits(trees.splits[number], holding):
            _enter(trees.splits[number], holding)
            result.append(number)
    return np.array(result, dtype=np.intp)


def _fits(split: int, holding: list[list[int]]) -> bool:
    """Whether every split taken that shares a taxon with `split` contains it or lies in it."""
    for taxon in members_of(split):
        for other in holding[taxon]:
            if split & other not in (split, other):
                return False
    return True


def _enter(split: int, holding: list[list[int]]) -> None:
    for taxon in members_of(split):
        holding[taxon].append(split)


BOOTSTOP_CUTS = 100  # random halvings per test (Pattengale et al. 2010)
BOOTSTOP_AGREEMENT = 0.99  # share of the halvings in which the halves must agree (Pattengale et al. 2010)
BOOTSTOP_CORRELATION = 0.99  # of the split frequencies of two halves that agree (Pattengale et al. 2010)
BOOTSTOP_WRF = 0.03  # weighted RF distance of two halves that agree (RAxML's cutoff)


def frequencies(tree: Tree, replicates: TreeSet) -> FloatArray:
    """The share of the replicates that have each branch (n_edges,), 0 to 1; NaN for tips (Felsenstein 1985)."""
    shares = replicates.shares
    values = np.array([shares.get(split, 0.0) for split in branch_splits(tree, replicates.names)])
    values[~tree.is_inner_branch] = np.nan
    return values


def transfer_supports(tree: Tree, replicates: TreeSet) -> FloatArray:
    """Transfer bootstrap expectations (Lemoine et al. 2018), as `frequencies`: 1 - mean(d / (p - 1)) over replicates.

    d is the least number of taxa that must change sides to turn the branch into one of the replicate's, p the number of
    taxa on its smaller side.
    """
    splits = inner_splits(tree, replicates.names)
    sides = _unpack(splits, tree.n_taxa)
    sizes = sides.sum(axis=1, dtype=np.float64)
    most = np.minimum(sizes, tree.n_taxa - sizes) - 1  # taxa to move until one is left on that side
    found = np.zeros(len(splits))
    for number in range(replicates.n_trees):
        own = [replicates.splits[member] for member in replicates.of_tree(number).tolist()]
        present = set(own)
        lacking = np.array([k for k, split in enumerate(splits) if split not in present], dtype=np.intp)
        if len(lacking) and own:
            others = _unpack(own, tree.n_taxa)
            moved = sizes[lacking, None] + others.sum(axis=1) - 2 * (sides[lacking] @ others.T)
            nearest = np.minimum(moved, tree.n_taxa - moved).min(axis=1)  # taxa to move to the nearest branch
            found[lacking] += np.minimum(nearest, most[lacking]) / most[lacking]
        else:
            found[lacking] += 1.0
    values = np.full(tree.n_edges, np.nan)
    values[tree.is_inner_branch] = 1.0 - found / replicates.n_trees
    return values


def root_frequencies(tree: Tree, replicates: TreeSet) -> FloatArray:
    """Rootstrap (n_edges,): shares of replicates with their root on each branch (Naser-Khdour, Minh & Lanfear 2022).

    A replicate whose root is on a branch that the tree lacks supports none. Branches of tips have supports, too.
    """
    without = [number for number, root in enumerate(replicates.roots, start=1) if root is None]
    if without:
        found = f"replicate tree {without[0]}: found no root"
        raise InputError(f"{found}, expected one, with two branches, for supports of the root")
    counts = Counter(replicates.roots)
    return np.array([counts[split] / replicates.n_trees for split in branch_splits(tree, replicates.names)])


def _unpack(splits: Sequence[int], n_taxa: int) -> npt.NDArray[np.float32]:
    """Splits as rows of zeros and ones (n_splits, n_taxa); sums of the type are exact below 2^24."""
    n_bytes = -(-n_taxa // 8)
    raw = b"".join(split.to_bytes(n_bytes, "little") for split in splits)
    rows = np.frombuffer(raw, np.uint8).reshape(-1, n_bytes)
    return np.unpackbits(rows, axis=1, count=n_taxa, bitorder="little").astype(np.float32)


CRITERIA = MRE, FC = "autoMRE", "autoFC"


@dataclass(frozen=True)
class Convergence:
    """The result of a test by a `criterion`, "autoMRE" or "autoFC", on `n_trees` replicates.

    mean : over the cuts; for autoMRE of the weighted RF distance between the extended majority-rule trees of the two
        halves, from 0 to 1; for autoFC of the correlation between the split frequencies of the two halves
    agreeing : share of the cuts whose halves agree by the criterion; `converged` says whether it is large enough
    """

    n_trees: int
    criterion: str
    mean: float
    agreeing: float

    @property
    def converged(self) -> bool:
        return self.agreeing >= BOOTSTOP_AGREEMENT

    def __str__(self) -> str:
        what = "weighted RF distance" if self.criterion == MRE else "correlation"
        verdict = "enough" if self.converged else "not enough"
        agreeing = f"{100 * self.agreeing:.0f} % of the halvings agree"
        return f"{self.criterion}: {self.n_trees} replicates: mean {what} {self.mean:.4f}, {agreeing}: {verdict}"


def check_convergence(
    trees: TreeSet, criterion: str, rng: np.random.Generator, cutoff: float = BOOTSTOP_WRF
) -> Convergence:
    """Cut the trees into halves BOOTSTOP_CUTS times and compare them.

    By "autoMRE" halves agree if the weighted RF distance of their extended majority-rule trees, with branches weighted
    by their frequencies, is at most `cutoff` of the largest possible. By "autoFC" they agree if the frequencies of
    all splits have a correlation of at least BOOTSTOP_CORRELATION.
    """
    half = trees.n_trees // 2
    present = trees.counts > 0
    values = np.empty(BOOTSTOP_CUTS)
    for cut in range(BOOTSTOP_CUTS):
        order = rng.permutation(trees.n_trees)
        first, second = (count_splits(trees, some) for some in (order[:half], order[half : 2 * half]))
        if criterion == FC:
            values[cut] = correlate(first[present].astype(np.float64), second[present].astype(np.float64))
        else:
            shares = np.zeros((2, len(trees.splits)))  # in the extended majority-rule tree of each half
            for row, counts in zip(shares, (first, second), strict=True):
                chosen = extend(trees, counts, np.flatnonzero(counts > MAJORITY * half))
                row[chosen] = counts[chosen] / half
            values[cut] = float(np.abs(shares[0] - shares[1]).sum()) / (2 * max(1, len(trees.names) - 3))
    agree = values >= BOOTSTOP_CORRELATION if criterion == FC else values <= cutoff
    return Convergence(trees.n_trees, criterion, float(values.mean()), float(agree.mean()))


def count_splits(trees: TreeSet, numbers: IndexArray) -> IndexArray:
    """The number of the trees `numbers` that have each split: (n_splits,)."""
    chosen = np.zeros(trees.n_trees, dtype=bool)
    chosen[numbers] = True
    return np.bincount(trees.members[np.repeat(chosen, np.diff(trees.starts))], minlength=len(trees.splits))


def correlate(a: FloatArray, b: FloatArray) -> float:
    """Pearson's correlation of two arrays (n,); if one of them is constant, 1 for equal arrays and 0 for others."""
    first, second = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / spread if spread else float(np.array_equal(a, b))
