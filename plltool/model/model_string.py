"""Model strings: ``parse_model`` reads the notation of RAxML-NG and IQ-TREE; ``str`` writes that of RAxML-NG.

    NAME[{values}][+PROFILES][+FREQUENCIES][+INVARIABLE][+RATES][+SCALER]

NAME: for nucleotides one of `EQUAL_FREQUENCY_MODELS`, `FREE_FREQUENCY_MODELS` or `ALIASES` in `nucleotides`, or six
digits (with or without ``DNA`` in front), where equal digits mean equal rates, in the order AC AG AT CG CT GT. For
proteins an empirical matrix, ``Poisson``, ``GTR20``, or a mixture of matrices. Upper and lower case are the same. If
the two programs disagree on a name, RAxML-NG's meaning holds: TIM2 and TIM3 have equal base frequencies.

values: exchangeabilities. With slashes, one value per distinct rate, in the order of the digits (RAxML-NG); with
commas, or as a single value, one per distinct rate except that of GT, which is 1, in the order in which they first
occur (IQ-TREE). ``GTR20{FILE}`` reads a file in PAML's format. For a mixture, the weights of its classes.

PROFILES: ``C10`` to ``C60``, after a protein matrix: classes of sites with frequencies of their own.

FREQUENCIES: ``FE`` ``FQ`` equal; ``F`` ``FC`` empirical; ``FO`` optimised; ``FU{A/C/G/T}`` ``F{A,C,G,T}`` given. By
default equal or optimised, as the name implies (RAxML-NG's rule; in IQ-TREE a name that implies unequal frequencies
means empirical ones); for proteins, those of the matrix.

INVARIABLE: ``I`` ``IO`` optimised; ``IU{share}`` ``I{share}`` given.

RATES: ``G[k][m][{alpha}]`` gamma, k categories (4 by default) represented by their means; ``GA[k]`` or ``G[k]a`` by
their medians; ``R[k]{rates}{weights}`` free rates, or ``R[k]{weight,rate,...}`` (IQ-TREE). By default LG4M has +G4 and
LG4X has +R4. ``PSR[k]{rates}``, or ``CAT`` in place of ``PSR``: per-site rates, each site with one of at most k rates
(25 by default), which are optimised or given.

SCALER: ``B`` ``BO`` a factor of all branch lengths, optimised; ``BU{value}`` ``B{value}`` given. It is meant for parts,
whose branch lengths are those of the tree times their scaler.

Values in braces are fixed, as in IQ-TREE; RAxML-NG uses them as starting values except with ``--opt-model off``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from plltool.constants import DEFAULT_RATE_CATEGORIES, DEFAULT_SITE_CATEGORIES, MAX_RATE_CATEGORIES
from plltool.errors import InputError, show_name
from plltool.model import proteins
from plltool.model.nucleotides import (
    CANONICAL_NAMES,
    CUSTOM_PREFIX,
    EQUAL_FREQUENCY_MODELS,
    SYMMETRIES,
    renumber,
)
from plltool.model.rates import SiteRates
from plltool.model.spec import FrequencyMode, ModelSpec
from plltool.model.values import (
    check_alpha,
    check_exchangeabilities,
    check_free_rates,
    check_frequencies,
    check_pinv,
    check_positive,
    check_scaler,
    check_shares,
)

MatrixReader = Callable[[str], tuple[tuple[float, ...], tuple[float, ...]]]  # of a path: exchangeabilities, frequencies

_FREQUENCY_WORDS: dict[str, FrequencyMode] = {
    "F": "empirical",
    "FC": "empirical",
    "FO": "optimised",
    "FE": "equal",
    "FQ": "equal",
}
_UNAVAILABLE = (
    (r"IC", "+IC (invariable sites as counted)"),
    (r"ASC.*", "+ASC (ascertainment bias correction)"),
)
_UNSUPPORTED_NAMES = (  # of IQ-TREE, RAxML and RAxML-NG
    (r"(?:GY|MG)(?:[0-9]K(?:TS|TV)?)?|MGK|KOSI07|SCHN05|ECM.*|CODON[0-9]*", "codon models are"),
    (r"MKV?|ORDERED|MORPH|STANDARD|MULTI.*|BIN.*|JC2|GTR2", "models of morphological and binary data are"),
)
_NAMES_ACCEPTED = (
    f"{', '.join(SYMMETRIES)}, six digits such as 010010, or a protein model such as LG (see docs/models.md)"
)
_MODIFIERS_ACCEPTED = (
    "+FE, +F or +FC, +FO, +FU{...}, +I[{share}], +G[categories][{alpha}], +GA[categories], +R[categories],"
    " +PSR[categories], +C10 to +C60, +B[{scaler}]"
)
_PROFILES_TAKE_NO_FREQUENCIES = "profiles are frequencies of their own, so no others are accepted"
_ONE_RATE_PER_SITE = "per-site rates (+PSR) take no invariable sites (+I) and no mixture of matrices or profiles"

Checked = TypeVar("Checked")

# word, braces, plus sign or end; possessive quantifiers, so that long blanks do not cause backtracking
_TOKEN = re.compile(r"\s*+([^+{}\s]++)\s*+((?:\{[^{}]*+\})*+)\s*+(\+|\Z)")


def parse_model(text: str, read_matrix: MatrixReader | None = None) -> ModelSpec:
    """Read a model string; the docstring of the module has the grammar.

    Parameters
    ----------
    read_matrix : reads the file of ``GTR20{FILE}``; without it the braces must hold numbers.

    Raises
    ------
    InputError
        For unknown names, models that this version lacks, a part given twice, a wrong number of values, values that
        are not positive and finite, and frequencies that do not sum to 1. The message names the part of the string, its
        position (from 1, in the trimmed string), what is wrong with it and what is accepted.
    """
    tokens = _tokenise(text.strip())
    spec = _read_name(tokens[0], read_matrix)
    kinds_seen = set()
    for token in tokens[1:]:
        kind, spec = _read_modifier(token, spec)
        if kind in kinds_seen:
            raise token.error(f"{kind} given twice")
        kinds_seen.add(kind)
    if {"base frequencies", "profiles"} <= kinds_seen:
        raise tokens[0].error(_PROFILES_TAKE_NO_FREQUENCIES)
    if spec.sites.kind == "psr" and (spec.sites.invariable or spec.is_mixture or spec.profiles is not None):
        raise tokens[0].error(_ONE_RATE_PER_SITE)
    return _tie_rates(tokens[0], spec) if spec.is_tied else spec


@dataclass(frozen=True)
class _Token:
    """One part of a model string, ``word{values}``, and the position of its first character or plus sign."""

    source: str
    start: int
    word: str
    values: str | None

    def error(self, problem: object) -> InputError:
        sign = "" if self.start == 0 else "+"
        values = "" if self.values is None else f"{{{self.values}}}"
        where = f"{show_name(sign + self.word + values)} at character {self.start + 1}"
        return InputError(f"model {show_name(self.source)}: {where}: {problem}")

    def numbers(self) -> tuple[float, ...]:
        """The values in braces, separated by slashes or by commas."""
        return self._numbers(self.values or "")

    def groups(self) -> list[tuple[float, ...]]:
        """The values of each pair of braces."""
        return [self._numbers(group) for group in (self.values or "").split("}{")]

    def checked(self, check: Callable[..., Checked], *arguments: Any) -> Checked:
        """The result of ``check(*arguments)``; an InputError is raised again with this part of the string."""
        try:
            return check(*arguments)
        except InputError as problem:
            raise self.error(problem) from None

    def one_number(self, name: str) -> float:
        values = self.numbers()
        if len(values) != 1:
            raise self.error(f"expected one value, {name}; found {len(values)}")
        return values[0]

    def _numbers(self, text: str) -> tuple[float, ...]:
        fields = text.split("," if "," in text else "/")
        numbers = []
        for field in fields:
            try:
                numbers.append(float(field))
            except ValueError:
                raise self.error(f"expected a number, found {show_name(field.strip())}") from None
        return tuple(numbers)


def _tokenise(source: str) -> list[_Token]:
    """Cut a model string at its plus signs, except those inside braces."""
    tokens = []
    position = 0
    while True:
        match = _TOKEN.match(source, position)
        if match is None:
            found = show_name(source[position:]) if position < len(source) else "nothing"
            raise InputError(
                f"model {show_name(source)}: cannot read {found} at character {position + 1};"
                " expected NAME[{rates}][+F...][+G...], such as GTR+FO+G4"
            )
        tokens.append(_Token(source, max(position - 1, 0), match[1], match[2][1:-1] if match[2] else None))
        if not match[3]:
            return tokens
        position = match.end()


# --- names --------------------------------------------------------------------------------------------------


def _read_name(token: _Token, read_matrix: MatrixReader | None) -> ModelSpec:
    """The model that a name stands for, with its values in braces."""
    word = token.word.upper()
    custom = re.fullmatch(f"(?:{CUSTOM_PREFIX})?([0-9]{{6}})", word)
    if custom:
        return _read_nucleotide(token, CUSTOM_PREFIX + renumber(custom[1]), custom[1])
    if word in CANONICAL_NAMES:
        name = CANONICAL_NAMES[word]
        return _read_nucleotide(token, name, SYMMETRIES[name])
    if word in proteins.canonical_names():
        return _read_protein(token, proteins.canonical_names()[word], read_matrix)
    for pattern, kind in _UNSUPPORTED_NAMES:
        if re.fullmatch(pattern, word):
            raise token.error(f"{kind} not supported; models of DNA and proteins are: {_NAMES_ACCEPTED}")
    raise token.error(f"unknown model; accepted: {_NAMES_ACCEPTED}")


def _read_nucleotide(token: _Token, name: str, code: str) -> ModelSpec:
    mode: FrequencyMode = "equal" if name in EQUAL_FREQUENCY_MODELS else "optimised"
    spec = ModelSpec(name, mode)
    return replace(spec, rates=_read_rates(token, code, spec.pairs))


def _read_rates(token: _Token, code: str, pairs: tuple[str, ...]) -> tuple[float, ...] | None:
    """The rate of each class relative to GT, in the order in which the classes first occur in `code`."""
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
    relative = token.checked(check_exchangeabilities, [rates[digit] for digit in code], pairs)
    return tuple(relative[code.index(digit)] for digit in classes)


def _read_protein(token: _Token, name: str, read_matrix: MatrixReader | None) -> ModelSpec:
    spec = ModelSpec(name, "optimised" if name == proteins.GTR20 else "model")
    if token.values is None:
        return spec
    if name == proteins.GTR20:
        return _read_gtr20(token, spec, read_matrix)
    if spec.is_mixture and not spec.is_tied:
        n_classes = len(proteins.MIXTURES[name])
        weights = token.numbers()
        if len(weights) != n_classes:
            raise token.error(f"expected {n_classes} weights, found {len(weights)}")
        return replace(spec, class_weights=token.checked(check_shares, weights, "weights of classes"))
    raise token.error("the exchangeabilities of this model are published, so no values in braces are accepted")


def _read_gtr20(token: _Token, spec: ModelSpec, read_matrix: MatrixReader | None) -> ModelSpec:
    """Read 190 exchangeabilities, or a file with these and 20 frequencies."""
    text = token.values or ""
    if read_matrix is not None and not re.fullmatch(r"[-+0-9.eE/,\s]+", text):
        rates, frequencies = read_matrix(text)
        frequencies = token.checked(check_frequencies, frequencies, spec.symbols)
        spec = replace(spec, frequency_mode="given", frequencies=frequencies)
    else:
        rates = token.numbers()
    return replace(spec, rates=token.checked(check_exchangeabilities, rates, spec.pairs, 0.0))


# --- modifiers ----------------------------------------------------------------------------------------------


def _read_modifier(token: _Token, spec: ModelSpec) -> tuple[str, ModelSpec]:
    """The kind of a part after a plus sign, and the specification with that part."""
    word = token.word.upper()
    for pattern, what in _UNAVAILABLE:
        if re.fullmatch(pattern, word):
            raise token.error(f"{what} is not available in this version; accepted: {_MODIFIERS_ACCEPTED}")
    if word in _FREQUENCY_WORDS or word == "FU":
        return "base frequencies", _read_frequencies(token, spec)
    if word in proteins.PROFILES:
        return "profiles", _read_profiles(token, spec)
    if word in ("I", "IO", "IU"):
        return "invariable sites", replace(spec, sites=_read_invariable(token, spec.sites))
    if word in ("B", "BO", "BU"):
        return "scaler", _read_scaler(token, spec)
    if re.fullmatch(r"G(A?[0-9]{0,9}|[0-9]{0,9}[AM])", word):
        return "rates across sites", replace(spec, sites=_read_gamma(token, spec.sites))
    if re.fullmatch(r"R[0-9]{0,9}", word):
        return "rates across sites", replace(spec, sites=_read_free_rates(token, spec.sites))
    if re.fullmatch(r"(?:PSR|CAT)[0-9]{0,9}", word):
        return "rates across sites", replace(spec, sites=_read_site_categories(token, spec.sites))
    raise token.error(f"unknown part of a model; accepted: {_MODIFIERS_ACCEPTED}")


def _read_frequencies(token: _Token, spec: ModelSpec) -> ModelSpec:
    word = token.word.upper()
    if spec.is_mixture:
        raise token.error(f"the matrices of {spec.name} have frequencies of their own, so no others are accepted")
    if token.values is None:
        if word == "FU":
            form = "{A/C/G/T}" if spec.is_nucleotide else f"{{{spec.symbols[0]}/{spec.symbols[1]}/.../V}}"
            raise token.error(f"expected {len(spec.symbols)} frequencies in braces: +FU{form}")
        return replace(spec, frequency_mode=_FREQUENCY_WORDS[word], frequencies=None)
    if word not in ("F", "FU"):
        raise token.error("takes no values; given frequencies are written +FU{A/C/G/T}")
    values = token.checked(check_frequencies, token.numbers(), spec.symbols)
    return replace(spec, frequency_mode="given", frequencies=values)


def _read_profiles(token: _Token, spec: ModelSpec) -> ModelSpec:
    if spec.is_nucleotide or spec.is_mixture:
        raise token.error("profiles need a single protein matrix in front, such as LG+C20+G4")
    if token.values is not None:
        raise token.error("takes no values")
    return replace(spec, profiles=token.word.upper(), frequency_mode="model", frequencies=None)


def _read_invariable(token: _Token, sites: SiteRates) -> SiteRates:
    return replace(sites, invariable=True, pinv=_read_one_value(token, "share", check_pinv))


def _read_scaler(token: _Token, spec: ModelSpec) -> ModelSpec:
    return replace(spec, scaled=True, scaler=_read_one_value(token, "scaler", check_scaler))


def _read_one_value(token: _Token, what: str, check: Callable[[float], float]) -> float | None:
    """The value of a one-letter suffix: with U after the letter it is required, with O it is not allowed."""
    word = token.word.upper()
    letter = word[0]
    if (word == f"{letter}U" and token.values is None) or (word == f"{letter}O" and token.values is not None):
        raise token.error(f"expected +{letter} or +{letter}O without a value, or +{letter}U{{{what}}}")
    return None if token.values is None else token.checked(check, token.one_number(f"the {what}"))


def _read_gamma(token: _Token, sites: SiteRates) -> SiteRates:
    word = token.word.upper()
    n_categories = _read_number_of_categories(token, word.strip("GAM"))
    alpha = None if token.values is None else token.checked(check_alpha, token.one_number("alpha"))
    return replace(sites, kind="gamma", n_categories=n_categories, median="A" in word, alpha=alpha)


def _read_free_rates(token: _Token, sites: SiteRates) -> SiteRates:
    n = _read_number_of_categories(token, token.word.upper().strip("R"))
    sites = replace(sites, kind="free", n_categories=n)
    if token.values is None:
        return sites
    groups = token.groups()
    if len(groups) == 1 and "," in token.values:
        groups = [groups[0][1::2], groups[0][0::2]]
    if [len(group) for group in groups] != [n, n]:
        raise token.error(f"expected {n} rates and {n} weights, {{r/r/...}}{{w/w/...}} or {{w,r,w,r,...}}")
    rates, weights = token.checked(check_free_rates, groups[0], groups[1])
    return replace(sites, rates=rates, weights=weights)


def _read_site_categories(token: _Token, sites: SiteRates) -> SiteRates:
    n = _read_number_of_categories(token, token.word[3:], 1, DEFAULT_SITE_CATEGORIES)
    sites = replace(sites, kind="psr", n_categories=n)
    if token.values is None:
        return sites
    rates = token.numbers()
    if len(rates) != n:
        raise token.error(f"expected {n} rates, found {len(rates)}")
    return replace(sites, rates=token.checked(check_positive, rates, "rates"))


def _read_number_of_categories(
    token: _Token, digits: str, least: int = 2, default: int = DEFAULT_RATE_CATEGORIES
) -> int:
    n_categories = int(digits or default)
    if not least <= n_categories <= MAX_RATE_CATEGORIES:
        raise token.error(f"expected {least} to {MAX_RATE_CATEGORIES} categories")
    return n_categories


def _tie_rates(token: _Token, spec: ModelSpec) -> ModelSpec:
    """Give a tied mixture one rate category for each matrix."""
    n_classes = len(proteins.MIXTURES[spec.name])
    if spec.sites.kind == "equal":
        sites = replace(spec.sites, kind=proteins.TIED_RATES[spec.name], n_categories=n_classes)
        return replace(spec, sites=sites)
    if spec.sites.n_categories != n_classes:
        raise token.error(f"expected {n_classes} categories of rates, one for each matrix")
    return spec
