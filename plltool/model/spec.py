"""Model strings: ``parse_model`` reads what RAxML-NG or IQ-TREE would, ``str`` writes what RAxML-NG would.

    NAME[{rates}][+FREQUENCIES][+GAMMA]

NAME is one of `EQUAL_FREQUENCY_MODELS`, `FREE_FREQUENCY_MODELS` or `ALIASES`, or six digits (with or without ``DNA`` in
front) that give rates with the same digit the same value, in the order AC AG AT CG CT GT. Upper and lower case are the
same. Where the two programs disagree on a name, RAxML-NG's meaning holds: TIM2 and TIM3 have equal base frequencies.

rates: with slashes one value per distinct rate, in the order of the digits (RAxML-NG); with commas, or as a lone value,
one per distinct rate except that of GT, which is 1, in the order in which they first occur (IQ-TREE).

FREQUENCIES: ``FE`` ``FQ`` equal; ``F`` ``FC`` empirical; ``FO`` optimised; ``FU{A/C/G/T}`` ``F{A,C,G,T}`` given.
Without it, equal or optimised as the name says (RAxML-NG's rule; IQ-TREE's is empirical where the name says unequal).

GAMMA: ``G[k][m][{alpha}]``, k categories (4), represented by their means.

Values in braces are fixed, as in IQ-TREE; RAxML-NG takes them as starting values unless told ``--opt-model off``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from plltool.constants import DEFAULT_RATE_CATEGORIES, MAX_ALPHA, MAX_RATE_CATEGORIES, MIN_ALPHA
from plltool.errors import InputError

BASES = ("A", "C", "G", "T")
RATE_NAMES = ("AC", "AG", "AT", "CG", "CT", "GT")

FrequencyMode = Literal["equal", "empirical", "optimised", "given"]

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
# JC69 to TrNef, TPM1 and TPM1uf: other usual names; the rest: IQ-TREE's names
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
    "K3P": "K81",
    "K81u": "K81uf",
    "K3Pu": "K81uf",
    "TPM2u": "TPM2uf",
    "TPM3u": "TPM3uf",
    "TIM": "TIM1uf",
    "TIMe": "TIM1",
    "TIM2e": "TIM2",
    "TIM3e": "TIM3",
    "TVMe": "TVMef",
}
# fmt: off
PROTEIN_MODELS = frozenset((
    "BLOSUM62", "CPREV", "DAYHOFF", "DCMUT", "DEN", "FLU", "HIVB", "HIVW", "JTT", "JTT-DCMUT", "LG", "LG4M", "LG4X",
    "MTART", "MTMAM", "MTREV", "MTZOA", "PMB", "PROTGTR", "Q.BIRD", "Q.INSECT", "Q.MAMMAL", "Q.PFAM", "Q.PLANT",
    "Q.YEAST", "RTREV", "STMTREV", "VT", "WAG",
))
# fmt: on

CUSTOM_PREFIX = "DNA"  # RAxML-NG's, in front of six digits
MIN_GIVEN, MAX_GIVEN = 1e-9, 1e9  # rates and frequencies; beyond, eigenvectors have no correct digits left
FREQUENCY_SUM_TOLERANCE = 1e-3  # frequencies printed with 3 digits need not sum to 1 exactly
FREQUENCY_SUM_ROUNDING = 1e-15  # left alone, so that normalised frequencies are read back bit for bit

_SYMMETRIES = EQUAL_FREQUENCY_MODELS | FREE_FREQUENCY_MODELS
_CANONICAL_NAMES = {name.upper(): name for name in _SYMMETRIES} | {
    alias.upper(): name for alias, name in ALIASES.items()
}
_FREQUENCY_WORDS: dict[str, FrequencyMode] = {
    "F": "empirical",
    "FC": "empirical",
    "FO": "optimised",
    "FE": "equal",
    "FQ": "equal",
}
_FREQUENCY_SUFFIXES: dict[FrequencyMode, str] = {"equal": "+FE", "empirical": "+FC", "optimised": "+FO"}
_UNAVAILABLE = (
    (r"I[OCU]?", "+I (invariant sites)"),
    (r"R[0-9]*", "+R (free rates)"),
    (r"ASC.*", "+ASC (ascertainment bias correction)"),
    (r"B[OU]?", "+B (branch length scaler)"),
    (r"G[0-9]*A", "+GA (median of each gamma category)"),
)
_NAMES_ACCEPTED = f"{', '.join(_SYMMETRIES)} or six digits such as 010010"
_MODIFIERS_ACCEPTED = "+FE, +F or +FC, +FO, +FU{A/C/G/T}, +G[categories][{alpha}]"

_TOKEN = re.compile(r"\s*([^+{}\s]+)\s*((?:\{[^{}]*\})*)\s*(\+|\Z)")  # word, braces, plus sign or end


@dataclass(frozen=True)
class ModelSpec:
    """What a model string says; made by `parse_model`, and ``parse_model(str(spec)) == spec``.

    Attributes
    ----------
    name : canonical name of the substitution model, or ``DNA`` and six digits.
    frequency_mode : ``equal``, ``empirical``, ``optimised`` or ``given``.
    n_categories : categories of the gamma distribution; 1 without +G.
    rates : fixed rate of each class, that of GT being 1, in the order of `symmetry`'s digits; None if not given.
    frequencies : fixed base frequencies A C G T, summing to 1; None unless the mode is ``given``.
    alpha : fixed shape of the gamma distribution; None if not given.
    """

    name: str
    frequency_mode: FrequencyMode
    n_categories: int = 1
    rates: tuple[float, ...] | None = None
    frequencies: tuple[float, ...] | None = None
    alpha: float | None = None

    @property
    def symmetry(self) -> str:
        """The class, a digit, of each rate AC AG AT CG CT GT; classes are numbered as they first occur."""
        return _SYMMETRIES.get(self.name) or self.name.removeprefix(CUSTOM_PREFIX)

    @property
    def n_rate_classes(self) -> int:
        """The number of distinct exchangeabilities; one of them, GT's, is 1 by convention."""
        return len(set(self.symmetry))

    def __str__(self) -> str:
        parts = [self.name]
        if self.rates is not None:
            parts.append(_format_values(self.rates))
        if self.frequencies is not None:
            parts.append("+FU" + _format_values(self.frequencies))
        elif self.frequency_mode != "equal" or self.name not in EQUAL_FREQUENCY_MODELS:
            parts.append(_FREQUENCY_SUFFIXES[self.frequency_mode])
        if self.n_categories > 1:
            parts.append(f"+G{self.n_categories}")
        if self.alpha is not None:
            parts.append(_format_values((self.alpha,)))
        return "".join(parts)


def parse_model(text: str) -> ModelSpec:
    """Read a model string; the grammar is in the module's docstring.

    Raises
    ------
    InputError
        One line that names the part of the string, its position (from 1, in the trimmed string), what is wrong with it
        and what is accepted: unknown names, models that this version lacks, a part given twice, a wrong number of
        values, values that are not positive and finite, frequencies that do not sum to 1.
    """
    tokens = _tokenise(text.strip())
    spec = _read_name(tokens[0])
    kinds_seen = set()
    for token in tokens[1:]:
        kind, spec = _read_modifier(token, spec)
        if kind in kinds_seen:
            raise token.error(f"{kind} given twice")
        kinds_seen.add(kind)
    return spec


def check_exchangeabilities(values: Sequence[float]) -> tuple[float, ...]:
    """The exchangeabilities AC AG AT CG CT GT relative to GT.

    Raises
    ------
    InputError
        If there are not six values, or one, or its ratio to GT, is not within MIN_GIVEN .. MAX_GIVEN.
    """
    if len(values) != len(RATE_NAMES):
        raise InputError(f"expected 6 exchangeabilities ({' '.join(RATE_NAMES)}), found {len(values)}")
    rates = _check_positive(values, "exchangeabilities")
    return _check_positive([rate / rates[-1] for rate in rates], "exchangeabilities relative to that of GT")


def check_frequencies(values: Sequence[float]) -> tuple[float, ...]:
    """Base frequencies A C G T that sum to 1, from four positive values that do so within 1e-3.

    Raises
    ------
    InputError
        If there are not four values, one is not within MIN_GIVEN .. MAX_GIVEN, or their sum is not near 1.
    """
    if len(values) != len(BASES):
        raise InputError(f"expected 4 base frequencies (A C G T), found {len(values)}")
    frequencies = _check_positive(values, "base frequencies")
    total = math.fsum(frequencies)
    if abs(total - 1) > FREQUENCY_SUM_TOLERANCE:
        raise InputError(f"base frequencies must sum to 1, found {total:g}")
    if abs(total - 1) > FREQUENCY_SUM_ROUNDING:
        frequencies = tuple(value / total for value in frequencies)
    return frequencies


def check_alpha(value: float) -> float:
    """The shape of a gamma distribution; InputError unless it lies in MIN_ALPHA .. MAX_ALPHA."""
    if not MIN_ALPHA <= value <= MAX_ALPHA:
        raise InputError(f"alpha must lie between {MIN_ALPHA:g} and {MAX_ALPHA:g}, found {value:g}")
    return float(value)


@dataclass(frozen=True)
class _Token:
    """One part of a model string, ``word{values}``, and where in the string it or its plus sign begins."""

    source: str
    start: int
    word: str
    values: str | None

    def error(self, problem: object) -> InputError:
        sign = "" if self.start == 0 else "+"
        values = "" if self.values is None else f"{{{self.values}}}"
        where = f"{sign + self.word + values!r} at character {self.start + 1}"
        return InputError(f"model {self.source!r}: {where}: {problem}")

    def numbers(self) -> tuple[float, ...]:
        """The values in braces, separated by slashes or by commas."""
        text = self.values or ""
        fields = text.split("," if "," in text else "/")
        numbers = []
        for field in fields:
            try:
                numbers.append(float(field))
            except ValueError:
                raise self.error(f"expected a number, found {field.strip()!r}") from None
        return tuple(numbers)


def _tokenise(source: str) -> list[_Token]:
    """Cut a model string at its plus signs, except those inside braces."""
    tokens = []
    position = 0
    while True:
        match = _TOKEN.match(source, position)
        if match is None:
            found = repr(source[position:]) if position < len(source) else "nothing"
            raise InputError(
                f"model {source!r}: cannot read {found} at character {position + 1};"
                " expected NAME[{rates}][+F...][+G...], such as GTR+FO+G4"
            )
        tokens.append(_Token(source, max(position - 1, 0), match[1], match[2][1:-1] if match[2] else None))
        if not match[3]:
            return tokens
        position = match.end()


def _read_name(token: _Token) -> ModelSpec:
    """The model that a name stands for, with its rates in braces."""
    word = token.word.upper()
    if word in PROTEIN_MODELS:
        raise token.error(f"{word} (protein model) is not available in this version; accepted: {_NAMES_ACCEPTED}")
    custom = re.fullmatch(f"(?:{CUSTOM_PREFIX})?([0-9]{{6}})", word)
    if custom:
        code = custom[1]
        name = CUSTOM_PREFIX + _renumber(code)
    elif word in _CANONICAL_NAMES:
        name = _CANONICAL_NAMES[word]
        code = _SYMMETRIES[name]
    else:
        raise token.error(f"unknown model; accepted: {_NAMES_ACCEPTED}")
    mode: FrequencyMode = "equal" if name in EQUAL_FREQUENCY_MODELS else "optimised"
    return ModelSpec(name, mode, rates=_read_rates(token, code))


def _renumber(code: str) -> str:
    """A symmetry code with its classes numbered in the order in which they first occur: 313313 -> 010010."""
    order = "".join(dict.fromkeys(code))
    return "".join(str(order.index(digit)) for digit in code)


def _read_rates(token: _Token, code: str) -> tuple[float, ...] | None:
    """The rate of each class relative to that of GT, in the order in which the classes first occur in `code`."""
    if token.values is None:
        return None
    classes = list(dict.fromkeys(code))
    if len(classes) == 1:
        raise token.error("this model has only one exchangeability, so no values in braces are accepted")
    values = token.numbers()
    if "/" in token.values:
        given, form = sorted(classes), "separated by slashes: one per distinct rate"
    else:
        given = [digit for digit in classes if digit != code[-1]]
        form = "separated by commas: one per distinct rate except that of GT, which is 1"
    if len(values) != len(given):
        raise token.error(f"expected {len(given)} rates {form}; found {len(values)}")
    rates = {code[-1]: 1.0} | dict(zip(given, values, strict=True))
    try:
        relative = check_exchangeabilities([rates[digit] for digit in code])
    except InputError as problem:
        raise token.error(problem) from None
    return tuple(relative[code.index(digit)] for digit in classes)


def _read_modifier(token: _Token, spec: ModelSpec) -> tuple[str, ModelSpec]:
    """What a part after a plus sign is about, and the model changed by it."""
    word = token.word.upper()
    for pattern, what in _UNAVAILABLE:
        if re.fullmatch(pattern, word):
            raise token.error(f"{what} is not available in this version; accepted: {_MODIFIERS_ACCEPTED}")
    if word in _FREQUENCY_WORDS or word == "FU":
        return "base frequencies", _read_frequencies(token, spec)
    if re.fullmatch(r"G[0-9]{0,9}M?", word):
        return "gamma rates", _read_gamma(token, spec)
    raise token.error(f"unknown part of a model; accepted: {_MODIFIERS_ACCEPTED}")


def _read_frequencies(token: _Token, spec: ModelSpec) -> ModelSpec:
    word = token.word.upper()
    if token.values is None:
        if word == "FU":
            raise token.error("expected four base frequencies in braces: +FU{A/C/G/T}")
        return replace(spec, frequency_mode=_FREQUENCY_WORDS[word])
    if word not in ("F", "FU"):
        raise token.error("takes no values; given base frequencies are written +FU{A/C/G/T}")
    values = token.numbers()
    try:
        return replace(spec, frequency_mode="given", frequencies=check_frequencies(values))
    except InputError as problem:
        raise token.error(problem) from None


def _read_gamma(token: _Token, spec: ModelSpec) -> ModelSpec:
    digits = token.word.upper().removeprefix("G").removesuffix("M")
    n_categories = int(digits or DEFAULT_RATE_CATEGORIES)
    if not 2 <= n_categories <= MAX_RATE_CATEGORIES:
        raise token.error(f"expected 2 to {MAX_RATE_CATEGORIES} categories")
    if token.values is None:
        return replace(spec, n_categories=n_categories)
    values = token.numbers()
    if len(values) != 1:
        raise token.error(f"expected one value, alpha; found {len(values)}")
    try:
        return replace(spec, n_categories=n_categories, alpha=check_alpha(values[0]))
    except InputError as problem:
        raise token.error(problem) from None


def _check_positive(values: Sequence[float], what: str) -> tuple[float, ...]:
    """The values; InputError that says `what` they are unless all lie within MIN_GIVEN .. MAX_GIVEN."""
    for value in values:
        if not MIN_GIVEN <= value <= MAX_GIVEN:
            raise InputError(f"{what} must be positive numbers, from {MIN_GIVEN:g} to {MAX_GIVEN:g}, found {value:g}")
    return tuple(values)


def _format_values(values: Sequence[float]) -> str:
    """Values in braces, RAxML-NG's way, with all digits that reading them back needs."""
    return "{" + "/".join(repr(value) for value in values) + "}"
