"""The files that a command writes: the registry says which they are, what --redo replaces and what --help lists.

`Outputs` checks before the work begins that the files can be written, writes them, and removes those of an earlier run.
Locks keep two runs from writing the same files; the system releases them, whatever ends the process.
"""

import logging
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import IO, Any, Self, TypeVar

import click

import plltool
from plltool.cli.job import given_command, is_first, own_prefix
from plltool.cli.options import Prefix, WrittenPath
from plltool.cli.terminal import WARNING, echo_message, print_line
from plltool.constants import PARTIAL_ENDING, STDIN
from plltool.errors import CheckpointError, InputError, explained
from plltool.registry import SHARED, OutputFile, Table, name_file

try:
    import fcntl
except ImportError:  # not on Unix
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

LOCK_FILE = "lock"  # within a locked folder
COMMAND_LINE, FINISHED = "command: ", "finished"  # in a log: the beginning of the command line, and the line at the end

_log = logging.getLogger("plltool")


class Outputs:
    """The files of a table that one run may write; without a prefix it writes none.

    With `redo` files of an earlier run may be replaced. `resumes` says whether the run continues from a checkpoint, see
    `claim`.
    """

    def __init__(self, table: Table, prefix: Path | None, redo: bool, report: bool = False):
        self._table = table
        self._prefix = None if prefix is None else own_prefix(prefix)
        self._redo = redo
        self._report = report
        self._claimed: list[str] = []  # endings, and the names that the user gave
        self._written: set[Path] = set()
        self.resumes = False

    def without(self, name: str) -> Self:
        """The same without the shared files of this name, which this run does not write and does not touch."""
        other = copy(self)
        other._table = tuple(row for row in self._table if row not in SHARED[name])
        return other

    def path(self, ending: str) -> Path:
        assert self._prefix is not None, "only asked for where there is a prefix"
        return name_file(self._prefix, ending)

    @property
    def log(self) -> Path | None:
        return next((path for row in self._table if row.is_log for path in self._paths(row)), None)

    @property
    def checkpoints(self) -> list[Path]:
        """The folders in which the run keeps its state, in the order of its steps."""
        return [path for row in self._table if row.is_checkpoint for path in self._paths(row)]

    def _paths(self, row: OutputFile) -> list[Path]:
        return [] if self._prefix is None else row.present(self._prefix)

    # --- before the work --------------------------------------------------------------------------------------

    def claim(self) -> None:
        """Make sure that all files can be written when the work is done, those that options name, too.

        A run resumes where the checkpoint of its first step has states, with --redo only if the same command line made
        them. It may replace the files that the run which it resumes has claimed: they are its own. So are those that
        the same command line has claimed, if it could not write all of them, and the log of any run that failed.
        """
        mark: dict[str, Any] = {}
        is_lost = False  # whether nobody knows any more which files the run has that this one resumes
        for folder in self.checkpoints[:1]:
            found = plltool.read_mark(folder)
            mark = found or {}
            is_same = not self._redo or found is None or mark.get("command") == given_command()
            self.resumes = is_same and plltool.has_checkpoint(folder)
            is_lost = self.resumes and found is None
            if is_lost:
                echo_message(f"{folder}: the checkpoint's mark is damaged; resuming", WARNING)
        rows = [row for row in self._table if not (row.is_checkpoint or row in SHARED["reports"])]
        claims = [(row.ending, path) for row in rows for path in self._paths(row)]
        by_prefix = [path for _, path in claims]
        claims += [(str(path), path) for path in named_outputs()]
        own = {row.ending for row in rows if row.is_log}
        if is_lost:
            own |= {row.ending for row in rows}
        if self._is_unfinished():
            own |= {name for name, _ in claims}
        if self.resumes or mark.get("command") == given_command():
            own |= set(mark.get("files", ()))
        may_go = [path for name, path in claims if name in own]
        claim_files([path for _, path in claims], self._redo, may_go, by_prefix)
        self._claimed = sorted({*(row.ending for row in rows), *(name for name, _ in claims), *own})
        for folder in self.checkpoints:
            if folder.exists() and not folder.is_dir():
                raise InputError(f"{folder}: cannot make the folder: it is a file")
            if not (self._redo or self.resumes) and plltool.has_checkpoint(folder):
                raise InputError(f"{folder}: a checkpoint of another run; --redo starts over")

    def _is_unfinished(self) -> bool:
        """Whether the last run that the log tells of had the same command line and did not end."""
        try:
            text = "" if self.log is None else self.log.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return False
        _, began, last = f"\n{text}".rpartition(f"\n{COMMAND_LINE}")
        lines = last.splitlines()
        return bool(began) and lines[0] == given_command() and FINISHED not in lines

    # --- checkpoints ------------------------------------------------------------------------------------------

    @contextmanager
    def checkpointed(self) -> Iterator[None]:
        """A run with a checkpoint. It starts over unless it resumes; what ends it leaves a line on how to resume.

        The folders are locked against other runs. The checkpoint stays behind. When the work is done,
        `forget_checkpoints` removes it, or `finish_checkpoint` keeps it for a larger run. Raises InputError if another
        run has a folder.
        """
        folder = self.checkpoints[0]
        with ExitStack() as stack:
            for own in self.checkpoints:
                stack.enter_context(locked_folder(own))
            if self.resumes:
                self._mark(str((plltool.read_mark(folder) or {"command": given_command()}).get("command", "")))
            elif (plltool.read_mark(folder) or {}).get("command") != given_command():  # else `Checkpoint` compares
                self._start_over()
            try:
                yield
            except BaseException as error:
                if not plltool.has_checkpoint(folder):
                    if not self._written:
                        plltool.remove_checkpoint(folder)
                elif not isinstance(error, InputError):
                    _log.warning("the run is saved in %s; the same command continues from there", folder)
                raise

    def go_on_or_start_over(self, work: Callable[[], T]) -> T:
        """What `work` returns. With --redo a checkpoint that it cannot use is removed, and it is called once more."""
        try:
            return work()
        except CheckpointError as error:
            if not self._redo:
                raise
            _log.warning("%s", error)
            self._start_over()
            return work()

    def forget_checkpoints(self) -> None:
        for folder in self.checkpoints:
            plltool.remove_checkpoint(folder)

    def finish_checkpoint(self) -> None:
        """Keep the checkpoint of a run that is over, so that a larger one can continue from it; --redo starts over."""
        self._mark("")

    def _start_over(self) -> None:
        self.forget_checkpoints()
        self._mark(given_command())

    def _mark(self, command: str) -> None:
        """Leave in the first checkpoint which command began the run, and which files belong to it; see `claim`."""
        plltool.mark_checkpoint(self.checkpoints[0], {"command": command, "files": self._claimed})

    # --- after the work ---------------------------------------------------------------------------------------

    def write(self, texts: Mapping[str, str]) -> None:
        """Write a file for each ending; none without a prefix. Raises InputError if one cannot be written."""
        if self._prefix is None:
            return
        for ending, text in texts.items():
            path = name_file(self._prefix, ending)
            plltool.write_text(path, text)
            self._written.add(path)

    def finish(self, texts: Mapping[str, str]) -> None:
        """Write the files and the report, and remove the results of an earlier run."""
        self.write(texts)
        self.remove_stale()
        self.write_report()

    def write_report(self) -> None:
        """Write the report on all runs with the prefix, if one is wanted; a problem with it is only a warning."""
        if self._prefix is None or not self._report:
            return
        try:
            self._written |= set(plltool.report(self._prefix).write())
        except InputError as error:
            _log.warning("cannot write the report: %s", error)

    def withdraw(self, name: str) -> None:
        """Let `remove_stale` remove shared files that this run has written, unless it writes them again."""
        self._written -= {path for row in SHARED[name] for path in self._paths(row)}

    def remove_stale(self, *kept: OutputFile) -> None:
        """Remove the results of an earlier run that this one has not written, except those `kept`."""
        may_stay = {path for row in kept for path in self._paths(row)} | self._written
        rows = [row for row in self._table if not (row.is_log or row.is_checkpoint or row in SHARED["reports"])]
        stale = [path for row in rows for path in self._paths(row) if path not in may_stay and path.exists()]
        for path in stale:
            path.unlink(missing_ok=True)
        if stale:
            _log.info("removed, from an earlier run: %s", ", ".join(map(str, stale)))
        names = {(path.parent, f".{path.name[:100]}.") for row in rows for path in self._paths(row)}
        for folder in {folder for folder, _ in names}:
            for left in folder.glob(f".*{PARTIAL_ENDING}"):  # by a run that was killed as it wrote, see `write_bytes`
                if (folder, left.name.removesuffix(PARTIAL_ENDING)[:-8]) in names:  # 8 random characters
                    left.unlink(missing_ok=True)

    def describe(self, tree: str = "") -> list[str]:
        """A line for each file that was written, in the order of the table, the log last; without files, the tree."""
        if self._prefix is None:
            return [f"tree: {tree}"] if tree else []
        rows = sorted(self._table, key=lambda row: row.is_log)
        told = [(row, path) for row in rows for path in self._paths(row) if path in self._written or row.is_log]
        return [f"{row.what}: {path}" for row, path in told]


def named_outputs() -> list[Path]:
    """The files that the options of the running command name for writing; no standard stream, pipe or device."""
    ctx = click.get_current_context()
    options = [param for param in ctx.command.get_params(ctx) if isinstance(param.type, WrittenPath)]
    paths = [Path(ctx.params[str(param.name)]) for param in options if ctx.params[str(param.name)] not in (None, STDIN)]
    return [path for path in paths if is_first() and (path.is_file() or path.is_dir() or not path.exists())]


def _read_files() -> Iterator[Path]:
    """The files that the running command may read: those that its other parameters name, and those in folders."""
    ctx = click.get_current_context()
    for param in ctx.command.get_params(ctx):
        value = ctx.params.get(str(param.name))
        if isinstance(param.type, (WrittenPath, Prefix)):
            continue
        for given in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(given, (str, Path)) and os.path.lexists(given):
                yield from Path(given).iterdir() if Path(given).is_dir() else [Path(given)]


def claim_files(
    paths: Iterable[Path], redo: bool | None = None, may_go: Collection[Path] = (), by_prefix: Collection[Path] = ()
) -> None:
    """Make sure that the files can be written when the work is done.

    redo : whether all that exist may be replaced; None if the command has no --redo
    may_go : files that may be replaced in any case
    by_prefix : files whose names begin with --prefix
    """
    claimed: set[Path] = set()
    read = set(map(_identify, _read_files())) - {None}
    for path in paths:
        if path in claimed:
            raise InputError(f"{path}: two outputs have the same file name")
        claimed.add(path)
        if path.is_dir():
            raise InputError(f"{path}: cannot write the file: it is a folder")
        if _identify(path) in read:
            raise InputError(f"{path}: cannot write the file: the command reads it")
        if path.is_symlink() and os.readlink(path).startswith("/proc/") and path.exists():  # to replace it harms others
            raise InputError(f"{path}: cannot write the file: it stands for an open file, expected that file's name")
        if path.exists() and not redo and path not in may_go:
            other = ", --prefix names other files" if path in by_prefix else ""
            hint = ", expected the name of a new file" if redo is None else f"; --redo replaces it{other}"
            raise InputError(f"{path}: exists already{hint}")
        if not path.parent.exists():
            raise InputError(f"{path}: cannot write the file: there is no folder {path.parent}")
        hint = " (--prefix names other files)" * (path in by_prefix)
        with explained(f"{path}: cannot write the file{hint}"), tempfile.TemporaryFile(dir=path.parent):
            pass


def _identify(path: Path) -> tuple[int, int] | None:
    """What tells whether two names are one file; None if there is no file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def write_named(path: Path, text: str) -> None:
    """A file that the user has named; of the ranks of a job the first one writes it."""
    if is_first():
        plltool.write_text(path, text)


def write_or_print(text: str, path: Path | None, what: str) -> None:
    """A text that ends with a newline to stdout, or to a file, of which a line on stderr then says `what` it holds."""
    if path is None:
        print_line(text.removesuffix("\n"))
    else:
        plltool.write_text(path, text)
        echo_message(f"{what}: {path}")  # not on stdout, which the path may name


# --- locks ------------------------------------------------------------------------------------------------


def is_taken(stream: IO[Any]) -> bool:
    """Lock an open file; returns whether another run has locked it. Without support for locks no run has."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)  # others come from a file system without locks
    return False


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make a folder and lock it; at the end it is removed if it is empty.

    Raises InputError if another run has locked it, or it cannot be made.
    """
    path = folder / LOCK_FILE
    with ExitStack() as stack:
        stack.callback(_remove_if_empty, folder)  # once the lock is closed: Windows keeps files that are open
        with explained(f"{folder}: cannot make the folder"):
            folder.mkdir(exist_ok=True)
            stream = stack.enter_context(open(path, "ab"))
        if is_taken(stream) or not _is_same(stream, path):
            raise InputError(f"{folder}: another run is using it; --prefix names other files")
        try:
            yield
        finally:
            with suppress(PermissionError):  # Windows
                path.unlink(missing_ok=True)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _is_same(stream: IO[bytes], path: Path) -> bool:
    """Whether the open file is still the one of that name: the run that had the lock removes it."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
