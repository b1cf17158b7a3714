"""A model in the record of a run."""

from __future__ import annotations

from typing import Any

from plltool.model.model import Model


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
    if model.spec.scaled:
        described["scaler"] = model.scaler
    if model.rate_parameters:
        described["rates"] = model.rate_parameters
    elif model.spec.named.rates.n_parameters:
        described["rates"] = dict(zip(model.spec.pairs, model.exchangeabilities.tolist(), strict=True))
    if model.has_classes and not model.spec.is_tied:
        described["class_rates"] = model.classes.rates.tolist()
        described["class_weights"] = model.classes.weights.tolist()
    return described
