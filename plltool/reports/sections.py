"""All sections of a report, in their order, those on the tree, the data and the model, and the pages with them all."""

import base64
import hashlib
import math
from collections.abc import Sequence
from importlib import import_module

from plltool.constants import CRITERIA, SIGNIFICANCE, UNLINKED, VERSION
from plltool.errors import count
from plltool.io.newick import parse_nodes
from plltool.model.candidates import information_score
from plltool.model.describe import EQUAL_RATES, has_equal_rates, shorten_model
from plltool.registry import AFTER_MODEL, AFTER_TREE, BEFORE_TREE, IN_REPORTS
from plltool.reports import blocks
from plltool.reports.methods import Methods, tell
from plltool.reports.plots import Markup, draw_bars, draw_named_bars, element, read_part
from plltool.reports.records import Record, Records
from plltool.reports.tree_blocks import TreePicture
from plltool.tree.rooted_nodes import RootedNodes, UnrootedNodes


def describe_runs(records: Records) -> list[blocks.Section]:
    """The sections that the records have something for."""
    nodes, methods = records.tree, Methods()
    methods.begin(records)
    made: dict[str, list[blocks.Section]] = {BEFORE_TREE: [], AFTER_TREE: [], AFTER_MODEL: []}
    for own in IN_REPORTS:  # each makes its sections, and says its sentences of the methods
        if own.section and not (own.needs_run and own.name not in records.runs):
            module, _, name = own.section.partition(".")
            describe = getattr(import_module(f"plltool.reports.{module}"), f"describe_{name}")
            made[own.where] += describe(records, methods)
    sections = made[BEFORE_TREE]
    if nodes is not None:
        sections.append(_describe_tree(records, nodes))
    sections += made[AFTER_TREE]
    if records.all_runs:
        sections.append(_describe_alignment(next(iter(records.all_runs.values()))))
    if records.main is not None:
        sections.append(_describe_model(records.main, records.model_choice))
    sections += made[AFTER_MODEL]
    found = [*records.left_out, *(str(warning) for run in records.all_runs.values() for warning in run["warnings"])]
    if records.supports is not None and not records.supports_are_of_main_tree:
        found.append(tell("supports.elsewhere", name=records.prefix.name))
    sections.append(
        blocks.Section("warnings", "Warnings", [blocks.Items(tuple(dict.fromkeys(found))) if found else "None."])
    )
    sections.append(_describe_computation(records))
    if records.all_runs or records.concordance or records.supports:
        text, references = methods.finish(records)
        sections.append(blocks.Section("methods", "Methods", [text, tell("methods.draft")]))
        sections.append(blocks.Section("references", "References", [blocks.Items(references)]))
    return sections


def _describe_computation(records: Records) -> blocks.Section:
    """Device, versions and commands."""
    run = next(iter(records.all_runs.values()), None)
    content: list[blocks.Content] = []
    if run is not None:
        versions = ", ".join(f"{name} {version}" for name, version in run.get("software", {}).items())
        facts = {"Device": run["device"], "Reason for the choice": run.get("reason", "")}
        facts |= {"Driver": run.get("driver", ""), "Precision": str(run.get("layout", {}).get("precision") or "")}
        facts |= {"plltool version": run["version"], "Other software": versions}
        runs = records.all_runs.items()
        facts |= {f"Time of {command}": blocks.duration(own["seconds"]) for command, own in runs if "seconds" in own}
        content.append({name: text for name, text in facts.items() if text})
    if records.commands:
        content += ["Commands:", blocks.Items(records.commands, is_code=True)]
    return blocks.Section("computation", "Computation", content)


# --- the tree ---------------------------------------------------------------------------------------------


def _describe_tree(records: Records, nodes: RootedNodes) -> blocks.Section:
    """The tree, with its supports if they are known."""
    run = records.main
    kinds: tuple[tuple[str, str], ...] = ()
    if records.supports is not None and records.supports_are_of_main_tree:
        kinds = tuple((kind, str(own["unit"])) for kind, own in records.supports["kinds"].items())
    facts = {"Taxa": str(len(nodes.tips))}
    if run is not None:
        facts["Log-likelihood (lnL)"] = f"{run['lnl']:.4f}"
    facts["Tree length"] = f"{_sum_lengths(nodes):.4f}"
    if kinds:
        facts["Branch labels"] = " / ".join(f"{kind} ({unit})" for kind, unit in kinds)
    remark = tell("tree.rooted" if nodes.parents.count(0) == 2 else "tree.unrooted")
    return blocks.Section("tree", "Tree", [facts, TreePicture(nodes.ladderized(), kinds), remark])


def _sum_lengths(nodes: RootedNodes) -> float:
    return math.fsum(length for length in nodes.lengths[1:] if not math.isnan(length))


# --- the data ---------------------------------------------------------------------------------------------

_MOST_IDENTICAL = 50  # groups that are listed


def _describe_alignment(run: Record) -> blocks.Section:
    """Size of the alignment, and what is in it."""
    data = run.get("data", {})
    n_sites = run["n_sites"]
    size = {"Taxa": str(run["n_taxa"]), "Sites": str(n_sites)}
    if "n_patterns" in run:
        size["Distinct patterns of sites"] = str(run["n_patterns"])
    if not data:
        return blocks.Section("data", "Data", [size])
    used = max(sum(part["n_sites"] for part in run.get("parts", ())) or n_sites, 1)
    facts = {"Alignment": data["source"], "Kind of data": ", ".join(data["kinds"]), **size}
    if data.get("weighted_columns"):
        facts["Columns of the file, which have weights"] = str(data["weighted_columns"])
    if data.get("constant_sites"):
        added = zip("ACGT", data["constant_sites"], strict=True)
        facts["Constant sites that were added"] = ", ".join(f"{base} {number}" for base, number in added)
    facts |= {
        "Constant sites": f"{data['n_constant']} ({blocks.share(data['n_constant'] / used)})",
        "Parsimony-informative sites": f"{data['n_informative']} ({blocks.share(data['n_informative'] / used)})",
        "Gaps and unknown characters": blocks.share(data["gaps"]),
        "Groups of identical sequences": str(len(data["identical"])),
    }
    content: list[blocks.Content] = [facts]
    if data["identical"]:
        groups = [f"Identical: {', '.join(group)}" for group in data["identical"]]
        left = len(groups) - _MOST_IDENTICAL
        more = [f"{count(left, 'more group')} of identical sequences"] if left > 0 else []
        content.append(blocks.Items((*groups[:_MOST_IDENTICAL], *more)))
    taxa = sorted(data["taxa"], key=lambda taxon: -taxon["gaps"])
    rows = [(taxon["name"], blocks.share(taxon["gaps"]), _judge(taxon.get("composition", []))) for taxon in taxa]
    n_parts = len(taxa[0].get("composition", []))
    of = "Composition p-value" if n_parts == 1 else "Composition p-value (lowest of all partitions)"
    columns = ("Taxon", "Gaps and unknown characters", of)
    content.append(blocks.Table("Taxa, sorted by proportion of gaps", columns, rows))
    n_deviating = sum(cell.mark == "bad" for _, _, cell in rows)
    content.append(tell("data.composition", found=count(n_deviating, "taxon", "taxa"), level=SIGNIFICANCE))
    return blocks.Section("data", "Data", content)


def _judge(values: list[float | None]) -> blocks.Cell:
    """The least p-value of a taxon."""
    known = [value for value in values if value is not None]
    return blocks.Cell(f"{min(known):.4f}", "bad" if min(known) < SIGNIFICANCE else "") if known else blocks.Cell("-")


_SHOWN_PARTS = 12  # more have only a line each
_SHOWN_STATES = 25  # a longer list of frequencies is left to the record


def _describe_model(run: Record, choice: Record | None) -> blocks.Section:
    content: list[blocks.Content] = []
    parts = run.get("parts", [])
    if "parameters" in run:
        content.append(_describe_fit(run, parts))
    if len(parts) > 1:
        content += _describe_parts(run, parts)
    if len(parts) > _SHOWN_PARTS:
        models = [(part["name"], part["model"]) for part in parts]
        content.append(
            blocks.Table("Models of the partitions with all values", ("Partition", "Model"), models, is_text=True)
        )
    elif len(parts) > 1:
        for part in parts:
            content.append(blocks.Folded(f"Parameters of partition {part['name']}", _describe_part(part, part["name"])))
    elif parts:
        content += _describe_part(parts[0], "")
    if choice is not None:
        content += _describe_choice(choice)
    return blocks.Section("model", "Model", content)


def _describe_fit(run: Record, parts: list[Record]) -> dict[str, str]:
    """The fit and its price: free parameters, and branch lengths, of which each part has its own if unlinked."""
    nodes, n_own = parse_nodes(run["tree"], "the record"), int(run["parameters"]["n_free_parameters"])
    n_branches = len(UnrootedNodes.of(nodes).ends) + (nodes.parents.count(0) == 2)  # a root has a place on its branch
    n_lengths = (len(parts) if run["brlen"] == UNLINKED else 1) * n_branches
    k, n = n_own + n_lengths, sum(part["n_sites"] for part in parts)
    specs = list(dict.fromkeys(part["parameters"]["spec"] for part in parts))
    facts = {"Model": shorten_model(specs[0]) if len(specs) == 1 else f"{len(parts)} partitions, see below"}
    if len(parts) > 1:
        facts["Branch lengths of partitions"] = run["brlen"]
    facts["Log-likelihood (lnL)"] = f"{run['lnl']:.4f}"
    facts["Free parameters"] = f"{k}: {n_own} of the model, {n_lengths} branch lengths"
    for name in ("AIC", "AICc", "BIC"):
        value = information_score(name, run["lnl"], k, n)
        facts[name] = f"{value:.3f}" if abs(value) < float("inf") else "not defined: too few sites"
    return facts


def _describe_parts(run: Record, parts: list[Record]) -> list[blocks.Content]:
    whole = _sum_lengths(parse_nodes(run["tree"], "the record"))
    lengths = [
        _sum_lengths(parse_nodes(part["newick"], "the record")) if part["newick"] else part["scaler"] * whole
        for part in parts
    ]
    rows = []
    for part, length in zip(parts, lengths, strict=True):
        own = [str(part[name]) for name in ("name", "sites", "n_sites", "n_patterns")]
        rows.append((*own, shorten_model(part["parameters"]["spec"]), f"{part['lnl']:.3f}", f"{length:.4f}"))
    columns = ("Partition", "Columns", "Sites", "Patterns", "Model", "lnL", "Tree length")
    bars = draw_named_bars([part["name"] for part in parts], lengths, "Tree length in each partition")
    return [blocks.Table("Partitions", columns, rows), blocks.Plot(bars, tell("model.lengths"), len(parts))]


def _describe_part(part: Record, name: str) -> list[blocks.Content]:
    own, of = part["parameters"], f" of partition {name}" if name else ""
    content: list[blocks.Content] = []
    labels = {"alpha": f"Alpha, the shape of the gamma distribution{of}", "pinv": f"Proportion of invariable sites{of}"}
    facts = {label: f"{own[key]:.6g}" for key, label in labels.items() if own.get(key) is not None}
    if facts:
        content.append(facts)
    if has_equal_rates(own.get("alpha")):
        content.append(f"{EQUAL_RATES[0].upper()}{EQUAL_RATES[1:]}.")
    for key, caption, columns in (
        ("frequencies", f"State frequencies{of}", ("State", "Frequency")),
        ("rates", f"Substitution rates{of}", ("Pair or parameter", "Rate")),
    ):
        values = own.get(key)
        if isinstance(values, dict) and values:
            rows = [(state, f"{value:.6f}") for state, value in values.items()]
            told = f"{caption}: {len(rows)} values, listed in the record."
            content.append(blocks.Table(caption, columns, rows) if len(rows) <= _SHOWN_STATES else told)
    if "class_weights" in own:
        heads = ("Class", "Relative rate", "Proportion of sites")
        classes = _list_rates(own["class_rates"], own["class_weights"])
        content.append(blocks.Table(f"Classes of the mixture{of}", heads, classes))
    by_class = [{**one["frequencies"], **one["rates"]} for one in own.get("class_models", ())]
    if by_class and len(by_class[0]) <= _SHOWN_STATES:
        cells = [(name, *(f"{one[name]:.6f}" for one in by_class)) for name in by_class[0]]
        header = ("State or pair", *(f"Class {k}" for k in range(1, len(by_class) + 1)))
        content.append(blocks.Table(f"State frequencies and substitution rates of the classes{of}", header, cells))
    rates, weights = own["category_rates"], own["category_weights"]
    if len(rates) > 1:
        heads = ("Category", "Relative rate", "Proportion of sites")
        content.append(blocks.Table(f"Rates across sites{of}", heads, _list_rates(rates, weights)))
        plot = draw_bars(rates, weights, ("proportion of sites", "relative rate"), f"Rates across sites{of}")
        content.append(blocks.Plot(plot, tell("model.rates", of=of)))
    return content


def _list_rates(rates: Sequence[float], weights: Sequence[float]) -> list[tuple[str, str, str]]:
    """The number, the rate and the weight of each category or class."""
    numbered = enumerate(zip(rates, weights, strict=True), start=1)
    return [(str(k), f"{rate:.5f}", blocks.share(weight)) for k, (rate, weight) in numbered]


def _describe_choice(choice: Record) -> list[blocks.Content]:
    if "candidates" not in choice:
        chosen = [(part["name"], part["best"], f"{part['lnl']:.3f}") for part in choice["parts"]]
        scores = ", ".join(f"{name} {blocks.score(choice[name.lower()])}" for name in CRITERIA)
        table = blocks.Table("Chosen models", ("Partition", "Model", "lnL"), chosen)
        return [tell("choice.scheme", choice=choice, scores=scores), table]
    columns = ("Model", "lnL", "Parameters", "AIC", "AICc", "BIC", "Weight by AIC", "by AICc", "by BIC")
    names = ("aic", "aicc", "bic", "aic_weight", "aicc_weight", "bic_weight")
    rows = [
        (own["name"], blocks.score(own["lnl"]), str(own["n_parameters"]), *(blocks.score(own[name]) for name in names))
        for own in choice["candidates"]
    ]
    text = tell("choice.model", choice=choice, number=len(rows), left=len(choice["left_out"]))
    return [text, blocks.Table("Compared models, best first", columns, rows)]


# --- the sections as one HTML file, which loads nothing and is readable without JavaScript, and as text -----

HTML_BEGIN = (  # by which a report is known
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="plltool '
)
TEXT_BEGIN = "Report of plltool "  # likewise, as text


def write_html_page(prefix: str, sections: Sequence[blocks.Section]) -> str:
    """The page. Only this script and this style sheet can run in it, and nothing can be loaded."""
    style, script = read_part("report.css"), read_part("report.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src blob: data:;"
        " base-uri 'none'; form-action 'none'"
    )
    head = [
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", f"{prefix}: report of plltool"),
        element("style", Markup(style)),
    ]
    links = [element("li", element("a", section.title, href=f"#{section.key}")) for section in sections]
    body = [
        element("header", element("h1", f"Report of {prefix}"), element("p", f"Made by plltool {VERSION}")),
        element("nav", element("ul", *links), aria_label="Sections"),
        element("main", *map(_write_section, sections)),
    ]
    if any(isinstance(own, TreePicture) for section in sections for own in section.content):
        body.append(element("script", Markup(script)))
    lines = Markup("\n").join([*head, "</head>", "<body>", *body, "</body>", "</html>"])
    return f'{HTML_BEGIN}{VERSION}">\n{lines}\n'


def _hash(text: str) -> str:
    """A source of the policy: the text with this hash, and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _write_section(section: blocks.Section) -> Markup:
    heading = f"heading-{section.key}"
    content = [blocks.write_html(own, f"{section.key}-{number}") for number, own in enumerate(section.content)]
    title = element("h2", section.title, id=heading)
    return element("section", title, *content, id=section.key, aria_labelledby=heading)


def write_text_page(prefix: str, sections: Sequence[blocks.Section]) -> str:
    """The page; lines are at most REPORT_WIDTH characters long, where names and numbers allow it."""
    title = f"{TEXT_BEGIN}{VERSION}: {prefix}"
    lines = [title, "=" * min(len(title), blocks.REPORT_WIDTH)]
    for section in sections:
        lines += ["", section.title.upper(), "-" * len(section.title)]
        lines += [line for own in section.content if (written := blocks.write_lines(own)) for line in ("", *written)]
    return "\n".join(lines) + "\n"
