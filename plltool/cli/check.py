"""``plltool check``: is this an alignment, what is in it, and what would a search take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool.cli.options import (
    alignment_argument,
    data_type_option,
    hardware_options,
    json_option,
    load_alignment,
    model_option,
)
from plltool.cli.output import print_line
from plltool.cli.reporting import prepare_devices
from plltool.hardware import Hardware

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plltool.alignment.alignment import Sequences
    from plltool.alignment.partition import Part
    from plltool.alignment.patterns import Patterns
    from plltool.model.model import Model

MEBIBYTE = 1 << 20

EPILOG = """\b
Examples:
  plltool check data/primates.phy
  plltool check genes.phy --model genes.part --memory 4G
"""


@click.command(epilog=EPILOG)
@alignment_argument
@model_option
@data_type_option
@hardware_options
@json_option
def check(alignment: Path, model: str | None, data_type: str, hardware: Hardware, as_json: bool) -> None:
    """Check ALIGNMENT: its format, what to know about its data, and the memory that a search takes."""
    prepare_devices(hardware)
    facts = collect_facts(load_alignment(alignment, data_type), model, hardware)
    if as_json:
        print_line(json.dumps(facts, indent=1))
        return
    for line in describe(facts):
        print_line(line)


def collect_facts(alignment: Sequences, model: str | None, hardware: Hardware) -> dict[str, Any]:
    """All that is printed, as strings, numbers, lists and dictionaries."""
    from plltool.alignment.partition import without_duplicates
    from plltool.alignment.patterns import compress
    from plltool.session import plan_memory, pose

    data, models = pose(alignment, model)
    reduced = without_duplicates(data)[0]
    patterns = [compress(part) for part in reduced.alignments]
    memory = plan_memory(patterns, models, hardware)
    parts = [_collect_part(part, own, model) for part, own, model in zip(data.parts, patterns, models, strict=True)]
    sites = sum(part["n_sites"] for part in parts)
    return {
        "alignment": data.source,
        "data": ", ".join(dict.fromkeys(part["data"] for part in parts)),
        "n_taxa": data.n_taxa,
        "n_duplicates": data.n_taxa - reduced.n_taxa,
        "n_sites": data.n_sites,
        "n_patterns": sum(part["n_patterns"] for part in parts),
        "gap_share": sum(part["gap_share"] * part["n_sites"] for part in parts) / sites,
        "frequencies": parts[0]["frequencies"] if len(parts) == 1 else None,
        "model": "; ".join(dict.fromkeys(part["model"] for part in parts)),
        "parts": parts,
        "device": memory.device,
        "device_bytes": memory.n_bytes,
        "full_bytes": memory.full_bytes,
        "resident": memory.resident,
        "warnings": list(data.warnings),
    }


def _collect_part(part: Part, patterns: Patterns, model: Model) -> dict[str, Any]:
    from plltool.alignment.alignment import gap_share
    from plltool.alignment.patterns import empirical_frequencies

    states = part.alignment.states
    frequencies = empirical_frequencies(part.alignment, states).tolist()
    return {
        "name": part.name,
        "data": states.name,
        "sites": part.ranges,
        "n_sites": len(part.sites),
        "n_patterns": patterns.n_patterns,
        "gap_share": gap_share(part.alignment),
        "frequencies": dict(zip(states.symbols, frequencies, strict=True)),
        "model": str(model.spec),
    }


def describe(facts: dict[str, Any]) -> list[str]:
    """The facts as lines."""
    parts = facts["parts"]
    return [
        f"alignment: {facts['alignment']} ({facts['data']})",
        f"taxa: {facts['n_taxa']}",
        f"sites: {facts['n_sites']}",
        f"patterns: {facts['n_patterns']}",
        f"gaps: {100 * facts['gap_share']:.2f} %",
        *(_describe_parts(parts) if parts[0]["name"] else [_describe_frequencies(parts[0])]),
        f"memory of a search under {facts['model']} on {facts['device']}: {_describe_memory(facts)}",
        *(f"warning: {warning}" for warning in facts["warnings"]),
    ]


def _describe_parts(parts: Sequence[dict[str, Any]]) -> list[str]:
    """Two lines for each part."""
    lines = []
    for part in parts:
        size = f"{part['n_sites']} sites, {part['n_patterns']} patterns, {100 * part['gap_share']:.2f} % gaps"
        lines += [f"part {part['name']}: {size}, {part['model']}", f"  {_describe_frequencies(part)}"]
    return lines


def _describe_frequencies(part: dict[str, Any]) -> str:
    what = "base" if part["data"] == "DNA" else "amino acid"
    return f"{what} frequencies: " + "  ".join(f"{base} {share:.4f}" for base, share in part["frequencies"].items())


def _describe_memory(facts: dict[str, Any]) -> str:
    held = f"{facts['device_bytes'] / MEBIBYTE:.1f} MiB"
    if facts["resident"]:
        return held
    return f"{held}, some patterns at a time; {facts['full_bytes'] / MEBIBYTE:.1f} MiB would hold all and be faster"
