"""`epa-ng`: the commands of EPA-ng."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plltool
from plltool.constants import FIRST_WORD, VERSION
from plltool.front_ends.options import Given
from plltool.front_ends.raxml_ng import spell_here
from plltool.front_ends.work import Session, Work, hardware

BANNER = f"EPA-ng v0.3.8+plltool{VERSION}"


def run(arguments: Sequence[str]) -> None:
    given = Given("epa-ng", arguments)
    if given.answers(BANNER, "--tree TREE --ref-msa ALIGNMENT --query QUERIES --model MODEL"):
        return
    folder = Path(given.text("prefix", "."))
    session = Session(given, lambda ending: folder / ending, given.files["place"], "--redo", log="epa_info.log")
    session.run(f"{BANNER} front end of plltool {VERSION}, which is not EPA-ng", _place)


def _place(given: Given, session: Session) -> None:
    """Place sequences on the branches of a reference tree; a model with values, and then lengths, stay as given."""
    path, tree, queries, model = (given.first(field) for field in ("alignment", "tree", "queries", "model"))
    how: dict[str, Any] = {"filter_max": given.number("filter_max", 7)}
    names = filter(given.has, ("filter_acc_lwr", "filter_min_lwr", "heuristic"))
    how |= {name: float(given.text(name)) for name in names}
    how |= {"heuristic": 1.0} if given.has("all_branches") else {}
    how |= {"raxml_blo": True} if given.has("all_lengths") else {}
    data = plltool.read_alignment(path, names=FIRST_WORD)
    how |= {"fixed": True} if "{" in model or Path(model).is_file() else {}
    work = Work(session, data, model if Path(model).is_file() else spell_here(model))
    work.hardware = hardware(threads=given.count("threads"))
    found = work.call(plltool.place, work.trees(tree)[0], queries, work.model, names=FIRST_WORD, **how)
    session.say(f"lnL of the reference: {found.lnl:.6f}")
    session.write("epa_result.jplace", found.jplace(" ".join([given.program, *given.arguments])), "Placements")
