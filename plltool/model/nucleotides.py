"""Names of nucleotide models, and their classes of equal exchangeabilities."""

from __future__ import annotations

import functools

import numpy as np

from plltool.model.named import FrequencyMode, NamedModel, RateDesign, pair_names

BASES = tuple("ACGT")
PAIRS = pair_names(BASES)

# RAxML-NG's names; one digit per rate, equal digits for equal rates
EQUAL_FREQUENCY_MODELS = {
    "JC": "000000",
    "K80": "010010",
    "TN93ef": "010020",
    "K81": "012210",
    "TPM2": "010212",
    "TPM3": "012012",
    "TIM1": "012230",
    "TIM2": "010232",
    "TIM3": "012032",
    "TVMef": "012314",
    "SYM": "012345",
}
FREE_FREQUENCY_MODELS = {
    "F81": "000000",
    "HKY": "010010",
    "TN93": "010020",
    "K81uf": "012210",
    "TPM2uf": "010212",
    "TPM3uf": "012012",
    "TIM1uf": "012230",
    "TIM2uf": "010232",
    "TIM3uf": "012032",
    "TVM": "012314",
    "GTR": "012345",
}
# JC69 to TrNef, TPM1 and TPM1uf are other common names; the rest are IQ-TREE's
ALIASES = {
    "JC69": "JC",
    "K2P": "K80",
    "HKY85": "HKY",
    "TrN": "TN93",
    "TrNef": "TN93ef",
    "TPM1": "K81",
    "TPM1uf": "K81uf",
    "TN": "TN93",
    "TNe": "TN93ef",
    "TNef": "TN93ef",
    "K3P": "K81",
    "K81u": "K81uf",
    "K3Pu": "K81uf",
    "TPM2u": "TPM2uf",
    "TPM3u": "TPM3uf",
    "TIM": "TIM1uf",
    "TIMe": "TIM1",
    "TIMef": "TIM1",
    "TIM2e": "TIM2",
    "TIM3e": "TIM3",
    "TVMe": "TVMef",
}

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


@functools.cache
def named_model(name: str) -> NamedModel:
    """The nucleotide model of a canonical name."""
    design = RateDesign.of_classes([int(digit) for digit in symmetry(name)])
    mode: FrequencyMode = "equal" if name in EQUAL_FREQUENCY_MODELS else "optimised"
    return NamedModel("DNA", BASES, PAIRS, design, mode, np.full(len(BASES), 1.0 / len(BASES)))
