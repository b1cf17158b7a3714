"""``plltool evaluate``: the likelihood of a given topology."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from plltool.cli.options import (
    PATH,
    OutputChoice,
    Views,
    alignment_argument,
    brlen_option,
    data_type_option,
    fixed_option,
    hardware_options,
    json_option,
    json_progress_option,
    load_alignment,
    load_tree,
    model_option,
    outgroup_option,
    output_options,
    quiet_option,
    resolve_option,
    split_outgroup,
    tree_option,
    view_options,
)
from plltool.cli.outputs import OutputFiles, claim_files, describe_models, print_line
from plltool.cli.reporting import Reporter, given_command
from plltool.cli.support import claim_supports, remove_supports
from plltool.hardware import Hardware

EPILOG = """\b
Examples:
  plltool evaluate data/primates.phy --tree primates.best.nwk --model HKY+F+G4
  plltool evaluate genes.phy --tree old.nwk --model genes.part --fixed --site-lnl sites.tsv
"""


@click.command(epilog=EPILOG)
@alignment_argument
@tree_option
@model_option
@brlen_option
@data_type_option
@fixed_option
@click.option(
    "--site-lnl",
    type=PATH,
    metavar="FILE",
    help="Write the lnL of each site to FILE; in TREE-PUZZLE's format, which CONSEL reads, if it is named .sitelh.",
)
@click.option(
    "--site-rates", type=PATH, metavar="FILE", help="Write the mean rate of each site, posterior to its data, to FILE."
)
@click.option(
    "--length-errors", is_flag=True, help="Standard errors of branch lengths, the model known, in the record (--json)."
)
@outgroup_option
@resolve_option
@hardware_options
@output_options
@view_options
@json_option
@quiet_option
@json_progress_option
def evaluate(
    alignment: Path,
    tree: Path,
    model: str | None,
    brlen: str,
    data_type: str,
    fixed: bool,
    site_lnl: Path | None,
    site_rates: Path | None,
    length_errors: bool,
    outgroup: tuple[str, ...],
    resolve: int | None,
    hardware: Hardware,
    output: OutputChoice,
    views: Views,
    as_json: bool,
    quiet: bool,
    json_progress: str | None,
) -> None:
    """The log-likelihood of ALIGNMENT on a fixed topology, its branch lengths and free parameters optimised.

    Without --prefix and --site-lnl no files are written.
    """
    files = OutputFiles.of_prefix(output.prefix) if output.prefix else None
    if files and output.prefix:
        files.claim(output.redo)
        claim_supports(output.prefix, output.redo)
    claim_files([path for path in (site_lnl, site_rates) if path], output.redo)
    import plltool
    from plltool.io.record import format_record, write_text
    from plltool.io.site_values import format_for, format_sites

    data = load_alignment(alignment, data_type)
    with Reporter(quiet, files.log if files else None, json_progress) as reporter:
        topology = load_tree(tree, data, brlen, resolve)
        result = plltool.evaluate(
            data,
            topology,
            model,
            brlen=brlen,
            fixed=fixed,
            site_lnl=site_lnl is not None,
            site_rates=site_rates is not None,
            length_errors=length_errors,
            outgroup=split_outgroup(outgroup, data.names),
            listener=reporter.progress,
            **asdict(hardware),
        )
        if files and output.prefix:
            files.write(result, given_command(), views)
            remove_supports(output.prefix)
        if site_lnl and result.site_lnl is not None:
            write_text(site_lnl, format_for(site_lnl, result.site_lnl))
        if site_rates and result.site_rates is not None:
            write_text(site_rates, format_sites("rate", result.site_rates))
        reporter.write_log(f"lnL: {result.lnl:.6f}")
    if as_json:
        print_line(format_record(result.as_record(given_command())))
        return
    for line in (f"lnL: {result.lnl:.6f}", *describe_models(result), f"tree: {result.newick}"):
        print_line(line)
