"""The commands of FastTree 2."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plltool
from plltool import Sequences
from plltool.constants import ALRT_REPLICATES, FIRST_WORD, STDIN, VERSION, WHOLE
from plltool.front_ends.options import HELP, Given, UsageError
from plltool.front_ends.work import Session, Work

BANNER = f"FastTree Version 2.1.11+plltool{VERSION} front end of plltool {VERSION}, which is not FastTree"
USAGE = f"Usage for FastTree version 2.1.11+plltool{VERSION} front end:"
LABEL = re.compile(r"\)([\d.]+):")
NAME = re.compile(r"'(?:[^']|'')*'|(?<=[(,])([^'():,;]+)(?=[:,)])")  # of a taxon, in quotes or without


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
    session.run(BANNER, _infer)


def _read_sets(given: Given) -> Sequence[Sequences]:
    path, n_sets = given.text("alignment", STDIN), given.number("sets", 1)
    states, names = "dna" if given.has("nucleotides") else "protein", WHOLE if given.has("quote") else FIRST_WORD
    if n_sets == 1:
        return [plltool.read_alignment(path, states, names=names)]
    found = plltool.read_alignment_sets(path, states, names=names)
    if not 0 < n_sets <= len(found):
        raise UsageError(f"-n: found {n_sets}, expected 1 to {len(found)}, the number of alignments in {path}")
    return found[:n_sets]


def _infer(given: Given, session: Session) -> None:
    found = [_infer_tree(given, session, data, number) for number, data in enumerate(_read_sets(given))]
    if given.has("output"):
        session.write("out", "\n".join(found))
    else:
        print("\n".join(found))


def _infer_tree(given: Given, session: Session, data: Sequences, number: int) -> str:
    """The tree of an alignment, with SH-like supports; `number` counts the alignments from 0."""
    is_dna, keeps, quotes = given.has("nucleotides"), given.has("keeps"), given.has("quote")
    name, is_flat = given.text("model", "JC" if is_dna else "JTT"), given.has("without_rates")
    if given.has("rates", "frequencies"):
        rates, shares = given.text("rates"), given.text("frequencies")
        name = "GTR" + f"{{{rates}}}" * bool(rates) + (f"+FU{{{shares}}}" if shares else "+FO")
    if name.startswith("GTR") > is_dna or (name in ("LG", "WAG") and is_dna):
        raise UsageError(f"found a model of other data, {name}, expected one for {'DNA' if is_dna else 'proteins'}")
    n_replicates, n_categories = given.number("replicates", ALRT_REPLICATES), given.number("categories", 20)
    n_replicates *= not given.has("without_supports")
    given.has("log_file", "output", "gamma")
    threads = os.environ.get("OMP_NUM_THREADS", "")
    work = Work(session, data, name + ("" if is_flat else "+G4"), given.number("seed", 1))
    work.hardware["threads"] = int(threads) or None if threads.isdecimal() else None
    own, common = given.text("start"), given.text("first_start")
    starts = work.trees(own or common) if own or common else []
    if own and number >= len(starts):
        raise UsageError(f"-intree: found {len(starts)} trees, expected one for each alignment")
    begin: Any = starts[number if own else 0] if starts else "parsimony"
    if keeps and not starts:
        raise UsageError("-mllen: found no -intree, expected the tree")
    how: dict[str, Any] = {"start": begin, "seed": work.seed, "options": plltool.SearchOptions(effort="fast")}
    call = (plltool.evaluate, begin, work.model) if keeps else (plltool.search, work.model)
    found = work.call(*call, **({} if keeps else how))
    fitted = found.parts[0].parameters
    session.say(f"Optimize all lengths: LogLk = {found.lnl:.3f}")
    if is_dna and name.startswith("GTR"):
        shares, rates = (" ".join(f"{x:.4f}" for x in fitted[key].values()) for key in ("frequencies", "rates"))
        session.say(f"GTR Frequencies: {shares}", f"GTR rates(ac ag at cg ct gt) {rates}")
        session.say("GTRFreq\t" + shares.replace(" ", "\t"), "GTRRates\t" + rates.replace(" ", "\t"))
    if given.has("gamma") and not is_flat:
        before, model = found.tree.total_length(), re.sub(r"\+G4\{.*?\}", f"+G{n_categories}", found.model)
        found = work.call(plltool.evaluate, found.tree, model)
        values = found.tree.total_length() / before, found.parameters["alpha"], found.lnl
        scale, alpha, lnl = (f"{value:.3f}" for value in values)
        session.say(f"Gamma({n_categories}) LogLk = {lnl} alpha = {alpha} rescaling lengths by {scale}")
        session.say(f"Gamma{n_categories}LogLk\t{lnl}\tApproximate\tAlpha\t{alpha}\tRescale\t{scale}")
    newick = found.newick
    if n_replicates:
        how = {"kinds": ("sh-alrt",), "replicates": n_replicates, "seed": work.seed}
        supports = work.call(plltool.alrt, found.tree, found.model, **how).supports
        newick = LABEL.sub(lambda label: f"){float(label[1]) / 100:.3f}:", supports.newick())
    return NAME.sub(lambda name: f"'{name[1]}'" if name[1] else name[0], newick) if quotes else newick
