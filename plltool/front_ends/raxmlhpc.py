"""The commands of RAxML 8, which become commands of RAxML-NG with other names of files."""

import re
from collections.abc import Sequence
from pathlib import Path

from plltool.constants import VERSION
from plltool.front_ends import raxml_ng
from plltool.front_ends.options import Given, UsageError, read_table
from plltool.front_ends.work import KINDS, Session, read_lines

BANNER = f"This is RAxML version 8.2.12+plltool{VERSION} front end of plltool {VERSION}, which is not RAxML"
TASKS = {"d": "search", "o": "search", "a": "all", "e": "evaluate", "b": "support", "A": "ancestral", "J": "sh"}
TASKS |= {"r": "rfdist", "g": "sitelh"}
MODEL = re.compile(r"(ASC_)?(GTR|PROT|BIN|MULTI)(GAMMA|CAT)(I?)(?:_WINNER)?([A-Z0-9_]*?)(F|X)?")
MULTISTATE = {"GTR": "GTRX+F", "MK": "MK", "ORDERED": "ORDERED"}  # -K
MATRICES = dict(pair.split("=") for pair in read_table("raxmlHPC")[1]["matrices"])


def run(arguments: Sequence[str]) -> None:
    given = Given("raxmlHPC", arguments)
    if given.answers(BANNER, "-s ALIGNMENT -n NAME -m MODEL [OPTIONS]"):
        return
    name, folder = given.first("run_name"), Path(given.text("folder", "."))
    consense, letter, number = given.has("--consense"), given.text("algorithm", "d"), given.text("number", "1")
    flags = {"bootstrap_seed": "bootstrap", "--consense": "consense", "parsimony": "start", "stop_test": "bsconverge"}
    task = next((own for field, own in flags.items() if given.has(field)), TASKS[letter])
    words = ["--all", "--bs-metric", "sh"] if task == "sh" else [] if consense else [f"--{task}"]
    for field in sorted(option.field for option in given.table if option.field.startswith("--")):
        words += [field, given.text(field)] if given.has(field) else []
    if given.has("trees"):
        words += ["--tree" if task in ("consense", "rfdist", "sitelh") else "--bs-trees", given.text("trees")]
    if given.has("number") or task == "bootstrap":
        kind = "rand" if given.has("random") else "pars"
        words += ["--tree", f"{kind}{{{number}}}"] if task in ("search", "start") and not given.has("--tree") else []
        words += ["--bs-trees", number] if task in ("all", "bootstrap") else []
    elif given.has("random") or task == "start":
        words += ["--tree", "rand{1}" if given.has("random") else "pars{1}"]
    words += ["--bs-cutoff", cutoff] if (cutoff := given.text("cutoff")) and task in ("all", "bootstrap") else []
    words += ["--bs-metric", "rbs"] if given.has("rapid_seed") and task == "all" else []
    words += ["--seed", given.text("bootstrap_seed")] if task == "bootstrap" and not given.has("--seed") else []
    if task not in ("support", "consense", "rfdist", "bsconverge"):
        words += ["--model", _read_model(given), "--brlen", "unlinked" if given.has("unlinked") else "linked"]
    given.has("model_name")
    given.refuse_rest()
    there, done = Given("raxml-ng", words), "all" if task == "sh" else task
    names = {ending: own[0] for ending, own in given.files.items()}
    names |= {"bestTree": "result", "mlTrees": "results"} if task == "evaluate" else {}
    names |= {"support": "fastTreeSH_Support"} if task == "sh" else {}
    endings = [ending + given.text("--consense") for ending in there.files[done]]
    endings += ["supportLabels"] if task in ("all", "support") else []
    there.program, there.arguments = given.program, given.arguments
    session = _Respelt(there, lambda ending: folder / f"RAxML_{names[ending]}.{name}", endings, "no option")
    session.run(BANNER, raxml_ng.TASKS[done])


class _Respelt(Session):
    """A run whose files RAxML-NG writes in another way: supports of branches, distances and lnL of sites."""

    def write(self, ending: str, content: str | bytes, what: str = "") -> None:
        if isinstance(content, str) and ending in ("support", "supportSH"):
            labelled = re.sub(r"\)([\d.]+):([^,();]+)", lambda own: f"):{own[2]}[{float(own[1]):.0f}]", content)
            if self.path(ending).name.startswith("RAxML_fastTreeSH_Support"):
                content = labelled
            else:
                super().write("supportLabels", labelled)
        elif isinstance(content, str) and ending == "rfDistances":
            content = re.sub(r"(\d+)\t(\d+)\t(\d+)\t", r"\1 \2: \3 ", content)
        elif isinstance(content, str) and ending == "siteLH":
            content = re.sub(r"^tree(\d+) +", r"tr\1\t", content, flags=re.MULTILINE)
        super().write(ending, content, what)


def _read_model(given: Given) -> str:
    word, dna, _ = given.first("model_name"), given.text("dna", "GTR"), given.has("ascertainment")
    if (match := MODEL.fullmatch(word)) is None:
        raise UsageError(f"-m: found {word!r}, expected a model such as GTRGAMMA, GTRCAT or PROTGAMMALG")
    is_flat = given.has("without_rates") and match[3] == "CAT"
    rates = ("" if is_flat else "+G4") + "+I" * bool(match[4]) + "+ASC_LEWIS" * bool(match[1])
    frequencies = {"F": "+F", "X": "+FO", None: ""}[match[6]]
    if match[5] == "AUTO":
        return "AA"
    bases = {"GTR": dna + (frequencies or "+F" * (dna not in ("JC", "K80"))), "BIN": "BIN+F"}
    bases["MULTI"] = MULTISTATE[given.text("multistate", "GTR")]
    own, lines = bases.get(match[2]) or MATRICES.get(match[5], match[5]) + frequencies, []
    for line in read_lines(given.text("parts")) if given.has("parts") else ():
        kind, comma, rest = line.partition(",")
        name = kind.strip().upper()
        matrix = MATRICES.get(name.removesuffix("F"), name.removesuffix("F")) + "+F" * name.endswith("F")
        lines.append(f"{own if name in KINDS else matrix}{rates}{comma}{rest}")
    return "\n".join(lines) or own + rates
