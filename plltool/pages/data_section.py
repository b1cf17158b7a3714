"""The section on the data."""

from __future__ import annotations

from plltool.pages.blocks import Facts, Items, Section, Table
from plltool.pages.figures import count, share
from plltool.pages.records import Record

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
    gaps = tuple((taxon["name"], share(taxon["gaps"])) for taxon in taxa)
    blocks.append(Table("Gaps and unknown characters of each taxon", ("Taxon", "Share"), gaps))
    return Section("data", "Data", tuple(blocks))
