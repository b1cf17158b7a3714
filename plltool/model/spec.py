"""The specification of a model: the content of a model string as a dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from plltool.alignment.codons import CODON, genetic_code_of
from plltool.errors import show_name
from plltool.model import (
    codons,
    doublets,
    genotypes,
    lie_markov,
    mixtures,
    multistate,
    nonreversible,
    nucleotides,
    proteins,
    user,
)
from plltool.model.ascertainment import Ascertainment
from plltool.model.named import FrequencyMode, NamedModel
from plltool.model.rates import SiteRates
from plltool.model.values import format_values

FREQUENCY_SUFFIXES: dict[FrequencyMode, str] = {
    "equal": "+FE",
    "empirical": "+F",
    "f1x4": "+F1X4",
    "f3x4": "+F3X4",
    "optimised": "+FO",
    "model": "",
}


def find_named(name: str) -> NamedModel:
    """What a canonical name stands for."""
    families = (
        (nucleotides.is_nucleotide, nucleotides.named_model),
        (nonreversible.CLASSES.__contains__, nonreversible.named_model),
        (lie_markov.is_lie_markov, lie_markov.named_model),
        (codons.is_codon, codons.named_model),
        (genotypes.NAMES.__contains__, genotypes.named_model),
        (doublets.NAMES.__contains__, doublets.named_model),
        (multistate.is_multistate, multistate.named_model),
        (user.is_user, user.named_model),
        (mixtures.is_own, mixtures.named_model),
    )
    named_model = next((find for is_member, find in families if is_member(name)), proteins.named_model)
    return named_model(name)


@dataclass(frozen=True)
class ModelSpec:
    """The specification of a model. `parse_model` makes it, and ``parse_model(str(spec)) == spec``."""

    name: str  # canonical name of the substitution model, or ``DNA`` and six digits
    # ``equal``, ``empirical``, ``optimised``, ``given``, or ``model``: those of a protein matrix.
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
    switching: bool = False  # whether sites switch between on and off, see `plltool.model.covarion`
    switch_rates: tuple[float, ...] | None = None  # fixed rates from off to on and from on to off; None if free

    @cached_property
    def named(self) -> NamedModel:
        """What the name stands for."""
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
        """The number of states; 0 if it is that of the data."""
        return len(self.symbols)

    @property
    def tells_data(self) -> bool:
        """Whether the model alone tells what the data are, because their characters may be those of other data."""
        return user.is_user(self.name) or self.name in genotypes.NAMES

    @property
    def splits_columns(self) -> bool:
        """Whether there is to be a part for each number of states that columns have."""
        return self.n_states == 0 and multistate.split_name(self.name)[0] == multistate.EACH

    def with_states(self, n_states: int) -> ModelSpec:
        """The model of data with this number of states; itself if it has one already."""
        return self if self.n_states else replace(self, name=multistate.with_states(self.name, n_states))

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
        """Whether each change has a rate of its own, from which frequencies follow."""
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
        """Whether all frequencies are those of classes of sites: a mixture of matrices, or profiles."""
        return mixtures.has_matrices(self.name) or (self.profiles is not None and self.frequency_mode == "model")

    @property
    def weighs_classes(self) -> bool:
        """Whether the weights of classes of sites are parameters, free or fixed, and neither published nor of rates."""
        if self.profiles is not None:
            return mixtures.is_own(self.profiles) or not self.has_frequencies_by_class
        return self.is_mixture and not self.is_tied

    @property
    def is_tied(self) -> bool:
        """Whether each rate category has a matrix of its own."""
        return self.name in proteins.TIED_RATES

    def for_data(self, data: str) -> ModelSpec:
        """The same, or a codon model of the standard code under that of `data`, unless it has given frequencies."""
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
        if self.class_weights is not None:
            parts.append(format_values(self.class_weights))
        if self.frequencies is not None:
            parts.append("+FU" + format_values(self.frequencies))
        elif self.frequency_mode != "equal" or self.named.frequency_mode != "equal":
            parts.append(FREQUENCY_SUFFIXES[self.frequency_mode])
        parts.append(str(self.sites))
        if self.switching:
            parts.append("+COV" + (format_values(self.switch_rates) if self.switch_rates else ""))
        if self.ascertainment is not None:
            parts.append(str(self.ascertainment))
        if self.scaled:
            parts.append("+B" if self.scaler is None else "+BU" + format_values([self.scaler]))
        return "".join(parts)
