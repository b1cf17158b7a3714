"""What a user may have meant by an option or a command that plltool does not have."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path

ALIGNMENT = ("FILE",)  # the alignment has no option
AS_CLOSE = 0.1  # difference of difflib's ratios, which are at most 1, below which one name is as likely as another

_ROWS = (line.split(": ") for line in Path(__file__).with_name("other_programs.txt").read_text("utf-8").splitlines())
_TABLE = {row[0]: tuple(row[1].split(" | ")) for row in _ROWS if len(row) > 1}
ELSEWHERE = {name: meant for name, meant in _TABLE.items() if name.startswith("-")}  # options of other programs
OTHER_COMMANDS = {name: meant[0] for name, meant in _TABLE.items() if name not in ELSEWHERE}  # programs and their words


def hint_at_option(unknown: str, given: Sequence[str], known: Iterable[str], command: str) -> tuple[str, str]:
    """An unknown option as it was given, and what may have been meant, to be written behind it; empty if unclear.

    `unknown` is the option as the parser has cut it: the -b of -bb; `command` is empty if there is none.
    """
    token, value = _find(unknown, given)
    names = list(known)
    if token not in ELSEWHERE:
        return token, _ask(_closest_option(token, names))
    if ELSEWHERE[token] == ALIGNMENT:
        return token, _ask([f"plltool {command or 'search'} {value}"])
    texts = ELSEWHERE[token]
    here = [text for text in texts if text.split()[0] in names]
    here += [text.removeprefix(f"{command} ") for text in texts if command and text.startswith(f"{command} ")]
    elsewhere = [f"plltool {text}" for text in texts if not text.startswith("--")]
    return token, _ask(here[:1] or elsewhere or texts)


def hint_at_line(given: Sequence[str], commands: Mapping[str, Collection[str]], command: str) -> str:
    """What is wrong with a line of several unknown options, and how plltool writes it; empty if that is not known.

    `command` may be empty: then the first of `commands`, with their options, that has most of the options.
    """
    possible = [_translate(_pair(given), own, commands[own]) for own in ([command] if command else commands)]
    words, unknown, left_out = min(possible, key=lambda found: len(found[2]))
    if len(unknown) < 2 or len(unknown) == len(left_out):
        return ""
    without = f", without {' '.join(left_out)}" if left_out else ""
    return f"no such options: {' '.join(unknown)}{_ask([f'plltool {shlex.join(words)}{without}'])}"


def _pair(given: Sequence[str]) -> list[tuple[str, str]]:
    """The options with what stands behind them, or nothing; an argument that stands behind none has no option."""
    pairs: list[tuple[str, str]] = []
    for argument in given:
        option, _, value = argument.partition("=")
        if argument.startswith("-") and len(argument) > 1:
            pairs.append((option, value))
        elif pairs and pairs[-1][0] and not pairs[-1][1]:
            pairs[-1] = pairs[-1][0], argument
        else:
            pairs.append(("", argument))
    return pairs


def _translate(
    pairs: Sequence[tuple[str, str]], command: str, known: Collection[str]
) -> tuple[list[str], list[str], list[str]]:
    """A line of `command`, the options that it does not know, and those among them that have no like."""
    words, unknown, left_out, kinds = [command], [], [], []
    for option, value in pairs:
        meant = [] if not option else [option] if option in known else _meant(option, command, known)
        if option and option not in known:
            unknown.append(option)
            if not meant:
                left_out.append(option)
                continue
        if meant[:1] == ["--supports"] and meant[1:]:
            kinds += meant[1:]
        elif meant != list(ALIGNMENT) and (value or not set(meant) & set(words)):
            words += meant
        if value and not (len(meant) > 1 and value.isdigit()):  # such as the replicates of -B
            words.append(value.lower() if value == "AUTO" else value)
    return [*words, *(["--supports", ",".join(kinds)] if kinds else [])], unknown, left_out


def _meant(option: str, command: str, known: Collection[str]) -> list[str]:
    """The words that another program's option is for a command; none if it has none."""
    for text in ELSEWHERE.get(option, ()):
        words = text.removeprefix(f"{command} ").split()
        if text in ALIGNMENT or words[0] in known:
            return words
    return []


def hint_at_command(unknown: str, known: Iterable[str]) -> str:
    """What may have been meant by an unknown command, likewise."""
    if Path(unknown).is_file():
        return _ask([f"plltool search {unknown}"])
    if unknown.lower() in OTHER_COMMANDS:
        return _ask([OTHER_COMMANDS[unknown.lower()]])
    return _ask(_closest(unknown, list(known)))


def _closest_option(unknown: str, known: Sequence[str]) -> list[str]:
    """Likewise; options of which it is a word come first, dashes do not count, a short option is close to none."""
    if not unknown.startswith("--"):
        return []
    names = [name[2:] for name in known if name.startswith("--")]
    longer = [name for name in names if unknown[2:] in name.split("-")]
    return [f"--{name}" for name in longer or _closest(unknown[2:], [n for n in names if n[:1] == unknown[2:3]])]


def _closest(unknown: str, known: Sequence[str]) -> list[str]:
    """The names that are about as close as the closest one, if any is."""
    found = get_close_matches(unknown, known)
    ratios = [SequenceMatcher(None, unknown, name).ratio() for name in found]
    return [name for name, ratio in zip(found, ratios, strict=True) if ratio > ratios[0] - AS_CLOSE]


def _ask(meant: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(meant)}?" if meant else ""


def _find(unknown: str, given: Sequence[str]) -> tuple[str, str]:
    """The option as it was given, and its value."""
    for number, argument in enumerate(given):
        token, equals, value = argument.partition("=")
        if token == unknown or (token.startswith(unknown) and not unknown.startswith("--")):
            following = given[number + 1] if number + 1 < len(given) else "FILE"
            return token, value if equals else following
    return unknown, "FILE"
