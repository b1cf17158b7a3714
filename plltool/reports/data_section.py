"""The section on the data."""

from __future__ import annotations

from plltool.constants import SIGNIFICANCE
from plltool.reports.blocks import Cell, Facts, Items, Prose, Section, Table
from plltool.reports.figures import count, share
from plltool.reports.records import Record

_MOST_IDENTICAL = 50  # groups that are listed


def describe_data(run: Record) -> Section:
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
