"""The bootstrap (Felsenstein 1985): trees of resampled alignments, each the result of a whole search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from numbers import Integral, Real
from os import PathLike, fspath
from time import perf_counter
from typing import Any, NamedTuple, Unpack

import numpy as np

from plltool.alignment.alignment import Sequences
from plltool.alignment.patterns import draw_sites
from plltool.analyses.supports.replicates import Replicates, Replicator, count_kept, hold_models, make_replicates
from plltool.analyses.supports.support import load_target, map_replicates
from plltool.constants import DEFAULT_LINKAGE, DEFAULT_SEED, FBP, REPLICATE_KINDS, REPLICATE_STAGE, ROOTSTRAP
from plltool.errors import InputError, check_least, show_object
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import START_OVER
from plltool.io.files import Recorded
from plltool.io.newick_writer import write_newick
from plltool.progress import Listener, Progress, StopSearch, announce, ignore, log
from plltool.reports.blocks import Row
from plltool.reports.shown import Shown
from plltool.reports.tree_blocks import Drawn
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, TreesLike, as_data, as_tree_set, resolve_inputs
from plltool.run.memory import share_hardware
from plltool.run.rooting import OutgroupLike, mean_tree
from plltool.run.run import Run
from plltool.run.supports import CONVERGENCE, Supports, check_kinds
from plltool.run.task import describe_plan
from plltool.schema import Keys
from plltool.seeds import BOOTSTOP, BOOTSTRAP, generator
from plltool.settings import takes_keywords
from plltool.tree.rooted import drop_root
from plltool.tree.splits import Splits, make_tree_set, splits_of
from plltool.tree.supports import BOOTSTOP_WRF, CRITERIA, MRE, Convergence, check_convergence
from plltool.tree.topology import Tree
from plltool.tree_search.effort import SearchOptions

BOOTSTOP_STEP = 50  # replicates between two tests whether there are enough (RAxML)
BOOTSTOP_MOST = 1000  # replicates at most, if the tests never say that there are enough (RAxML)
REPLICATE_EFFORT = "fast"  # of the search of a bootstrap replicate, by default
REPLICATE_RADII = (5, 10)  # SPR radii; the supports are closer to those of default searches than with radius 5 alone
RAPID_RADII = (5,)  # SPR radii of a rapid replicate
AUTO = "auto"


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapResult(Recorded, Shown):
    """Bootstrap replicates.

    The columns of its table are replicate, lnl (on the resampled alignment) and length of the tree.

    Attributes
    ----------
    trees, lnls : trees of the resampled alignments, with all taxa, and lnL on these alignments
    n_kept : number of replicates that were in the checkpoint already
    seed : seed of the resampling; replicate k depends only on it and on k
    convergence : results of the tests whether there are enough replicates, if the number was to be found
    supports : supports of the tree that was given; None if there was none
    interrupted : whether the listener ended the run early
    """

    trees: tuple[Tree, ...]
    lnls: tuple[float, ...]
    n_kept: int
    seed: int
    convergence: tuple[Convergence, ...]
    seconds: float
    interrupted: bool
    supports: Supports | None = None

    def __repr__(self) -> str:
        n_taxa = self.trees[0].n_taxa if self.trees else 0
        return f"<BootstrapResult: {len(self.trees)} trees of {n_taxa} taxa, seed {self.seed}>"

    @Keys(
        "trees:str[] lnls n_kept seed convergence supports seconds interrupted version:str command:str?",
        convergence=[CONVERGENCE],
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The trees, their lnL and what is known of the run; `command` is the command line."""
        return {
            "trees": [_write(tree) for tree in self.trees],
            "convergence": [asdict(test) | {"converged": test.converged} for test in self.convergence],
        }

    def _drawn(self) -> Drawn | None:
        return None if self.supports is None else self.supports._drawn()

    def _rows(self) -> Sequence[Row]:
        made = enumerate(zip(self.lnls, self.trees, strict=True), start=1)
        return [{"replicate": k, "lnl": lnl, "length": tree.total_length()} for k, (lnl, tree) in made]


def bootstrap_convergence(
    trees: TreesLike, cutoff: float = BOOTSTOP_WRF, seed: int = DEFAULT_SEED
) -> tuple[Convergence, ...]:
    """Test by autoMRE after 50 replicates, 100 and so on whether there are enough (Pattengale et al. 2010).

    `trees` are as for `plltool.tree_distances`; `cutoff` is the weighted Robinson-Foulds distance, from 0 to 1, up to
    which halves agree. `bootstrap` with the same seed makes the same tests. Raises InputError for fewer than 50
    trees.
    """
    if not (isinstance(cutoff, Real) and 0 <= cutoff <= 1):
        raise InputError(f"cutoff: found {show_object(cutoff)}, expected 0 .. 1")
    whole = as_tree_set(trees)
    check_least("number of trees", whole.n_trees, BOOTSTOP_STEP)
    members = [whole.of_tree(number).tolist() for number in range(whole.n_trees)]
    splits = [dict.fromkeys((whole.splits[k] for k in own), math.nan) for own in members]
    return tuple(
        check_convergence(make_tree_set(whole.names, splits[:n]), MRE, generator(seed, BOOTSTOP, n), cutoff)
        for n in range(BOOTSTOP_STEP, whole.n_trees + 1, BOOTSTOP_STEP)
    )


@takes_keywords(HardwareSettings)
def bootstrap(
    alignment: AlignmentLike,
    model: ModelLike | None = None,
    *,
    replicates: int | str = AUTO,
    tree: TreeLike | None = None,
    kinds: str | Sequence[str] = (FBP,),
    outgroup: OutgroupLike | None = None,
    seed: int = DEFAULT_SEED,
    rapid: bool = False,
    options: SearchOptions | None = None,
    constraint: TreeLike | None = None,
    brlen: str = DEFAULT_LINKAGE,
    workers: int | None = None,
    listener: Listener = ignore,
    taken: Callable[[str], None] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **hardware: Unpack[HardwareSettings],
) -> BootstrapResult:
    """Trees of resampled alignments, and how well they support a tree.

    Each part of the alignment is resampled by itself. The search of a replicate starts from a parsimony tree of its own
    sites. Its model parameters start from the values of `model` and are optimised for each replicate, unless they are
    given in braces or ``options.optimise_parameters`` is False.

    Parameters
    ----------
    alignment, model, constraint, brlen : as for `plltool.search`; the models that a search found,
        `SearchResult.models`, save time
    replicates : their number; or "autoMRE" or "autoFC", a test after every BOOTSTOP_STEP replicates that tells when
        there are enough, see `tree.supports`; "auto" is "autoMRE"
    tree, kinds, outgroup : a tree that gets supports, see `plltool.supports`. Under a model that is not time-reversible
        the replicates have roots, and so has the tree if it was given with one
    seed : seed of all random choices; replicate k depends only on it and on k
    rapid : start searches from the trees of earlier replicates (Stamatakis, Hoover & Rougemont 2008), with model
        parameters that are optimised once, on a parsimony tree of all sites
    options : how hard to search, with one start tree; by default `replicate_options(rapid=rapid)`
    workers : number of replicates that are made at the same time, each in a process of its own; by default the number
        of threads, on a GPU 1; at most RAPID_CHAINS rapid ones. Changes no digit
    listener : is called after every replicate; if it raises StopSearch, those made so far are the result
    taken : is called with each tree as Newick text, in order, as soon as it is there
    checkpoint : folder that keeps the replicates; the same call, for the same number or more, continues from there.
        Remove it with `plltool.remove_checkpoint`. None keeps nothing
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises InputError if alignment, model, tree or constraint cannot be used, the number of replicates is unknown, less
    than 1 or less than the checkpoint keeps, or the checkpoint belongs to another run, and DeviceError if the device
    cannot be used.
    """
    began = perf_counter()
    asked = Hardware.of(**hardware)
    wanted = _read_number(replicates)
    data, models = resolve_inputs(alignment, model, brlen, rooted=True)
    kinds = check_kinds(kinds, REPLICATE_KINDS)
    keep_root = data.has_root or ROOTSTRAP in kinds
    target = None if tree is None else load_target(tree, data.names[data.has_root :], keep_root=keep_root)
    run = Run(
        data, models, brlen, asked, began, seed=seed, constraint=constraint, outgroup=outgroup, checkpoint=checkpoint
    )
    task = run.task
    options = options or replicate_options(rapid=rapid)
    plan = replace(options.plan(0.0, len(task.names), task.n_patterns), starts=1, constraint=task.constraint)
    make = Replicator(task, plan, rapid, run.hardware)
    shares = share_hardware(workers, make.most_at_once(wanted.most), task.parts, models, run.hardware)
    store = None
    if checkpoint is not None:
        store = run.open_checkpoint(run.identity | describe_plan(plan) | {"rapid": rapid} | run.planned_place)
        n_kept = count_kept(store)
        if wanted.criterion is None and n_kept > wanted.most:
            found = f"found {wanted.most}, expected at least {n_kept}, which {fspath(checkpoint)} keeps already"
            raise InputError(f"replicates: {found}; {START_OVER}")
        # all that are kept belong to the result
        wanted = wanted._replace(most=max(wanted.most, n_kept), least=max(wanted.least, n_kept))
    if rapid and plan.optimise_parameters:
        make = hold_models(make)
    made = _collect(make_replicates(make, wanted.most, shares, store), wanted, run, taken, listener)
    if target is None or not made.trees:
        return made
    supports = map_replicates(target, made.trees, kinds).with_outgroup(run.outgroup)
    return replace(made, supports=replace(supports, convergence=made.convergence))


def replicate_options(effort: str | None = None, rapid: bool = False) -> SearchOptions:
    """How hard to search the tree of a replicate: by an effort, or by default REPLICATE_EFFORT with smaller radii."""
    if effort is not None:
        return SearchOptions(effort)
    return SearchOptions(REPLICATE_EFFORT, radii=RAPID_RADII if rapid else REPLICATE_RADII)


def resampled_alignments(
    alignment: AlignmentLike,
    model: ModelLike | None = None,
    *,
    replicates: int,
    seed: int = DEFAULT_SEED,
    brlen: str = DEFAULT_LINKAGE,
) -> Iterator[Sequences]:
    """The alignments of the first replicates of `bootstrap`, one after another; parameters and errors as there.

    The columns of a part are drawn from that part and take its places, so that a partition file remains valid; columns
    that are in no part stay as they are.
    """
    check_least("replicates", replicates, 1)
    check_least("seed", seed, 0)
    sequences = as_data(alignment)
    if not isinstance(sequences, Sequences):
        raise InputError("resampled alignments: found an encoded alignment, expected a file, a mapping, or Sequences")
    if sequences.column_weights is not None:
        why = "where constant sites are added or columns have weights"
        raise InputError(f"{sequences.source}: resampled alignments cannot be written {why}")
    data, _ = resolve_inputs(sequences, model, brlen, rooted=True)
    for number in range(replicates):
        columns = np.arange(sequences.n_sites)
        drawn = draw_sites([len(part.sites) for part in data.parts], generator(seed, BOOTSTRAP, number))
        for part, sites in zip(data.parts, drawn, strict=True):
            columns[part.columns] = part.columns[sites]
        yield sequences.at_columns(columns)


class _Wanted(NamedTuple):
    """How many replicates are wanted: at most, at least, and the criterion that decides in between, if any."""

    most: int
    least: int
    criterion: str | None


def _read_number(replicates: int | str) -> _Wanted:
    if isinstance(replicates, Integral):
        check_least("replicates", replicates, 1)
        return _Wanted(int(replicates), int(replicates), None)
    if replicates not in (AUTO, *CRITERIA):
        raise InputError(f"replicates: found {replicates!r}, expected a number, {AUTO}, {' or '.join(CRITERIA)}")
    return _Wanted(BOOTSTOP_MOST, 0, MRE if replicates == AUTO else replicates)


def _write(tree: Tree) -> str:
    return write_newick(mean_tree(tree, np.ones(tree.lengths[0].size)))


def _collect(
    made: Replicates, wanted: _Wanted, run: Run, taken: Callable[[str], None] | None, listener: Listener
) -> BootstrapResult:
    trees, lnls, splits, tests = list[Tree](), list[float](), list[Splits](), list[Convergence]()
    n_kept, interrupted = 0, False
    announce(REPLICATE_STAGE)
    try:
        for number, replicate in enumerate(islice(made, wanted.most), start=1):
            if taken is not None:
                taken(_write(replicate.tree))
            trees.append(replicate.tree)
            lnls.append(replicate.lnl)
            n_kept += replicate.kept
            seconds, left = run.seconds, None
            if wanted.criterion is None and number > n_kept:
                left = seconds / (number - n_kept) * (wanted.most - number)
            listener(Progress(REPLICATE_STAGE, number, replicate.lnl, 0, 0, seconds, wanted.most, left, left))
            if wanted.criterion is None:
                continue
            splits.append(splits_of(drop_root(replicate.tree)))
            if number % BOOTSTOP_STEP == 0:
                rng, names = generator(run.task.seed, BOOTSTOP, number), drop_root(replicate.tree).names
                tests.append(check_convergence(make_tree_set(names, splits), wanted.criterion, rng))
                log.info("%s", tests[-1])
            if tests and tests[-1].converged and number >= wanted.least:
                break
    except StopSearch:
        interrupted = True
    finally:
        made.close()  # which ends the processes that make them
    if interrupted:
        log.warning("the bootstrap was interrupted after %d replicates", len(trees))
    elif tests and not tests[-1].converged:
        log.warning("%d replicates are not enough by %s", len(trees), wanted.criterion)
    return BootstrapResult(tuple(trees), tuple(lnls), n_kept, run.task.seed, tuple(tests), run.seconds, interrupted)
