"""The models to choose from, for each kind of data, with every kind of rates, and the criteria of the choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plltool.alignment.spaces import STANDARD_CODE, genetic_code_of
from plltool.alignment.states import MULTISTATE, StateSpace
from plltool.arrays import FloatArray, IndexArray
from plltool.constants import MAX_RATE_CATEGORIES
from plltool.errors import InputError
from plltool.model import codons, other_data, proteins
from plltool.model.model_string import parse_model
from plltool.model.named import RateDesign
from plltool.model.nucleotides import SYMMETRIES
from plltool.model.spec import ModelSpec
from plltool.model.values import Ascertainment
from plltool.registry import split_words

SELECTION_GTR_STATES = 6  # of multistate data for which GTR is a candidate: with more there are parameters by the dozen
GAMMA, INVARIABLE, VARIABLE_ONLY = "+G4", "+I", "+ASC"
SIMPLE_RATES = ("", INVARIABLE, GAMMA, INVARIABLE + GAMMA)
FREE_RATES = tuple(f"+R{n}" for n in range(2, MAX_RATE_CATEGORIES + 1))


def substitution_models(states: StateSpace) -> tuple[str, ...]:
    """Model strings without rates over sites for the states of an alignment; the widest come first.

    A new kind of data adds its list here.
    """
    if states.name == "DNA":
        return tuple(reversed(SYMMETRIES))
    if states.name == "protein":
        return tuple(name + frequencies for frequencies in ("", "+F") for name in proteins.published_matrices())
    if states.name == MULTISTATE:
        # with 2 states, ORDERED is MK, and MK+FO is GTR
        published = (other_data.ORDERED, other_data.MK)
        kinds = [*(f"{kind}+FO" for kind in published), *published] if states.n_states > 2 else [other_data.MK]
        if states.n_states <= SELECTION_GTR_STATES:
            kinds.insert(0, other_data.GTR)
        return tuple(f"MULTI{states.n_states}_{kind}" for kind in kinds)
    genetic_code = genetic_code_of(states.name)
    if genetic_code is not None:
        return _codon_models(genetic_code)
    expected = "DNA, proteins, codons, or binary or multistate data"
    raise InputError(f"model: there are no candidates for {states.name} data, expected {expected}")


def _with_names(candidates: Sequence[str], names: str | Sequence[str]) -> Sequence[str]:
    """Those with one of the names, or all if there are no names; InputError for a name that no candidate has."""
    if not names:
        return candidates
    own = {candidate: parse_model(candidate).name for candidate in candidates}
    wanted = set()
    for name in split_words(names):
        if "+" in name or (meant := parse_model(name).name) not in own.values():
            raise InputError(f"candidates: found {name!r}, expected one of: {', '.join(dict.fromkeys(own.values()))}")
        wanted.add(meant)
    return [candidate for candidate in candidates if own[candidate] in wanted]


def check_candidate(spec: ModelSpec, states: StateSpace) -> None:
    """Raise InputError unless a user's model may be a candidate for data: a substitution model of these, no more."""
    if spec.data != states.name or (spec.n_states and spec.n_states != states.n_states):
        raise InputError(f"model: found {spec.shown}, of {spec.data} data, expected a candidate for {states.name} data")
    has_more = str(spec.sites) or spec.scaled or spec.ascertainment or spec.switching
    if has_more:
        expected = "a substitution model without +I, +G, +R and the like, which candidates get in turn"
        raise InputError(f"model: found {spec.shown} as a candidate, expected {expected}")


def _codon_models(genetic_code: int) -> tuple[str, ...]:
    """With and without kappa; other names describe the same where only the ratio of two kappas matters."""
    products = [f"{name}{frequencies}" for frequencies in ("+F3X4", "+F1X4") for name in ("GY", "MGK", "GY0K", "MG")]
    mechanistic = tuple(codons.under_code(name, genetic_code) for name in (*products, "GY+F", "GY0K+F"))
    if genetic_code != STANDARD_CODE:
        return mechanistic
    several = [f"ECMK07{form}" for form in ("_GY2K", "_GY", "_GY1KTV", "_GY0K", "")]
    single = [f"ECMrest{form}" for form in ("_GY", "_GY0K", "")]
    published = [f"{name}{counted}" for counted in ("", "+F3X4", "+F1X4", "+F") for name in several + single]
    return (*mechanistic, *published)


@dataclass(frozen=True)
class Candidates:
    """Substitution models, the widest first, and the kinds of rates over sites that each of them may have.

    Those `asked` for are fitted, however far from the best they start.
    """

    substitutions: tuple[str, ...]
    kinds: tuple[str, ...]
    asked: frozenset[str]

    @classmethod
    def of(
        cls,
        states: StateSpace,
        most_rates: int,
        ascertainment: Ascertainment | None,
        names: str | Sequence[str] = (),
        also: Sequence[ModelSpec] = (),
    ) -> Candidates:
        """Those for some data, with a correction for ascertainment bias, and then without invariable sites, or not.

        They have free rates of at most `most_rates` categories.
        Only those with one of the `names`, unless there are none. `also` are substitution models of the user's. Raises
        InputError if no candidate has a name, or if a model of the user's is of other data, or has more parts.
        """
        for spec in also:
            check_candidate(spec, states)
        correction = "" if ascertainment is None else str(ascertainment)
        asked = [f"{spec}{correction}" for spec in also]
        usual = [f"{name}{correction}" for name in _with_names(substitution_models(states), names)]
        kinds = (*SIMPLE_RATES, *FREE_RATES[: max(most_rates - 1, 0)])
        if ascertainment is not None:
            kinds = tuple(rates for rates in kinds if INVARIABLE not in rates)
        return cls(tuple(dict.fromkeys([*usual, *asked])), kinds, frozenset(asked))

    @property
    def any_rooted(self) -> bool:
        """Whether some are not time-reversible, so that their trees have a root."""
        return not all(parse_model(name).is_reversible for name in self.asked)


def is_nested(narrow: ModelSpec, wide: ModelSpec) -> bool:
    """Whether all that a model can describe is a special case, or a limit, of another one without values in braces."""
    return (narrow, wide) != (wide, narrow) and _in_substitution(narrow, wide) and _in_rates(narrow, wide)


def _in_substitution(narrow: ModelSpec, wide: ModelSpec) -> bool:
    """Whether another model includes all rate matrices of a model."""
    if (narrow.data, narrow.symbols, narrow.ascertainment) != (wide.data, wide.symbols, wide.ascertainment):
        return False
    each = wide.named.rates.class_of_pair
    if wide.is_directed and each is not None and len(np.unique(each)) == len(each):  # each rate is a parameter
        return not narrow.has_classes
    if (narrow.profiles, narrow.class_weights) != (wide.profiles, wide.class_weights):
        return False
    modes = narrow.frequency_mode, wide.frequency_mode
    if modes[0] != modes[1] and modes != ("equal", "optimised"):
        return False
    if narrow.named.rates.names or wide.named.rates.names:
        return narrow.named.of_bases == wide.named.of_bases and _fixes_parameters(narrow.named.rates, wide.named.rates)
    inner, outer = _classes(narrow.named.rates), _classes(wide.named.rates)
    if narrow.name == wide.name or inner is None or outer is None:
        return narrow.name == wide.name
    pairs = set(zip(outer.tolist(), inner.tolist(), strict=True))
    return len(pairs) == wide.named.rates.n_parameters  # each class of the wider model lies within one of the other


def _fixes_parameters(inner: RateDesign, outer: RateDesign) -> bool:
    """Whether the wider model has these exchangeabilities where some of its parameters equal 1."""
    if inner.n_classes > 1 or outer.n_classes > 1:
        return False
    return np.array_equal(inner.base, outer.base) and None not in inner.places_in(outer)


def _classes(design: RateDesign) -> IndexArray | None:
    """(n_pairs,) classes of equal exchangeabilities; None where these are neither all equal nor one parameter each."""
    if design.n_parameters == 0 and np.all(design.base == design.base[0]):
        return np.zeros(len(design.base), dtype=np.intp)
    return design.class_of_pair


def _in_rates(narrow: ModelSpec, wide: ModelSpec) -> bool:
    """Whether another model includes all rates over sites of a model."""
    inner, outer = narrow.sites, wide.sites
    if outer.kind == "free" and not outer.invariable:
        return inner.kind != "psr" and inner.n_categories + inner.invariable <= outer.n_categories
    if inner.invariable and not outer.invariable:
        return False
    return inner.kind in ("equal", outer.kind) and inner.n_categories in (1, outer.n_categories)


def information_score(criterion: str, lnl: float, n_parameters: int, n_sites: int) -> float:
    """AIC (Akaike 1974), AICc (Hurvich & Tsai 1989) or BIC (Schwarz 1978); lower is better.

    AICc is infinite unless there are at least two sites more than parameters.
    """
    if criterion == "BIC":
        return n_parameters * math.log(n_sites) - 2 * lnl
    aic = 2 * n_parameters - 2 * lnl
    if criterion == "AIC":
        return aic
    left = n_sites - n_parameters - 1
    return aic + 2 * n_parameters * (n_parameters + 1) / left if left > 0 else math.inf


def score_weights(scores: npt.ArrayLike) -> FloatArray:
    """The weight of each model (n,), summing to 1, by its difference to the best score (Burnham & Anderson 2002).

    NaN where no score is finite.
    """
    values = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).any():
        return np.full(len(values), np.nan)
    relative = np.exp((values.min() - values) / 2)
    return np.asarray(relative / relative.sum())
