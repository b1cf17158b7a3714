#!/usr/bin/env python3
"""Make the rows of other programs' likelihoods that `verify_reference.py` compares: reference_rows.json.

    scripts/checks/make_reference_rows.py DATA_DIR [WORD ...]

`wanted` lists the rows; a new one needs a line there. Only rows that are missing are made, and those whose program,
data or model contains one of the words. IQ-TREE 2, RAxML 8 and codeml (PAML) come from Debian's packages iqtree, raxml
and paml. Each optimises all branch lengths and parameters of a model on a tree. A row has the model without values and
with those that the program ended with, the tree with its lengths, and its lnL. IQ-TREE makes a tree of its own; the
others take that of an earlier row of the same data.

Rows that are not listed stay: those of doublets, which have two parts, and those of IQ-TREE 3 and MrBayes. If a row is
`given`, its values and the lengths of its tree were chosen beforehand.
"""

import argparse
import gzip
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verify_reference import ROWS, take_data

from plltool.model.model_string import parse_model
from plltool.model.values import MIN_GIVEN


@dataclass(frozen=True)
class Wanted:
    """A row to make: plltool's model, and the arguments of the other program that mean the same."""

    program: str
    data: str
    model: str
    arguments: str
    take: Mapping[str, object]


@dataclass(frozen=True)
class Values:
    """What a program ended with, as numbers in text."""

    lnl: float
    tree: str
    rates: tuple[str, ...] = ()
    class_weights: tuple[str, ...] = ()
    frequencies: tuple[str, ...] = ()
    alpha: str = ""
    pinv: str = ""
    free_rates: tuple[str, ...] = ()
    free_weights: tuple[str, ...] = ()

    def fill(self, model: str) -> str:
        """The model string with all values in braces."""
        name, *parts = model.split("+")
        filled = [name + _braces(self.rates) + _braces(self.class_weights)]
        for part in parts:
            if part in ("FO", "F") and self.frequencies:
                filled.append("FU" + _braces(self.frequencies))
            elif re.fullmatch(r"G\d+", part):
                filled.append(part + _braces((self.alpha,)))
            elif part == "I":
                filled.append(part + _braces((self.pinv,)))
            elif re.fullmatch(r"R\d+", part):
                filled.append(part + _braces(self.free_rates) + _braces(self.free_weights))
            else:
                filled.append(part)
        return "+".join(filled)


def _braces(values: tuple[str, ...]) -> str:
    return "{" + "/".join(values) + "}" if any(values) else ""


CODONS = ("abglobin.nuc", "lysozymeSmall.nuc", "replicase.nex")
MORPHOLOGY = {"columns": [1, 166], "symbols": "01234567"}
FOUR, TWO = MORPHOLOGY | {"symbols": "0123"}, MORPHOLOGY | {"symbols": "01"}
VARIABLE = {"variable": True}
_BASES = {"symbols": "ACGT"}  # RAxML and IQ-TREE differ in what +F counts where there are others


def wanted() -> Iterator[Wanted]:
    """All rows, in the order of the file."""
    same = ("GY+F1X4", "GY+F3X4", "GY+FE", "GY+F", "GY0K+F3X4", "GY1KTV+F3X4", "MG+F3X4", "MGK+F3X4", "MGK+F1X4")
    published = ("ECMK07", "ECMrest", "ECMK07+F3X4", "ECMK07_GY1KTV", "ECMK07_GY2K")
    rates = ("GY+F3X4+G4", "GY+F3X4+I", "GY+F3X4+R2", "MGK+F3X4+I+G4", "MG1KTV+F3X4")
    for data in CODONS:
        for model in same + rates + published:
            yield Wanted("IQ-TREE", data, model, f"-st CODON -m {model.replace('+FE', '+FQ')}", {})
        for number, frequencies in enumerate(("FE", "F1X4", "F3X4")):
            yield Wanted("codeml", data, f"GY+{frequencies}", f"NSsites=0 CodonFreq={number}", {})
        for number, name in enumerate(("M1a", "M2a", "M3"), 1):
            yield Wanted("codeml", data, f"{name}+F3X4", f"NSsites={number} CodonFreq=2 ncatG=3", {})
    for model in ("MK", "MK+G4", "MK+F+G4", "ORDERED+G4", "MK+R2"):
        yield Wanted("IQ-TREE", "cynmix.nex", model, f"-st MORPH -m {model}", MORPHOLOGY)
    yield Wanted("IQ-TREE", "cynmix.nex", "MULTI4_GTR+FE+G4", "-st MORPH -m GTRX+FQ+G4", FOUR)
    yield Wanted("IQ-TREE", "cynmix.nex", "MULTI4_GTR+F+G4", "-st MORPH -m GTRX+F+G4", FOUR)
    for model in ("JC2", "JC2+G4", "GTR2+F", "GTR2+FO+G4"):
        yield Wanted("IQ-TREE", "cynmix.nex", model, f"-st BIN -m {model}", TWO)
    for model in ("MK+ASC", "MK+G4+ASC", "ORDERED+ASC"):
        yield Wanted("IQ-TREE", "cynmix.nex", model, f"-st MORPH -m {model}", FOUR | VARIABLE)
    for model in ("JC2+ASC", "GTR2+FO+G4+ASC"):
        yield Wanted("IQ-TREE", "cynmix.nex", model, f"-st BIN -m {model}", TWO | VARIABLE)
    yield Wanted("IQ-TREE", "primates.phy", "JC+R3+ASC", "-m JC+R3+ASC", VARIABLE)
    counted = "0.2751/0.2924/0.218/0.2145"  # with 42 % gaps, eight rounds of IQ-TREE's +F do not come to the end
    iqtree = f"-st DNA -m GTR+F{{{counted.replace('/', ',')}}}+G4+ASC"
    yield Wanted("IQ-TREE", "dna59.phy", f"GTR+FU{{{counted}}}+G4+ASC", iqtree, VARIABLE | _BASES)
    yield Wanted("IQ-TREE", "aa140.phy", "LG+G4+ASC", "-st AA -m LG+G4+ASC", VARIABLE)
    yield Wanted("IQ-TREE", "avian_ovomucoids.phy", "LG+G4+ASC", "-m LG+G4+ASC", VARIABLE)
    for model in ("UNREST", "UNREST+G4", "UNREST+I", "UNREST+R3"):
        yield Wanted("IQ-TREE", "primates.phy", model, f"-m {model}", {})
    for model in ("RY8.8", "WS5.7a", "MK10.34", "RY3.4+G4", "RY6.17a+G4"):
        yield Wanted("IQ-TREE", "primates.phy", model, f"-m {model}", {})
    yield Wanted("IQ-TREE", "lysozymeSmall.nuc", "UNREST+G4", "-st DNA -m UNREST+G4", {})
    yield Wanted("IQ-TREE", "replicase.nex", "UNREST+G4", "-st DNA -m UNREST+G4", {})
    yield Wanted("RAxML", "cynmix.nex", "MK+G4", "-m MULTIGAMMA -K MK", FOUR)
    yield Wanted("RAxML", "cynmix.nex", "MULTI4_GTR+F+G4", "-m MULTIGAMMA -K GTR", FOUR)
    yield Wanted("RAxML", "cynmix.nex", "GTR2+F+G4", "-m BINGAMMA", TWO)
    yield Wanted("RAxML", "cynmix.nex", "MK+G4+ASC", "-m ASC_MULTIGAMMA -K MK --asc-corr=lewis", FOUR | VARIABLE)
    yield Wanted("RAxML", "cynmix.nex", "GTR2+F+G4+ASC", "-m ASC_BINGAMMA --asc-corr=lewis", TWO | VARIABLE)
    bases = _BASES | VARIABLE
    yield Wanted("IQ-TREE", "primates.phy", "GTR+F+G4+ASC", "-m GTR+F+G4+ASC", bases)
    yield Wanted("RAxML", "primates.phy", "GTR+F+G4+ASC", "-m ASC_GTRGAMMA --asc-corr=lewis", bases)
    for given in ("ASC_FELS{300}", "ASC_STAM{90/60/50/100}"):
        kind = "felsenstein" if "FELS" in given else "stamatakis"
        options = f"-m ASC_GTRGAMMA --asc-corr={kind} " + " ".join(re.findall(r"\d+", given))
        yield Wanted("RAxML", "primates.phy", f"GTR+F+G4+{given}", options, bases)


# --- programs -----------------------------------------------------------------------------------------------


def run_iqtree(folder: Path, row: Wanted, rows: Mapping[str, str], _tree: str) -> Values:
    """Its checkpoint has ten digits of everything; taxa are numbers there."""
    write_phylip(folder / "data.phy", rows)
    given = ["iqtree2", "-s", "data.phy", *row.arguments.split(), "-n", "0", "-seed", "1", "--keep-ident"]
    call([*given, "--epsilon", "0.0001", "-T", "1", "-pre", "run", "-quiet"], folder)
    text = gzip.decompress((folder / "run.ckp.gz").read_bytes()).decode()
    lnl, tree = re.findall(r"^ 0: (\S+) (.*;)$", text, re.MULTILINE)[0]
    tree = re.sub(r"(?<=[(,])(\d+)", r"t\1", tree)

    def numbers(key: str) -> tuple[str, ...]:
        found = re.search(rf"^ {key}: (.*)$", text, re.MULTILINE)
        return tuple(found[1].split(", ")) if found else ()

    section = re.search(r"^RateFree\S*:\n(?: .*\n)+", text, re.MULTILINE)
    inside = section[0] if section else ""
    free = {key: tuple(value.split(", ")) for key, value in re.findall(r"^ (prop|rates): (.*)$", inside, re.MULTILINE)}
    text = text.replace(inside, "")
    n_of_codons = len(parse_model(row.model).named.rates.names)
    of_matrices = (",".join(numbers("model_parameters")),)  # weights of those of a Lie Markov model, or empty text
    of_codons = (numbers("omega") + numbers("kappa") + numbers("kappa2"))[:n_of_codons]
    return Values(
        lnl=float(lnl),
        tree=tree.replace("):0;", ");"),
        rates=numbers("rates") if row.model.startswith(("GTR+", "MULTI4", "UNREST")) else of_codons or of_matrices,
        frequencies=numbers("state_freq") if "+FO" in row.model else (),
        alpha="".join(numbers("gamma_shape")),
        pinv="".join(numbers("p_invar")),
        free_rates=free.get("rates", ()),
        free_weights=free.get("prop", ()),
    )


def run_raxml(folder: Path, row: Wanted, rows: Mapping[str, str], tree: str) -> Values:
    """It prints six digits of parameters and frequencies. Numbers of unseen sites go into files, as it wants them."""
    write_phylip(folder / "data.phy", rows)
    (folder / "start.nwk").write_text(tree)
    words = row.arguments.split()
    options, counts = [w for w in words if not w.isdigit()], [w for w in words if w.isdigit()]
    if counts:
        n_sites = len(next(iter(rows.values())))
        (folder / "unseen.txt").write_text(" ".join(counts) + "\n")
        (folder / "parts.txt").write_text(f"[asc~unseen.txt], ASC_DNA, all = 1-{n_sites}\n")
        options += ["-q", "parts.txt"]
    call(["raxmlHPC", *options, "-f", "e", "-t", "start.nwk", "-s", "data.phy", "-n", "run", "-e", "0.00001"], folder)
    text = (folder / "RAxML_info.run").read_text()
    rates = tuple(re.findall(r"^rate \S+ <-> \S+: (\S+)$", text, re.MULTILINE))
    if row.model.startswith(("MK", "GTR2")):
        rates = ()
    return Values(
        lnl=float(re.findall(r"Final GAMMA  likelihood: (\S+)", text)[-1]),
        tree=(folder / "RAxML_result.run").read_text().strip(),
        rates=rates,
        frequencies=tuple(re.findall(r"^freq pi\(\S+\): (\S+)$", text, re.MULTILINE)),
        alpha=re.findall(r"^alpha: (\S+)$", text, re.MULTILINE)[-1],
    )


def run_codeml(folder: Path, row: Wanted, rows: Mapping[str, str], tree: str) -> Values:
    """It prints six digits of lengths, kappa, weights and omegas behind its lnL, in this order."""
    write_phylip(folder / "data.phy", rows)
    (folder / "start.nwk").write_text(re.sub(r":[0-9.e-]+", "", tree))
    settings = {"seqfile": "data.phy", "treefile": "start.nwk", "outfile": "out", "seqtype": 1, "icode": 0, "model": 0}
    settings |= {"kappa": 2, "omega": 0.4, "cleandata": 0, "noisy": 0}
    settings |= dict(word.split("=") for word in row.arguments.split())
    (folder / "codeml.ctl").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    call(["codeml", "codeml.ctl"], folder)
    text = (folder / "out").read_text()
    found = re.search(r"^lnL\(ntime: *(\d+) .*\): +(\S+) .*\n.*\n(.*)$", text, re.MULTILINE)
    assert found is not None, text
    kappa, *others = found[3].split()[int(found[1]) :]
    n_weights = {"0": 0, "1": 1, "2": 2, "3": 2}[str(settings["NSsites"])]
    weights = [float(value) for value in others[:n_weights]]
    final = next(line for line in text.splitlines() if line.startswith("(") and ": 0" in line and "t0" in line)
    return Values(
        lnl=float(found[2]),
        tree=final.replace(" ", ""),
        rates=(*others[n_weights:], kappa),
        class_weights=tuple(f"{max(value, MIN_GIVEN):.9f}" for value in [*weights, 1 - sum(weights)])
        if weights
        else (),
    )


PROGRAMS: dict[str, tuple[str, Callable[..., Values]]] = {
    "IQ-TREE": ("IQ-TREE 2.0.7", run_iqtree),
    "RAxML": ("RAxML 8.2.12", run_raxml),
    "codeml": ("codeml, PAML 4.9j", run_codeml),
}


def call(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {(done.stderr or done.stdout)[-500:]}")


def write_phylip(path: Path, rows: Mapping[str, str]) -> None:
    """Taxa are called t0, t1 and so on, because each program has its own rules for names."""
    lines = [f"t{number}  {row}" for number, row in enumerate(rows.values())]
    path.write_text(f" {len(rows)} {len(next(iter(rows.values())))}\n" + "\n".join(lines) + "\n")


def make(folder: Path, row: Wanted, made: list[dict[str, object]]) -> dict[str, object]:
    """One row, as reference_rows.json has it."""
    rows = {name: text.replace("U", "T") for name, text in take_data(folder, row.data, row.take).items()}
    key = {"data": row.data, "take": dict(row.take)}
    earlier = [str(other["tree"]) for other in made if key.items() <= other.items()]
    names = list(rows)
    with tempfile.TemporaryDirectory() as name:
        renamed = _rename(earlier[0], {n: f"t{i}" for i, n in enumerate(names)}) if earlier else ""
        version, run = PROGRAMS[row.program]
        values = run(Path(name), row, rows, renamed)
    return {
        **key,
        "model": row.model,
        "fixed": values.fill(row.model),
        "tree": _rename(values.tree, {f"t{i}": n for i, n in enumerate(names)}),
        "lnl": values.lnl,
        "program": version,
        "arguments": row.arguments,
    }


def _rename(tree: str, names: Mapping[str, str]) -> str:
    return re.sub(r"(?<=[(,])[^(),:;]+", lambda found: names[found[0]], tree)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("words", nargs="*", help="rows to make again")
    arguments = parser.parse_args()
    stored = json.loads(ROWS.read_text()) if ROWS.exists() else []
    old = {(row["program"], row["data"], row["model"], str(row["take"])): row for row in stored}
    made: list[dict[str, object]] = []
    for row in wanted():
        label = f"{row.program} {row.data} {row.model}"
        known = old.pop((PROGRAMS[row.program][0], row.data, row.model, str(dict(row.take))), None)
        if known is not None and not any(word in label for word in arguments.words):
            made.append(known)
            continue
        made.append(make(arguments.data, row, made))
        print(f"{label:60s} {made[-1]['lnl']}", flush=True)
        write_rows([*made, *old.values()])
    write_rows([*made, *old.values()])


def write_rows(rows: Sequence[Mapping[str, object]]) -> None:
    ROWS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
