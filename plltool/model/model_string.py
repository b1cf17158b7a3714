"""Model strings: ``parse_model`` reads the notations of RAxML-NG and IQ-TREE; ``str`` writes RAxML-NG's.

    NAME[{values}][+PROFILES][+FREQUENCIES][+INVARIABLE][+RATES][+COVARION][+ASCERTAINMENT][+SCALER]

docs/models.md lists the names and suffixes. Upper and lower case are the same. If the two programs disagree on a name,
RAxML-NG's meaning holds: TIM2 and TIM3 have equal base frequencies. Values with slashes are one per distinct rate, in
the order of the digits of a nucleotide model (RAxML-NG); with commas, or as a single value, one per distinct rate
except the last pair's, which is 1, in the order in which they first occur (IQ-TREE). Without FREQUENCIES they are equal
or optimised, as the name implies (RAxML-NG's rule; in IQ-TREE a name that implies unequal frequencies means empirical
ones). Values in braces are fixed, as in IQ-TREE; RAxML-NG uses them as starting values except with ``--opt-model off``.
"""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from plltool.alignment.spaces import genetic_code_of
from plltool.constants import DEFAULT_RATE_CATEGORIES, DEFAULT_SITE_CATEGORIES, MAX_RATE_CATEGORIES
from plltool.errors import InputError, shorten
from plltool.model import checks, codons, components, mixtures, proteins
from plltool.model.names import OUTSIDE, MatrixReader, Token, read_name, tokenise, weigh_classes
from plltool.model.rates import RateKind
from plltool.model.spec import FREQUENCY_WORDS, ModelSpec

_FREQUENCY_MODES = {word: mode for mode, words in FREQUENCY_WORDS.items() for word in words}
_MODIFIERS_ACCEPTED = (
    "+FE, +F or +FC, +FO, +FU{...}, for codons +F1X4 and +F3X4, +I[{share}], +IC, +G[categories][{alpha}],"
    " +GA[categories], +R[categories], +PSR[categories], +C10 to +C60, +SSF, +COV[{on/off}], +ASC, +ASC_FELS{n},"
    " +ASC_STAM{n/n/...}, +B[{scaler}]"
)
_RATE_KINDS: dict[str, RateKind] = {"G": "gamma", "R": "free", "P": "psr", "C": "psr"}  # by the first letter
PRODUCT_TOLERANCE = 1e-3  # of given codon frequencies, relative: they may be printed with few digits


def parse_model(text: str, read_matrix: MatrixReader | None = None) -> ModelSpec:
    """Read a model string; `read_matrix` reads the file of ``GTR20{FILE}``, which without it must hold numbers."""
    tokens = tokenise(text.strip())
    is_free = mixtures.is_free(f"{tokens[0].word.upper()}{{{tokens[0].values}}}")
    spec = _read_members(tokens[0], read_matrix) if is_free else read_name(tokens[0], read_matrix)
    kinds_seen = set()
    for token in tokens[1:]:
        kind, spec = _read_modifier(token, spec)
        if kind in kinds_seen:
            raise token.error(f"{kind} given twice")
        kinds_seen.add(kind)
    if spec.profiles is not None:
        named = next(token for token in tokens if token.word.upper() in (*proteins.PROFILES, mixtures.PROFILES))
        spec = _weigh_profiles(named, spec, "base frequencies" in kinds_seen)
    if spec.has_site_frequencies:
        found = next(token for token in tokens if token.word.upper() == "SSF")
        spec = found.checked(ModelSpec.with_site_frequencies, spec)
    if spec.sites.kind == "psr" and not spec.is_reversible:
        raise tokens[0].error("per-site rates (+PSR) need a time-reversible model")
    if spec.sites.kind == "psr" and (spec.sites.invariable or spec.has_classes or spec.switching):
        raise tokens[0].error("per-site rates (+PSR) take no invariable sites (+I), no switching (+COV) and no mixture")
    if spec.ascertainment is not None and (spec.sites.invariable or spec.sites.kind == "psr"):
        problem = "corrections for ascertainment bias (+ASC) take no invariable sites (+I)"
        raise tokens[0].error(f"{problem} and no per-site rates (+PSR)")
    if spec.is_tied:  # one rate category for each matrix
        n_classes = len(proteins.MIXTURES[spec.name])
        if spec.sites.kind == "equal":
            sites = replace(spec.sites, kind=proteins.TIED_RATES[spec.name], n_categories=n_classes)
            return replace(spec, sites=sites)
        if spec.sites.n_categories != n_classes:
            raise tokens[0].error(f"expected {n_classes} categories of rates, one for each matrix")
    return spec


def _read_members(token: Token, read_matrix: MatrixReader | None) -> ModelSpec:
    """Read a free mixture, ``MIX{MODEL[:rate[:weight]],...}``."""
    items = [re.split(OUTSIDE.format(":"), item) for item in re.split(OUTSIDE.format(","), token.values or "")]
    if len(items) == 1:
        raise token.error("found one class, expected two or more")
    members = [parse_model(item[0], read_matrix) for item in items]
    numbers = [
        [replace(token, values=number).one_number("a rate or a weight") for number in item[1:]] for item in items
    ]
    rates, weights = [own[0] if own else 1.0 for own in numbers], [own[1] for own in numbers if len(own) > 1]
    if max(map(len, numbers)) > 2 or len(weights) not in (0, len(members)):
        raise token.error("expected MODEL, MODEL:RATE or MODEL:RATE:WEIGHT of each class, and all weights or none")
    for own in members:
        token.checked(check_member, own)
        if own.data != members[0].data:
            raise token.error(f"found models of {members[0].data} and {own.data} data, expected one kind")
    token.checked(checks.check_positive, rates, "rates of classes")
    given = token.checked(checks.check_shares, weights, "weights of classes") if weights else ()
    name = mixtures.name_members([str(own) for own in members], rates, given)
    return ModelSpec(name, "model", members=tuple(members), member_rates=tuple(rates), class_weights=given or None)


def check_member(spec: ModelSpec) -> None:
    """Raise InputError unless a model can be a class of a mixture of matrices."""
    is_plain = spec.is_reversible and not (spec.has_classes or spec.switching or spec.scaled or spec.ascertainment)
    is_plain = is_plain and spec.data in ("DNA", "protein") and spec.named.rates.rays is None
    if not is_plain or str(spec.sites):
        form = "a reversible model of DNA or proteins with one rate, such as LG, GTR+FO or HKY{2}+FU{0.1/0.2/0.3/0.4}"
        raise InputError(f"found {spec.shown} in a mixture, expected {form}")


def _read_frequencies(token: Token, spec: ModelSpec) -> ModelSpec:
    word = token.word.upper()
    if spec.is_directed:
        raise token.error(f"the frequencies of {shorten(spec.name)} follow from its rates, so no others are accepted")
    if spec.has_frequencies_by_class and spec.is_mixture:
        name = shorten(spec.name)
        raise token.error(f"the matrices of {name} have frequencies of their own, so no others are accepted")
    if word in ("F1X4", "F3X4") and genetic_code_of(spec.data) is None:
        raise token.error("frequencies of bases in codons need a codon model, such as GY")
    if spec.named.of_bases and word in ("F", "FC", "FO") and token.values is None:
        raise token.error(f"{spec.name} needs codon frequencies that follow from bases: +F1X4, +F3X4 or +FE")
    if token.values is None:
        if word == "FU":
            raise token.error(f"expected {len(spec.symbols)} frequencies in braces: +FU{_frequency_form(spec)}")
        return replace(spec, frequency_mode=_FREQUENCY_MODES[word], frequencies=None)
    if word not in ("F", "FU"):
        raise token.error(f"takes no values; given frequencies are written +FU{_frequency_form(spec)}")
    if not spec.n_states:
        raise token.error("given frequencies need a model with a number of states, such as MULTI3_MK")
    values = token.checked(checks.check_frequencies, token.numbers(), spec.symbols)
    if spec.named.of_bases and not codons.are_products(np.array(values), spec.symbols, PRODUCT_TOLERANCE):
        raise token.error(f"{spec.name} needs codon frequencies that are products of base frequencies at its positions")
    return replace(spec, frequency_mode="given", frequencies=values)


def _frequency_form(spec: ModelSpec) -> str:
    """How given frequencies are written, such as {A/C/G/T}."""
    symbols = spec.symbols or ("0", "1", "...")
    return "{" + "/".join(symbols if len(symbols) <= 4 else [*symbols[:2], "...", symbols[-1]]) + "}"


def _read_profiles(token: Token, spec: ModelSpec) -> ModelSpec:
    is_own = token.word.upper() == mixtures.PROFILES
    data = ("DNA", "protein") if is_own else ("protein",)
    if spec.data not in data or spec.is_mixture or spec.is_directed:
        kinds = " or ".join(data)
        raise token.error(f"profiles need a single {kinds} matrix in front, such as LG+C20+G4")
    return replace(spec, profiles=token.word.upper())


def _weigh_profiles(token: Token, spec: ModelSpec, with_own: bool) -> ModelSpec:
    """Read the weights of classes; the user's own profiles have frequencies and rates of all classes before them."""
    if not with_own:
        spec = replace(spec, frequency_mode="model", frequencies=None)
    if token.word.upper() == mixtures.PROFILES:
        lists = token.lists()
        if len(lists) not in (2, 3) or any(len(rows) > 1 for rows in lists[1:]):
            raise token.error("expected profiles, such as FMIX{a,b}, or {frequency/...|...}{rate/rate}")
        frequencies, [rates], *weights = lists
        n_classes = len(frequencies) + with_own
        name = token.checked(mixtures.name_profiles, frequencies, rates, spec.symbols, n_classes)
        spec = replace(spec, profiles=name)
        return weigh_classes(token, spec, weights[0][0], n_classes) if weights else spec
    n_classes = len(mixtures.read_profiles(token.word.upper())[0]) + with_own
    return spec if token.values is None else weigh_classes(token, spec, token.numbers(), n_classes)


def _read_invariable(token: Token, spec: ModelSpec) -> ModelSpec:
    if token.word.upper() == "IC" and token.values is None:
        return replace(spec, sites=replace(spec.sites, invariable=True, counted=True))
    pinv = _read_one_value(token, "share", lambda value: checks.check_pinv(value) if value else 0.0)
    # RAxML-NG writes 0 where there are none
    return replace(spec, sites=replace(spec.sites, invariable=pinv != 0.0, pinv=pinv or None))


def _read_scaler(token: Token, spec: ModelSpec) -> ModelSpec:
    return replace(spec, scaled=True, scaler=_read_one_value(token, "scaler", checks.check_scaler))


def _read_ascertainment(token: Token, spec: ModelSpec) -> ModelSpec:
    numbers = () if token.values is None else token.numbers()
    if spec.ascertainment is not None:
        raise token.error("correction for ascertainment bias given twice")
    correction = token.checked(checks.find_correction, token.word.upper(), numbers, spec.symbols)
    return replace(spec, ascertainment=correction)


def _read_switching(token: Token, spec: ModelSpec) -> ModelSpec:
    if not spec.is_reversible:
        raise token.error("switching needs a time-reversible model")
    if token.values is None:
        return replace(spec, switching=True)
    rates = token.numbers()
    if len(rates) != len(components.SWITCH_NAMES):
        raise token.error(f"expected 2 rates, from off to on and from on to off; found {len(rates)}")
    return replace(spec, switching=True, switch_rates=token.checked(checks.check_positive, rates, "rates of switching"))


def _read_one_value(token: Token, what: str, check: Callable[[float], float]) -> float | None:
    """The value of a one-letter suffix: with U after the letter it is required, with another one it is not allowed."""
    word = token.word.upper()
    letter = word[0]
    if word != letter and (word == f"{letter}U") == (token.values is None):
        raise token.error(f"expected +{letter} or +{letter}O without a value, or +{letter}U{{{what}}}")
    return None if token.values is None else token.checked(check, token.one_number(f"the {what}"))


def _read_rates(token: Token, spec: ModelSpec) -> ModelSpec:
    """Read the kind of rates over sites, their number of categories, and their values."""
    word = token.word.upper()
    kind = _RATE_KINDS[word[0]]
    least, usual = (1, DEFAULT_SITE_CATEGORIES) if kind == "psr" else (2, DEFAULT_RATE_CATEGORIES)
    n = int(word.strip("GAMRPSCT") or usual)
    if not least <= n <= MAX_RATE_CATEGORIES:
        raise token.error(f"expected {least} to {MAX_RATE_CATEGORIES} categories")
    sites = replace(spec.sites, kind=kind, n_categories=n)
    if kind == "gamma":
        alpha = None if token.values is None else token.checked(checks.check_alpha, token.one_number("alpha"))
        sites = replace(sites, median="A" in word, alpha=alpha)
    elif token.values is not None and kind == "psr":
        numbers = token.numbers()
        if len(numbers) != n:
            raise token.error(f"expected {n} rates, found {len(numbers)}")
        sites = replace(sites, rates=token.checked(checks.check_positive, numbers, "rates"))
    elif token.values is not None:
        groups = token.groups()
        if len(groups) == 1 and "," in token.values:
            groups = [groups[0][1::2], groups[0][0::2]]
            varying = 1.0 - (sites.pinv or 0.0)  # IQ-TREE's weights and +I, which is before them, may sum to 1
            if abs(sum(groups[1]) - varying) <= checks.SUM_TOLERANCE:
                groups[1] = tuple(weight / varying for weight in groups[1])
        if [len(group) for group in groups] != [n, n]:
            raise token.error(f"expected {n} rates and {n} weights, {{r/r/...}}{{w/w/...}} or {{w,r,w,r,...}}")
        rates, weights = token.checked(checks.check_free_rates, groups[0], groups[1])
        sites = replace(sites, rates=rates, weights=weights)
    return replace(spec, sites=sites)


# Of each kind of part after a plus sign, what it looks like, what it is called, and what reads it
_MODIFIERS = (
    ("|".join((*_FREQUENCY_MODES, "FU")), "base frequencies", _read_frequencies),
    ("|".join((*proteins.PROFILES, mixtures.PROFILES)), "profiles", _read_profiles),
    ("I[COU]?", "invariable sites", _read_invariable),
    ("G(A?[0-9]{0,9}|[0-9]{0,9}[AM])|R[0-9]{0,9}|(PSR|CAT)[0-9]{0,9}", "rates across sites", _read_rates),
    ("COV", "switching", _read_switching),
    ("ASC(_.*)?", "correction for ascertainment bias", _read_ascertainment),
    ("B[OU]?", "scaler", _read_scaler),
)


def _read_modifier(token: Token, spec: ModelSpec) -> tuple[str, ModelSpec]:
    """What a part after a plus sign is called, and the specification with that part."""
    word = token.word.upper()
    for pattern, kind, read in _MODIFIERS:
        if re.fullmatch(pattern, word):
            return kind, read(token, spec)
    meant = {"GAMMA": "+G4", "INV": "+I"}.get(word.rstrip("0123456789"))
    hint = f"did you mean {meant}?" if meant else f"accepted: {_MODIFIERS_ACCEPTED}"
    raise token.error(f"unknown part of a model; {hint}")
