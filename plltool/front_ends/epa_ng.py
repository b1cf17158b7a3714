"""`epa-ng`: the commands of EPA-ng."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plltool
from plltool.constants import FIRST_WORD, VERSION
from plltool.front_ends.options import Given, UsageError
from plltool.front_ends.raxml_ng import spell_here
from plltool.front_ends.work import Session, Work

BANNER = f"EPA-ng v0.3.8+plltool{VERSION}"


def run(arguments: Sequence[str]) -> None:
    given = Given("epa-ng", arguments, bare="combined")
    if given.answers(BANNER, "--tree TREE --ref-msa ALIGNMENT --query QUERIES --model MODEL"):
        return
    folder = Path(given.text("prefix", "."))
    task = "split" if given.has("split") else "place"
    session = Session(given, lambda ending: folder / ending, given.files[task], "--redo", log="epa_info.log")
    session.run(f"{BANNER} front end of plltool {VERSION}, which is not EPA-ng", _split if task == "split" else _place)


def _split(given: Given, session: Session) -> None:
    """Divide an alignment into the sequences whose names a reference has, and the others."""
    combined = plltool.read_alignment(given.first("combined"), names=FIRST_WORD)
    names = set(plltool.read_alignment(given.text("split"), names=FIRST_WORD, least=1).names)
    rows = [(name, row.decode("ascii", "replace")) for name, row in zip(combined.names, combined.rows, strict=True)]
    files = {"reference.fasta": [row for row in rows if row[0] in names]}
    files["query.fasta"] = [row for row in rows if row[0] not in names]
    for ending, kept in files.items():
        if not kept:
            raise UsageError(f"--split: found no sequence of {ending} in {combined.source}, expected at least one")
    for ending, kept in files.items():
        session.write(ending, plltool.format_fasta(*zip(*kept, strict=True)), ending)


def _place(given: Given, session: Session) -> None:
    """Place sequences on the branches of a reference tree; a model with values, and then lengths, stay as given."""
    path, tree, queries, word = (given.first(field) for field in ("alignment", "tree", "queries", "model"))
    how: dict[str, Any] = {"filter_max": given.number("filter_max", 7)}
    how |= {} if given.has("filter_acc_lwr") else {"filter_min_lwr": 0.01, "filter_acc_lwr": 1.0}
    how |= {x: float(given.text(x)) for x in filter(given.has, ("filter_acc_lwr", "filter_min_lwr", "heuristic"))}
    how |= {"heuristic": 1.0} if given.has("all_branches") else {}
    how["raxml_blo"] = given.has("all_lengths") or None
    data = plltool.read_alignment(path, names=FIRST_WORD)
    how["fixed"] = "{" in word or Path(word).is_file()
    work = Work(session, data, word if Path(word).is_file() else spell_here(word))
    work.hardware["threads"] = given.number("threads") or None
    found = work.call(plltool.place, work.trees(tree)[0], queries, work.model, names=FIRST_WORD, **how)
    session.say(f"lnL of the reference: {found.lnl:.6f}")
    session.write("epa_result.jplace", found.jplace(" ".join([given.program, *given.arguments])), "Placements")
