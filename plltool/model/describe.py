"""A model in the record of a run, and as a person reads it."""

from __future__ import annotations

import re
from typing import Any

from plltool.constants import MAX_ALPHA, MAX_SHOWN_VALUES
from plltool.model import covarion
from plltool.model.model import Model

EQUAL_RATES = "alpha is at its upper bound: rates are equal across sites"
_LIST = re.compile(r"\{([^{}]*[/|][^{}]*)\}")
_NUMBER = re.compile(r"(?<=[{/])\d+\.\d+(e[-+]?\d+)?(?=[}/])")


def describe_model(model: Model) -> dict[str, Any]:
    """The model for a JSON run record: strings, numbers, lists and dictionaries only."""
    rates, weights = model.sites.categories()
    described = {
        "spec": str(model.spec),
        "model": model.to_string(),
        "data": model.spec.data,
        "frequencies": dict(zip(model.spec.symbols, model.frequencies.tolist(), strict=True)),
        "alpha": model.alpha,
        "pinv": model.pinv,
        "category_rates": rates.tolist(),
        "category_weights": weights.tolist(),
        "n_free_parameters": model.n_free_parameters,
    }
    if model.switching is not None:
        described["switching"] = dict(zip(covarion.NAMES, model.switching.tolist(), strict=True))
    if model.spec.scaled:
        described["scaler"] = model.scaler
    if model.rate_parameters:
        described["rates"] = model.rate_parameters
    elif model.spec.named.rates.n_parameters:
        described["rates"] = dict(zip(model.spec.pairs, model.exchangeabilities.tolist(), strict=True))
    if model.spec.has_classes and not model.spec.is_tied:
        described["class_rates"] = model.classes.rates.tolist()
        described["class_weights"] = model.classes.weights.tolist()
    return described


def shorten_model(text: str) -> str:
    """A model string for people: values have four digits, and long lists of values or names of states are counted."""

    def count(found: re.Match[str]) -> str:
        what = "values" if "/" in found[1] else "states"
        number = len(re.split(r"[/|]", found[1]))
        return found[0] if number <= MAX_SHOWN_VALUES else f"{{{number} {what}, see the record}}"

    rounded = _NUMBER.sub(lambda found: f"{float(found[0]):.4g}", text)
    return _LIST.sub(count, rounded).replace("+FU{", "+F{").replace("+IU{", "+I{")


def name_rates(model: Model) -> str:
    """Parameters with names, such as kappa, the weights of classes, and that alpha is at its bound; or nothing."""
    rates = [f"{name} {value:.6g}" for name, value in model.rate_parameters.items()]
    if rates and model.spec.has_classes:
        rates.append("weights " + "/".join(f"{weight:.6g}" for weight in model.classes.weights))
    if is_at_bound(model.alpha):
        rates.append(EQUAL_RATES)
    return ", ".join(rates)


def is_at_bound(alpha: float | None) -> bool:
    """Whether nothing but its upper bound keeps the shape of a gamma distribution from growing."""
    return alpha is not None and alpha > MAX_ALPHA / 2
