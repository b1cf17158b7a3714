#!/usr/bin/env python3
"""Feed broken input to one parser of `fuzz.py`, guided by code coverage (libFuzzer through atheris).

    pip install atheris
    scripts/checks/fuzz_coverage.py newick --seconds 300
    scripts/checks/fuzz.py newick --replay fuzz-failures/crash-...

Inputs are judged as in `fuzz.py`. The first failure ends the run, and its input is kept in the folder --failures. The
exit status is that of libFuzzer: 0 without a failure.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("fuzz_coverage.py: needs atheris: pip install atheris")

with atheris.instrument_imports(include=["plltool"]):
    from fuzz import MAX_INPUT, Runner
    from fuzz_parsers import PARSERS


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("parser", choices=PARSERS)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--limit", type=float, default=20.0, metavar="SECONDS", help="time limit for one input")
    arguments.add_argument("--memory", type=int, default=300, metavar="MIB", help="limit for one input")
    arguments.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="folder for failing inputs")
    options = arguments.parse_args()
    logging.getLogger("plltool").setLevel(logging.CRITICAL)
    options.failures.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp())  # libFuzzer ends the process, so nothing can clean up after it
    corpus = folder / "corpus"
    corpus.mkdir()
    parser = PARSERS[options.parser]
    for number, content in enumerate(parser.seeds):
        (corpus / f"seed-{number}").write_bytes(content[:MAX_INPUT])
    runner = Runner(parser, folder, options.limit, options.memory)

    def judge(content: bytes) -> None:
        outcome = runner.judge(content)
        if outcome.problem:
            raise RuntimeError(outcome.problem)

    flags = [f"-max_total_time={options.seconds}", f"-seed={options.seed}", "-max_len=20000", "-print_final_stats=1"]
    flags += [f"-artifact_prefix={options.failures}/", "-timeout=0"]  # its alarm would take that of `Runner`
    atheris.Setup([sys.argv[0], *flags, str(corpus)], judge)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
