"""The commands of FastTree 2."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plltool
from plltool.constants import ALRT_REPLICATES, FIRST_WORD, STDIN, VERSION, WHOLE
from plltool.front_ends.options import HELP, Given, UsageError
from plltool.front_ends.work import Session, Work, hardware, with_shares

BANNER = f"FastTree Version 2.1.11+plltool{VERSION} front end of plltool {VERSION}, which is not FastTree"
USAGE = f"Usage for FastTree version 2.1.11+plltool{VERSION} front end:"
NAME = re.compile(r"(?<=[(,])([^'():,;]+)(?=[:,)])")


def run(arguments: Sequence[str]) -> None:
    given = Given("FastTree", arguments, bare="alignment")
    if set(arguments) & {*HELP, "-expert"} or (not arguments and sys.stdin.isatty()):
        print(USAGE, file=sys.stderr)
        given.answers(BANNER, "[OPTIONS] [ALIGNMENT] > TREE")
        return
    names = {"log": Path(given.text("log_file")), "out": Path(given.text("output"))}
    endings, log = ["out"] if given.has("output") else [], "log" if given.has("log_file") else ""
    if log:
        names[log].unlink(missing_ok=True)  # as FastTree replaces it
    session = Session(given, lambda ending: names[ending], endings, "", log)
    session.out = sys.stderr
    session.run(BANNER, _infer_tree)


def _infer_tree(given: Given, session: Session) -> None:
    """Find or evaluate the tree, with SH-like supports."""
    is_dna, keeps, quotes = given.has("nucleotides"), given.has("keeps"), given.has("quote")
    name, is_flat = given.text("model", "JC" if is_dna else "JTT"), given.has("without_rates")
    if (name == "GTR+FO") > is_dna or (name in ("LG", "WAG") and is_dna):
        raise UsageError(f"found a model of other data, {name}, expected one for {'DNA' if is_dna else 'proteins'}")
    n_replicates = given.number("replicates", ALRT_REPLICATES)
    path, start, with_supports = given.text("alignment", STDIN), given.text("start"), not given.has("without_supports")
    given.has("log_file", "output", "gamma")
    states = "dna" if is_dna else "protein"
    data = plltool.read_alignment(path, states, names=WHOLE if quotes else FIRST_WORD)
    threads = os.environ.get("OMP_NUM_THREADS", "")
    work = Work(session, data, name + ("" if is_flat else "+G4"), given.number("seed", 1))
    work.hardware = hardware(threads=int(threads) if threads.isdecimal() and int(threads) else None)
    if keeps:
        found = work.call(plltool.evaluate, work.trees(given.first("start"))[0], work.model)
    else:
        options, begin = plltool.SearchOptions(effort="fast"), work.trees(start)[0] if start else "parsimony"
        found = work.call(plltool.search, work.model, start=begin, seed=work.seed, options=options)
    if given.has("gamma") and not is_flat:
        session.say(f"Gamma(4) LogLk = {found.lnl:.3f} alpha = {found.parameters['alpha']:.3f}")
    _tell(found, session)
    newick = found.newick
    if with_supports and n_replicates:
        how = {"kinds": ("sh-alrt",), "replicates": n_replicates, "seed": work.seed}
        supports = work.call(plltool.alrt, found.tree, found.model, **how).supports
        newick = with_shares(supports, supports.values["sh-alrt"] / 100).newick()
    newick = NAME.sub(r"'\1'", newick) if quotes else newick
    if given.has("output"):
        session.write("out", newick)
    else:
        print(newick)


def _tell(found: Any, session: Session) -> None:
    """The lnL and the model, as FastTree's log has them."""
    own = found.parts[0].parameters
    session.say(f"Optimize all lengths: LogLk = {found.lnl:.3f}")
    if "GTR" in own["spec"]:
        shares, rates = (" ".join(f"{x:.4f}" for x in own[key].values()) for key in ("frequencies", "rates"))
        session.say(f"GTR Frequencies: {shares}", f"GTR rates(ac ag at cg ct gt) {rates}")
        session.say("GTRFreq\t" + shares.replace(" ", "\t"), "GTRRates\t" + rates.replace(" ", "\t"))
