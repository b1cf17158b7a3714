#!/usr/bin/env python3
"""Make the rows of other programs' likelihoods that `verify_reference.py` compares: reference_rows.json.

    scripts/checks/make_reference_rows.py DATA_DIR [WORD ...]

A new row has `data`, what it takes of them, plltool's `model`, the `program` and the `arguments` of the program that
mean the same. Rows without lnL are made, and those whose program, data or model contains one of the words. IQ-TREE 2,
RAxML 8 and codeml (PAML) come from Debian's packages iqtree, raxml and paml. Each optimises all branch lengths and
parameters of a model on a tree. A row then has the model with the values that the program ended with, the tree with its
lengths, and its lnL. IQ-TREE makes a tree of its own; the others take that of an earlier row of the same data.

Other rows stay: those of doublets, which have two parts, and those that are `given`, whose values and lengths were
chosen beforehand.
"""

import argparse
import gzip
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify_reference import ROWS, take_data

from plltool.model.checks import MIN_GIVEN
from plltool.model.model_string import parse_model

Row = dict[str, Any]  # as reference_rows.json has it


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


# --- programs -----------------------------------------------------------------------------------------------


def run_iqtree(folder: Path, row: Row, rows: Mapping[str, str], _tree: str) -> Values:
    """Its checkpoint has ten digits of everything; taxa are numbers there."""
    write_phylip(folder / "data.phy", rows)
    given = ["iqtree2", "-s", "data.phy", *row["arguments"].split(), "-n", "0", "-seed", "1", "--keep-ident"]
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
    n_of_codons = len(parse_model(row["model"]).named.rates.names)
    of_matrices = (",".join(numbers("model_parameters")),)  # weights of those of a Lie Markov model, or empty text
    of_codons = (numbers("omega") + numbers("kappa") + numbers("kappa2"))[:n_of_codons]
    return Values(
        lnl=float(lnl),
        tree=tree.replace("):0;", ");"),
        rates=numbers("rates") if row["model"].startswith(("GTR+", "MULTI4", "UNREST")) else of_codons or of_matrices,
        frequencies=numbers("state_freq") if "+FO" in row["model"] else (),
        alpha="".join(numbers("gamma_shape")),
        pinv="".join(numbers("p_invar")),
        free_rates=free.get("rates", ()),
        free_weights=free.get("prop", ()),
    )


def run_raxml(folder: Path, row: Row, rows: Mapping[str, str], tree: str) -> Values:
    """It prints six digits of parameters and frequencies. Numbers of unseen sites go into files, as it wants them."""
    write_phylip(folder / "data.phy", rows)
    (folder / "start.nwk").write_text(tree)
    words = row["arguments"].split()
    options, counts = [w for w in words if not w.isdigit()], [w for w in words if w.isdigit()]
    if counts:
        n_sites = len(next(iter(rows.values())))
        (folder / "unseen.txt").write_text(" ".join(counts) + "\n")
        (folder / "parts.txt").write_text(f"[asc~unseen.txt], ASC_DNA, all = 1-{n_sites}\n")
        options += ["-q", "parts.txt"]
    call(["raxmlHPC", *options, "-f", "e", "-t", "start.nwk", "-s", "data.phy", "-n", "run", "-e", "0.00001"], folder)
    text = (folder / "RAxML_info.run").read_text()
    rates = tuple(re.findall(r"^rate \S+ <-> \S+: (\S+)$", text, re.MULTILINE))
    if row["model"].startswith(("MK", "GTR2")):
        rates = ()
    return Values(
        lnl=float(re.findall(r"Final GAMMA  likelihood: (\S+)", text)[-1]),
        tree=(folder / "RAxML_result.run").read_text().strip(),
        rates=rates,
        frequencies=tuple(re.findall(r"^freq pi\(\S+\): (\S+)$", text, re.MULTILINE)),
        alpha=re.findall(r"^alpha: (\S+)$", text, re.MULTILINE)[-1],
    )


def run_codeml(folder: Path, row: Row, rows: Mapping[str, str], tree: str) -> Values:
    """It prints six digits of lengths, kappa, weights and omegas behind its lnL, in this order."""
    write_phylip(folder / "data.phy", rows)
    (folder / "start.nwk").write_text(re.sub(r":[0-9.e-]+", "", tree))
    settings = {"seqfile": "data.phy", "treefile": "start.nwk", "outfile": "out", "seqtype": 1, "icode": 0, "model": 0}
    settings |= {"kappa": 2, "omega": 0.4, "cleandata": 0, "noisy": 0}
    settings |= dict(word.split("=") for word in row["arguments"].split())
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


PROGRAMS: dict[str, Callable[..., Values]] = {
    "IQ-TREE 2.0.7": run_iqtree,
    "RAxML 8.2.12": run_raxml,
    "codeml, PAML 4.9j": run_codeml,
}


def call(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {(done.stderr or done.stdout)[-500:]}")


def write_phylip(path: Path, rows: Mapping[str, str]) -> None:
    """Taxa are called t0, t1 and so on, because each program has its own rules for names."""
    lines = [f"t{number}  {row}" for number, row in enumerate(rows.values())]
    path.write_text(f" {len(rows)} {len(next(iter(rows.values())))}\n" + "\n".join(lines) + "\n")


def make(folder: Path, row: Row, earlier: Sequence[Row]) -> Row:
    """The row with what its program ends with."""
    rows = {name: text.replace("U", "T") for name, text in take_data(folder, row["data"], row["take"]).items()}
    trees = [old["tree"] for old in earlier if (old["data"], old["take"]) == (row["data"], row["take"])]
    names = list(rows)
    with tempfile.TemporaryDirectory() as name:
        renamed = _rename(trees[0], {n: f"t{i}" for i, n in enumerate(names)}) if trees else ""
        values = PROGRAMS[row["program"]](Path(name), row, rows, renamed)
    tree = _rename(values.tree, {f"t{i}": n for i, n in enumerate(names)})
    made = {"fixed": values.fill(row["model"]), "tree": tree, "lnl": values.lnl}
    return {key: (row | made)[key] for key in ("data", "take", "model", *made, "program", "arguments")}


def _rename(tree: str, names: Mapping[str, str]) -> str:
    return re.sub(r"(?<=[(,])[^(),:;]+", lambda found: names[found[0]], tree)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("words", nargs="*", help="rows to make again")
    arguments = parser.parse_args()
    rows: list[Row] = json.loads(ROWS.read_text())
    for place, row in enumerate(rows):
        label = f"{row['program']} {row['data']} {row['model']}"
        is_kept = row.get("given") or "\n" in row["model"] or row["program"] not in PROGRAMS
        if is_kept or ("lnl" in row and not any(word in label for word in arguments.words)):
            continue
        rows[place] = make(arguments.data, row, rows[:place])
        print(f"{label:60s} {rows[place]['lnl']}", flush=True)
        ROWS.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


if __name__ == "__main__":
    main()
