"""``plltool check``: is this an alignment, what is in it, and what would a search take."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import plltool
from plltool import Hardware
from plltool.cli import options
from plltool.cli.command import command
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_line, print_results
from plltool.constants import MAX_SHOWN_VALUES, SIGNIFICANCE

MEBIBYTE = 1 << 20
TABLE_WIDTH = 8  # frequencies in a row
LISTED = 5  # taxa of another composition


@command()
@options.alignment_argument
@options.model_option
@options.reading_options
@options.hardware_options
@options.json_option
def check(alignment: Path, model: str | None, reading: options.Reading, hardware: Hardware, as_json: bool) -> None:
    """Check ALIGNMENT: report its format, facts and warnings about its data, and the memory that a search takes."""
    with Reporter(quiet=True):
        facts = plltool.check(options.load_alignment(alignment, reading), model, **asdict(hardware))
    if as_json:
        print_line(json.dumps(facts, indent=1))
        return
    print_results(describe(facts))


def describe(facts: dict[str, Any]) -> list[str]:
    parts = facts["parts"]
    memory = f"{facts['device_bytes'] / MEBIBYTE:.1f} MiB for each worker"
    if not facts["suffices"]:
        full = f"{facts['full_bytes'] / MEBIBYTE:.1f} MiB"
        memory += f", some patterns at a time; with {full} it would be faster"
    return [
        f"alignment: {facts['alignment']} ({facts['data']})",
        f"taxa: {facts['n_taxa']}",
        f"sites: {facts['n_sites']}",
        f"patterns: {facts['n_patterns']}",
        f"gaps: {100 * facts['gap_share']:.2f} %",
        *(line for part in parts for line in _describe_part(part)),
        f"memory of a search under {facts['model']} on {facts['device']}: {memory}",
        *(f"warning: {warning}" for warning in facts["warnings"]),
    ]


def _describe_part(part: dict[str, Any]) -> list[str]:
    if not part["name"]:
        return _describe_content(part)
    size = f"{part['n_sites']} sites, {part['n_patterns']} patterns, {100 * part['gap_share']:.2f} % gaps"
    lines = [f"  {line}" for line in _describe_content(part)]
    return [f"partition {part['name']}: {size}, {part['model']}", *lines]


def _describe_frequencies(part: dict[str, Any]) -> list[str]:
    """One line, or for many states a table below it."""
    whats = {"DNA": "base", "protein": "amino acid", "codon": "codon"}
    what = whats.get(part["data"].rstrip("0123456789"), "state")
    shares = [f"{state} {share:.4f}" for state, share in part["frequencies"].items()]
    if len(shares) <= MAX_SHOWN_VALUES:
        return [f"{what} frequencies: " + "  ".join(shares)]
    rows = ["  ".join(shares[k : k + TABLE_WIDTH]) for k in range(0, len(shares), TABLE_WIDTH)]
    return [f"{what} frequencies:", *(f"  {row}" for row in rows)]


def _describe_content(part: dict[str, Any]) -> list[str]:
    """Frequencies, and what the tests of composition and symmetry found; taxa with p-values below 5 % are listed."""
    values = part["composition"]
    failed = sorted((value, name) for name, value in values.items() if value < SIGNIFICANCE)
    listed = "  ".join(f"{name} {value:.4f}" for value, name in failed[:LISTED])
    more = f"  and {len(failed) - LISTED} more" if len(failed) > LISTED else ""
    found = f"composition: {len(failed)} of {len(values)} taxa differ from the average (p < {SIGNIFICANCE})"
    lines = [*_describe_frequencies(part), f"{found}: {listed}{more}" if failed else found]
    for name, own in (part["symmetry"] or {}).items():
        n_pairs = own["significant"] + own["others"]
        found = f"{own['significant']} of {n_pairs} pairs of sequences (p < {SIGNIFICANCE})"
        most = "" if own["p_value"] is None else f"; p = {own['p_value']:.4g} for the most divergent pair"
        if n_pairs:
            lines.append(f"{name} rejected for {found}{most}")
    if part["symmetry"] is None and len(values) > 1:
        lines.append("symmetry and saturation: not tested, these data are too large")
    if part["saturation"] is not None:
        found = f"median distance between sequences is {100 * part['saturation']:.0f} % of that between unrelated ones"
        lines.append(f"saturation: {found}")
    return lines
