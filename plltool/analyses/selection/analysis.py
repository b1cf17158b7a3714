"""The choice of a substitution model: `select_model`; of each part and of parts that share one: `select_scheme`; AUTO.

All parts begin under the default models of their data, whose branch lengths are optimised together. On these lengths,
up to what `brlen` leaves free to each part, parts are merged and candidates compared; in the end everything is
optimised together again. The score of a part counts the sites of all parts, so that the sum of its parts is the score
of a scheme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from time import perf_counter
from typing import Any, Unpack

import numpy as np

from plltool import constants
from plltool.analyses.selection.course import Selection, run_together
from plltool.analyses.selection.merging import Grouping, PartGroup, distinct_names
from plltool.analyses.selection.model_fits import Fit, ModelFitter, PartData, ask_fitter, compare_fits
from plltool.errors import InputError, check_kind, check_least, check_one_of, show_name
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.files import nan_to_null
from plltool.io.model_reader import read_model
from plltool.io.newick import ROOT_REMOVED
from plltool.model.candidates import GAMMA, VARIABLE_ONLY, Candidates, information_score
from plltool.model.checks import Ascertainment
from plltool.model.model import SCALER, Model
from plltool.model.model_string import parse_model
from plltool.model.partition import Dataset
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import ModelOptimiser
from plltool.optimise.polish import polish
from plltool.progress import announce, log
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree, cut_inputs, default_model, resolve_inputs
from plltool.run.messages import refuse_invariable
from plltool.run.model_choice import ModelChoice, PartChoice, SchemeChoice
from plltool.run.rooting import mean_tree, write_rooted
from plltool.run.run import Run
from plltool.seeds import STARTS, generator
from plltool.settings import takes_keywords
from plltool.tree.topology import Tree

AUTOMATIC = {  # what to choose by, and whether among free rates too
    "AUTO": ("BIC", True),
    "MFP": ("BIC", True),
    "TEST": ("BIC", False),
    **{name.upper(): (name, True) for name in constants.CRITERIA},
}
MERGE = "+MERGE"


@takes_keywords(HardwareSettings)
def select_model(
    alignment: AlignmentLike,
    tree: TreeLike | None = None,
    *,
    criterion: str = constants.CRITERIA[0],
    free_rates: bool = True,
    max_rates: int = constants.SELECTION_MAX_RATES,
    ascertainment: bool = False,
    candidates: str | Sequence[str] = (),
    also: str | Sequence[str] = (),
    seed: int = constants.DEFAULT_SEED,
    **hardware: Unpack[HardwareSettings],
) -> ModelChoice:
    """Choose the model that describes an alignment best, with all lengths and parameters optimised on one tree.

    Parameters
    ----------
    alignment : as for `plltool.search`; it is not cut into parts
    tree : as for `plltool.evaluate`; by default the parsimony tree that a search with this seed starts from. Only
        candidates that are not time-reversible have a root, for which `plltool.evaluate` says what holds
    criterion : "BIC", "AIC" or "AICc"; the others are reported, but models that only they prefer may be left out
    free_rates : whether +R2 and more free rates are among the candidates
    max_rates : the largest number of categories of these
    ascertainment : whether all candidates have +ASC_LEWIS, and none has +I, because invariable sites were left out
    candidates : names of substitution models, such as GTR or LG, in a list or with commas: only these, with every kind
        of frequencies that there is, instead of all for the kind of data
    also : a model string, or several, of more candidates, such as mixtures, without rates over sites, which they get in
        turn
    seed : of the parsimony tree
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises InputError if alignment, tree or a candidate cannot be used, the criterion is unknown, or it is AICc and the
    sites are too few for it; and for a column that does not vary if `ascertainment` says that all do. Raises
    DeviceError if the device cannot be used.
    """
    began = perf_counter()
    check_one_of("criterion", criterion, constants.CRITERIA)
    check_least("max_rates", max_rates, 2)
    data, models = resolve_inputs(alignment, None)
    if len(data.parts) > 1:
        names = ", ".join(part.name for part in data.parts)
        found = f"found several kinds of data ({names})"
        raise InputError(f"{data.source}: {found}, expected a file with the partitions (--partitions)")
    run = Run(data, models, constants.LINKED, Hardware.of(**hardware), began, seed=seed, all_taxa=True)
    run.announce_data()
    [patterns] = run.task.parts
    correction = Ascertainment("lewis") if ascertainment else None
    check_kind("also", also, Iterable, "a model string, or several")
    specs = [read_model(text) for text in ([also] if isinstance(also, str) else also)]
    possible = Candidates.of(patterns.states, free_rates * max_rates, correction, candidates, specs)
    if correction is not None:
        refuse_invariable(parse_model(possible.substitutions[0] + GAMMA), data.parts[0], data.constant_sites)
    chosen_on, remarks = choose_tree(run, tree)
    if possible.any_rooted:
        remarks = tuple(remark for remark in remarks if ROOT_REMOVED not in remark)
    n_sites = data.parts[0].n_sites

    def choose(fitter: ModelFitter) -> Selection:
        selection = Selection(PartData(patterns), possible, criterion, n_sites)
        run_together([selection], fitter)
        return selection

    selection = ask_fitter(choose, run, chosen_on)
    best = selection.best
    return ModelChoice(
        lnl=best.lnl,
        n_patterns=patterns.n_patterns,
        candidates=compare_fits(list(selection.fits.values()), n_sites, criterion),
        left_out=tuple(selection.left_out),
        newick=write_rooted(best.tree, None)[0],
        spec=best.spec,
        **_describe(run, criterion, remarks),
    )


def _describe(run: Run, criterion: str, remarks: Sequence[str]) -> dict[str, Any]:
    """The fields of both kinds of choice that tell of the run, whose remarks are logged."""
    told = {"criterion": criterion, "data": run.data, **run.known, "seed": run.task.seed}
    return {**told, "seconds": run.seconds, "warnings": run.warn(remarks)}


def choose_tree(run: Run, tree: TreeLike | None) -> tuple[Tree, tuple[str, ...]]:
    """The tree on which all models are fitted, and warnings about it."""
    if tree is not None:
        given = as_tree(tree, run.data.names)
        return given, given.warnings
    announce("parsimony tree")
    return run.task.parsimony_tree(generator(run.task.seed, STARTS, 0)), ()


@takes_keywords(HardwareSettings)
def select_scheme(
    alignment: AlignmentLike,
    partitions: str | PathLike[str],
    tree: TreeLike | None = None,
    *,
    criterion: str = constants.CRITERIA[0],
    free_rates: bool = True,
    max_rates: int = constants.SELECTION_MAX_RATES,
    candidates: str | Sequence[str] = (),
    merge: str | None = None,
    percent: float = constants.DEFAULT_CLUSTER_PERCENT,
    brlen: str = constants.DEFAULT_LINKAGE,
    seed: int = constants.DEFAULT_SEED,
    **hardware: Unpack[HardwareSettings],
) -> SchemeChoice:
    """Choose a model for each part of an alignment on one tree, and merge parts that may share one.

    Parameters
    ----------
    alignment : as for `plltool.search`
    partitions : a file with the parts, as for the model of `plltool.search`, or its text. Of the models in it only the
        kind of data and a correction for ascertainment bias count
    tree : as for `plltool.evaluate`; by default the parsimony tree of this seed
    criterion : "BIC", "AIC" or "AICc"
    free_rates, max_rates, candidates : as for `select_model`; each name is that of a candidate for each part
    merge : "greedy", "rcluster" or "rclusterf", see `plltool.analyses.selection.merging`; None keeps all parts apart
    percent : of the pairs of parts that relaxed clustering tries
    brlen : how parts share branch lengths, as for `plltool.search`
    seed : of the parsimony tree
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises InputError if alignment, partitions or tree cannot be used, a word is unknown, relaxed clustering is asked
    for with linked lengths, which have no rates of parts, or the sites are too few for AICc, and DeviceError if the
    device cannot be used.
    """
    began = perf_counter()
    check_one_of("criterion", criterion, constants.CRITERIA)
    check_least("max_rates", max_rates, 2)
    _check_merge(merge, percent, brlen)
    data, given = cut_inputs(alignment, fspath(partitions), brlen)
    if not data.parts[0].name:
        raise InputError(f"partitions: found a model, {given[0].spec.shown}, expected a file with the partitions")
    run = Run(data, given, constants.LINKED, Hardware.of(**hardware), began, seed=seed, all_taxa=True)
    chosen_on, remarks = choose_tree(run, tree)
    run.announce_data()
    corrections = [model.spec.ascertainment for model in given]
    possible = {}
    for part, correction in zip(data.parts, corrections, strict=True):
        try:
            possible[part.name] = Candidates.of(part.alignment.states, free_rates * max_rates, correction, candidates)
        except InputError as problem:
            raise InputError(f"partition {show_name(part.name)}: {problem}") from None
    request = _Request(data, corrections, possible, criterion, merge, percent, brlen)
    chosen = ask_fitter(request.choose, run, chosen_on, brlen)
    return SchemeChoice(brlen=brlen, **chosen, **_describe(run, criterion, remarks))


def _check_merge(merge: str | None, percent: float, brlen: str) -> None:
    """Raise InputError if parts cannot be merged in this way."""
    if merge is None:
        return
    check_one_of("merge", merge, constants.MERGE_ALGORITHMS)
    if not 0 < percent <= 100:
        raise InputError(f"percent: found {percent:g}, expected more than 0 and at most 100")
    if merge != constants.MERGE_ALGORITHMS[0] and brlen == constants.LINKED:
        found = f"merge: found {merge!r} with linked lengths, under which partitions have no rates to compare"
        raise InputError(f"{found}; expected 'greedy', or scaled or unlinked lengths")


@dataclass(frozen=True, eq=False)
class _Request:
    """What is chosen, see `select_scheme`; `corrections` of the parts are for ascertainment bias."""

    data: Dataset
    corrections: Sequence[Ascertainment | None]
    possible: Mapping[str, Candidates]  # of each part, by its name
    criterion: str
    merge: str | None
    percent: float
    brlen: str

    @cached_property
    def datasets(self) -> list[PartData]:
        return [PartData(patterns) for patterns in self.data.patterns]

    def choose(self, fitter: ModelFitter) -> dict[str, Any]:
        """The fields of the result that tell of the choice."""
        announce("branch lengths of all partitions under default models")
        tree = fitter.tree.unlink(len(self.datasets)) if self.brlen == constants.UNLINKED else fitter.tree.copy()
        models, is_scaled = [], self.brlen == constants.SCALED
        for data, correction in zip(self.datasets, self.corrections, strict=True):
            spec = replace(default_model(data.patterns.states), ascertainment=correction, scaled=is_scaled)
            models.append(Model(spec, data.frequencies))
        start = fitter.joint(self.datasets, models, tree)
        # until a round gains little
        optimiser = ModelOptimiser(start, scale=True)
        lnl = -math.inf
        for _ in range(constants.MAX_POLISH_ROUNDS):
            before = lnl
            smooth(start, constants.SELECTION_PRECISION)
            lnl = optimiser.run(constants.SELECTION_PRECISION)
            if lnl - before < constants.SELECTION_PRECISION:
                break
        parts, fits, n_edges = self.data.parts, fitter.fits(self.datasets), start.tree.n_edges
        groups = [PartGroup((part,), fit) for part, fit in zip(parts, fits, strict=True)]
        # one of the scalers is not free
        n_shared = {constants.LINKED: n_edges, constants.SCALED: n_edges - 1, constants.UNLINKED: 0}[self.brlen]
        grouping = Grouping(groups, self.criterion, n_shared)
        if not math.isfinite(grouping.score()):
            n = grouping.n_parameters
            found = f"{grouping.n_sites} sites are too few for AICc with {n} parameters of all partitions"
            raise InputError(f"{found}, expected {n + 2} or more")
        if self.merge is not None:
            grouping.merge(fitter, self.merge, self.percent)
        selections = [
            Selection(group.fit, self.possible[group.parts[0].name], self.criterion, grouping.n_sites, group.name)
            for group in grouping.groups
        ]
        run_together(selections, fitter)
        announce("all partitions under the chosen models")
        likelihood = self._together([selection.best for selection in selections], start.tree, fitter)
        polish(likelihood)
        return self._describe(grouping, selections, likelihood)

    def _together(self, best: Sequence[Fit], start: Tree, fitter: ModelFitter) -> TreeLikelihood:
        """The likelihood of all parts under their chosen models, on the lengths that they began with or their own."""
        models = [fit.model.copy() for fit in best]
        lengths = np.stack([fit.lengths for fit in best], axis=1) if self.brlen == constants.UNLINKED else start.lengths
        if self.brlen == constants.SCALED:
            for model, fit in zip(models, best, strict=True):
                model.set_ratios(SCALER, np.array([fit.overall_rate / lengths.mean()]))
        return fitter.joint([fit.data for fit in best], models, start.with_lengths(lengths))

    def _describe(
        self, grouping: Grouping, selections: Sequence[Selection], likelihood: TreeLikelihood
    ) -> dict[str, Any]:
        lnls = likelihood.part_lnl().tolist()
        total = sum(lnls)
        n_parameters = grouping.n_shared + sum(selection.best.n_parameters for selection in selections)
        scores = {name: information_score(name, total, n_parameters, grouping.n_sites) for name in constants.CRITERIA}
        parts = tuple(
            PartChoice(
                name=name,
                members=tuple(part.name for part in group.parts),
                sites=group.ranges,
                n_sites=group.n_sites,
                n_patterns=group.fit.data.patterns.n_patterns,
                model=model.to_string(),
                lnl=lnl,
                candidates=compare_fits(list(selection.fits.values()), grouping.n_sites, self.criterion),
                left_out=tuple(selection.left_out),
            )
            for name, group, selection, model, lnl in zip(
                distinct_names(grouping.groups), grouping.groups, selections, likelihood.models, lnls, strict=True
            )
        )
        sites = np.array([part.n_sites for part in parts])
        return {
            "parts": parts,
            "merges": tuple(grouping.merges),
            "lnl": total,
            "n_patterns": sum(part.n_patterns for part in parts),
            "n_parameters": n_parameters,
            **{name.lower(): nan_to_null(score) for name, score in scores.items()},
            "newick": write_rooted(mean_tree(likelihood.tree, sites), None)[0],
        }


def choose_if_asked(
    alignment: AlignmentLike,
    model: ModelLike | None,
    partitions: str | PathLike[str] | None,
    start: TreeLike,
    brlen: str,
    seed: int,
    hardware: HardwareSettings,
) -> tuple[ModelLike | None, ModelChoice | SchemeChoice | None]:
    """The model for a search, chosen if that is asked for; and how it was chosen.

    The tree is the given start tree of the search, if there is one. Partitions without a model have the models in their
    file. Raises InputError for partitions beside a model, and for words that do not go with partitions or without them.
    """
    word, plus, suffix = model.upper().partition("+") if isinstance(model, str) else ("", "", "")
    suffix = plus + suffix
    shown = show_name(model) if isinstance(model, str) else "another one"
    if word not in AUTOMATIC or suffix not in ("", VARIABLE_ONLY, MERGE):
        if partitions is not None and model is None:
            return fspath(partitions), None
        if partitions is not None:
            hint = "to choose one for each partition, or none to use the models in the file"
            raise InputError(f"model: found {shown} beside partitions, expected 'auto' {hint}")
        return model, None
    if partitions is None and suffix == MERGE:
        raise InputError(f"model: found {shown} without partitions, expected a file with the partitions")
    if partitions is not None and suffix == VARIABLE_ONLY:
        raise InputError(f"model: found {shown} beside partitions, expected +ASC in the lines of partitions")
    criterion, free_rates = AUTOMATIC[word]
    how: dict[str, Any] = {"criterion": criterion, "free_rates": free_rates, "seed": seed, **hardware}
    tree = None if isinstance(start, str) and start in constants.START_KINDS else start
    if partitions is None:
        one = select_model(alignment, tree, ascertainment=bool(suffix), **how)
        log.info("%s", one.describe())
        return one.spec, one
    choice = select_scheme(alignment, partitions, tree, merge=constants.GREEDY if suffix else None, brlen=brlen, **how)
    log.info("%s", choice.describe())
    return choice.scheme, choice
