"""The texts of IQ-TREE's files, and its names of models."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import mul
from pathlib import Path
from typing import Any

from plltool.front_ends.options import read_table
from plltool.front_ends.work import read_lines, score, with_shares

_WORDS = read_table("iqtree")[1]
UNEQUAL, THERE, CODES = set(_WORDS["unequal"]), *(dict(x.split("=") for x in _WORDS[y]) for y in ("there", "codes"))
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
    model = re.sub(r"\+FO(?=\{)", "+FU", re.sub(r"\+R\d+\{([^{}]*)\}(?!\{)", _spell_free_rates, model))
    match = re.match(r"([A-Za-z0-9.]+)(\{[^}]*\})?", model)
    is_unequal = match is not None and (match[1].upper() in UNEQUAL or re.fullmatch(r"\d{6}", match[1]))
    if match and is_unequal and not re.search(r"\+F", model[match.end() :], re.IGNORECASE):
        return f"{match[0]}+F{model[match.end() :]}"
    return model


def _spell_free_rates(match: re.Match[str]) -> str:
    """+R with weights and rates in turn, which include the share of invariable sites, as rates and weights."""
    values = [float(value) for value in match[1].split(",")]
    if len(values) % 2:
        return match[0]  # plltool's own reader says what is wrong
    total, mean = sum(values[::2]), sum(map(mul, values[::2], values[1::2]))
    rates, weights = [total * rate / mean for rate in values[1::2]], [weight / total for weight in values[::2]]
    return f"+R{len(rates)}{{{'/'.join(map(str, rates))}}}{{{'/'.join(map(str, weights))}}}"


def spell_fitted(part: Any) -> str:
    """The model of a part with its values: rates relative to G and T, weights and rates of +R in turn."""
    own, model = part.parameters, spell_there(part.model)
    if (own.get("rates") or {}).keys() == set(PAIRS):
        name = re.split(r"[{+]", model, maxsplit=1)[0]
        code = CODES.get(name, name)
        free = [own["rates"][PAIRS[code.index(x)]] / own["rates"]["GT"] for x in dict.fromkeys(code) if x != code[-1]]
        values = f"{{{','.join(f'{value:.6g}' for value in free)}}}" if free else ""
        model = re.sub(r"^[^{+]*(\{[^}]*\})?", name.removeprefix("DNA") + values, model)
    pairs = list(zip(own["category_weights"], own["category_rates"], strict=True))[own["pinv"] is not None :]
    free_rates = ",".join(f"{weight:.6g},{rate:.6g}" for weight, rate in pairs)
    model = re.sub(r"(\+R\d+)\{[^{}]*\}\{[^{}]*\}", rf"\1{{{free_rates}}}", model)
    return re.sub(r"\d+\.\d+(e-\d+)?", lambda number: f"{float(number[0]):.6g}", model).replace("/", ",")


def spell_there(model: str) -> str:
    """A model of plltool in IQ-TREE's words."""
    model = re.sub(r"\bMULTI\d+_|(?<=\+ASC)_LEWIS|(?<=^)DNA(?=\d{6})", "", model)
    model = re.sub(r"\+B(U?\{[^}]*\})?(?=\+|$)", "", re.sub(r"\+(I|F)[OU](?=\{)|\+(I)O", r"+\1\2", model))
    model = re.sub(r"(?:^|(?<=[{,]))[A-Za-z][A-Za-z0-9.]*", lambda match: THERE.get(match[0], match[0]), model)
    return re.sub(r"^(TN|TIM\d?|TVM)e(?=[^+]*\+F(?![QE]))", r"\1", model)


def spell_scheme(scheme: str) -> str:
    """A scheme in IQ-TREE's words: a model, or models with the names of their parts."""
    rows = [line.split("=")[0].rsplit(",", 1) for line in scheme.splitlines() if line.strip()]
    return ",".join(":".join([spell_there(row[0].strip()), *(name.strip() for name in row[1:])]) for row in rows)


def describe_part(part: Any) -> dict[str, Any]:
    """The values of the templates for the model of a part."""
    own = dict(part.parameters, name=part.name, spec=spell_there(part.parameters["spec"]))
    pairs = own.get("rates") or {}
    rates = {f"{pair[0]}-{pair[1]}": rate for pair, rate in pairs.items() if pairs.keys() >= set(PAIRS)}
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
        lines.append(f"{number:4}  {spec:14} {part.scaler:6.4f}  {spell_fitted(part)}")
    return "\n".join([*lines, ""])


def report_choice(choice: Any) -> str:
    best = f"Best-fit model according to {choice.criterion}: {spell_scheme(choice.scheme)}"
    lines = ["ModelFinder", "-----------", "", best, "", f"List of models sorted by {choice.criterion} scores: ", ""]
    lines.append(f"{'Model':15}{'LogL':>12}" + "".join(f" {x:>11} {f'w-{x}':>10}" for x in ("AIC", "AICc", "BIC")))
    rows = getattr(choice, "candidates", ())
    columns = [_weigh([getattr(own, name) for own in rows]) for name in ("aic", "aicc", "bic")]
    for own, *cells in zip(rows, *columns, strict=True):
        lines.append(f"{spell_there(own.name):15}{own.lnl:12.3f}{''.join(cells)}")
    return "\n".join([*lines, ""])


def _weigh(given: Sequence[float | None]) -> list[str]:
    """Scores, their Akaike weights, and + for models of the smallest set whose weights exceed 0.95."""
    scores = [math.inf if score is None else score for score in given]
    shares = [math.exp(min(scores) / 2 - score / 2) if score < math.inf else 0.0 for score in scores]
    above = [sum(share for share in shares if share > own) for own in shares]
    signs = ["+" if more < 0.95 * sum(shares) else "-" for more in above]
    rows = zip(scores, signs, shares, strict=True)
    return [f" {score:11.3f} {sign}{share / (sum(shares) or 1):9.3g}" for score, sign, share in rows]


def report(result: Any, supports: Any = None, choice: Any = None, tests: str = "", consensus: str = "") -> str:
    record, kind = result.as_record(), {"DNA": "nucleotide", "protein": "amino-acid"}
    data, sites = record["data"], result.site_lnl
    values = record | data | score(result) | {"tests": tests, "consensus": consensus, "now": time.ctime()}
    values["constant"] = f"{data['n_constant']} (= {100 * data['n_constant'] / result.n_sites:.6g}% of all sites)"
    error = "" if sites is None else f" (s.e. {math.sqrt(result.n_sites * float(sites.var(ddof=1))):.4f})"
    values["lnl"] = f"{result.lnl:.4f}{error}"
    values["labels"] = "" if supports is None else " / ".join(supports.describe())
    values |= {"length": result.tree.total_length(), "seed": result.seed or 1}
    values |= {"newick": result.newick if supports is None else supports.newick(), "models": _report_models(result)}
    values |= {"kind": kind.get(data["kinds"][0], data["kinds"][0]), "choice": report_choice(choice) if choice else ""}
    return fill("report", values)


def report_genes(found: Sequence[tuple[str, Any, Any]]) -> str:
    """The report of trees of genes: the name, the result and the supports of each."""
    results = [result for _, result, _ in found]
    rows = [(spell_there(own.parts[0].parameters["spec"]), own.tree.total_length(), own.parts[0]) for own in results]
    lines = ["Topology-unlinked partition model with separate substitution models and separate rates across sites", ""]
    lines.append("  ID  Name            Model          TreeLen  Parameters")
    for number, ((name, *_), (spec, length, part)) in enumerate(zip(found, rows, strict=True), 1):
        lines.append(f"{number:4}  {name:15} {spec:14} {length:7.4f}  {spell_fitted(part)}")
    values = score(*results) | {
        "newick": "See .treefile for the tree of each part.",
        "models": "\n".join([*lines, ""]),
        "length": sum(length for _, length, _ in rows),
    }
    labels = "" if found[0][2] is None else " / ".join(found[0][2].describe())
    values |= {
        "version": results[0].version,
        "seed": results[0].seed,
        "now": time.ctime(),
        "labels": labels,
    }
    return fill("report", values | {"lnl": f"{values['lnl']:.4f}"})


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


def write_scheme(scheme: str) -> str:
    """A scheme of parts and their models as NEXUS."""
    found = [re.fullmatch(r"(.*?),\s*([^,=]+?)\s*=\s*(.*)", line) for line in scheme.splitlines() if line.strip()]
    return _write_sets([(match[2], match[3], spell_there(match[1]), "") for match in found if match])


def write_fitted(result: Any) -> str:
    """The parts of a result and their models with all values as NEXUS; the tree length of each is behind its name."""
    whole, lengths = result.tree.total_length(), []
    for part in result.parts:
        own = part.newick and sum(map(float, re.findall(r":([^,():;]+)", part.newick)))
        lengths.append(f"{{{own or whole * part.scaler:.6g}}}")
    rows = [
        (own.name, own.sites, spell_fitted(own), own_length)
        for own, own_length in zip(result.parts, lengths, strict=True)
    ]
    return _write_sets(rows)


def _write_sets(rows: Sequence[tuple[str, str, str, str]]) -> str:
    """NEXUS of the name, the columns, the model and the tree length of each part."""
    sets = [f"  charset {name} = {sites.replace(', ', ' ')};" for name, sites, _, _ in rows]
    models = [f"    {model}: {name}{length}" for name, _, model, length in rows]
    return "\n".join(["#nexus", "begin sets;", *sets, "  charpartition mymodels =", ",\n".join(models) + ";", "end;"])


def write_splits(trees: Any) -> str:
    """The splits of trees and how many per cent have each, as NEXUS."""
    n_taxa, rows = len(trees.names), [f"\t100\t {number}," for number in range(1, len(trees.names) + 1)]
    for split, count in zip(trees.splits, trees.counts.tolist(), strict=True):
        taxa = " ".join(str(k + 1) for k in range(n_taxa) if split >> k & 1)
        rows.append(f"\t{100 * count / trees.n_trees:.0f}\t {taxa},")
    labels = "\n".join(f"[{number}] '{name}'" for number, name in enumerate(trees.names, 1))
    return fill("splits", {"n_taxa": n_taxa, "labels": labels, "n_splits": len(rows), "rows": "\n".join(rows)})


def write_rates(rates: Iterable[float]) -> str:
    return "\n".join(["# Rates of sites", "Site\tRate", *(f"{site}\t{rate:.5f}" for site, rate in enumerate(rates, 1))])


def write_site_rates(result: Any, rates: Any, categories: Any) -> str:
    """Posterior mean rates, the category with the highest posterior and its rate, by the parts and their sites."""
    rows, several = ["# Posterior mean rates of sites. Cat 0 is the invariable category"], bool(result.parts[0].name)
    rows.append("Part\t" * several + "Site\tRate\tCat\tC_Rate")
    for number, part in enumerate(result.parts, 1):
        own, columns = part.parameters, sorted(result.data.parts[number - 1].sites.tolist())
        for site, column in enumerate(columns, 1):
            k = int(categories[column])
            rate = f"{rates[column]:.5f}\t{k + (own['pinv'] is None)}\t{own['category_rates'][k]:.5f}"
            rows.append(f"{number}\t" * several + f"{site}\t{rate}")
    return "\n".join(rows)


def write_concordance(found: Any) -> dict[str, str]:
    """The files of concordance factors: the table without quartets and certainties, which IQ-TREE does not have."""
    kept = {name: own for name, own in found.columns.items() if name[0] in "gs"}
    texts, rows = replace(found, columns=kept).texts(), []
    for line in texts["cf.stat"].splitlines():
        cells = line.split("\t")
        rows.append("\t".join([*cells[:-2], cells[-2].replace("NA", ""), cells[-1]]) if len(cells) > 1 else line)
    return texts | {"cf.stat": "\n".join(rows)}


def round_shares(found: Any) -> Any:
    """A consensus with whole percentages."""
    return replace(found, shares=(100 * found.shares + 0.5) // 1 / 100)


def round_supports(supports: Any) -> Any:
    """Supports by replicates as whole numbers."""
    values = {kind: (own + 0.5) // 1 if kind in ("fbp", "ufboot") else own for kind, own in supports.values.items()}
    return replace(supports, values=values)


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
