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
    from plltool.alignment.alignment import Alignment

MEBIBYTE = 1 << 20


@click.command()
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


def collect_facts(data: Alignment, model: str | None, hardware: Hardware) -> dict[str, Any]:
    """All that is printed, as strings, numbers, lists and dictionaries."""
    from plltool.alignment.alignment import gap_share, without_duplicates
    from plltool.alignment.patterns import compress, empirical_frequencies
    from plltool.session import as_model, plan_memory

    prepared = as_model(model, data)
    patterns = compress(without_duplicates(data)[0])
    memory = plan_memory(patterns, prepared, hardware)
    frequencies = empirical_frequencies(data, data.states).tolist()
    return {
        "alignment": data.source,
        "data": data.states.name,
        "n_taxa": data.n_taxa,
        "n_duplicates": data.n_taxa - patterns.n_taxa,
        "n_sites": data.n_sites,
        "n_patterns": patterns.n_patterns,
        "gap_share": gap_share(data),
        "frequencies": dict(zip(data.states.symbols, frequencies, strict=True)),
        "model": str(prepared.spec),
        "device": memory.device,
        "device_bytes": memory.n_bytes,
        "full_bytes": memory.full_bytes,
        "resident": memory.resident,
        "warnings": list(data.warnings),
    }


def describe(facts: dict[str, Any]) -> list[str]:
    """The facts as lines."""
    what = "base" if facts["data"] == "DNA" else "amino acid"
    frequencies = "  ".join(f"{base} {share:.4f}" for base, share in facts["frequencies"].items())
    return [
        f"alignment: {facts['alignment']} ({facts['data']})",
        f"taxa: {facts['n_taxa']}",
        f"sites: {facts['n_sites']}",
        f"patterns: {facts['n_patterns']}",
        f"gaps: {100 * facts['gap_share']:.2f} %",
        f"{what} frequencies: {frequencies}",
        f"memory of a search under {facts['model']} on {facts['device']}: {_describe_memory(facts)}",
        *(f"warning: {warning}" for warning in facts["warnings"]),
    ]


def _describe_memory(facts: dict[str, Any]) -> str:
    held = f"{facts['device_bytes'] / MEBIBYTE:.1f} MiB"
    if facts["resident"]:
        return held
    return f"{held}, some patterns at a time; {facts['full_bytes'] / MEBIBYTE:.1f} MiB would hold all and be faster"
