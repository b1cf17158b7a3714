"""The parts of a model string, and its name with values in braces; see `plltool.model.model_string`."""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from plltool.alignment.spaces import genetic_code_of, split_states
from plltool.alignment.states import DNA, MAX_STATES, MIN_STATES, PROTEIN
from plltool.errors import InputError, show_name
from plltool.model import checks, codons, mixtures, nucleotides, other_data, proteins
from plltool.model.nucleotides import PAIRS
from plltool.model.other_data import OWN_PREFIX
from plltool.model.spec import ModelSpec, find_name, find_named

Checked = TypeVar("Checked")

# An item of a list of models; nothing that has matched is given back (``++``), so that long blanks take no longer
ITEM = r"(?:[^,{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})++"  # braces may hold models with braces
OUTSIDE = r"{}(?![^{{}}]*\}})"  # a character that is not in braces

# word, braces, plus sign or end; possessive quantifiers, so that long blanks do not cause backtracking
_PATTERN = re.compile(r"\s*+([^+{}\s]++)\s*+((?:\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\})*+)\s*+(\+|\Z)")


@dataclass(frozen=True)
class Token:
    """One part of a model string, ``word{values}``, and the position of its first character or plus sign."""

    source: str
    start: int
    word: str
    values: str | None

    def __str__(self) -> str:
        return self.word if self.values is None else f"{self.word}{{{self.values}}}"

    def error(self, problem: object) -> InputError:
        sign = "" if self.start == 0 else "+"
        where = f"{show_name(f'{sign}{self}')} at character {self.start + 1}"
        return InputError(f"model {show_name(self.source)}: {where}: {problem}")

    def numbers(self, text: str | None = None) -> tuple[float, ...]:
        """The values in braces, or in a part of them, separated by slashes or by commas."""
        text = (self.values or "") if text is None else text
        numbers = []
        for field in text.split("," if "," in text else "/"):
            try:
                numbers.append(float(field))
            except ValueError:
                raise self.error(f"expected a number, found {show_name(field.strip())}") from None
        return tuple(numbers)

    def groups(self) -> list[tuple[float, ...]]:
        """The values of each pair of braces."""
        return [self.numbers(group) for group in (self.values or "").split("}{")]

    def lists(self) -> list[list[tuple[float, ...]]]:
        """The values of each pair of braces, with a row for each class of sites, which bars separate."""
        return [[self.numbers(row) for row in group.split("|")] for group in (self.values or "").split("}{")]

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


def tokenise(source: str) -> list[Token]:
    """Cut a model string at its plus signs, except those inside braces."""
    tokens = []
    position = 0
    while True:
        match = _PATTERN.match(source, position)
        if match is None:
            found = show_name(source[position:]) if position < len(source) else "nothing"
            raise InputError(
                f"model {show_name(source)}: cannot read {found} at character {position + 1};"
                " expected NAME[{rates}][+F...][+G...], such as GTR+FO+G4"
            )
        tokens.append(Token(source, max(position - 1, 0), match[1], match[2][1:-1] if match[2] else None))
        if not match[3]:
            return tokens
        position = match.end()


MatrixReader = Callable[[str], tuple[tuple[float, ...], tuple[float, ...]]]  # of a path: exchangeabilities, frequencies

_UNSUPPORTED = (  # names of IQ-TREE, RAxML and RAxML-NG
    (r"CODON[0-9]+_(?:KOSI07|ECM).*", "empirical codon models under other codes than the standard one are"),
    (r"(?:SCHN05|ECMS05)(?:_.*)?", "the empirical codon model of Schneider, Cannarozzi & Gonnet is"),
    (r"(?:KOSI07|ECM.*)_MG.*", "empirical codon models with frequencies of bases are"),
)
_ACCEPTED = (
    f"{', '.join((*nucleotides.SYMMETRIES, *nucleotides.DIRECTED))}, six digits such as 010010, a Lie Markov model such"
    " as RY8.8, a protein model such as LG, one of multistate data such as MK, of doublets such as S16, GT10, GT16, or"
    f" a codon model: {', '.join(codons.NAMES)}, with the number of another genetic code in front, such as CODON2_GY"
    " (see docs/models.md)"
)
_RAXML = re.compile(  # such as GTRGAMMAI and PROTGAMMALGF
    "(?:PROT)?(?P<name>[A-Z0-9]*?)(?P<rates>GAMMA|CAT)(?P<invariable>I?)(?P<matrix>[A-Z0-9]*?)(?P<own>F?)X?"
)
CLOSE_NAME = 0.8  # difflib's ratio of a name and what may be a slip in it


def read_name(token: Token, read_matrix: MatrixReader | None) -> ModelSpec:
    """The model that a name stands for, with its values in braces."""
    word = token.word.upper()
    if word == OWN_PREFIX:
        symbols, _, values = (token.values or "").partition("}{")
        if not values or "{" in values:
            raise token.error(f"expected a file, {OWN_PREFIX}{{FILE}}, or {OWN_PREFIX}{{STATES}}{{rate/rate/...}}")
        return _default_spec(token.checked(other_data.make_name, split_states(symbols), token.numbers(values)))
    if word == mixtures.MATRICES:
        return _read_mixture(token)
    is_mkv = word.endswith(other_data.MKV)  # MK of variable columns (Lewis 2001)
    name = find_name(word[:-1] if is_mkv else word)
    if name is None:
        kind = next((kind for pattern, kind in _UNSUPPORTED if re.fullmatch(pattern, word)), None)
        if kind is not None:
            raise token.error(f"{kind} not supported; accepted: {_ACCEPTED}")
        meant = _similar_name(word)
        raise token.error(f"unknown model; {f'did you mean {meant}?' if meant else f'accepted: {_ACCEPTED}'}")
    number = re.match("MULTI([0-9]+)_", name)
    if number and not MIN_STATES <= int(number[1]) <= MAX_STATES:
        raise token.error(f"expected {MIN_STATES} to {MAX_STATES} states")
    spec = _default_spec(name)
    spec = spec if token.values is None else _read_values(token, spec, read_matrix)
    return replace(spec, ascertainment=checks.Ascertainment("lewis")) if is_mkv else spec


def _read_values(token: Token, spec: ModelSpec, read_matrix: MatrixReader | None) -> ModelSpec:
    """The model with the values in the braces behind its name."""
    word, design = token.word.upper(), spec.named.rates
    is_codon = genetic_code_of(spec.data) is not None
    if lie_markov := nucleotides.lie_markov_names().get(word):
        return _read_lie_markov(lie_markov, token, spec)
    if spec.data == DNA.name:
        return _read_rates(word[-6:] if word[-6:].isdigit() else nucleotides.symmetry(spec.name), token, spec)
    if spec.name in other_data.GENOTYPE_MODELS:
        return _read_rates(nucleotides.symmetry("GTR"), token, spec)
    if spec.data == PROTEIN.name and design.n_free:
        return _read_free_rates(token, spec, read_matrix)
    if spec.data == PROTEIN.name and spec.is_mixture and not spec.is_tied:
        return weigh_classes(token, spec, token.numbers(), len(proteins.MIXTURES[spec.name]))
    if spec.data == PROTEIN.name or (is_codon and not design.names):
        raise token.error("the exchangeabilities of this model are published, so no values in braces are accepted")
    return _read_codon(token, spec) if is_codon else _read_exchangeabilities(token, spec)


def _similar_name(word: str) -> str:
    """The model that a name of RAxML, such as PROTGAMMALGF, or a misspelt one may mean; empty if none is close."""
    names = nucleotides.CANONICAL_NAMES | proteins.canonical_names()
    names |= {name.upper(): name for name in codons.NAMES}
    raxml = _RAXML.fullmatch(word)
    name = names.get(raxml["name"] or raxml["matrix"]) if raxml else None
    if raxml and name:
        rates = "+CAT" if raxml["rates"] == "CAT" else "+I+G4" if raxml["invariable"] else "+G4"
        return f"{name}{'+F' if raxml['own'] else ''}{rates}"
    close = difflib.get_close_matches(word, names, 1, CLOSE_NAME)
    return names[close[0]] if close else ""


def _default_spec(name: str) -> ModelSpec:
    """The model of a canonical name, with the frequencies that it implies."""
    return ModelSpec(name, find_named(name).frequency_mode)


def _read_rates(code: str, token: Token, spec: ModelSpec) -> ModelSpec:
    """The rate of each class relative to the last one, in the order in which the classes first occur in `code`."""
    pairs, classes = spec.pairs if spec.is_directed else PAIRS, list(dict.fromkeys(code))
    if len(classes) == 1:
        raise token.error("this model has only one exchangeability, so no values in braces are accepted")
    values = token.numbers()
    if "/" in (token.values or ""):
        given, form = sorted(classes), "separated by slashes: one per distinct rate"
    else:
        given = [digit for digit in classes if digit != code[-1]]
        form = f"separated by commas: one per distinct rate except that of {pairs[-1]}, which is 1"
    if len(values) != len(given):
        raise token.error(f"expected {len(given)} rates {form}; found {len(values)}")
    rates = {code[-1]: 1.0} | dict(zip(given, values, strict=True))
    relative = token.checked(checks.check_exchangeabilities, [rates[digit] for digit in code], pairs)
    return replace(spec, rates=tuple(relative[code.index(digit)] for digit in classes))


def _read_lie_markov(name: str, token: Token, spec: ModelSpec) -> ModelSpec:
    """Read weights of basis matrices, separated by commas (IQ-TREE), or parameters of rays, separated by slashes."""
    design, values = spec.named.rates, token.numbers()
    if "/" not in (token.values or ""):
        rates = token.checked(nucleotides.rates_of_weights, values, name)
        return replace(spec, rates=tuple(design.parameters_of(rates).tolist()))
    if len(values) != design.n_parameters:
        raise token.error(f"expected {design.n_parameters} parameters separated by slashes; found {len(values)}")
    token.checked(checks.check_positive, values, "parameters")
    relative, what = design.relative(np.array(values)).tolist(), "parameters relative to the one that is 1"
    return replace(spec, rates=token.checked(checks.check_positive, relative, what))


def _read_exchangeabilities(token: Token, spec: ModelSpec) -> ModelSpec:
    """Read parameters with names, or exchangeabilities of pairs of states; with commas the last one, 1, is left out."""
    if not spec.n_states:
        raise token.error(f"values need a number of states, such as {other_data.with_states(spec.name, 3)}{{...}}")
    if spec.named.rates.names:
        return replace(spec, rates=token.checked(checks.check_rate_parameters, token.numbers(), spec.named.rates))
    if spec.named.rates.n_free == 0:
        raise token.error("the exchangeabilities of this model are fixed, so no values in braces are accepted")
    rates = token.numbers() if "/" in (token.values or "") else (*token.numbers(), 1.0)
    return replace(spec, rates=token.checked(checks.check_exchangeabilities, rates, spec.pairs))


def _read_mixture(token: Token) -> ModelSpec:
    """Read exchangeabilities, frequencies and rates of classes, and in a fourth pair of braces their weights."""
    lists = token.lists()
    if len(lists) not in (3, 4) or any(len(rows) > 1 for rows in lists[2:]):
        form = "{rate/.../rate|...}{frequency/...|...}{rate/rate}"
        raise token.error(f"expected models of classes, such as {mixtures.MATRICES}{{LG,WAG}}, or {form}")
    exchangeabilities, frequencies, [rates], *weights = lists
    spec = _default_spec(token.checked(mixtures.name_matrices, exchangeabilities, frequencies, rates))
    return weigh_classes(token, spec, weights[0][0], len(frequencies)) if weights else spec


def weigh_classes(token: Token, spec: ModelSpec, weights: tuple[float, ...], n_classes: int) -> ModelSpec:
    if len(weights) != n_classes:
        raise token.error(f"expected {n_classes} weights, found {len(weights)}")
    return replace(spec, class_weights=token.checked(checks.check_shares, weights, "weights of classes"))


def _read_codon(token: Token, spec: ModelSpec) -> ModelSpec:
    """Read omega and kappa, and in a second pair of braces the weights of classes of sites."""
    design = spec.named.rates
    rates, *weights = token.groups()
    spec = replace(spec, rates=token.checked(checks.check_rate_parameters, rates, design))
    if [len(group) for group in weights] != [design.n_classes] * spec.is_mixture:
        form = f"{{{'/'.join(design.names)}}}" + "{weights of classes}" * spec.is_mixture
        raise token.error(f"expected {spec.name}{form}")
    return weigh_classes(token, spec, weights[0], design.n_classes) if weights else spec


def _read_free_rates(token: Token, spec: ModelSpec, read_matrix: MatrixReader | None) -> ModelSpec:
    """Read 190 exchangeabilities, or a file with these and 20 frequencies; under NONREV 380 rates."""
    text = token.values or ""
    if read_matrix is not None and not spec.is_directed and not re.fullmatch(r"[-+0-9.eE/,\s]+", text):
        rates, frequencies = read_matrix(text)
        frequencies = token.checked(checks.check_frequencies, frequencies, spec.symbols)
        spec = replace(spec, frequency_mode="given", frequencies=frequencies)
    else:
        rates = token.numbers()
    return replace(spec, rates=token.checked(checks.check_exchangeabilities, rates, spec.pairs, 0.0))
