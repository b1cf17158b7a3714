"""All sections of a report, in their order, and those on the data and the model."""

from __future__ import annotations

from plltool.constants import CRITERIA, SIGNIFICANCE, UNLINKED
from plltool.io.newick import parse_nodes
from plltool.model.candidates import information_score
from plltool.model.describe import EQUAL_RATES, is_at_bound, shorten_model
from plltool.registry import AFTER_MODEL, AFTER_TREE, BEFORE_TREE
from plltool.reports.blocks import (
    Block,
    Cell,
    Facts,
    Folded,
    Items,
    Picture,
    Prose,
    Section,
    Table,
    count,
    duration,
    score,
    share,
)
from plltool.reports.methods import modules_of, write_methods
from plltool.reports.plots import draw_bars, draw_named_bars
from plltool.reports.records import Record, Records
from plltool.reports.tree_section import describe_tree, sum_lengths
from plltool.tree.rooted_nodes import UnrootedNodes


def describe_runs(records: Records) -> list[Section]:
    """The sections that the records have something for."""
    nodes = records.tree
    sections = _describe_analyses(records, BEFORE_TREE)
    if nodes is not None:
        sections.append(describe_tree(records, nodes))
    sections += _describe_analyses(records, AFTER_TREE)
    if records.all_runs:
        sections.append(_describe_alignment(next(iter(records.all_runs.values()))))
    if records.main is not None:
        sections.append(describe_model(records))
    sections += _describe_analyses(records, AFTER_MODEL)
    found = [*records.left_out, *(str(warning) for run in records.all_runs.values() for warning in run["warnings"])]
    if records.supports is not None and not records.supports_are_of_main_tree:
        found.append(f"{records.prefix.name}.support.json has support values for a different tree from the one shown")
    warnings: Block = Items(tuple(dict.fromkeys(found))) if found else Prose("None.")
    sections.append(Section("warnings", "Warnings", (warnings,)))
    sections.append(_describe_computation(records))
    methods = write_methods(records)
    if methods is not None:
        remark = Prose("This text is a draft: check it before you use it, and cite the methods that you used.")
        sections.append(Section("methods", "Methods", (Prose(methods.text), remark)))
        sections.append(Section("references", "References", (Items(methods.references),)))
    return sections


def _describe_analyses(records: Records, where: str) -> list[Section]:
    return [section for module in modules_of(records, where) for section in module.describe(records)]


def _describe_computation(records: Records) -> Section:
    """Device, versions and commands."""
    run = next(iter(records.all_runs.values()), None)
    blocks: list[Block] = []
    if run is not None:
        versions = ", ".join(f"{name} {version}" for name, version in run.get("software", {}).items())
        rows = [("Device", run["device"]), ("Reason for the choice", run.get("reason", ""))]
        rows += [("Driver", run.get("driver", "")), ("Precision", str(run.get("layout", {}).get("precision") or ""))]
        rows += [("plltool version", run["version"]), ("Other software", versions)]
        runs = records.all_runs.items()
        rows += [(f"Time of {command}", duration(own["seconds"])) for command, own in runs if "seconds" in own]
        blocks.append(Facts(tuple(row for row in rows if row[1])))
    if records.commands:
        blocks += [Prose("Commands:"), Items(records.commands, is_code=True)]
    return Section("computation", "Computation", tuple(blocks))


# --- the data ---------------------------------------------------------------------------------------------

_MOST_IDENTICAL = 50  # groups that are listed


def _describe_alignment(run: Record) -> Section:
    """Size of the alignment, and what is in it."""
    data = run.get("data", {})
    n_sites = run["n_sites"]
    rows = [("Taxa", str(run["n_taxa"])), ("Sites", str(n_sites))]
    if "n_patterns" in run:
        rows.append(("Distinct patterns of sites", str(run["n_patterns"])))
    if not data:
        return Section("data", "Data", (Facts(tuple(rows)),))
    used = max(sum(part["n_sites"] for part in run.get("parts", ())) or n_sites, 1)
    rows = [("Alignment", data["source"]), ("Kind of data", ", ".join(data["kinds"])), *rows]
    if data.get("weighted_columns"):
        rows.append(("Columns of the file, which have weights", str(data["weighted_columns"])))
    if data.get("constant_sites"):
        added = zip("ACGT", data["constant_sites"], strict=True)
        rows.append(("Constant sites that were added", ", ".join(f"{base} {number}" for base, number in added)))
    rows += [
        ("Constant sites", f"{data['n_constant']} ({share(data['n_constant'] / used)})"),
        ("Parsimony-informative sites", f"{data['n_informative']} ({share(data['n_informative'] / used)})"),
        ("Gaps and unknown characters", share(data["gaps"])),
        ("Groups of identical sequences", str(len(data["identical"]))),
    ]
    blocks: list[Facts | Items | Table] = [Facts(tuple(rows))]
    if data["identical"]:
        groups = [f"Identical: {', '.join(group)}" for group in data["identical"]]
        left = len(groups) - _MOST_IDENTICAL
        more = [f"{count(left, 'more group')} of identical sequences"] if left > 0 else []
        blocks.append(Items((*groups[:_MOST_IDENTICAL], *more)))
    taxa = sorted(data["taxa"], key=lambda taxon: -taxon["gaps"])
    rows_of_taxa = tuple((taxon["name"], share(taxon["gaps"]), _judge(taxon.get("composition", []))) for taxon in taxa)
    n_parts = len(taxa[0].get("composition", []))
    of = "Composition p-value" if n_parts == 1 else "Composition p-value (lowest of all partitions)"
    columns = ("Taxon", "Gaps and unknown characters", of)
    blocks.append(Table("Taxa, sorted by proportion of gaps", columns, rows_of_taxa))
    n_deviating = sum(cell.mark == "bad" for _, _, cell in rows_of_taxa)
    found = "1 taxon" if n_deviating == 1 else f"{n_deviating} taxa"
    text = (
        f"A chi-square test compares the composition of each taxon with the average: {found} with p < {SIGNIFICANCE:g}."
        " Standard models assume that composition does not differ. With many taxa or partitions, some differences are"
        " due to chance."
    )
    return Section("data", "Data", (*blocks, Prose(text)))


def _judge(values: list[float | None]) -> Cell:
    """The least p-value of a taxon."""
    known = [value for value in values if value is not None]
    return Cell(f"{min(known):.4f}", "bad" if min(known) < SIGNIFICANCE else "") if known else Cell("-")


_SHOWN_PARTS = 12  # more have only a line each
_SHOWN_STATES = 25  # a longer list of frequencies is left to the record


def describe_model(records: Records) -> Section:
    run = records.main or {}
    blocks: list[Block] = []
    parts = run.get("parts", [])
    if "parameters" in run:
        blocks.append(_describe_fit(run, parts))
    if len(parts) > 1:
        blocks += _describe_parts(run, parts)
    if len(parts) > _SHOWN_PARTS:
        models = tuple((part["name"], part["model"]) for part in parts)
        blocks.append(Table("Models of the partitions with all values", ("Partition", "Model"), models, is_text=True))
    elif len(parts) > 1:
        for part in parts:
            blocks.append(Folded(f"Parameters of partition {part['name']}", _describe_part(part, part["name"])))
    elif parts:
        blocks += _describe_part(parts[0], "")
    choice = records.model_choice
    if choice is not None:
        blocks += _describe_choice(choice)
    return Section("model", "Model", tuple(blocks))


def count_parameters(run: Record) -> int:
    """Free parameters of all models, and branch lengths, which each part has for itself if they are unlinked."""
    nodes = parse_nodes(run["tree"], "the record")
    n_branches = len(UnrootedNodes.of(nodes).ends) + (nodes.parents.count(0) == 2)  # a root has a place on its branch
    n_trees = len(run["parts"]) if run["brlen"] == UNLINKED else 1
    return int(run["parameters"]["n_free_parameters"]) + n_trees * n_branches


def _describe_fit(run: Record, parts: list[Record]) -> Facts:
    """The fit and its price."""
    k, n = count_parameters(run), sum(part["n_sites"] for part in parts)
    n_own = int(run["parameters"]["n_free_parameters"])
    specs = list(dict.fromkeys(part["parameters"]["spec"] for part in parts))
    rows = [("Model", shorten_model(specs[0]) if len(specs) == 1 else f"{len(parts)} partitions, see below")]
    if len(parts) > 1:
        rows.append(("Branch lengths of partitions", run["brlen"]))
    rows += [
        ("Log-likelihood (lnL)", f"{run['lnl']:.4f}"),
        ("Free parameters", f"{k}: {n_own} of the model, {k - n_own} branch lengths"),
    ]
    for name in ("AIC", "AICc", "BIC"):
        value = information_score(name, run["lnl"], k, n)
        rows.append((name, f"{value:.3f}" if abs(value) < float("inf") else "not defined: too few sites"))
    return Facts(tuple(rows))


def _describe_parts(run: Record, parts: list[Record]) -> list[Block]:
    """A table and bars of the parts."""
    whole = sum_lengths(parse_nodes(run["tree"], "the record"))
    lengths = [
        sum_lengths(parse_nodes(part["newick"], "the record")) if part["newick"] else part["scaler"] * whole
        for part in parts
    ]
    rows = []
    for part, length in zip(parts, lengths, strict=True):
        own = [str(part[name]) for name in ("name", "sites", "n_sites", "n_patterns")]
        rows.append((*own, shorten_model(part["parameters"]["spec"]), f"{part['lnl']:.3f}", f"{length:.4f}"))
    columns = ("Partition", "Columns", "Sites", "Patterns", "Model", "lnL", "Tree length")
    bars = draw_named_bars([part["name"] for part in parts], lengths, "Tree length in each partition")
    caption = "Tree length in each partition: expected substitutions per site, summed over branches."
    return [Table("Partitions", columns, tuple(rows)), Picture(bars, caption, len(parts))]


def _describe_part(part: Record, name: str) -> tuple[Facts | Table | Prose | Picture, ...]:
    own, of = part["parameters"], f" of partition {name}" if name else ""
    blocks: list[Facts | Table | Prose | Picture] = []
    labels = {"alpha": f"Alpha, the shape of the gamma distribution{of}", "pinv": f"Proportion of invariable sites{of}"}
    rows = tuple((label, f"{own[key]:.6g}") for key, label in labels.items() if own.get(key) is not None)
    if rows:
        blocks.append(Facts(rows))
    if is_at_bound(own.get("alpha")):
        blocks.append(Prose(f"{EQUAL_RATES[0].upper()}{EQUAL_RATES[1:]}."))
    for key, caption, columns in (
        ("frequencies", f"State frequencies{of}", ("State", "Frequency")),
        ("rates", f"Substitution rates{of}", ("Pair or parameter", "Rate")),
    ):
        values = own.get(key)
        if isinstance(values, dict) and values:
            shown = tuple((state, f"{value:.6f}") for state, value in values.items())
            if len(shown) <= _SHOWN_STATES:
                blocks.append(Table(caption, columns, shown))
            else:
                blocks.append(Prose(f"{caption}: {len(shown)} values, listed in the record."))
    if "class_weights" in own:
        classes = enumerate(zip(own["class_rates"], own["class_weights"], strict=True), start=1)
        mixed = tuple((str(k), f"{rate:.5f}", share(weight)) for k, (rate, weight) in classes)
        blocks.append(Table(f"Classes of the mixture{of}", ("Class", "Relative rate", "Proportion of sites"), mixed))
    by_class = [{**one["frequencies"], **one["rates"]} for one in own.get("class_models", ())]
    if by_class and len(by_class[0]) <= _SHOWN_STATES:
        cells = tuple((name, *(f"{one[name]:.6f}" for one in by_class)) for name in by_class[0])
        header = ("State or pair", *(f"Class {k}" for k in range(1, len(by_class) + 1)))
        blocks.append(Table(f"State frequencies and substitution rates of the classes{of}", header, cells))
    rates, weights = own["category_rates"], own["category_weights"]
    if len(rates) > 1:
        numbered = enumerate(zip(rates, weights, strict=True), start=1)
        table = tuple((str(k), f"{rate:.5f}", share(weight)) for k, (rate, weight) in numbered)
        blocks.append(Table(f"Rates across sites{of}", ("Category", "Relative rate", "Proportion of sites"), table))
        plot = draw_bars(rates, weights, ("proportion of sites", "relative rate"), f"Rates across sites{of}")
        caption = f"Rates across sites{of}: each bar is a category, as wide as its proportion of the sites."
        blocks.append(Picture(plot, caption))
    return tuple(blocks)


def _describe_choice(choice: Record) -> list[Block]:
    if "candidates" not in choice:
        chosen = tuple((part["name"], part["best"], f"{part['lnl']:.3f}") for part in choice["parts"])
        scores = ", ".join(f"{name} {score(choice[name.lower()])}" for name in CRITERIA)
        by = f"selected by {choice['criterion']}; all partitions together: {scores}"
        text = f"The models of the partitions were {by}."
        return [Prose(text), Table("Chosen models", ("Partition", "Model", "lnL"), chosen)]
    columns = ("Model", "lnL", "Parameters", "AIC", "AICc", "BIC", "Weight by AIC", "by AICc", "by BIC")
    names = ("aic", "aicc", "bic", "aic_weight", "aicc_weight", "bic_weight")
    rows = tuple(
        (own["name"], score(own["lnl"]), str(own["n_parameters"]), *(score(own[name]) for name in names))
        for own in choice["candidates"]
    )
    left = len(choice["left_out"])
    text = (
        f"{choice['best']} was selected by {choice['criterion']} among {len(rows)} models fitted on the same tree;"
        f" {left} others were clearly worse at the start and were not optimised."
    )
    return [Prose(text), Table("Compared models, best first", columns, rows)]
