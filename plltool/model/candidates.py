"""The models to choose from: for each kind of data a list of substitution models, each with every kind of rates."""

from __future__ import annotations

from plltool.errors import InputError
from plltool.model import proteins
from plltool.model.model_string import parse_model
from plltool.model.nucleotides import SYMMETRIES
from plltool.model.spec import ModelSpec

GAMMA = "+G4"
SIMPLE_RATES = ("", "+I", GAMMA, "+I+G4")
FREE_RATES = tuple(f"+R{n}" for n in range(2, 11))


def substitution_models(data: str) -> tuple[str, ...]:
    """Model strings without rates over sites for a kind of data, as in `StateSpace.name`; the widest come first.

    A new kind of data adds its list here. Raises InputError if there is none.
    """
    if data == "DNA":
        return tuple(reversed(SYMMETRIES))
    if data == "protein":
        return tuple(name + frequencies for frequencies in ("", "+F") for name in proteins.published_matrices())
    raise InputError(f"model: there are no candidates for {data} data, expected DNA or proteins")


def is_nested(narrow: ModelSpec, wide: ModelSpec) -> bool:
    """Whether all that a model can describe is a special case, or a limit, of another one without values in braces."""
    return (narrow, wide) != (wide, narrow) and _in_substitution(narrow, wide) and _in_rates(narrow, wide)


def _in_substitution(narrow: ModelSpec, wide: ModelSpec) -> bool:
    """Whether the rate matrices of a model are among those of another one."""
    if narrow.data != wide.data or narrow.ascertainment != wide.ascertainment:
        return False
    modes = narrow.frequency_mode, wide.frequency_mode
    if modes[0] != modes[1] and modes != ("equal", "optimised"):
        return False
    inner, outer = narrow.named.rates.class_of_pair, wide.named.rates.class_of_pair
    if narrow.name == wide.name or inner is None or outer is None:
        return narrow.name == wide.name
    pairs = set(zip(outer.tolist(), inner.tolist(), strict=True))
    return len(pairs) == wide.named.rates.n_parameters  # each class of the wider model lies within one of the other


def _in_rates(narrow: ModelSpec, wide: ModelSpec) -> bool:
    """Whether the rates over sites of a model are among those of another one."""
    inner, outer = narrow.sites, wide.sites
    if outer.kind == "free" and not outer.invariable:
        return inner.kind != "psr" and inner.n_categories + inner.invariable <= outer.n_categories
    if inner.invariable and not outer.invariable:
        return False
    return inner.kind in ("equal", outer.kind) and inner.n_categories in (1, outer.n_categories)


def parse_candidate(substitution: str, rates: str) -> ModelSpec:
    """The specification of a substitution model with rates over sites."""
    return parse_model(substitution + rates)
