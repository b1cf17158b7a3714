"""A model and the data in the record of a run, and a model as a person reads it."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from plltool.alignment.alignment import Alignment
from plltool.alignment.facts import composition_p_values, digest_data, identical_groups, may_be_invariable, without_root
from plltool.arrays import BoolArray
from plltool.constants import MAX_SHOWN_VALUES, ROOT_NAME
from plltool.model import components
from plltool.model.model import SCALER, Model
from plltool.model.partition import Dataset
from plltool.schema import Keys

EQUAL_RATES = "alpha is so large that rates are equal across sites"
EQUAL_ALPHA = 1e4  # from here on, as rates of categories differ by less than 2 per cent
_LIST = re.compile(r"\{([^{}]*[/|][^{}]*)\}")
_NUMBER = re.compile(r"(?<=[{/|])\d+\.\d+(e[-+]?\d+)?(?=[}/|])")

_RATES = dict.fromkeys(("switching", "rates"), dict[str, float])
_CLASS = Keys(rates=dict[str, float], frequencies=dict[str, float])


@Keys(
    "spec:str model:str data:str alpha:float? pinv:float? category_rates:float[] category_weights:float[]"
    " n_free_parameters:int",
    {**_RATES, "scaler": float, "class_rates": list[float], "class_weights": list[float], "class_models": [_CLASS]},
    frequencies=dict[str, float],
)
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
        described["switching"] = dict(zip(components.SWITCH_NAMES, model.switching.tolist(), strict=True))
    if model.spec.scaled:
        described["scaler"] = model.scaler
    if model.rate_parameters:
        described["rates"] = model.rate_parameters
    elif model.spec.members:
        rows = zip(model.exchangeabilities.tolist(), model.classes.frequencies.tolist(), strict=True)
        named = [(dict(zip(model.spec.pairs, own, strict=True)), shares) for own, shares in rows]
        described["class_models"] = [
            {"rates": own, "frequencies": dict(zip(model.spec.symbols, shares, strict=True))} for own, shares in named
        ]
    elif model.spec.named.rates.n_parameters:
        described["rates"] = dict(zip(model.spec.pairs, model.exchangeabilities.tolist(), strict=True))
    if model.spec.has_classes and not model.spec.is_tied:
        described["class_rates"] = model.classes.rates.tolist()
        described["class_weights"] = model.classes.weights.tolist()
    return described


def format_scheme(data: Dataset, models: Sequence[Model]) -> str:
    """The models with all values, as `read_scheme` reads them: a model string, or a line for each part."""
    strings = [model.to_string() for model in models]
    if not data.parts[0].name:
        return strings[0]
    lines = zip(strings, data.parts, strict=True)
    return "\n".join(f"{string}, {part.name} = {part.ranges}" for string, part in lines)


def describe_parameters(models: Sequence[Model]) -> dict[str, Any]:
    """The parameters of all parts; if all scalers are optimised, one is not free, because their mean is 1."""
    if len(models) == 1:
        return describe_model(models[0])
    free_scalers = all(SCALER in model.free_parameters for model in models)
    return {"n_free_parameters": sum(model.n_free_parameters for model in models) - free_scalers}


def shorten_model(text: str) -> str:
    """A model string for people: values have four digits, and long lists of values or names of states are counted."""

    def count(found: re.Match[str]) -> str:
        what = "values" if "/" in found[1] else "states"
        number = len(re.split(r"[/|]", found[1]))
        return found[0] if number <= MAX_SHOWN_VALUES else f"{{{number} {what}, see the record}}"

    rounded = _NUMBER.sub(lambda found: f"{float(found[0]):.4g}", text)
    return _LIST.sub(count, rounded).replace("+FU{", "+F{").replace("+IU{", "+I{")


def name_rates(model: Model) -> str:
    """Parameters with names, such as kappa, the weights of classes, and that alpha is very large; or nothing."""
    rates = [f"{name} {value:.6g}" for name, value in model.rate_parameters.items()]
    if rates and model.spec.has_classes:
        rates.append("weights " + "/".join(f"{weight:.6g}" for weight in model.classes.weights))
    if has_equal_rates(model.alpha):
        rates.append(EQUAL_RATES)
    return ", ".join(rates)


def has_equal_rates(alpha: float | None) -> bool:
    """Whether the shape of a gamma distribution is so large that its rates do not differ."""
    return alpha is not None and alpha > EQUAL_ALPHA


_COLUMN_CHUNK = 4096  # columns whose states are counted together


@Keys(
    "source:str? names:str digest:str kinds:str[] n_constant:int n_informative:int gaps:float weighted_columns:int?",
    constant_sites=(None, [int]),
    taxa=[Keys("name:str gaps:float", composition=[float | None])],
    identical=[[str]],
)
def describe_data(data: Dataset) -> dict[str, Any]:
    """The data for a JSON record; cells about which nothing is known are gaps, in shares from 0 to 1."""
    blocks = [without_root(block) for block in data.alignments]
    n_sites = sum(block.count_sites() for block in blocks)
    gaps = np.sum([block.undetermined_counts for block in blocks], axis=0) / n_sites
    tests = np.array([composition_p_values(block) for block in blocks]).T.tolist()
    taxa = [
        {"name": name, "gaps": share, "composition": [p if math.isfinite(p) else None for p in values]}
        for name, share, values in zip(blocks[0].names, gaps.tolist(), tests, strict=True)
    ]
    groups = [[data.names[taxon] for taxon in group] for group in identical_groups(data.alignments)]
    groups = [[name for name in group if name != ROOT_NAME] for group in groups]
    return {
        "source": data.source,
        "names": data.names_are,
        "constant_sites": list(data.constant_sites) or None,
        "weighted_columns": data.n_columns if data.is_weighted else None,
        "digest": digest_data(blocks),
        "kinds": list(dict.fromkeys(block.states.name for block in data.alignments)),
        "n_constant": sum(block.count_sites(may_be_invariable(block)) for block in data.alignments),
        "n_informative": sum(block.count_sites(are_informative(block)) for block in data.alignments),
        "gaps": float(gaps.mean()),
        "taxa": taxa,
        "identical": [group for group in groups if len(group) > 1],
    }


def are_informative(block: Alignment) -> BoolArray:
    """(n_sites,) whether two states occur in at least two taxa each; cells that allow several states do not count."""
    block = block.called
    found = np.zeros(block.n_sites, dtype=bool)
    n_codes = block.states.n_codes
    for start in range(0, block.n_sites, _COLUMN_CHUNK):
        codes = block.codes[:, start : start + _COLUMN_CHUNK].astype(np.intp)
        n_columns = codes.shape[1]
        places = codes + n_codes * np.arange(n_columns)
        counts = np.bincount(places.ravel(), minlength=n_codes * n_columns).reshape(n_columns, n_codes)
        found[start : start + n_columns] = (counts[:, block.states.state_codes] >= 2).sum(axis=1) >= 2
    return found
