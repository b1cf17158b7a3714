"""Checkpoints: the states of a run in a folder, from which the same run continues after it was stopped.

The folder holds `run.json`, which identifies the run; for each thing that has a state, such as the climb from one start
tree, its last state NAME.state and the one before, NAME.state.old; `best.nwk`, the best tree so far; and `mark.json` if
a mark was left with `mark_checkpoint`. A state is a line of JSON followed by a numpy archive (npz, nothing pickled),
whose digest is in the line. Every file is written as a whole or not at all, so that several processes may each save
their work.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from plltool.codec import from_arrays, to_arrays
from plltool.constants import CHECKPOINT_PATIENCE
from plltool.errors import CheckpointError, InputError, explained, shorten
from plltool.io.files import FileName, read_object, write_bytes, write_text
from plltool.progress import log
from plltool.tree.topology import Tree

FORMAT = 7  # of the files; others are refused
RUN_FILE = "run.json"
MARK_FILE = "mark.json"
BEST_FILE = "best.nwk"
STATE, OLD_STATE = ".state", ".state.old"
DAMAGE = (ValueError, KeyError, TypeError, RecursionError, zipfile.BadZipFile)  # what reading a damaged state raises
START_OVER = "--redo starts over"


T = TypeVar("T")


class Checkpoint:
    """The states of one run in a folder, which is created if necessary.

    Saving takes a small share of the time. A state that comes too soon after the last one was written, relative to how
    long writing took, is kept in memory until the next one or until the ``with`` block of the checkpoint ends. A state
    that cannot be written does not end the run; a warning says so once.

    Parameters
    ----------
    folder : its name
    identity : everything that the result of the run depends on, item by item: text, numbers, lists
    show : turns a tree into Newick text, for `best.nwk`; states then have the best `tree` so far and its `lnl`

    Attributes
    ----------
    resumed : whether there are earlier states of this run
    problem : why the last state could not be written; empty if it was

    Raises InputError if the folder cannot be written to, and CheckpointError if it holds the states of another run.
    """

    def __init__(self, folder: FileName, identity: Mapping[str, Any], show: Callable[[Tree], str] | None = None):
        self.folder = Path(folder)
        self.problem = ""
        self._warned = False
        self._show = show
        self._waiting: dict[str, Any] = {}
        self._next = 0.0  # time before which nothing is written
        record = json.loads(json.dumps({"format": FORMAT, **identity}))
        self._digest = _digest(record)
        self.resumed = has_checkpoint(self.folder)
        if self.resumed or (self.folder / RUN_FILE).exists():
            self._compare(record)
        else:
            self._claim(record)

    def _claim(self, record: Mapping[str, Any]) -> None:
        _make_folder(self.folder)
        write_text(self.folder / RUN_FILE, json.dumps(record, indent=1) + "\n")

    def _compare(self, record: Mapping[str, Any]) -> None:
        """Raise CheckpointError unless the folder belongs to this run, as `run.json` or a state says."""
        try:
            found = _read_identity(self.folder)
            for item in [*record, *(item for item in found if item not in record)]:
                here, there = record.get(item, "nothing"), found.get(item, "nothing")
                if here != there:
                    if isinstance(here, dict) and isinstance(there, dict):
                        same = [name for name in here if name in there and here[name] == there[name]]
                        here, there = ({k: own[k] for k in own if k not in same} for own in (here, there))
                    differs = f"{_shown(item)}: the checkpoint has {_shown(there)}, this command {_shown(here)}"
                    raise CheckpointError(f"{self.folder}: a checkpoint of another run: {differs}; {START_OVER}")
        except CheckpointError as error:
            for path in _states(self.folder):
                with suppress(OSError, *DAMAGE):
                    self._decode(path.read_bytes())
                    break
            else:
                raise
            log.warning("%s is damaged, but the states are of this run (%s)", self.folder / RUN_FILE, error)
            self._claim(record)

    def load(self, name: str, kind: type[T]) -> T | None:
        """The last state with a name, or the one before if it is damaged; None if none of them is of use."""
        failures = []
        for ending in (STATE, OLD_STATE):
            path = self.folder / (name + ending)
            try:
                state = self._decode(path.read_bytes())
                if not isinstance(state, kind):
                    raise ValueError(f"found a {type(state).__name__}, expected a {kind.__name__}")
                return state
            except FileNotFoundError:
                continue
            except (OSError, *DAMAGE) as error:
                failures.append(f"{path}: a damaged checkpoint: {error}")
                log.warning("%s: damaged: %s", path, error)
        if len(failures) > 1:
            raise CheckpointError(f"{failures[0]}; {START_OVER}")
        if failures:
            log.warning("%s: starting over, because the only saved state is damaged", self.folder / name)
        return None

    def saved_names(self) -> list[str]:
        """The names under which there are states on disk, damaged or not."""
        return sorted({path.name.removesuffix(OLD_STATE).removesuffix(STATE) for path in _states(self.folder)})

    def save(self, name: str, state: Any) -> None:
        """Save a state, of a class that is declared as `saved`, under a name: on disk, or in memory for a while."""
        self._waiting[name] = state
        if time.monotonic() >= self._next:
            self.flush()

    def flush(self) -> None:
        """Write the states in memory; those that cannot be written stay there."""
        began = time.monotonic()
        try:
            for name, state in list(self._waiting.items()):
                self._write(name, state)
                del self._waiting[name]
            self.problem = ""
        except (InputError, OSError) as error:
            self.problem = str(error)
            if not self._warned:
                log.warning("%s; the run continues and tries again later", error)
                self._warned = True
        ended = time.monotonic()
        self._next = ended + CHECKPOINT_PATIENCE * (ended - began)

    def _write(self, name: str, state: Any) -> None:
        path = self.folder / (name + STATE)
        content = self._encode(state)
        with suppress(FileNotFoundError):
            os.replace(path, self.folder / (name + OLD_STATE))
        write_bytes(path, content)
        best, before = self.folder / BEST_FILE, -math.inf
        with suppress(OSError, ValueError), open(best, encoding="ascii", errors="replace") as stream:
            before = float(stream.read(60).removeprefix("[lnL ").split("]")[0])
        if self._show is not None and state.lnl > before:
            write_text(best, f"[lnL {state.lnl!r}]{self._show(state.tree)}\n")

    def _encode(self, state: object) -> bytes:
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **to_arrays(state))
        content = packed.getvalue()
        header = {"format": FORMAT, "run": self._digest, "sha256": hashlib.sha256(content).hexdigest()}
        return json.dumps(header).encode() + b"\n" + content

    def _decode(self, content: bytes) -> Any:
        """The state; one of DAMAGE if it is not what `_encode` made."""
        line, _, packed = content.partition(b"\n")
        header = json.loads(line)
        if header["sha256"] != hashlib.sha256(packed).hexdigest():
            raise ValueError("its digest does not match its content")
        if header["run"] != self._digest:
            raise ValueError("it belongs to another run")
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            return from_arrays(dict(archive))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _k: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        self.flush()


def _shown(value: object) -> str:
    """An item of an identity for a message, on one line."""
    return shorten(" ".join(str(value).split()).replace("+FC", "+F"))


def has_checkpoint(folder: FileName) -> bool:
    """Whether a folder holds states from which a run can continue."""
    return bool(_states(Path(folder)))


def _states(folder: Path) -> list[Path]:
    """The files of all states in a folder, damaged or not."""
    return [path for ending in (STATE, OLD_STATE) for path in sorted(folder.glob("*" + ending))]


def mark_checkpoint(folder: FileName, mark: Mapping[str, Any]) -> None:
    """Make a checkpoint's folder and leave a mark in it for `read_mark`: text, numbers and lists by name.

    Raises InputError if the folder cannot be made or written to.
    """
    _make_folder(Path(folder))
    text = json.dumps({"mark": mark, "sha256": _digest(mark)}, indent=1)
    write_text(Path(folder) / MARK_FILE, text + "\n")


def read_mark(folder: FileName) -> dict[str, Any] | None:
    """The mark that `mark_checkpoint` left in a folder; empty if there is none, None if it is damaged."""
    path = Path(folder) / MARK_FILE
    try:
        found = read_object(path, ("mark", "sha256"), "the mark of a checkpoint")
    except InputError:
        return None if path.exists() else {}
    mark = found["mark"]
    return mark if isinstance(mark, dict) and _digest(mark) == found["sha256"] else None


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def remove_checkpoint(folder: FileName) -> None:
    """Remove a checkpoint, if any, and its folder unless it holds other files; InputError if that cannot be done."""
    root = Path(folder)
    temporary = root.glob(".*.*.*")  # of a process that was killed, see `write_bytes`
    with explained(f"{root}: cannot remove the checkpoint"):
        for path in [*_states(root), *temporary, root / BEST_FILE, root / RUN_FILE, root / MARK_FILE]:
            path.unlink(missing_ok=True)
    with suppress(OSError):
        root.rmdir()


def recorded_item(folder: FileName | None, item: str) -> Any:
    """An item of the identity of the run whose checkpoint a folder holds; None if there is none that can be read."""
    if folder is None or not has_checkpoint(folder):
        return None
    try:
        return _read_identity(Path(folder)).get(item)
    except CheckpointError:  # `Checkpoint` deals with it
        return None


def _read_identity(folder: Path) -> dict[str, Any]:
    """What the states in a folder are of."""
    try:
        return read_object(folder / RUN_FILE, (), "what a checkpoint is of")
    except InputError as error:
        raise CheckpointError(f"{error}; {START_OVER}") from error


def _make_folder(folder: Path) -> None:
    with explained(f"{folder}: cannot make the folder"):
        folder.mkdir(exist_ok=True)
