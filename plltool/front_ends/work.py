"""A run of a front end: data and settings as other programs take them, what it says, and the files that it writes."""

import logging
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import plltool
from plltool import InputError, PlltoolError, PlltoolWarning, Progress, Sequences
from plltool.constants import FIRST_WORD, WHOLE
from plltool.front_ends.options import Given

_log = logging.getLogger("plltool")
_CHARSET = re.compile(r"\bcharset\s+('(?:[^']|'')*'|\S+?)\s*=\s*([^;]+);", re.IGNORECASE)
_CHARPARTITION = re.compile(r"\bcharpartition\s+\S+?\s*=\s*([^;]+);", re.IGNORECASE)
_DATA_WORD = re.compile(r":\s*([A-Za-z]\w*)\s*,")  # of a charset, behind the name of its file
_FILE = re.compile(r"\s*('[^']*'|[^\s:,']+)\s*:(?!\s*\d+\s*:)(.*)", re.DOTALL)  # before the columns of a charset
_LINE = re.compile(r"\s*(?P<model>[^=]+?)\s*,\s*(?P<name>[^,=]+?)\s*=(?P<sites>.*)")
KINDS = ("DNA", "DNAX", "AA", "BIN", "MULTI", "PROT", "AUTO", "NT", "CODON", "MORPH")  # in place of a model


class Session:
    """The lines of a run, on stdout and in its log, and its files.

    `name` gives the path of a file by the end of its name, `endings` are those of the files that the run may write,
    and `log` is that of the log, or empty. `redo` is how the program replaces files; empty if it always does.
    """

    def __init__(self, given: Given, name: Callable[[str], Path], endings: Sequence[str], redo: str, log: str = "log"):
        if given.has("no_files"):
            endings, log = (), ""
        self.given, self.path, self._endings, self._written = given, name, endings, set[str]()
        self._log_path = name(log) if log else None
        self.out, self.most_replicates, self._began = sys.stdout, 0, time.monotonic()
        for path in map(name, (*endings, *([log] if log else []))):
            if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
                why = "it is a folder" if path.is_dir() else f"there is no folder {path.parent} to write into"
                raise InputError(f"{path}: cannot write the file: {why}")
            if redo and not given.has("redo") and path.exists() and path != self._log_path:
                raise InputError(f"{path}: exists already; {redo} replaces it")

    def run(self, banner: str, task: "Callable[[Given, Session], None]") -> None:
        """Say which program this is and what changes nothing, do the task, and remove what an earlier run has left."""
        given, handlers = self.given, list[logging.Handler]()
        if given.text("quiet") not in ("yes", "ERROR", "WARNING"):
            handlers.append(logging.StreamHandler(self.out))
        if self._log_path is not None:
            handlers.append(logging.FileHandler(self._log_path, encoding="utf-8", errors="surrogateescape"))
        with ExitStack() as stack, warnings.catch_warnings():
            stack.callback(_log.setLevel, _log.level)
            _log.setLevel(logging.INFO)
            for handler in handlers:
                _log.addHandler(handler)
                stack.callback(handler.close)
                stack.callback(_log.removeHandler, handler)
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", PlltoolWarning)
            warnings.showwarning = lambda message, *_where, **_more: _log.warning("WARNING: %s", message)
            self.say(banner, "", f"Command: {shlex.join([given.program, *given.arguments])}")
            self.say(f"Seed:    {given.text('seed', '1')}", "")
            self.say(*(f"NOTE: {own.names[0]} changes nothing here: {own.what}" for own in given.without_effect))
            try:
                task(given, self)
                given.refuse_rest()
            except PlltoolError as error:
                _log.error("ERROR: %s", error)
                raise
            for path in set(map(self.path, self._endings)) - set(map(self.path, self._written)):
                path.unlink(missing_ok=True)
            seconds = time.monotonic() - self._began
            self.say("", f"Elapsed time: {seconds:.3f} seconds", f"Total wall-clock time used: {seconds:.3f} sec")

    def say(self, *lines: str) -> None:
        for line in lines:
            _log.info("%s", line)

    def hear(self, event: Progress) -> None:
        """Log a round; stop a bootstrap after `most_replicates`, if there is a limit."""
        self.say(f"[{time.monotonic() - self._began:.1f} s, lnL {event.lnl:.6f}] {event.stage} {event.round}")
        if self.most_replicates and event.stage == "bootstrap" and event.round >= self.most_replicates:
            raise plltool.StopSearch

    def write(self, ending: str, content: str | bytes, what: str = "") -> None:
        """Write a file, a text with a newline at its end, and say `what` it holds."""
        self.given.refuse_rest()
        if self.given.has("no_files"):
            self.say(content.rstrip() if isinstance(content, str) else f"({len(content)} bytes)")
            return
        assert ending in self._endings, f"{ending} was not claimed"
        text = f"{content.rstrip()}\n".encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        plltool.write_bytes(self.path(ending), text)
        self._written.add(ending)
        if what:
            self.say(f"{what} saved to: {self.path(ending).absolute()}")


@dataclass
class Work:
    """Data, model and settings that analyses share; PLLTOOL_DEVICE in the environment names the device, such as gpu."""

    session: Session
    data: Any
    model: Any = None
    seed: int = 1
    brlen: str = "scaled"
    outgroup: str | None = None
    hardware: dict[str, Any] = field(default_factory=lambda: {"device": os.environ.get("PLLTOOL_DEVICE", "auto")})

    def call(self, function: Callable[..., Any], *positional: Any, **more: Any) -> Any:
        """What an analysis of the alignment returns; no option may be left that no one has read."""
        self.session.given.refuse_rest()
        shared = {"brlen": self.brlen, "outgroup": self.outgroup, "listener": self.session.hear}
        return function(self.data, *positional, **{**shared, **self.hardware, **more})

    def trees(self, *paths: str) -> list[Any]:
        """All trees of files, for the taxa of the alignment."""
        return [tree for path in paths for tree in plltool.read_trees(path, self.data.names, resolve_seed=self.seed)]

    def supports(self, result: Any, kinds: dict[str, Any], **more: Any) -> tuple[Any, list[str]]:
        """Supports of the tree that a search found, from the number of replicates of each kind; the replicate trees."""
        trees: list[str] = []
        how = {"replicates": kinds.get("fbp") or kinds.get("tbe"), "taken": trees.append, "listener": self.session.hear}
        numbers = {"ufboot": kinds.get("ufboot"), "sh-alrt": kinds.get("sh-alrt") or kinds.get("lbp")}
        how["resamples"] = {kind: number for kind, number in numbers.items() if number}
        made = plltool.search_supports(result, tuple(kinds), **{**how, **self.hardware, **more})
        return made, trees or made.supports.replicate_newicks()


def read_lines(path: str) -> list[str]:
    """The lines of a text, without empty ones."""
    try:
        text = Path(path).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: cannot read the file: {error.strerror}") from error
    return [line for line in text.splitlines() if line.strip()]


def is_kind(word: str) -> bool:
    """Whether a word in place of a model is a kind of data, such as DNA or CODON2."""
    return word.upper().rstrip("0123456789") in KINDS


def states_of(kind: str) -> str | None:
    """plltool's word for a kind of data, None if the data tell."""
    return {"AA": "protein", "NT": "dna", "AUTO": ""}.get(kind.upper(), kind.lower()) or None


def list_files(where: str) -> list[str]:
    """The files of a folder in the order of their names, or of names with commas between them."""
    if os.path.isdir(where):
        return [str(path) for path in sorted(Path(where).iterdir()) if path.is_file() and path.name[0] != "."]
    return where.split(",")


def read_named(path: str, states: str | None) -> Sequences:
    """An alignment with IQ-TREE's names: as few words of FASTA headers as tell taxa apart, at most 4, joined by _."""
    try:
        return plltool.read_alignment(path, states, names=FIRST_WORD)
    except InputError:
        whole = plltool.read_alignment(path, states, names=WHOLE)  # raises the same unless first words were at fault
        for most in (2, 3, 4):
            names = tuple("_".join(name.split()[:most]) for name in whole.names)
            if len(set(names)) == len(names):
                return replace(whole, names=names)
        raise


Columns = dict[str, tuple[int, int, str]]  # the first and the last column of each file, and its kind of data


def join_alignments(where: str, states: str | None, counts: Sequence[int] | None) -> tuple[Sequences, Columns, str]:
    """The alignments of a file, a list or a folder side by side, the columns of each, and the first taxon."""
    read = {path: read_named(path, states) for path in list_files(where)}
    first, *others = read.values()
    whole, ranges = plltool.join_alignments(read, where) if others else (first, [(1, first.n_sites)])
    columns = {path: (*own, _word_for(read[path])) for path, own in zip(read, ranges, strict=True)}
    return whole.with_constant_sites(counts) if counts else whole, columns, first.names[0]


def _word_for(data: Sequences) -> str:
    """IQ-TREE's word for a kind of data."""
    name = data.states.name if data.states else "DNA"
    return {"protein": "AA", "multistate": "MORPH"}.get(name, name.upper())


def find_alignments(path: str) -> str:
    """The alignments of a partition file alone: those that its charsets name, with commas, or the file itself."""
    files = {_bare(found[1]): None for sites in _read_charsets(path)[1].values() if (found := _FILE.match(sites))}
    return ",".join(files) or path


def _read_charsets(path: str) -> tuple[str, dict[str, str]]:
    """The text of a NEXUS file without comments, or nothing for other files, and what each of its charsets holds."""
    lines = read_lines(path)
    text = re.sub(r"\[[^\]]*\]", "", "\n".join(lines)) if lines[:1] and lines[0].lower().startswith("#nexus") else ""
    return text, {_bare(name): sites for name, sites in _CHARSET.findall(text)}


def _place(sites: str, columns: Columns) -> tuple[str, str]:
    """The columns of a charset where alignments stand side by side, and the kind of its data.

    `columns` may have the file that it names.
    """
    named, word = _FILE.match(sites), _DATA_WORD.search(sites)
    if named is None or _bare(named[1]) not in columns:
        return sites, word[1] if word else next(iter(columns.values()))[2]
    first, last, kind = columns[_bare(named[1])]

    def move(own: re.Match[str]) -> str:
        number = int(own[0]) + first - 1
        if number > last:
            raise InputError(f"{_bare(named[1])}: found column {own[0]}, expected columns from 1 to {last - first + 1}")
        return str(number)

    moved = re.sub(r"(?<![\\\w])\d+", move, named[2])
    moved = re.sub(r"\*", f"{first}-{last}", re.sub(r"(?<=-)(\s*)\.", rf"\g<1>{last}", moved))
    return moved, word[1] if word else kind


def _bare(name: str) -> str:
    """A name without its quotes."""
    return name[1:-1].replace("''", "'") if name.startswith("'") else name


def read_parts(path: str, model: str, spell: Callable[[str], str], columns: Columns) -> str:
    """A partition file as plltool reads it, a line for each part; parts without a model have `model`.

    `spell` writes a model of the file as plltool does. The tree length of a part, which IQ-TREE writes behind its name,
    is found again. `columns` are those of the files, also of those that charsets name.
    """
    text, charsets = _read_charsets(path)
    if text:
        chosen = _CHARPARTITION.search(text)
        pairs = [pair.rsplit(":", 1) for pair in re.split(r",(?![^{]*\})", chosen[1])] if chosen else []
        stated = {
            _bare(re.sub(r"\{[^{}]*\}$", "", pair[1].strip())): pair[0].strip() for pair in pairs if len(pair) > 1
        }
        stated = stated if stated.keys() & charsets else {}  # other programs have names there, and their columns
        if unknown := sorted(stated.keys() - charsets):
            raise InputError(f"{path}: found {unknown[0]!r} in charpartition, expected one of: {', '.join(charsets)}")
        spaced = re.compile(r"(?<=[\w\\])\s+(?=\d)")
        placed = {own: _place(sites, columns) for own, sites in charsets.items()}
        rows: list[Any] = [
            (stated.get(own, word), re.sub("[,=]", "_", own), spaced.sub(", ", sites))
            for own, (sites, word) in placed.items()
            if own in (stated or charsets)
        ]
    else:
        lines = [line for line in read_lines(path) if not line.lstrip().startswith("#")]  # comments
        rows = [match.groups() for line in lines if (match := _LINE.fullmatch(line))]
        if len(rows) < len(lines):
            return path  # plltool's own reader says what is wrong
    models = [model or own if is_kind(own) else spell(own) for own, _, _ in rows]
    return "\n".join(f"{own}, {name} = {sites.strip()}" for own, (_, name, sites) in zip(models, rows, strict=True))


def cut(
    data: Sequences, path: str, model: str, spell: Callable[[str], str], columns: Columns
) -> list[tuple[str, str, Sequences]]:
    """The name, the model and the alignment of each part of a partition file."""
    lines = read_parts(path, model, spell, columns)
    models = [match["model"] for match in map(_LINE.fullmatch, lines.splitlines()) if match]
    return [(name, own, part) for own, (name, part) in zip(models, plltool.cut_parts(data, lines).items(), strict=True)]
