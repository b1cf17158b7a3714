"""All supports of the tree that a search found: `search_supports`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Any, Unpack

from plltool.analyses.search.analysis import search
from plltool.analyses.supports.bootstrap import BootstrapResult, bootstrap
from plltool.analyses.supports.ultrafast import ultrafast_bootstrap
from plltool.constants import DEFAULT_SEED, MOVE_KINDS, REPLICATE_KINDS, SH_ALRT, SUPPORT_KINDS, UFBOOT
from plltool.errors import CheckpointError, InputError, check_kind
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import remove_checkpoint
from plltool.progress import Listener, announce, ignore, log
from plltool.reports.blocks import Row
from plltool.reports.shown import Shown
from plltool.reports.tree_blocks import Drawn
from plltool.run.likelihood import LENGTHS, Likelihood
from plltool.run.results import SearchResult
from plltool.run.rooting import usable_outgroup
from plltool.run.run import Run
from plltool.run.supports import Supports, check_kinds
from plltool.settings import takes_keywords
from plltool.tree.topology import Tree
from plltool.tree_search.effort import SearchOptions
from plltool.tree_search.multistart import Watch


@dataclass(frozen=True, eq=False, repr=False)
class SearchSupports(Shown):
    """Supports of the tree that a search found, which its table shows.

    Attributes
    ----------
    result : of the search; if the ultrafast bootstrap met a better tree, of the search that went on from there
    supports : of the branches of its tree; after an interruption of the kinds that were made
    bootstrap : the replicates, if some were made
    interrupted : whether the listener ended the run early
    """

    result: SearchResult
    supports: Supports
    bootstrap: BootstrapResult | None
    interrupted: bool

    def __repr__(self) -> str:
        return f"<SearchSupports: {', '.join(self.supports.kinds)}, {self.supports.tree.n_taxa} taxa>"

    def _drawn(self) -> Drawn | None:
        return self.supports._drawn() if self.supports.kinds else self.result._drawn()

    def _rows(self) -> Sequence[Row]:
        return self.supports._rows()


@takes_keywords(HardwareSettings)
def search_supports(
    result: SearchResult,
    kinds: str | Sequence[str],
    *,
    replicates: int | str | None = None,
    rapid: bool = False,
    resamples: Mapping[str, int] | None = None,
    options: SearchOptions | None = None,
    workers: int | None = None,
    listener: Listener = ignore,
    taken: Callable[[str], None] | None = None,
    bootstrap_checkpoint: str | PathLike[str] | None = None,
    ufboot_checkpoint: str | PathLike[str] | None = None,
    adopted_checkpoint: str | PathLike[str] | None = None,
    **hardware: Unpack[HardwareSettings],
) -> SearchSupports:
    """Supports of the branches of the tree that a search found, under the models that it found.

    Seed, constraint, outgroup and the linkage of branch lengths are those of the search. If the ultrafast bootstrap
    meets a better tree, the search goes on from there, as hard as before, and the tree that it finds gets the supports,
    of all kinds.

    Parameters
    ----------
    result : what `plltool.search` returned
    kinds : any of "fbp", "tbe", "ufboot", "sh-alrt", "abayes", "lbp" and "sprta", in the order of the labels; the
        first two need `replicates`
    replicates, rapid, options, taken : see `plltool.bootstrap`; None makes no replicates
    resamples : numbers of resampled alignments of "ufboot" and "sh-alrt", if not 1,000; lbp has those of "sh-alrt"
    workers : number of replicates, and of excursions, that are made at the same time, as for `plltool.bootstrap`
    listener : is called after every replicate and every excursion of the ultrafast bootstrap; if it raises StopSearch,
        the supports made so far are the result
    bootstrap_checkpoint, ufboot_checkpoint, adopted_checkpoint : folders that keep what was reached, see
        `plltool.bootstrap`, `plltool.ultrafast_bootstrap`, and for the search from a better tree `plltool.search`
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises InputError if a kind is unknown or lacks replicates, the number of replicates cannot be used, or a checkpoint
    belongs to another run, and DeviceError if the device cannot be used.
    """
    check_kind("result", result, SearchResult, "what plltool.search returned")
    kinds = check_kinds(kinds, SUPPORT_KINDS)
    by_replicates = [kind for kind in kinds if kind in REPLICATE_KINDS]
    by_neighbours = [kind for kind in kinds if kind in MOVE_KINDS]
    if by_replicates and replicates is None:
        raise InputError(f"supports: found {by_replicates[0]!r} without replicates, expected their number")
    heard = Watch(listener)
    own: dict[str, dict[str, Any]] = {kind: {"replicates": number} for kind, number in (resamples or {}).items()}
    seed = DEFAULT_SEED if result.seed is None else result.seed
    shared: dict[str, Any] = {"seed": seed, "constraint": result.constraint, "brlen": result.brlen, "listener": heard}
    shared |= hardware
    per_site = None if result.psr is None else result.psr.fitted  # a tree that is adopted is searched under gamma rates
    ultrafast = made = None
    if UFBOOT in kinds:
        adoption = _Adoption(result, adopted_checkpoint, shared)
        how = {"climb": adoption.climb, "workers": workers, "checkpoint": ufboot_checkpoint} | shared
        ultrafast = ultrafast_bootstrap(result.data, result.tree, result.models, **own.get(UFBOOT, {}), **how)
        result = adoption.result
    found = Supports(result.tree, {}, {}, outgroup=usable_outgroup(result.tree, result.outgroup)[0])
    if ultrafast is not None:
        found = found.joined(ultrafast)
    if by_neighbours and not heard.stopped:
        announce("supports by moves")
        asked, began = Hardware.of(**hardware), perf_counter()
        run = Run(result.data, list(result.models), result.brlen, asked, began, all_taxa=True)

        def ask(likelihood: Likelihood) -> Supports:
            """SH-aLRT, aBayes, LBP and SPRTA supports; branch lengths are optimised, the model is held."""
            likelihood.optimise(LENGTHS)
            return likelihood.support_branches(by_neighbours, seed=seed, **own.get(SH_ALRT, {}))

        found = found.joined(run.ask_likelihood(ask, result.tree, result.models, neighbours=True))
    if replicates is not None and not heard.stopped:
        how = {
            "replicates": replicates,
            "rapid": rapid,
            "options": options,
            "workers": workers,
            "taken": taken,
        } | shared
        how |= {"tree": result.tree if by_replicates else None, "kinds": by_replicates or REPLICATE_KINDS}
        made = bootstrap(result.data, per_site or result.models, checkpoint=bootstrap_checkpoint, **how)
        found = found if made.supports is None else found.joined(made.supports)
    return SearchSupports(result, found.in_order(kinds), made, heard.stopped)


class _Adoption:
    """Goes on with a search from the better trees that the ultrafast bootstrap meets.

    Its `result` is that of the search from the last of them; at first that of the search before.
    """

    def __init__(self, before: SearchResult, checkpoint: str | PathLike[str] | None, shared: dict[str, Any]):
        self.result = self._before = before
        self._checkpoint, self._shared = checkpoint, shared

    def climb(self, start: Tree) -> Tree | None:
        """The tree that the search finds from `start`; None if it is interrupted. Equal trees give equal bits."""
        before = self._before
        how = {"start": start, "outgroup": before.outgroup, "site_lnl": before.site_lnl is not None} | self._shared
        how |= {"options": replace(before.options, starts=None), "checkpoint": self._checkpoint}
        go_on = partial(search, before.data, before.models, **how)
        try:
            found = go_on()
        except CheckpointError:  # of the search from an earlier better tree
            assert self._checkpoint is not None, "there is no such error without it"
            remove_checkpoint(self._checkpoint)
            found = go_on()
        if found.interrupted:
            return None
        went_on = f"the search continued from it, and its lnL rose from {before.lnl:.6f} to {found.lnl:.6f}"
        remark = f"the ultrafast bootstrap met a better tree; {went_on}"
        log.info("%s", remark)
        self.result = replace(
            found,
            start_lnls=before.start_lnls,
            start_distances=(),
            climbs=before.climbs,
            climb_distances=before.climb_distances,
            trace=before.trace + found.trace,
            seconds=before.seconds + found.seconds,
            warnings=tuple(dict.fromkeys((*before.warnings, *found.warnings, remark))),
            options=before.options,
        )
        return found.tree
