"""The specification of a model: the content of a model string as a dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from plltool.model import nucleotides, proteins
from plltool.model.rates import SiteRates
from plltool.model.values import format_values

FrequencyMode = Literal["equal", "empirical", "optimised", "given", "model"]

FREQUENCY_SUFFIXES: dict[FrequencyMode, str] = {"equal": "+FE", "empirical": "+FC", "optimised": "+FO", "model": ""}


@dataclass(frozen=True)
class ModelSpec:
    """The specification of a model. `parse_model` makes it, and ``parse_model(str(spec)) == spec``.

    Attributes
    ----------
    name : canonical name of the substitution model, or ``DNA`` and six digits.
    frequency_mode : ``equal``, ``empirical``, ``optimised``, ``given``, or ``model``: those of a protein matrix.
    sites : how rates vary over sites, without values that are optimised.
    rates : fixed rate of each class relative to that of the last pair, in the order of `rate_classes`; None if free.
    frequencies : fixed frequencies, summing to 1; None unless the mode is ``given``.
    profiles : name of the profile mixture that replaces the frequencies; None without one.
    class_weights : fixed weights of a mixture's classes; None if free.
    scaled : whether branch lengths are multiplied by a scaler.
    scaler : fixed value of the scaler; None if free.
    """

    name: str
    frequency_mode: FrequencyMode
    sites: SiteRates = field(default_factory=SiteRates)
    rates: tuple[float, ...] | None = None
    frequencies: tuple[float, ...] | None = None
    profiles: str | None = None
    class_weights: tuple[float, ...] | None = None
    scaled: bool = False
    scaler: float | None = None

    @property
    def is_nucleotide(self) -> bool:
        return self.name in nucleotides.SYMMETRIES or self.name.startswith(nucleotides.CUSTOM_PREFIX)

    @property
    def data(self) -> str:
        """The kind of data, as in `StateSpace.name`."""
        return "DNA" if self.is_nucleotide else "protein"

    @property
    def symbols(self) -> str:
        """One character per state, in the order of frequencies."""
        return nucleotides.BASES if self.is_nucleotide else proteins.AMINO_ACIDS

    @property
    def pairs(self) -> tuple[str, ...]:
        """Names of the pairs of states, in the order of exchangeabilities."""
        return nucleotides.RATE_NAMES if self.is_nucleotide else proteins.PAIRS

    @property
    def symmetry(self) -> str:
        """The classes of the rates AC AG AT CG CT GT as digits; classes are numbered as they first occur."""
        return nucleotides.SYMMETRIES.get(self.name) or self.name.removeprefix(nucleotides.CUSTOM_PREFIX)

    @cached_property
    def rate_classes(self) -> tuple[int, ...]:
        """The class of each pair's rate, numbered as they first occur; empty if the exchangeabilities are published."""
        if self.is_nucleotide:
            return tuple(int(digit) for digit in self.symmetry)
        return tuple(range(len(proteins.PAIRS))) if self.name == proteins.GTR20 else ()

    @cached_property
    def n_rate_classes(self) -> int:
        """The number of distinct exchangeabilities; that of the last pair is 1 by convention."""
        return len(set(self.rate_classes))

    @property
    def is_mixture(self) -> bool:
        """Whether classes of sites have different matrices."""
        return self.name in proteins.MIXTURES

    @property
    def is_tied(self) -> bool:
        """Whether each rate category has a matrix of its own."""
        return self.name in proteins.TIED_RATES

    def __str__(self) -> str:
        parts = [self.name]
        for values in (self.rates, self.class_weights):
            if values is not None:
                parts.append(format_values(values))
        if self.profiles is not None:
            parts.append(f"+{self.profiles}")
        if self.frequencies is not None:
            parts.append("+FU" + format_values(self.frequencies))
        elif self.frequency_mode != "equal" or self.name not in nucleotides.EQUAL_FREQUENCY_MODELS:
            parts.append(FREQUENCY_SUFFIXES[self.frequency_mode])
        parts.append(str(self.sites))
        if self.scaled:
            parts.append("+B" if self.scaler is None else "+BU" + format_values([self.scaler]))
        return "".join(parts)
