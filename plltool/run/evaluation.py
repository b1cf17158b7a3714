"""The likelihood of a fixed topology, and what else may be asked of it once lengths and model are optimised."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, TypeVar, Unpack

from plltool.arrays import FloatArray
from plltool.constants import DEFAULT_LINKAGE
from plltool.errors import InputError, check_one_of
from plltool.hardware import Hardware, HardwareSettings
from plltool.model.model import Model
from plltool.progress import Listener, announce, ignore
from plltool.run.inputs import (
    AlignmentLike,
    FrequenciesLike,
    ModelLike,
    TreeLike,
    resolve_inputs,
    with_site_frequencies,
)
from plltool.run.likelihood import Likelihood
from plltool.run.messages import remarks_on_lengths, remarks_on_values
from plltool.run.results import EvaluationResult, Result
from plltool.run.rooting import OutgroupLike
from plltool.run.run import Run
from plltool.run.site_rates import refuse_site_rates, to_gamma
from plltool.settings import takes_keywords
from plltool.tree.topology import Tree

LENGTHS, PARAMETERS = "lengths", "parameters"
R = TypeVar("R", bound=Result)


class EvaluationSettings(HardwareSettings, total=False):
    """The keywords that all functions share that evaluate a tree, see `evaluate`."""

    fixed: bool
    only: str | None
    outgroup: OutgroupLike | None
    brlen: str
    listener: Listener


@takes_keywords(EvaluationSettings)
def evaluate(
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike | None = None,
    *,
    site_lnl: bool = False,
    site_rates: bool = False,
    pmsf: bool = False,
    site_frequencies: FrequenciesLike | None = None,
    length_errors: bool = False,
    root_scan: bool = False,
    **settings: Unpack[EvaluationSettings],
) -> EvaluationResult:
    """The likelihood of a fixed topology; its branch lengths and the free model parameters are optimised.

    Under per-site rates (+PSR) they are optimised twice, in the end under gamma rates: see `Result.psr`.

    Parameters
    ----------
    alignment, model, outgroup, brlen, listener : as for `plltool.search`
    tree : file, Newick string, Tree, or tree of dendropy, Biopython or ete. Its root is removed, with a warning, unless
        the model is not time-reversible; then a root with two branches stays on its branch, and without one the best
        branch is found. Nodes of more than three branches stay under time-reversible models, see `plltool.Tree`.
        Lengths outside the bounds are moved to them, with another warning
    site_lnl : also return the lnL of each site
    site_rates : also return the posterior mean rate of each site, see `Likelihood.site_rates`
    pmsf : also return the posterior mean frequencies of each site under a mixture of profiles, see
        `Likelihood.site_frequencies`
    site_frequencies : frequencies of the states at each site in place of the model's (+SSF): a file of `pmsf`, also
        IQ-TREE's .sitefreq, or an array (n_sites, n_states). They are computed on numpy
    length_errors : also return standard errors of the branch lengths, see `Likelihood.length_errors`
    root_scan : also return the lnL of the root on each branch, under a model that is not time-reversible
    only : "lengths" or "parameters": what alone is optimised; None for both
    fixed : optimise nothing; parameters without a value keep their start values, and a warning says so
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises InputError if alignment, tree, model or outgroup cannot be used, and DeviceError if the device cannot be
    used. If its memory is too small for a request, the evaluation starts again and holds fewer conditional likelihoods.
    """

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        if length_errors:
            announce("length errors")
        return {
            "site_lnl": likelihood.site_lnl() if site_lnl else None,
            "site_rates": likelihood.site_rates() if site_rates else None,
            "pmsf": likelihood.site_frequencies() if pmsf else None,
            "length_errors": likelihood.length_errors() if length_errors else None,
            "root_places": likelihood.scan_root() if root_scan else None,
        }

    if site_frequencies is not None:
        data, models = resolve_inputs(alignment, model, settings.get("brlen", DEFAULT_LINKAGE), rooted=True)
        alignment, model = with_site_frequencies(data, models, site_frequencies)
    fixed = settings.get("fixed", False)
    held = {"lnl_only": fixed and not (length_errors or root_scan), "multifurcations": True}
    held["roots"] = root_scan or not fixed
    return evaluate_and_ask(ask, EvaluationResult, alignment, tree, model, held, **settings)


def evaluate_and_ask(
    ask: Callable[[Likelihood], dict[str, Any]],
    kind: type[R],
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike | None,
    held: dict[str, Any],
    *,
    fixed: bool = False,
    only: str | None = None,
    outgroup: OutgroupLike | None = None,
    brlen: str = DEFAULT_LINKAGE,
    listener: Listener = ignore,
    **hardware: Unpack[HardwareSettings],
) -> R:
    """Evaluate a tree, then ask its likelihood for more, which holds what these keywords of it say; see `evaluate`.

    `ask` returns the fields that the result, of this `kind`, has beyond those of `Result`, or in their place. It is
    called again, with another likelihood, if the device's memory was too small.
    """
    began = perf_counter()
    data, models = resolve_inputs(alignment, model, brlen, rooted=True)
    if fixed or only or kind is not EvaluationResult:
        refuse_site_rates(models, "a fixed evaluation" if fixed or only else "this analysis")
    if only is not None:
        check_one_of("only", only, (LENGTHS, PARAMETERS))
    run = Run(data, models, brlen, Hardware.of(**hardware), began, all_taxa=True, outgroup=outgroup)
    run.announce_data(models if model is None else ())
    start, psr = tree, None
    if any(model.has_site_rates for model in models):
        announce("lengths, model and per-site rates")
        how = {"multifurcations": True}
        start, own, lnl = run.ask_likelihood(partial(optimise_all, listener=listener), tree, models, **how)
        models, psr = to_gamma(data, own, lnl, run.task.parts)

    def ask_all(likelihood: Likelihood) -> tuple[Likelihood, FloatArray, list[str], dict[str, Any], dict[str, Any]]:
        run.engine_opened(likelihood.engine, likelihood.reason, likelihood.hardware)
        lnl = start_lnl = likelihood.lnl()
        announce("lengths and model")
        unknown: list[str] = []
        if fixed:
            if likelihood.is_rooted and not likelihood.root_is_given:
                raise InputError("the tree given: found no root, expected one, with two branches, to keep it fixed")
            unknown = [*remarks_on_values(likelihood.models), *remarks_on_lengths(likelihood.tree)]
        names = {name for own in likelihood.models for name in own.free_parameters} if only == PARAMETERS else ()
        if not fixed and (names or only != PARAMETERS):
            lnl = likelihood.optimise(*sorted(names or {LENGTHS} & {only}), listener=listener)
            if likelihood.is_rooted and only is None:
                announce("root")
                lnl = likelihood.place_root(listener=listener)
        answer, part_lnls = ask(likelihood), likelihood.part_lnl()
        found = {"lnl": lnl, "start_lnls": (start_lnl,), "seed": None, "psr": psr, "other": likelihood.other}
        return likelihood, part_lnls, unknown, found, answer

    likelihood, part_lnls, unknown, found, answer = run.ask_likelihood(ask_all, start, models, **held)
    run.engine_used(likelihood.engine)  # closed, so that its record says what was left on the device
    remarks = [*likelihood.warnings, *unknown]
    return kind(**found | run.describe(likelihood.tree, likelihood.models, part_lnls, remarks) | answer)


def optimise_all(likelihood: Likelihood, listener: Listener = ignore) -> tuple[Tree, list[Model], float]:
    """The tree and the models, optimised, and lnL."""
    lnl = likelihood.optimise(listener=listener)
    return likelihood.tree, likelihood.models, lnl
