"""The texts of IQ-TREE's files, and its names of models."""

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plltool.constants import VERSION
from plltool.front_ends.options import read_table
from plltool.front_ends.work import read_lines

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

    A file of ten numbers has the six rates and four frequencies of GTR. Profiles, such as C20, imply +G4, and Poisson.
    """
    name, plus, rest = model.partition("+")
    if Path(name).is_file() and len(numbers := " ".join(read_lines(name)).split()) == len(PAIRS) + len("ACGT"):
        return f"GTR{{{'/'.join(numbers[:6])}}}+FU{{{'/'.join(numbers[6:])}}}{plus}{rest}"
    if mixture := re.fullmatch(r"(MIX\{)(.*)(\}[^{}]*(?:\{[^{}]*\}[^{}]*)*)", model, re.IGNORECASE):
        classes = re.split(r",(?![^{}]*\})", mixture[2])
        return mixture[1] + ",".join(map(spell_here, classes)) + mixture[3]
    model = re.sub(r"\+FO(?=\{)", "+FU", model)
    if re.search(r"(^|\+)C[1-6]0(?!\w)", model, re.IGNORECASE):
        rates = "" if re.search(r"\+[GR]", model, re.IGNORECASE) else "+G4"
        model = re.sub(r"^(?=C[1-6]0)", "Poisson+", model, flags=re.IGNORECASE) + rates
    match = re.match(r"([A-Za-z0-9.]+)(\{[^}]*\})?", model)
    is_unequal = match is not None and (match[1].upper() in UNEQUAL or re.fullmatch(r"\d{6}", match[1]))
    if match and is_unequal and not re.search(r"\+F", model[match.end() :], re.IGNORECASE):
        return f"{match[0]}+F{model[match.end() :]}"
    return model


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
    rows = [line.split("=")[0].rsplit(",", 1) for line in scheme.splitlines() if line.strip()]
    return ",".join(":".join([spell_there(row[0].strip()), *(name.strip() for name in row[1:])]) for row in rows)


def describe_part(part: Any) -> dict[str, Any]:
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
    lines = [f"Optimal log-likelihood: {result.lnl:.3f}", *(fill("log", describe_part(part)) for part in result.parts)]
    return [*lines, f"BEST SCORE FOUND : {result.lnl:.3f}", f"Total tree length: {result.tree.total_length():.3f}"]


def _report_models(result: Any) -> str:
    if not result.parts[0].name:
        return fill("part", describe_part(result.parts[0]))
    kind = {"scaled": "linked-proportional", "linked": "linked-equal", "unlinked": "unlinked"}[result.brlen]
    rows = [(spell_there(own.parameters["spec"]), own.scaler, spell_fitted(own)) for own in result.parts]
    lines = [f"{number:4}  {spec:14} {speed:6.4f}  {model}" for number, (spec, speed, model) in enumerate(rows, 1)]
    return "\n".join([f"Edge-{kind} partition model", "", "  ID  Model           Speed  Parameters", *lines, ""])


def report_choice(choice: Any) -> str:
    best = f"Best-fit model according to {choice.criterion}: {spell_scheme(choice.scheme)}"
    lines = ["ModelFinder", "-----------", "", best, "", f"List of models sorted by {choice.criterion} scores: ", ""]
    lines.append(f"{'Model':15}{'LogL':>12}" + "".join(f" {x:>11} {f'w-{x}':>10}" for x in ("AIC", "AICc", "BIC")))
    for own in getattr(choice, "candidates", ()):
        cells = [f"{spell_there(own.name):15}{own.lnl:12.3f}"]
        for name in ("aic", "aicc", "bic"):  # + for those of the smallest set of models with 95 per cent of the weights
            score, weight = getattr(own, name), getattr(own, f"{name}_weight") or 0.0
            better = sum(x for other in choice.candidates if (x := getattr(other, f"{name}_weight") or 0.0) > weight)
            sign = "+" if better < 0.95 else "-"
            cells.append(f" {math.inf if score is None else score:11.3f} {sign}{weight:9.3g}")
        lines.append("".join(cells))
    return "\n".join([*lines, ""])


def report(result: Any, supports: Any = None, choice: Any = None, tests: str = "", consensus: str = "") -> str:
    record, kind = result.as_record(), {"DNA": "nucleotide", "protein": "amino-acid"}
    data, sites = record["data"], result.site_lnl
    values = record | data | result.scores | {"tests": tests, "consensus": consensus, "now": time.ctime()}
    values["constant"] = f"{data['n_constant']} (= {100 * data['n_constant'] / result.n_sites:.6g}% of all sites)"
    error = "" if sites is None else f" (s.e. {math.sqrt(result.n_sites * float(sites.var(ddof=1))):.4f})"
    values |= {"lnl": f"{result.lnl:.4f}{error}", "length": result.tree.total_length(), "seed": result.seed or 1}
    values |= {"newick": result.newick, "labels": "", "models": _report_models(result)}
    if supports is not None:
        values |= {"newick": supports.newick(), "labels": " / ".join(supports.describe())}
    values |= {"kind": kind.get(data["kinds"][0], data["kinds"][0]), "choice": report_choice(choice) if choice else ""}
    return fill("report", values)


def report_genes(found: Sequence[tuple[str, Any, Any]]) -> str:
    """The report of trees of genes: the name, the result and the supports of each."""
    lines = ["Topology-unlinked partition model with separate substitution models and separate rates across sites", ""]
    lines.append("  ID  Name            Model          TreeLen  Parameters")
    values, first = {"version": VERSION, "seed": found[0][1].seed, "now": time.ctime(), "length": 0.0}, found[0][2]
    totals = dict.fromkeys(("lnl", "n_parameters", "AIC"), 0)
    for number, (name, own, _) in enumerate(found, 1):
        spec, length = spell_there(own.parts[0].parameters["spec"]), own.tree.total_length()
        lines.append(f"{number:4}  {name:15} {spec:14} {length:7.4f}  {spell_fitted(own.parts[0])}")
        values["length"] += length
        totals = {key: total + (own.scores | {"lnl": own.lnl})[key] for key, total in totals.items()}
    values |= {"models": "\n".join([*lines, ""]), "newick": "See .treefile for the tree of each part."}
    values |= totals | {"lnl": f"{totals['lnl']:.4f}", "labels": " / ".join(first.describe()) if first else ""}
    return fill("report", values)


def report_tests(tests: Any, names: Sequence[str]) -> str:
    own = {"bp": ("bp-RELL", 7), "elw": ("c-ELW", 9), "au": ("p-AU", 8)}  # heads and widths of IQ-TREE 2
    columns, lines = {name: own.get(name, (f"p-{name.upper()}", 6)) for name in names}, []
    for k, (lnl, delta) in enumerate(zip(tests.lnl.tolist(), tests.delta.tolist(), strict=True)):
        values = [(name, float(getattr(tests, name)[k])) for name in names]
        kept = [tests.in_elw_set[k] if name == "elw" else value >= 0.05 for name, value in values]
        signs = ["+" if is_kept else "-" for is_kept in kept]
        cells = [f" {x:{columns[name][1]}.3g} {sign}" for (name, x), sign in zip(values, signs, strict=True)]
        lines.append(f"{k + 1:3} {lnl:.10g} {delta:7.5g}{''.join(cells)} ")
    heads = "".join(f"{head:>{width + 3}}" for head, width in columns.values())
    return fill("tests", {"heads": heads[1:], "rows": "\n".join(lines)})


def write_scheme(scheme: str) -> str:
    found = [re.fullmatch(r"(.*?),\s*([^,=]+?)\s*=\s*(.*)", line) for line in scheme.splitlines() if line.strip()]
    return write_sets([(match[2], match[3], spell_there(match[1]), "") for match in found if match])


def write_fitted(result: Any) -> str:
    """The parts of a result and their models with all values as NEXUS, with the tree length of each behind its name."""
    whole, lengths = result.tree.total_length(), [re.findall(r":([^,():;]+)", own.newick or "") for own in result.parts]
    rows = [(own, sum(map(float, x)) or whole * own.scaler) for own, x in zip(result.parts, lengths, strict=True)]
    return write_sets([(own.name, own.sites, spell_fitted(own), f"{{{length:.6g}}}") for own, length in rows])


def write_sets(rows: Sequence[tuple[str, str, str, str]]) -> str:
    """NEXUS of the name, the columns, the model and the tree length of each part."""
    names = [own if re.fullmatch(r"[\w.]+", own) else "'" + own.replace("'", "''") + "'" for own, *_ in rows]
    sets = [f"  charset {name} = {row[1].replace(', ', ' ')};" for name, row in zip(names, rows, strict=True)]
    models = [f"    {model}: {name}{length}" for name, (_, _, model, length) in zip(names, rows, strict=True)]
    return "\n".join(["#nexus", "begin sets;", *sets, "  charpartition mymodels =", ",\n".join(models) + ";", "end;"])


def write_rates(result: Any, rates: Any, categories: Any) -> str:
    """The rate of each site, its category, 0 for the invariable one, and the category's rate, by the parts."""
    several = bool(result.parts[0].name)
    rows = ["# Rates of sites. Cat 0 is the invariable category", "Part\t" * several + "Site\tRate\tCat\tC_Rate"]
    for number, part in enumerate(result.parts, 1):
        first, of_categories = part.parameters["pinv"] is None, part.parameters["category_rates"]
        for site, column in enumerate(sorted(result.data.parts[number - 1].sites.tolist()), 1):
            k, head = int(categories[column]), f"{number}\t" * several
            rows.append(f"{head}{site}\t{rates[column]:.5f}\t{k + first}\t{of_categories[k]:.5f}")
    return "\n".join(rows)


def round_shares(found: Any) -> Any:
    return replace(found, shares=(100 * found.shares + 0.5) // 1 / 100)


def round_supports(supports: Any) -> Any:
    values = {kind: (own + 0.5) // 1 if kind in ("fbp", "ufboot") else own for kind, own in supports.values.items()}
    return replace(supports, values=values)


def make_parametric(supports: Any) -> Any:
    """The parametric aLRT (Anisimova & Gascuel 2006) in place of the SH-aLRT: 1 - p by chi-square, as in IQ-TREE."""
    values = supports.values["sh-alrt"].copy()
    for branch in supports.branches.tolist():
        own, *others = supports.lnl[branch].tolist()
        values[branch] = math.erf(math.sqrt(max(0.0, own - max(others))))
    rest = {kind: own for kind, own in supports.values.items() if kind != "sh-alrt"}
    return replace(supports, values={"tbe": values, **rest})  # with the labels of transfer supports


def label_nodes(newick: str, labelled: str) -> str:
    """A tree with the names of the nodes of `labelled`, the same tree, before the supports."""
    names = iter(_INNER.findall(labelled))
    return _INNER.sub(lambda match: ")" + "/".join(filter(None, (next(names), match[1]))), newick)
