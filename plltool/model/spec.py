"""The specification of a model: the content of a model string as a dataclass, and where its parameters start."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np

from plltool.alignment.spaces import CODON, genetic_code_of
from plltool.arrays import ArrayLike, FloatArray
from plltool.errors import InputError, show_name
from plltool.model import codons, mixtures, nucleotides, other_data, proteins
from plltool.model.checks import Ascertainment, check_frequencies, format_values
from plltool.model.codons import base_frequencies, product_frequencies
from plltool.model.named import COUNTED_MODES, FrequencyMode, NamedModel
from plltool.model.rates import SiteRates
from plltool.model.substitution import frequencies_of_rates

DEFAULT_SWITCH_RATES = (1.0, 1.0)  # from off to on, and from on to off
# Suffixes, of which the first is written
FREQUENCY_WORDS: dict[FrequencyMode, tuple[str, ...]] = {"equal": ("FE", "FQ"), "empirical": ("F", "FC")}
FREQUENCY_WORDS |= {"f1x4": ("F1X4",), "f3x4": ("F3X4",), "optimised": ("FO",), "sites": ("SSF",), "model": ()}


# Of each family, what finds the canonical name of a word in upper case, and what the names stand for
FAMILIES = (
    (nucleotides.find_name, nucleotides.named_model),
    (proteins.find_name, proteins.named_model),
    (other_data.find_name, other_data.named_model),
    (codons.find_name, codons.named_model),
)


@cache
def find_named(name: str) -> NamedModel:
    """What a canonical name stands for."""
    if mixtures.is_own(name):
        return mixtures.named_model(name)
    return next(make for find, make in FAMILIES if find(name.upper()) is not None)(name)


def find_name(word: str) -> str | None:
    """The canonical name of a model, from one of its spellings in upper case; None for an unknown one."""
    return next(filter(None, (find(word) for find, _ in FAMILIES)), None)


@dataclass(frozen=True)
class ModelSpec:
    """The specification of a model. `parse_model` makes it, and ``parse_model(str(spec)) == spec``."""

    name: str  # canonical name of the substitution model, or ``DNA`` and six digits
    # ``equal``, ``empirical``, ``optimised``, ``given``, ``sites``: each site has its own, see `with_site_frequencies`,
    # or ``model``: those of a protein matrix.
    frequency_mode: FrequencyMode
    sites: SiteRates = field(default_factory=SiteRates)  # how rates vary over sites, without values that are optimised
    rates: tuple[float, ...] | None = None  # fixed parameters of the exchangeabilities, see `RateDesign`; None if free
    frequencies: tuple[float, ...] | None = None  # fixed frequencies, summing to 1; None unless the mode is ``given``
    # canonical name of the profile mixture; None without one. It replaces the frequencies, or if their mode is not
    # ``model``, stands beside a first class that has them.
    profiles: str | None = None
    class_weights: tuple[float, ...] | None = None  # fixed weights of classes; None if they are free or published
    scaled: bool = False  # whether branch lengths are multiplied by a scaler
    scaler: float | None = None  # fixed value of the scaler; None if free
    ascertainment: Ascertainment | None = None  # the correction of lnL for ascertainment bias; None for none
    switching: bool = False  # whether sites switch between on and off, see `plltool.model.components`
    switch_rates: tuple[float, ...] | None = None  # fixed rates from off to on and from on to off; None if free
    members: tuple[ModelSpec, ...] = ()  # the models of the classes of a free mixture; empty for other models
    member_rates: tuple[float, ...] = ()  # their relative rates

    @cached_property
    def named(self) -> NamedModel:
        """What the name stands for."""
        if self.members:
            return mixtures.join_members([own.named for own in self.members], [own.rates for own in self.members])
        return find_named(self.name)

    @property
    def data(self) -> str:
        """The kind of data, as in `StateSpace.name`."""
        return self.named.data

    @property
    def symbols(self) -> tuple[str, ...]:
        """The name of each state, in the order of frequencies."""
        return self.named.symbols

    @property
    def n_states(self) -> int:
        """The number of states; 0 if the data tell it."""
        return len(self.symbols)

    @property
    def splits_columns(self) -> bool:
        """Whether there is to be a part for each number of states that columns have."""
        return self.n_states == 0 and other_data.split_name(self.name)[0] == other_data.EACH

    def with_states(self, n_states: int) -> ModelSpec:
        """The model of data with this number of states; itself if it has one already."""
        return self if self.n_states else replace(self, name=other_data.with_states(self.name, n_states))

    @property
    def pairs(self) -> tuple[str, ...]:
        """Names of the pairs of states, in the order of exchangeabilities."""
        return self.named.pairs

    @property
    def is_reversible(self) -> bool:
        """Whether the process is time-reversible."""
        return self.named.is_reversible

    @property
    def is_directed(self) -> bool:
        """Whether each change has a rate, from which frequencies follow."""
        return self.named.is_directed

    @property
    def is_mixture(self) -> bool:
        """Whether classes of sites have different matrices."""
        return mixtures.has_matrices(self.name) or self.named.rates.n_classes > 1

    @property
    def has_classes(self) -> bool:
        """Whether there are classes of sites: a mixture or profiles."""
        return self.is_mixture or self.profiles is not None

    @property
    def has_frequencies_by_class(self) -> bool:
        """Whether all frequencies belong to classes of sites: a mixture of matrices, profiles, or +SSF."""
        if self.members or mixtures.has_matrices(self.name) or self.has_site_frequencies:
            return True
        return self.profiles is not None and self.frequency_mode == "model"

    @property
    def has_site_frequencies(self) -> bool:
        """Whether each site has other frequencies (+SSF)."""
        return self.frequency_mode == "sites"

    def with_site_frequencies(self) -> ModelSpec:
        """The same with frequencies of each site in place of others (+SSF); InputError if they cannot be replaced."""
        is_single = not (self.is_mixture or self.is_directed or self.named.of_bases or self.switching)
        if not is_single or self.sites.kind == "psr" or self.ascertainment is not None:
            expected = "a single reversible matrix without +COV, +PSR and +ASC, such as LG+G4"
            raise InputError(f"model {self.shown} cannot have frequencies of each site (+SSF), expected {expected}")
        return replace(self, frequency_mode="sites", frequencies=None, profiles=None, class_weights=None)

    @property
    def free_rows(self) -> list[int]:
        """The classes of a free mixture whose frequencies are optimised."""
        return [k for k, own in enumerate(self.members) if own.frequency_mode == "optimised"]

    @property
    def weighs_classes(self) -> bool:
        """Whether the weights of classes of sites are parameters, free or fixed, and neither published nor of rates."""
        if self.profiles is not None:
            return mixtures.is_own(self.profiles) or not self.has_frequencies_by_class
        return self.is_mixture and not self.is_tied

    @property
    def is_tied(self) -> bool:
        """Whether each rate category has another matrix."""
        return self.name in proteins.TIED_RATES

    def for_data(self, data: str) -> ModelSpec:
        """The same, or a codon model of the standard code under the code of `data`, unless it has given frequencies."""
        genetic_code = genetic_code_of(data)
        if self.data != CODON or genetic_code is None or self.frequencies is not None:
            return self
        return replace(self, name=codons.under_code(self.name, genetic_code))

    @property
    def shown(self) -> str:
        """The model string for a message, shortened if it is long."""
        return show_name(str(self))

    def __str__(self) -> str:
        parts = [self.name]
        if self.rates is not None:
            parts.append(format_values(self.rates))
        if self.profiles is not None:
            parts.append(f"+{self.profiles}")
        if self.class_weights is not None and not self.members:
            parts.append(format_values(self.class_weights))
        if self.frequencies is not None:
            parts.append("+FU" + format_values(self.frequencies))
        elif self.members:
            pass  # they have their own
        elif self.frequency_mode != "equal" or self.named.frequency_mode != "equal":
            parts += [f"+{word}" for word in FREQUENCY_WORDS[self.frequency_mode][:1]]
        parts.append(str(self.sites))
        if self.switching:
            parts.append("+COV" + (format_values(self.switch_rates) if self.switch_rates else ""))
        if self.ascertainment is not None:
            parts.append(str(self.ascertainment))
        if self.scaled:
            parts.append("+B" if self.scaler is None else "+BU" + format_values([self.scaler]))
        return "".join(parts)


def initial_rates(spec: ModelSpec) -> FloatArray:
    """The start values of the parameters of the exchangeabilities."""
    return spec.named.rates.starts if spec.rates is None else np.array(spec.rates)


def initial_class_weights(spec: ModelSpec) -> FloatArray:
    """The start weight of each class of a mixture; a single class for other models."""
    if spec.class_weights is not None:
        return np.array(spec.class_weights)
    if mixtures.has_matrices(spec.name):
        return mixtures.read_matrices(spec.name).weights
    if spec.profiles is not None:
        weights = mixtures.read_profiles(spec.profiles)[0]
        if spec.has_frequencies_by_class:
            return weights
        return np.append(1.0, weights * len(weights)) / (len(weights) + 1)
    return np.array(spec.named.rates.class_weights)


def initial_frequencies(spec: ModelSpec, empirical: ArrayLike | None = None) -> FloatArray:
    """The start frequencies; equal ones if classes have different frequencies, in a free mixture (n_classes, n_states).

    Those of its classes that are optimised start apart.
    """
    if spec.members:
        rows = np.array([initial_frequencies(own, empirical) for own in spec.members])
        for k in spec.free_rows:
            rows[k] *= mixtures.apart(k, len(rows), rows.shape[1])
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))
    if spec.is_directed:
        return frequencies_of_rates(spec.named.rates.exchangeabilities(initial_rates(spec)))
    if spec.frequencies is not None:
        return np.array(spec.frequencies)
    if spec.frequency_mode not in COUNTED_MODES:
        own = None if spec.frequency_mode == "equal" else spec.named.frequencies
        return np.full(len(spec.symbols), 1.0 / len(spec.symbols)) if own is None else own
    if empirical is None:
        raise ValueError(f"model {spec.shown} needs the empirical frequencies of the alignment")
    if spec.frequency_mode != "empirical":
        at_positions = base_frequencies(np.ravel(empirical), spec.symbols, spec.frequency_mode == "f3x4")
        empirical = product_frequencies(at_positions, spec.symbols)
    try:
        return np.array(check_frequencies(np.ravel(empirical).tolist(), spec.symbols))
    except InputError as problem:
        raise InputError(f"model {spec.shown}: empirical frequencies cannot be used: {problem}") from None
