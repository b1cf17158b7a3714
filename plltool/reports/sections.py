"""All sections of a report, in their order, and those on the data."""

from __future__ import annotations

from plltool.constants import SIGNIFICANCE
from plltool.registry import AFTER_MODEL, AFTER_TREE, BEFORE_TREE
from plltool.reports.blocks import Block, Cell, Facts, Items, Prose, Section, Table
from plltool.reports.figures import count, duration, share
from plltool.reports.methods import modules_of, write_methods
from plltool.reports.model_section import describe_model
from plltool.reports.records import Record, Records
from plltool.reports.tree_section import describe_tree


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
    sections.append(_describe_warnings(records))
    sections.append(_describe_computation(records))
    methods = write_methods(records)
    if methods is not None:
        remark = Prose("This text is a draft: check it before you use it, and cite the methods that you used.")
        sections.append(Section("methods", "Methods", (Prose(methods.text), remark)))
        sections.append(Section("references", "References", (Items(methods.references),)))
    return sections


def _describe_analyses(records: Records, where: str) -> list[Section]:
    return [section for module in modules_of(where) for section in module.describe(records)]


def _describe_warnings(records: Records) -> Section:
    found = [*records.left_out, *(str(warning) for run in records.all_runs.values() for warning in run["warnings"])]
    if records.supports is not None and not records.supports_are_of_main_tree:
        found.append(f"{records.prefix.name}.support.json has support values for a different tree from the one shown")
    block: Block = Items(tuple(dict.fromkeys(found))) if found else Prose("None.")
    return Section("warnings", "Warnings", (block,))


def _describe_computation(records: Records) -> Section:
    """Device, versions and commands."""
    run = next(iter(records.all_runs.values()), None)
    blocks: list[Block] = []
    if run is not None:
        versions = ", ".join(f"{name} {version}" for name, version in run.get("software", {}).items())
        rows = [
            ("Device", run["device"]),
            ("Reason for the choice", run.get("reason", "")),
            ("Driver", run.get("driver", "")),
        ]
        precision = run.get("layout", {}).get("precision")
        rows += [("Precision", str(precision))] if precision else []
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
    blocks.append(
        Table("Taxa, sorted by proportion of gaps", ("Taxon", "Gaps and unknown characters", of), rows_of_taxa)
    )
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
