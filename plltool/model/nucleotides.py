"""Names of nucleotide models, and their classes of equal exchangeabilities."""

from __future__ import annotations

from plltool.model.named import NamedModel, RateDesign, pair_names, read_words

BASES = tuple("ACGT")
PAIRS = pair_names(BASES)

# The symmetry code of each name: one digit per rate, equal digits for equal rates
EQUAL_FREQUENCY_MODELS = read_words("nucleotides.txt", "equal frequencies")
FREE_FREQUENCY_MODELS = read_words("nucleotides.txt", "free frequencies")
ALIASES = read_words("nucleotides.txt", "aliases")

CUSTOM_PREFIX = "DNA"  # RAxML-NG's prefix of six digits

SYMMETRIES = EQUAL_FREQUENCY_MODELS | FREE_FREQUENCY_MODELS
CANONICAL_NAMES = {name.upper(): name for name in SYMMETRIES} | {alias.upper(): name for alias, name in ALIASES.items()}


def renumber(code: str) -> str:
    """A symmetry code with its classes numbered in the order in which they first occur: 313313 -> 010010."""
    order = "".join(dict.fromkeys(code))
    return "".join(str(order.index(digit)) for digit in code)


def symmetry(name: str) -> str:
    """The classes of the rates AC AG AT CG CT GT as digits; classes are numbered as they first occur."""
    return SYMMETRIES.get(name) or name.removeprefix(CUSTOM_PREFIX)


def is_nucleotide(name: str) -> bool:
    """Whether it is the canonical name of a nucleotide model."""
    return name in SYMMETRIES or name.startswith(CUSTOM_PREFIX)


def named_model(name: str) -> NamedModel:
    """The nucleotide model of a canonical name."""
    design = RateDesign.of_classes([int(digit) for digit in symmetry(name)])
    return NamedModel("DNA", BASES, design, "equal" if name in EQUAL_FREQUENCY_MODELS else "optimised")
