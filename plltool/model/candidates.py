"""The models to choose from, for each kind of data, with every kind of rates, and the criteria of the choice."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from plltool.alignment.spaces import STANDARD_CODE, genetic_code_of
from plltool.alignment.states import MULTISTATE, StateSpace
from plltool.arrays import ArrayLike, FloatArray, IndexArray, likelihood_weights
from plltool.constants import MAX_RATE_CATEGORIES
from plltool.errors import InputError, check_kind
from plltool.model import codons, other_data, proteins
from plltool.model.checks import Ascertainment
from plltool.model.model_string import parse_model
from plltool.model.named import RateDesign
from plltool.model.nucleotides import SYMMETRIES
from plltool.model.spec import ModelSpec
from plltool.registry import split_words

SELECTION_GTR_STATES = 6  # of multistate data for which GTR is a candidate: with more there are parameters by the dozen
GAMMA, INVARIABLE, VARIABLE_ONLY = "+G4", "+I", "+ASC"
SIMPLE_RATES = ("", INVARIABLE, GAMMA, INVARIABLE + GAMMA)
FREE_RATES = tuple(f"+R{n}" for n in range(2, MAX_RATE_CATEGORIES + 1))


def substitution_models(states: StateSpace) -> tuple[str, ...]:
    """Model strings without rates over sites for an alignment's states, widest first; new data add their list here."""
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
    if genetic_code is not None:  # other names are the same where only a ratio of kappas matters
        products = [name + counted for counted in ("+F3X4", "+F1X4") for name in ("GY", "MGK", "GY0K", "MG")]
        mechanistic = tuple(codons.under_code(name, genetic_code) for name in (*products, "GY+F", "GY0K+F"))
        several = [f"ECMK07{form}" for form in ("_GY2K", "_GY", "_GY1KTV", "_GY0K", "")]
        single = [f"ECMrest{form}" for form in ("_GY", "_GY0K", "")]
        empirical = (name + counted for counted in ("", "+F3X4", "+F1X4", "+F") for name in several + single)
        return (*mechanistic, *empirical) if genetic_code == STANDARD_CODE else mechanistic
    expected = "DNA, proteins, codons, or binary or multistate data"
    raise InputError(f"model: there are no candidates for {states.name} data, expected {expected}")


@dataclass(frozen=True)
class Candidates:
    """Substitution models, the widest first, and the rates over sites to try; those `asked` for are always fitted."""

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
    ) -> Self:
        """Those for some data, with a correction for ascertainment bias, and then without invariable sites, or not.

        They have free rates of at most `most_rates` categories.
        Only those with one of the `names`, unless there are none. `also` are substitution models of the user's. Raises
        InputError if no candidate has a name, or if a model of the user's is of other data, or has more parts.
        """
        for spec in also:
            if spec.data != states.name or (spec.n_states and spec.n_states != states.n_states):
                expected = f"a candidate for {states.name} data"
                raise InputError(f"model: found {spec.shown}, of {spec.data} data, expected {expected}")
            if str(spec.sites) or spec.scaled or spec.ascertainment or spec.switching:
                expected = "a substitution model without +I, +G, +R and the like, which candidates get in turn"
                raise InputError(f"model: found {spec.shown} as a candidate, expected {expected}")
        correction = "" if ascertainment is None else str(ascertainment)
        asked = [f"{spec}{correction}" for spec in also]
        own = {candidate: parse_model(candidate).name for candidate in substitution_models(states)}
        wanted = set()
        check_kind("candidates", names, Iterable, "names of models, such as GTR,HKY")
        for name in split_words(names):
            if not isinstance(name, str) or "+" in name or (meant := parse_model(name).name) not in own.values():
                known = ", ".join(dict.fromkeys(own.values()))
                raise InputError(f"candidates: found {name!r}, expected one of: {known}")
            wanted.add(meant)
        usual = [f"{candidate}{correction}" for candidate, name in own.items() if not names or name in wanted]
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
    if narrow == wide or not _in_substitution(narrow, wide):
        return False
    inner, outer = narrow.sites, wide.sites
    if outer.kind == "free" and not outer.invariable:
        return inner.kind != "psr" and inner.n_categories + inner.invariable <= outer.n_categories
    if inner.invariable and not outer.invariable:
        return False
    return inner.kind in ("equal", outer.kind) and inner.n_categories in (1, outer.n_categories)


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
        own, other = narrow.named.rates, wide.named.rates
        if narrow.named.of_bases != wide.named.of_bases or own.n_classes > 1 or other.n_classes > 1:
            return False
        return np.array_equal(own.base, other.base) and None not in own.places_in(other)  # where some parameters are 1
    inner, outer = _classes(narrow.named.rates), _classes(wide.named.rates)
    if narrow.name == wide.name or inner is None or outer is None:
        return narrow.name == wide.name
    pairs = set(zip(outer.tolist(), inner.tolist(), strict=True))
    return len(pairs) == wide.named.rates.n_parameters  # each class of the wider model lies within one of the other


def _classes(design: RateDesign) -> IndexArray | None:
    """(n_pairs,) classes of equal exchangeabilities; None where these are neither all equal nor one parameter each."""
    if design.n_parameters == 0 and np.all(design.base == design.base[0]):
        return np.zeros(len(design.base), dtype=np.intp)
    return design.class_of_pair


def information_score(criterion: str, lnl: float, n_parameters: int, n_sites: int) -> float:
    """AIC (Akaike 1974), AICc (Hurvich & Tsai 1989; infinite for few sites) or BIC (Schwarz 1978); lower is better."""
    if criterion == "BIC":
        return n_parameters * math.log(n_sites) - 2 * lnl
    aic = 2 * n_parameters - 2 * lnl
    if criterion == "AIC":
        return aic
    left = n_sites - n_parameters - 1
    return aic + 2 * n_parameters * (n_parameters + 1) / left if left > 0 else math.inf


def score_weights(scores: ArrayLike) -> FloatArray:
    """Weights (n,) of sum 1 by the difference to the best score (Burnham & Anderson 2002); NaN if none is finite."""
    values = np.asarray(scores, dtype=np.float64)
    return likelihood_weights(-values / 2) if np.isfinite(values).any() else np.full(len(values), np.nan)
