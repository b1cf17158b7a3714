r"""Models that a file defines: the ``models`` block of a NEXUS file, as IQ-TREE reads it, and mixtures of models.

    #NEXUS
    begin models;
      model mine = 0.2 0.1 ... 0.05;            PAML's order: rows of the lower triangle, then frequencies
      model both = MIX{mine:0.6:0.4, LG:1.2:0.6};     of each class the model, and perhaps its rate and its weight
      model usual = mine+two+G4{0.5};           any model string
      frequency outer = 0.4 0.1 0.2 0.3;
      frequency two = FMIX{outer:0.5:0.3, empirical:1.5:0.7};
    end;

``NAME{FILE}`` in a model string stands for what FILE defines as NAME. What comes out is a model string with all values,
which `parse_model` reads.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from plltool.errors import InputError, errors_at, shorten, show_name
from plltool.io.alignment_formats import decode_name
from plltool.io.files import find_file, read_text, source_name
from plltool.io.nexus import split_commands, starts_like_nexus
from plltool.model import mixtures, nucleotides, other_data, proteins
from plltool.model.checks import format_values
from plltool.model.model import Model
from plltool.model.model_string import check_member, parse_model
from plltool.model.named import unpack_triangle
from plltool.model.names import ITEM, OUTSIDE, Token, tokenise

MODEL, FREQUENCY = "model", "frequency"
_BLOCK = "models"
_OTHER_FILES = (other_data.OWN_PREFIX, proteins.GTR20, "PROTGTR")  # names whose braces may hold another kind of file
_RESERVED = (mixtures.MATRICES, mixtures.PROFILES, *_OTHER_FILES)
_SIZES = {len(names) + n: n for names, n in ((nucleotides.PAIRS, 4), (proteins.PAIRS, proteins.N_STATES))}
_MODES = {"EMPIRICAL": "FC", "OPTIMIZED": "FO", "OPTIMISED": "FO", "EQUAL": "FE"}  # of a class that is no profile
_MAX_LENGTH = 10_000_000  # of a model string, in characters
_VALUES = re.compile(r"[-+0-9.eE/,|{}\s]*")
_PUBLISHED_PROFILE = re.compile(r"(C[1-6]0)PI([1-9][0-9]?)")
_FREQUENCIES = re.compile(r"F|C[1-6]0", re.IGNORECASE)  # pieces that begin so replace the frequencies of a matrix
_DEFINITION = re.compile(r"\s*+([^\s=]++)\s*+=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Definition:
    """What a name stands for; `kind` is MODEL or FREQUENCY, `where` the file, the line and the name for messages."""

    kind: str
    text: str
    where: str


Definitions = Mapping[str, Definition]


def expand_definitions(text: str) -> str:
    """A model string with values in place of ``NAME{FILE}``, ``MIX{...}`` and ``FMIX{...}``; others as they are."""
    pieces = _split(text)
    if pieces is None or all(piece.values is None or _VALUES.fullmatch(piece.values) for piece in pieces):
        return text
    return _expand(pieces, {}, f"model {show_name(text)}")


def read_definitions(path: str) -> Definitions:
    """The definitions of a NEXUS file by name, in upper case."""
    content, source = read_text(path), source_name(path)
    if not starts_like_nexus(content):
        raise InputError(f"{source}: found no #NEXUS in the first line, expected a NEXUS file that defines models")
    found: dict[str, Definition] = {}
    is_open = is_there = False
    for command in split_commands(content, source):
        if command.word in ("begin", "end", "endblock"):
            is_open = command.word == "begin" and decode_name(command.text.strip()).lower() == _BLOCK
            is_there |= is_open
        elif is_open and (command.word or command.is_closed):
            text = decode_name(command.text)
            match = _DEFINITION.fullmatch(text)
            if command.word not in (MODEL, FREQUENCY) or match is None or not command.is_closed:
                shown = show_name(f"{command.word}{text}".strip())
                expected = "'model NAME = ... ;' or 'frequency NAME = ... ;', and then 'end;'"
                raise InputError(f"{source}: line {command.line}: found {shown}, expected {expected}")
            where, name = f"{source}: line {command.line}: {command.word} {show_name(match[1])}", match[1].upper()
            if name in _RESERVED:
                raise InputError(f"{where}: the name is reserved, expected none of: {', '.join(_RESERVED)}")
            if name in found:
                earlier = found[name].where.removeprefix(f"{source}: ")
                raise InputError(f"{where}: the name is used twice, first at {earlier}")
            found[name] = Definition(command.word, match[2].strip(), where)
    if not is_there:
        raise InputError(f"{source}: found no 'begin {_BLOCK};', expected a block with definitions of models")
    if is_open:
        raise InputError(f"{source}: the block '{_BLOCK}' has no 'end;'")
    return found


def _split(text: str) -> list[Token] | None:
    """The parts of a model string between plus signs; None for another text."""
    with suppress(InputError):
        return tokenise(text)
    return None


def _expand(pieces: Sequence[Token], known: Definitions, where: str, names: tuple[str, ...] = ()) -> str:
    """A model string with all values; `names` are those whose definitions it is in."""
    kinds = [MODEL, *[FREQUENCY] * (len(pieces) - 1)]
    texts = [_expand_piece(*pair, known, where, names) for pair in zip(pieces, kinds, strict=True)]
    model, *parts = map(str, _split(texts[0]) or (texts[0],))
    given = [*parts, *texts[1:]]
    if parts and parts[0].startswith("FU{") and any(_FREQUENCIES.match(text) for text in given[1:]):
        del given[0]  # frequencies that stand behind the name, which others replace
    text = "+".join([model, *given])
    if len(text) > _MAX_LENGTH:
        raise InputError(f"{where}: found a model of {len(text)} characters, expected at most {_MAX_LENGTH}")
    return text


def _expand_piece(piece: Token, kind: str, known: Definitions, where: str, names: tuple[str, ...]) -> str:
    word = piece.word.upper()
    if piece.values is None:
        return _expand_name(word, kind, known, names) if word in known else piece.word
    if _VALUES.fullmatch(piece.values) or word in _OTHER_FILES:
        return str(piece)
    if word == mixtures.MATRICES:
        return _mix_models(piece.values, known, where, names)
    if word == mixtures.PROFILES:
        return _mix_frequencies(piece.values, known, where)
    path = piece.values.strip()
    if not os.path.exists(find_file(path)):
        raise InputError(f"{where}: found {show_name(str(piece))}, expected numbers in braces, or the name of a file")
    definitions = read_definitions(path)
    if word not in definitions:
        there = ", ".join(definition.where.rpartition(" ")[2] for definition in definitions.values()) or "none"
        raise InputError(f"{path}: found no definition of {show_name(piece.word)}, expected one of: {shorten(there)}")
    return _expand_name(word, kind, definitions, ())


def _expand_name(name: str, kind: str, known: Definitions, names: tuple[str, ...]) -> str:
    """The model string, or the part of one, that a definition stands for."""
    definition = known[name]
    where = definition.where
    if definition.kind != kind:
        place = "in front" if kind == MODEL else "behind a plus sign"
        raise InputError(f"{where}: found a {definition.kind} {place}, expected a {kind}")
    if name in names:
        raise InputError(f"{where}: the definition refers to itself")
    numbers = _read_numbers(definition.text, where)
    if numbers is not None:
        return _write_matrix(numbers, where) if kind == MODEL else f"FU{format_values(numbers)}"
    pieces = _split(definition.text)
    if not pieces or (kind == FREQUENCY and [piece.word.upper() for piece in pieces] != [mixtures.PROFILES]):
        expected = "numbers or a model string" if kind == MODEL else f"numbers or {mixtures.PROFILES}{{...}}"
        raise InputError(f"{where}: found {show_name(definition.text)}, expected {expected}")
    names = (*names, name)
    if kind == FREQUENCY:
        return _expand_piece(pieces[0], kind, known, where, names)
    text = _expand(pieces, known, where, names)
    _parse(text, where)
    return text


def _parse(text: str, where: str) -> Model:
    """The model that a string stands for, with the frequencies that it would start with."""
    with errors_at(where):
        spec = parse_model(text)
    return Model(spec, np.full(spec.n_states, 1.0 / spec.n_states), 0.0)


def _read_numbers(text: str, where: str) -> list[float] | None:
    """Numbers between blanks or commas; None if the text does not begin with one."""
    words = re.split(r"[\s,]+", text.strip(", \t\n"))
    if not re.match(r"[-+.0-9]", words[0]):
        return None
    return [
        _read_number(word, f"{where}: found {show_name(word)}, expected a number in place {place}")
        for place, word in enumerate(words, start=1)
    ]


def _read_number(word: str, problem: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InputError(problem) from None


def _write_matrix(numbers: Sequence[float], where: str) -> str:
    """The model string of exchangeabilities and frequencies in PAML's order."""
    n_states = _SIZES.get(len(numbers), 0)
    if not n_states:
        expected = " or ".join(f"{size} ({n} states)" for size, n in _SIZES.items())
        raise InputError(f"{where}: found {len(numbers)} numbers, expected {expected}: a lower triangle, frequencies")
    square = unpack_triangle(np.array(numbers), n_states)
    rates = format_values(square[np.triu_indices(n_states, 1)].tolist())
    name = "GTR" if n_states == len(nucleotides.BASES) else proteins.GTR20
    text = f"{name}{rates}+FU{format_values(numbers[-n_states:])}"
    _parse(text, where)
    return text


def _split_classes(text: str, where: str) -> tuple[list[str], list[float], list[float]]:
    """``NAME:RATE:WEIGHT, ...``: names, rates, which are 1 by default, and weights, of all classes or none."""
    names, rates, weights = [], [], []
    for item in re.findall(ITEM, text) or [""]:
        name, *numbers = [field.strip() for field in re.split(OUTSIDE.format(":"), item)]
        found, expected = f"in {show_name(item.strip())}", "a number, the rate or weight of a class"
        values = [_read_number(one, f"{where}: found {show_name(one)} {found}, expected {expected}") for one in numbers]
        if not name or len(values) > 2:
            raise InputError(f"{where}: found {show_name(item.strip())} in a mixture, expected NAME:RATE:WEIGHT")
        names.append(name)
        rates.append(values[0] if values else 1.0)
        weights += values[1:]
    if weights and len(weights) < len(names):
        raise InputError(f"{where}: found {len(weights)} weights for {len(names)} classes, expected all or none")
    total = sum(weights)
    return names, rates, [weight / total for weight in weights] if total > 0 else weights


def _mix_models(text: str, known: Definitions, where: str, names: tuple[str, ...]) -> str:
    """``MIX{...}`` with all values in place of the models of its classes, or these if any is free."""
    members, rates, weights = _split_classes(text, where)
    models = []
    for member in members:
        pieces = _split(member)
        if pieces is None:
            raise InputError(f"{where}: found {show_name(member)} in a mixture, expected a model")
        models.append(_parse(_expand(pieces, known, where, names), where))
        with errors_at(where):
            check_member(models[-1].spec)
    if any(model.n_free_parameters for model in models):
        return mixtures.name_members([str(model.spec) for model in models], rates, weights)
    exchangeabilities = [model.exchangeabilities.tolist() for model in models]
    frequencies = [model.frequencies.tolist() for model in models]
    with errors_at(where):
        name = mixtures.name_matrices(exchangeabilities, frequencies, rates)
    return name + (format_values(weights) if weights else "")


def _mix_frequencies(text: str, known: Definitions, where: str) -> str:
    """``FMIX{...}`` with all values in place of the names of profiles."""
    members, rates, weights = _split_classes(text, where)
    own = [place for place, member in enumerate(members) if member.upper() in _MODES]
    if len(own) > 1:
        raise InputError(f"{where}: found {len(own)} classes that are not profiles, expected at most one")
    order = [*own, *(place for place in range(len(members)) if place not in own)]  # in the model string it comes first
    profiles = [_read_profile(members[place], known, where) for place in order[len(own) :]]
    if not profiles:
        raise InputError(f"{where}: found no profile in a mixture, expected at least one")
    sorted_rates = format_values([rates[place] for place in order])
    mixed = f"{mixtures.PROFILES}{mixtures.write_rows(profiles)}{sorted_rates}"
    mixed += format_values([weights[place] for place in order]) if weights else ""
    return "+".join([mixed, *(_MODES[members[place].upper()] for place in own)])


def _read_profile(name: str, known: Definitions, where: str) -> list[float]:
    """The frequencies of a profile that the file defines, or of one of C10 to C60, such as C10pi1."""
    definition = known.get(name.upper())
    if definition is not None and definition.kind == FREQUENCY:
        numbers = _read_numbers(definition.text, definition.where)
        if numbers is not None:
            return numbers
    published = _PUBLISHED_PROFILE.fullmatch(name.upper())
    if published is not None and definition is None:
        frequencies = mixtures.read_profiles(published[1])[1]
        if int(published[2]) <= len(frequencies):
            return [float(value) for value in frequencies[int(published[2]) - 1]]
    expected = "a frequency that the file defines by numbers, empirical, optimized, equal, or one such as C10pi1"
    raise InputError(f"{where}: found {show_name(name)} in a mixture, expected {expected}")
