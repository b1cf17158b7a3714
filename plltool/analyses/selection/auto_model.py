"""The words in place of a model that ask a search to choose it: auto, MFP, TEST, BIC and others."""

from __future__ import annotations

import logging
from os import PathLike, fspath
from typing import Any

from plltool.analyses.selection.select_model import select_model
from plltool.analyses.selection.select_scheme import select_scheme
from plltool.constants import CRITERIA, GREEDY, START_KINDS
from plltool.errors import InputError, show_name
from plltool.hardware import HardwareSettings
from plltool.model.candidates import VARIABLE_ONLY
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike
from plltool.run.model_choice import ModelChoice, SchemeChoice

_log = logging.getLogger("plltool")

AUTOMATIC = {  # what to choose by, and whether among free rates too
    "AUTO": ("BIC", True),
    "MFP": ("BIC", True),
    "TEST": ("BIC", False),
    **{name.upper(): (name, True) for name in CRITERIA},
}
MERGE = "+MERGE"


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
    if word not in AUTOMATIC or suffix not in ("", VARIABLE_ONLY, MERGE):
        if partitions is not None and model is None:
            return fspath(partitions), None
        if partitions is not None:
            shown = show_name(model) if isinstance(model, str) else "another one"
            hint = "to choose one for each partition, or none to use the models in the file"
            raise InputError(f"model: found {shown} beside partitions, expected 'auto' {hint}")
        return model, None
    if partitions is None and suffix == MERGE:
        shown = show_name(str(model))
        raise InputError(f"model: found {shown} without partitions, expected a file with the partitions")
    if partitions is not None and suffix == VARIABLE_ONLY:
        shown = show_name(str(model))
        raise InputError(f"model: found {shown} beside partitions, expected +ASC in the lines of partitions")
    criterion, free_rates = AUTOMATIC[word]
    how: dict[str, Any] = {"criterion": criterion, "free_rates": free_rates, "seed": seed, **hardware}
    tree = None if isinstance(start, str) and start in START_KINDS else start
    if partitions is None:
        one = select_model(alignment, tree, ascertainment=bool(suffix), **how)
        _log.info("%s", one.describe())
        return one.spec, one
    choice = select_scheme(alignment, partitions, tree, merge=GREEDY if suffix else None, brlen=brlen, **how)
    _log.info("%s", choice.describe())
    return choice.scheme, choice
