"""The texts of IQ-TREE's files, and its names of models."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from plltool.front_ends.options import read_table
from plltool.front_ends.work import read_lines, score, with_shares

_WORDS = read_table("iqtree")[1]
UNEQUAL, THERE = set(_WORDS["unequal"]), dict(pair.split("=") for pair in _WORDS["there"])
PAIRS = ("AC", "AG", "AT", "CG", "CT", "GT")
_INNER = re.compile(r"\)([^():;,]*)")


def fill(name: str, values: Mapping[str, Any]) -> str:
    """A text by the lines of a template, without those that lack a value."""
    lines = Path(__file__).with_name(f"iqtree.{name}.txt").read_text(encoding="utf-8").splitlines()
    known = {key for key, value in values.items() if value not in (None, "")}
    return "\n".join(line for line in lines if known.issuperset(re.findall(r"\{(\w+)", line))).format(**values)


def spell_here(model: str) -> str:
    """A model of IQ-TREE as plltool reads it: a name that implies unequal frequencies means empirical ones.

    A file of ten numbers has the six rates and four frequencies of GTR.
    """
    name, plus, rest = model.partition("+")
    if Path(name).is_file() and len(numbers := " ".join(read_lines(name)).split()) == len(PAIRS) + len("ACGT"):
        return f"GTR{{{'/'.join(numbers[:6])}}}+FU{{{'/'.join(numbers[6:])}}}{plus}{rest}"
    if mixture := re.fullmatch(r"(MIX\{)(.*)(\}[^{}]*(?:\{[^{}]*\}[^{}]*)*)", model, re.IGNORECASE):
        classes = re.split(r",(?![^{}]*\})", mixture[2])
        return mixture[1] + ",".join(map(spell_here, classes)) + mixture[3]
    match = re.match(r"([A-Za-z0-9.]+)(\{[^}]*\})?", model)
    is_unequal = match is not None and (match[1].upper() in UNEQUAL or re.fullmatch(r"\d{6}", match[1]))
    if match and is_unequal and not re.search(r"\+F", model[match.end() :], re.IGNORECASE):
        return f"{match[0]}+F{model[match.end() :]}"
    return model


def spell_there(model: str) -> str:
    """A model of plltool in IQ-TREE's words."""
    model = re.sub(r"\+B(U?\{[^}]*\})?(?=\+|$)", "", re.sub(r"\+(I|F)[OU](?=\{)|\+(I)O", r"+\1\2", model))
    return re.sub(r"(?:^|(?<=[{,]))[A-Za-z][A-Za-z0-9.]*", lambda match: THERE.get(match[0], match[0]), model)


def spell_scheme(scheme: str) -> str:
    """A scheme in IQ-TREE's words: a model, or models with the names of their parts."""
    rows = [line.split("=")[0].rsplit(",", 1) for line in scheme.splitlines() if line.strip()]
    return ",".join(":".join([spell_there(row[0].strip()), *(name.strip() for name in row[1:])]) for row in rows)


def describe_part(part: Any) -> dict[str, Any]:
    """The values of the templates for the model of a part."""
    own = dict(part.parameters, name=part.name, spec=spell_there(part.parameters["spec"]))
    rates = {f"{pair[0]}-{pair[1]}": own["rates"][pair] for pair in PAIRS if pair in own.get("rates", {})}
    own["rate_line"] = "  ".join(f"{pair}: {rate:.5f}" for pair, rate in rates.items())
    own["rates"] = "\n".join(["", "", *(f"  {pair}: {rate:.4f}" for pair, rate in rates.items()), ""]) if rates else ""
    own["origin"] = "equal frequencies" if len(set(own["frequencies"].values())) == 1 else None
    if "+F" in own["spec"]:
        is_free = "+FO" in own["spec"]
        own["origin"] = "estimated with maximum likelihood" if is_free else "empirical counts from alignment"
    elif "+SSF" in own["spec"]:
        own["origin"] = "site specific frequencies"
    own["shares"] = "\n\n" + "".join(f"  pi({state}) = {x:.4g}\n" for state, x in own["frequencies"].items())
    if len(own["frequencies"]) == len("ACGT"):
        own["base_line"] = "  ".join(f"{state}: {share:.3f}" for state, share in own["frequencies"].items())
    has_alpha, has_pinv, n = own["alpha"] is not None, own["pinv"] is not None, len(own["category_rates"])
    n_other = n - has_pinv
    kinds = ["Invar"] * has_pinv + ["Gamma"] * has_alpha + ["FreeRate"] * (n_other > 1 and not has_alpha)
    own["heterogeneity"] = ("+".join(kinds) or "Uniform") + f" with {n_other} categories" * (n_other > 1)
    rows = enumerate(zip(own["category_rates"], own["category_weights"], strict=True), not has_pinv)
    lines = [f"\n  {k}         {rate:<14.4g} {share:.4g}" for k, (rate, share) in rows]
    own["categories"] = "\n Category  Relative_rate  Proportion" + "".join(lines) + "\n" if n > 1 else ""
    return own


def describe_fit(result: Any) -> list[str]:
    """The fitted model and the lnL, as the log has them."""
    lines = [f"Optimal log-likelihood: {result.lnl:.3f}", *(fill("log", describe_part(part)) for part in result.parts)]
    return [*lines, f"BEST SCORE FOUND : {result.lnl:.3f}", f"Total tree length: {result.tree.total_length():.3f}"]


def _report_models(result: Any) -> str:
    if not result.parts[0].name:
        return fill("part", describe_part(result.parts[0]))
    kind = {"scaled": "linked-proportional", "linked": "linked-equal", "unlinked": "unlinked"}[result.brlen]
    lines = [f"Edge-{kind} partition model", "", "  ID  Model           Speed  Parameters"]
    for number, part in enumerate(result.parts, 1):
        spec = spell_there(part.parameters["spec"])
        lines.append(f"{number:4}  {spec:14} {part.scaler:6.4f}  {spell_there(part.model)}")
    return "\n".join([*lines, ""])


def report_choice(choice: Any) -> str:
    best = f"Best-fit model according to {choice.criterion}: {spell_scheme(choice.scheme)}"
    lines = ["ModelFinder", "-----------", "", best, "", f"List of models sorted by {choice.criterion} scores: ", ""]
    lines.append(f"{'Model':22} {'LogL':>12} {'AIC':>12} {'AICc':>12} {'BIC':>12}")
    for own in getattr(choice, "candidates", ()):
        scores = own.lnl, own.aic, math.inf if own.aicc is None else own.aicc, own.bic
        lines.append(f"{spell_there(own.name):22} " + " ".join(f"{value:12.3f}" for value in scores))
    return "\n".join([*lines, ""])


def report(result: Any, supports: Any = None, choice: Any = None, tests: str = "") -> str:
    record, kind = result.as_record(), {"DNA": "nucleotide", "protein": "amino-acid"}
    data, sites = record["data"], result.site_lnl
    values = record | data | score(result) | {"tests": tests}
    values["constant"] = f"{data['n_constant']} (= {100 * data['n_constant'] / result.n_sites:.6g}% of all sites)"
    values["error"] = "" if sites is None else f" (s.e. {math.sqrt(result.n_sites * float(sites.var(ddof=1))):.4f})"
    values["labels"] = "" if supports is None else " / ".join(supports.describe())
    values |= {"length": result.tree.total_length(), "seed": result.seed or 1}
    values |= {"newick": result.newick if supports is None else supports.newick(), "models": _report_models(result)}
    values |= {"kind": kind.get(data["kinds"][0], data["kinds"][0]), "choice": report_choice(choice) if choice else ""}
    return fill("report", values)


def report_tests(tests: Any, names: Sequence[str]) -> list[str]:
    heads = [{"bp": "bp-RELL", "elw": "c-ELW"}.get(name, f"p-{name.upper()}") for name in names]
    lines = ["USER TREES", "----------", "", "See .trees for the trees with their branch lengths.", ""]
    lines += ["Tree      logL    deltaL  " + "  ".join(f"{head:9}" for head in heads), "-" * 73]
    for k, (lnl, delta) in enumerate(zip(tests.lnl.tolist(), tests.delta.tolist(), strict=True)):
        cells = []
        for name in names:
            value = float(getattr(tests, name)[k])
            kept = tests.in_elw_set[k] if name == "elw" else value >= 0.05
            cells.append(f"{value:<7.4g}{'+' if kept else '-'} ")
        lines.append(f"{k + 1:3} {lnl:.10g} {delta:8.5g}  " + "  ".join(cells))
    return [*lines, ""]


def write_sets(scheme: str) -> str:
    """Partitions and their models as NEXUS."""
    found = [re.fullmatch(r"(.*?),\s*([^,=]+?)\s*=\s*(.*)", line) for line in scheme.splitlines() if line.strip()]
    sets = [f"  charset {match[2]} = {match[3].replace(', ', ' ')};" for match in found if match]
    models = [f"    {spell_there(match[1]).replace('/', ',')}: {match[2]}" for match in found if match]
    return "\n".join(["#nexus", "begin sets;", *sets, "  charpartition mymodels =", ",\n".join(models) + ";", "end;"])


def write_splits(trees: Any) -> str:
    """The splits of trees and how many per cent have each, as NEXUS."""
    n_taxa, rows = len(trees.names), [f"\t100\t {number}," for number in range(1, len(trees.names) + 1)]
    for split, count in zip(trees.splits, trees.counts.tolist(), strict=True):
        taxa = " ".join(str(k + 1) for k in range(n_taxa) if split >> k & 1)
        rows.append(f"\t{100 * count / trees.n_trees:.6g}\t {taxa},")
    labels = "\n".join(f"[{number}] '{name}'" for number, name in enumerate(trees.names, 1))
    return fill("splits", {"n_taxa": n_taxa, "labels": labels, "n_splits": len(rows), "rows": "\n".join(rows)})


def write_rates(rates: Iterable[float]) -> str:
    return "\n".join(["# Rates of sites", "Site\tRate", *(f"{site}\t{rate:.5f}" for site, rate in enumerate(rates, 1))])


def make_parametric(supports: Any) -> Any:
    """The parametric aLRT (Anisimova & Gascuel 2006) in place of the SH-aLRT: 1 - p by chi-square, as in IQ-TREE."""
    values = supports.values["sh-alrt"].copy()
    for branch in supports.branches.tolist():
        own, *others = supports.lnl[branch].tolist()
        values[branch] = math.erf(math.sqrt(max(0.0, own - max(others))))
    return with_shares(supports, values)


def label_nodes(newick: str, labelled: str) -> str:
    """A tree with the names of the nodes of `labelled`, the same tree, before the supports."""
    names = iter(_INNER.findall(labelled))
    return _INNER.sub(lambda match: ")" + "/".join(filter(None, (next(names), match[1]))), newick)
