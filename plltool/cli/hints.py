"""What a user may have meant by an option or a command that plltool does not have."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path

ALIGNMENT = ("FILE",)  # the alignment has no option
PARTITION = ("--partitions", "--model")
AS_CLOSE = 0.1  # difference of difflib's ratios, which are at most 1, below which one name is as likely as another

# Options of RAxML, RAxML-NG and IQ-TREE, and what they are here: an option of the command at hand, or of another one
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "-s": ALIGNMENT,
    "--msa": ALIGNMENT,
    "--ref-msa": ("--reference", "place --reference"),
    "--query": ("--queries", "place --queries"),
    "-m": ("--model",),
    "-mdef": ("--model NAME{FILE}",),
    "--mdef": ("--model NAME{FILE}",),
    "-madd": ("select-model --also",),
    "--madd": ("select-model --also",),
    "-p": PARTITION,
    "-q": PARTITION,
    "-spp": PARTITION,
    "-T": ("--threads",),
    "-nt": ("--threads",),
    "-fconst": ("--constant-sites",),
    "-st": ("--data-type",),
    "-wsl": ("--site-lnl", "evaluate --site-lnl"),
    "--sitelh": ("--site-lnl", "evaluate --site-lnl"),
    "--search1": ("--starts 1", "search --starts 1"),
    "-mem": ("--memory",),
    "--mem": ("--memory",),
    "-b": ("--bootstrap", "bootstrap --replicates"),
    "-bo": ("--bootstrap", "bootstrap --replicates"),
    "--boot": ("--bootstrap", "bootstrap --replicates"),
    "--bs-trees": ("--bootstrap", "bootstrap --replicates"),
    "--bootstrap": ("bootstrap --replicates", "search --bootstrap"),
    "--bs-metric": ("--supports",),
    "--all": ("search --bootstrap auto",),
    "-B": ("search --supports ufboot",),
    "-bb": ("search --supports ufboot",),
    "--ufboot": ("search --supports ufboot",),
    "-alrt": ("search --supports sh-alrt", "alrt --replicates"),
    "--alrt": ("search --supports sh-alrt", "alrt --replicates"),
    "-abayes": ("search --supports abayes", "alrt --supports abayes"),
    "--abayes": ("search --supports abayes", "alrt --supports abayes"),
    "-pre": ("--prefix",),
    "--pre": ("--prefix",),
    "-n": ("--prefix",),
    "-seed": ("--seed",),
    "-redo": ("--redo",),
    "-o": ("--outgroup",),
    "-g": ("--constraint",),
    "--tree-constraint": ("--constraint",),
    "-t": ("--tree", "--trees", "search --start", "evaluate --tree"),
    "-te": ("--tree", "evaluate --tree"),
    "--tree": ("search --start", "evaluate --tree"),
    "-z": ("--trees", "test --trees"),
    "--gene-trees": ("genes",),
    "--gcf": ("concordance --gcf",),
    "--scf": ("concordance --scf",),
    "--scfl": ("concordance --scfl",),
    "-au": ("test --trees",),
    "--test-au": ("test --trees",),
    "-asr": ("ancestral --tree",),
    "--asr": ("ancestral --tree",),
    "--ancestral": ("ancestral --tree",),
    "--evaluate": ("evaluate --tree",),
    "--search": ("search",),
    "--support": ("support",),
    "--check": ("check",),
    "--parse": ("check",),
    "--rfdist": ("trees distances",),
    "--consense": ("trees consensus",),
    "-con": ("trees consensus",),
    "--fast": ("--effort fast", "search --effort fast"),
    "-fast": ("--effort fast", "search --effort fast"),
}

# Programs, subcommands of others and words for what is done, and the command that does it
OTHER_COMMANDS = {
    "asr": "ancestral",
    "beast": "sample",
    "consensus": "trees consensus",
    "distances": "trees distances",
    "draw": "show",
    "epa": "place",
    "lsd": "date",
    "mcmc": "sample",
    "model": "select-model",
    "modelfinder": "select-model",
    "modeltest": "select-model",
    "mrbayes": "sample",
    "plot": "show",
    "rf": "trees distances",
    "root": "trees root",
    "treetime": "date",
}


def hint_at_option(unknown: str, given: Sequence[str], known: Iterable[str], command: str) -> tuple[str, str]:
    """An unknown option as it was given, and what may have been meant, to be written behind it; empty if unclear.

    Parameters
    ----------
    unknown : the option as the parser has cut it: the -b of -bb
    given : all arguments
    known : the options that there are
    command : the command at hand, empty if there is none
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

    Parameters
    ----------
    given : all arguments behind the command
    commands : the options of each command
    command : the one at hand, empty if there is none: then the first that has most of the options
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
