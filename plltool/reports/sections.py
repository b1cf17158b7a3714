"""All sections of a report, in their order."""

from __future__ import annotations

from plltool.reports.ancestral_section import describe_ancestors
from plltool.reports.blocks import Block, Facts, Items, Prose, Section
from plltool.reports.concordance_section import describe_concordance, describe_genes
from plltool.reports.data_section import describe_data
from plltool.reports.date_section import describe_dates
from plltool.reports.figures import duration
from plltool.reports.methods import write_methods
from plltool.reports.model_section import describe_model
from plltool.reports.placement_section import describe_placements
from plltool.reports.records import Records
from plltool.reports.sample_section import describe_samples
from plltool.reports.search_section import describe_search
from plltool.reports.support_section import describe_supports, describe_tests
from plltool.reports.tree_section import describe_tree


def describe_runs(records: Records) -> list[Section]:
    """The sections that the records have something for."""
    sections = []
    nodes, run = records.tree, records.main
    if "date" in records.runs:
        sections.append(describe_dates(records.runs["date"], records.prefix.name))
    if nodes is not None:
        sections.append(describe_tree(records, nodes))
    sections += _describe_analyses(records)
    if records.all_runs:
        sections.append(describe_data(next(iter(records.all_runs.values()))))
    if run is not None:
        sections.append(describe_model(records))
    if "search" in records.runs:
        sections.append(describe_search(records.runs["search"]))
    supports = describe_supports(records)
    if supports is not None:
        sections.append(supports)
    if "test" in records.runs:
        sections.append(describe_tests(records.runs["test"]))
    sections.append(_describe_warnings(records))
    sections.append(_describe_computation(records))
    methods = write_methods(records)
    if methods is not None:
        remark = Prose("This text is a draft: check it before you use it, and cite the methods that you used.")
        sections.append(Section("methods", "Methods", (Prose(methods.text), remark)))
        sections.append(Section("references", "References", (Items(methods.references),)))
    return sections


def _describe_analyses(records: Records) -> list[Section]:
    """The sections on what was asked about a tree."""
    name = records.prefix.name
    found = [] if records.samples is None else describe_samples(records.samples, name)
    if records.genes:
        found.append(describe_genes(records.genes, name))
    if records.concordance is not None:
        found.append(describe_concordance(records.concordance, name))
    if records.placements is not None:
        found.append(describe_placements(records.placements, name))
    if "ancestral" in records.runs:
        found.append(describe_ancestors(records.runs["ancestral"], records.mutations, name))
    return found


def _describe_warnings(records: Records) -> Section:
    """All warnings, each once."""
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
