#!/usr/bin/env python3
"""Feed broken input to every parser; each must return a value or raise a PlltoolError, quickly and in little memory.

    scripts/checks/fuzz.py                                  all parsers, 20 s each
    scripts/checks/fuzz.py newick model --seconds 300       two of them for longer
    scripts/checks/fuzz.py partition --count 1000000 --seed 7 --output fuzz.json
    scripts/checks/fuzz.py newick --replay failures/newick-1.bin

Inputs are mutations of a corpus: files of `data/` and the small inputs in `fuzz_inputs.toml`. An input with a new kind
of answer joins the corpus. A failure is an exception other than PlltoolError, an answer that takes longer than --limit,
memory that grows by more than --memory, a message that is not one short line, or a value that changes when it is
written and read. Its input is shortened and kept in the folder --failures. The exit status is 1 if there was a failure.

Equal seeds and counts give equal inputs. Run it under nice; it uses one process.
"""

import argparse
import gzip
import json
import logging
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TypeAlias

from fuzz_parsers import COMMON, PARSERS, Parser

from plltool.errors import PlltoolError

MEBIBYTE = 1 << 20
MAX_INPUT = 200_000  # bytes; longer mutants are cut
MAX_CORPUS = 400
SEED_SHARE = 0.4  # of inputs that are mutations of a seed; the others mutate inputs with new kinds of answers
MAX_MESSAGE = 1500  # characters
SHORTENING = 10.0  # seconds for a failure
MAX_KEPT = 25  # failures of one parser, each of a different kind
ADDRESS_SPACE = 6 << 30  # bytes of the process; larger allocations fail


# --- mutations ----------------------------------------------------------------------------------------------


class Mutator:
    """Makes inputs from a growing corpus."""

    def __init__(self, parser: Parser, rng: random.Random):
        self.corpus = list(parser.seeds)
        self._seeds = parser.seeds
        self._tokens = [*COMMON, *parser.tokens, *parser.tokens]
        self._rng = rng
        self._kinds = [self._flip, self._insert, self._insert, self._delete, self._copy, self._splice, self._number]
        self._kinds += [self._swap_lines, self._cut, bytes.swapcase]

    def next(self) -> bytes:
        rng = self._rng
        content = rng.choice(self._seeds if rng.random() < SEED_SHARE else self.corpus)
        for _ in range(rng.choice((1, 1, 1, 2, 3, 5, 8))):
            content = rng.choice(self._kinds)(content)
        if rng.random() < 0.01:
            content = self._run(content)
        if rng.random() < 0.005:
            packed = gzip.compress(content, 1, mtime=0)
            content = packed[: rng.randrange(len(packed) + 1)] if rng.random() < 0.5 else packed
        return content[:MAX_INPUT]

    def keep(self, content: bytes) -> None:
        """Add an input with a new kind of answer to the corpus."""
        if len(content) < 5000:
            if len(self.corpus) < MAX_CORPUS:
                self.corpus.append(content)
            else:
                self.corpus[self._rng.randrange(len(self.corpus))] = content

    def _span(self, content: bytes, most: int = 64) -> tuple[int, int]:
        start = self._rng.randrange(len(content) + 1)
        return start, min(len(content), start + self._rng.randrange(most))

    def _flip(self, content: bytes) -> bytes:
        at, _ = self._span(content)
        return content[:at] + bytes([self._rng.randrange(256)]) + content[at + 1 :]

    def _insert(self, content: bytes) -> bytes:
        at, _ = self._span(content)
        return content[:at] + self._rng.choice(self._tokens) + content[at:]

    def _delete(self, content: bytes) -> bytes:
        start, stop = self._span(content)
        return content[:start] + content[stop:]

    def _copy(self, content: bytes) -> bytes:
        start, stop = self._span(content)
        at, _ = self._span(content)
        return content[:at] + content[start:stop] * self._rng.choice((1, 2, 20)) + content[at:]

    def _splice(self, content: bytes) -> bytes:
        other = self._rng.choice(self.corpus)
        return content[: self._rng.randrange(len(content) + 1)] + other[self._rng.randrange(len(other) + 1) :]

    def _number(self, content: bytes) -> bytes:
        found = list(re.finditer(rb"\d+", content[:5000]))
        if not found:
            return content
        match, rng = self._rng.choice(found), self._rng
        digits = b"%d" % rng.randrange(100), b"9" * rng.randrange(1, 40)
        number = rng.choice((b"0", b"1", b"2", b"-1", *digits, b"1e308", b"7" * 5000))
        return content[: match.start()] + number + content[match.end() :]

    def _swap_lines(self, content: bytes) -> bytes:
        lines = content.split(self._rng.choice((b"\n", b"\n", b" ", b",")))
        i, j = self._rng.randrange(len(lines)), self._rng.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
        return self._rng.choice((b"\n", b"\n", b"\r\n", b"\r", b" ", b",")).join(lines)

    def _cut(self, content: bytes) -> bytes:
        return content[: self._rng.randrange(len(content) + 1)]

    def _run(self, content: bytes) -> bytes:
        """Repeat a piece of the input, or a token, very often: a test of regular expressions and recursion."""
        start, stop = self._span(content, 6)
        piece = self._rng.choice((content[start:stop], self._rng.choice(self._tokens), b" ", b"(", b"1", b"a ", b"\n"))
        at, _ = self._span(content)
        return content[:at] + piece * self._rng.choice((1000, 20_000, 100_000)) + content[at:]


# --- running ------------------------------------------------------------------------------------------------


class Hang(BaseException):
    """Raised in a parser that takes too long."""


@dataclass
class Outcome:
    """The kind of answer to an input, and the problem with it, if any."""

    shape: str
    problem: str | None
    traceback: str = ""


Judge: TypeAlias = Callable[[bytes], Outcome]


def judge(parser: Parser, path: Path, options: argparse.Namespace, content: bytes) -> Outcome:
    """Feed an input to a parser, in a file at `path` if it wants one, and judge the answer."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with _time_limit(options.limit):
            answer = parser.run(content, path)
        outcome = Outcome(f"value {len(str(answer))} {str(answer)[:8]}", None)
    except PlltoolError as error:
        outcome = judge_message(str(error), _innermost_line(error))
    except (Exception, Hang) as error:
        where = _innermost_line(error)
        kind = f"{type(error).__name__} {where}"
        return Outcome(kind, kind, "".join(traceback.format_exception(error))[-3000:])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if grown > options.memory:
        return Outcome("memory", f"memory grew by {grown:.0f} MiB", f"{grown:.0f} MiB")
    return outcome


def judge_message(message: str, where: str) -> Outcome:
    """Whether the message of an error raised at `where` is one short line."""
    if not message.strip():
        return Outcome(where, f"empty message {where}")
    if len(message) > MAX_MESSAGE:
        return Outcome(where, f"long message {where}", f"{len(message)} characters: {message[:300]}")
    if len(message.splitlines()) > 1:
        return Outcome(where, f"several lines {where}", repr(message[:300]))
    return Outcome(f"error {where}", None)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _innermost_line(error: BaseException) -> str:
    """The last place in plltool that the traceback names."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/plltool/" in frame.filename]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.name}:{last.lineno}"


def shorten(content: bytes, problem: str, judged: Judge) -> bytes:
    """Remove pieces of an input that do not matter for its problem, for a few seconds."""
    end = time.monotonic() + SHORTENING
    size = len(content) // 2
    while size and time.monotonic() < end:
        start = 0
        while start < len(content) and time.monotonic() < end:
            shorter = content[:start] + content[start + size :]
            if judged(shorter).problem == problem:
                content = shorter
            else:
                start += size
        size //= 2
    return content


def fuzz(name: str, options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Fuzz one parser; return counts and failures."""
    parser = PARSERS[name]
    mutator = Mutator(parser, random.Random(f"{options.seed} {name}"))
    judged = partial(judge, parser, folder / "input", options)
    shapes: Counter[str] = Counter()
    failures: dict[str, dict[str, object]] = {}
    n_inputs = n_values = 0
    slowest = 0.0
    began = time.monotonic()
    for content in parser.seeds:
        outcome = judged(content)
        if outcome.problem or not outcome.shape.startswith("value"):
            print(f"{name}: a seed gives {outcome.problem or outcome.shape}", file=sys.stderr)
    while (n_inputs < options.count) if options.count else (time.monotonic() - began < options.seconds):
        content = mutator.next()
        start = time.monotonic()
        outcome = judged(content)
        slowest = max(slowest, time.monotonic() - start)
        n_inputs += 1
        n_values += outcome.shape.startswith("value")
        if outcome.problem is None:
            if outcome.shape not in shapes:
                mutator.keep(content)
            shapes[outcome.shape] += 1
        elif outcome.problem in failures:
            failures[outcome.problem]["times"] = int(str(failures[outcome.problem]["times"])) + 1
        elif len(failures) < MAX_KEPT:
            failures[outcome.problem] = _keep_failure(name, len(failures) + 1, content, outcome, judged, options)
    seconds = time.monotonic() - began
    result = {
        "inputs": n_inputs,
        "values": n_values,
        "refused": n_inputs - n_values,
        "kinds_of_answers": len(shapes),
        "seconds": round(seconds, 1),
        "slowest_seconds": round(slowest, 2),
        "failures": failures,
    }
    print(
        f"{name}: {n_inputs} inputs in {seconds:.0f} s, {n_values} read, {len(shapes)} kinds of answers, "
        f"slowest {slowest:.2f} s, {len(failures)} kinds of failures",
        flush=True,
    )
    return result


def _keep_failure(
    name: str, number: int, content: bytes, outcome: Outcome, judged: Judge, options: argparse.Namespace
) -> dict[str, object]:
    """Shorten, write and report a failing input."""
    assert outcome.problem is not None
    shortened = shorten(content, outcome.problem, judged)
    options.failures.mkdir(parents=True, exist_ok=True)
    path = options.failures / f"{name}-{number}.bin"
    path.write_bytes(shortened)
    print(
        f"{name}: {outcome.problem}: {len(shortened)} bytes, {shortened[:80]!r}\n"
        f"    reproduce: scripts/checks/fuzz.py {name} --replay {path}",
        file=sys.stderr,
        flush=True,
    )
    return {"times": 1, "input": ascii(shortened[:200]), "bytes": len(shortened)}


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], epilog=f"Parsers: {', '.join(PARSERS)}"
    )
    arguments.add_argument("parsers", nargs="*", metavar="PARSER", help="default: all")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=20.0, help="for each parser")
    arguments.add_argument("--count", type=int, default=0, help="inputs for each parser, instead of --seconds")
    arguments.add_argument("--limit", type=float, default=5.0, metavar="SECONDS", help="time limit for one input")
    arguments.add_argument("--memory", type=int, default=300, metavar="MIB", help="limit for one input")
    arguments.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="folder for failing inputs")
    arguments.add_argument("--output", type=Path, help="JSON file of counts and failures")
    arguments.add_argument("--replay", type=Path, help="feed this input to the parser and show what happens")
    options = arguments.parse_args()
    unknown = [name for name in options.parsers if name not in PARSERS]
    if unknown or (options.replay and len(options.parsers) != 1):
        found = ", ".join(unknown or options.parsers) or "none"
        arguments.error(f"expected parsers of {', '.join(PARSERS)}, with --replay one; found {found}")
    logging.getLogger("plltool").setLevel(logging.CRITICAL)  # it would warn about most inputs
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    memory_folder = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory_folder if memory_folder.is_dir() else None) as folder:
        if options.replay:
            outcome = judge(PARSERS[options.parsers[0]], Path(folder) / "input", options, options.replay.read_bytes())
            print(outcome.traceback + (outcome.problem or outcome.shape))
            return int(outcome.problem is not None)
        results = {name: fuzz(name, options, Path(folder)) for name in options.parsers or PARSERS}
    if options.output:
        options.output.write_text(json.dumps({"seed": options.seed, "parsers": results}, indent=1) + "\n")
    return int(any(result["failures"] for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
