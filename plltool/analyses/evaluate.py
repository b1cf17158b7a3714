"""The likelihood of a fixed topology, and what else may be asked of it once lengths and model are optimised."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar, Unpack

from plltool.analyses.likelihood import Likelihood
from plltool.constants import DEFAULT_LINKAGE
from plltool.hardware import Hardware, HardwareSettings
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, resolve_inputs
from plltool.run.memory import until_memory_suffices
from plltool.run.messages import announce_data, announce_engine, remarks_on_lengths, remarks_on_values, warn
from plltool.run.results import EvaluationResult, Result, check_outgroup, describe, facts
from plltool.tree_search.progress import Listener, announce, ignore

R = TypeVar("R", bound=Result)


class Settings(HardwareSettings, total=False):
    """Of everything that evaluates a tree, see `evaluate`."""

    fixed: bool
    outgroup: Sequence[str] | None
    brlen: str
    listener: Listener


def evaluate(
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike | None = None,
    *,
    site_lnl: bool = False,
    site_rates: bool = False,
    length_errors: bool = False,
    **settings: Unpack[Settings],
) -> EvaluationResult:
    """The likelihood of a fixed topology, branch lengths and free model parameters optimised.

    Parameters
    ----------
    tree : file, Newick string, dendropy tree, or Tree
    fixed : take lengths and parameters as they are; parameters without a value keep their start values, and a warning
        says so
    site_lnl : also return the lnL of each site
    site_rates : also return the posterior mean rate of each site, see `Likelihood.site_rates`
    length_errors : also return standard errors of the branch lengths, see `Likelihood.length_errors`
    alignment, model, outgroup, brlen, device, precision, vw, threads, memory, listener : as for `search`

    Raises
    ------
    InputError
        If alignment, tree, model or outgroup cannot be used.
    DeviceError
        If the device cannot be used. Where its memory does not suffice for a request, all begins anew with less of it
        for conditional likelihoods.
    """

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        if length_errors:
            announce("length errors")
        return {
            "site_lnl": likelihood.site_lnl() if site_lnl else None,
            "site_rates": likelihood.site_rates() if site_rates else None,
            "length_errors": likelihood.length_errors() if length_errors else None,
        }

    held = {"lnl_only": settings.get("fixed", False) and not length_errors}
    return evaluate_and_ask(ask, EvaluationResult, alignment, tree, model, held, **settings)


def evaluate_and_ask(
    ask: Callable[[Likelihood], dict[str, Any]],
    kind: type[R],
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike | None,
    held: dict[str, Any],
    **settings: Unpack[Settings],
) -> R:
    """Evaluate a tree, then ask its likelihood for more.

    Parameters
    ----------
    ask : what the result has beyond the fields of `Result`, or instead of them, as keywords; where memory is short it
        may be called again, for another likelihood
    kind : of the result
    held : what the likelihood shall hold, keywords of `Likelihood`
    alignment, tree, model, settings : see `evaluate`, also for errors
    """
    began = time.perf_counter()
    fixed, brlen = settings.get("fixed", False), settings.get("brlen", DEFAULT_LINKAGE)
    data, models = resolve_inputs(alignment, model, brlen)
    outgroup = settings.get("outgroup")
    check_outgroup(outgroup, data.names)
    hardware = Hardware(**{f.name: settings[f.name] for f in fields(Hardware) if f.name in settings})  # type: ignore[literal-required]

    def attempt(hardware: Hardware) -> dict[str, Any]:
        with Likelihood(data, tree, models, brlen=brlen, **held, **asdict(hardware)) as likelihood:
            announce_data(data, likelihood.patterns)
            fallback = announce_engine(likelihood.engine, likelihood.reason, hardware)
            remarks = [*likelihood.warnings, *(_remarks_on_fixed(likelihood) if fixed else ())]
            lnl = start_lnl = likelihood.lnl()
            announce("lengths and model")
            if not fixed:
                lnl = likelihood.optimise(listener=settings.get("listener", ignore))
            answer = ask(likelihood)
            lnls = likelihood.part_lnl()
        described, rooting = describe(data, likelihood.patterns, likelihood.models, likelihood.tree, lnls, outgroup)
        common = {
            "lnl": lnl,
            **described,
            "start_lnls": (start_lnl,),
            **facts(data, likelihood.engine, likelihood.reason),
            "warnings": warn(data, fallback, [*remarks, *rooting]),
        }
        return common | answer

    found = until_memory_suffices(attempt, hardware)
    return kind(seed=None, brlen=brlen, seconds=time.perf_counter() - began, **found)


def _remarks_on_fixed(likelihood: Likelihood) -> list[str]:
    """What "as they are" leaves open: parameters without a value, a tree without lengths."""
    return [*remarks_on_values(likelihood.models), *remarks_on_lengths(likelihood.tree)]
