"""`check` tells what is in an alignment, and what a search of it would take."""

from __future__ import annotations

from typing import Any, Unpack

from plltool.alignment.facts import composition_p_values, gap_share, without_root
from plltool.alignment.patterns import Patterns, empirical_frequencies
from plltool.constants import DEFAULT_LINKAGE
from plltool.hardware import Hardware, HardwareSettings
from plltool.model.model import Model
from plltool.model.partition import Part, without_duplicates
from plltool.run.inputs import AlignmentLike, ModelLike, resolve_inputs
from plltool.run.memory import plan_memory
from plltool.run.messages import compare_pairs, remarks_on_data, remarks_on_saturation
from plltool.settings import takes_keywords


@takes_keywords(HardwareSettings)
def check(
    alignment: AlignmentLike, model: ModelLike | None = None, **hardware: Unpack[HardwareSettings]
) -> dict[str, Any]:
    """What is in an alignment, and the memory that a search of it would take.

    Parameters
    ----------
    alignment, model, hardware : as for `plltool.search`

    Returns
    -------
    dict
        Strings, numbers, lists and dictionaries: ``alignment``, ``data``, ``n_taxa``, ``n_duplicates``, ``n_sites``,
        ``n_patterns``, ``gap_share`` from 0 to 1, ``frequencies`` of the states (None if there are several parts),
        ``model``, ``parts`` (a dict each, with ``composition``, the p-value of each taxon, ``symmetry``, the
        matched-pairs tests, and ``saturation``), ``device``, ``device_bytes`` that a search would hold,
        ``full_bytes`` of conditional likelihoods beyond which it is no faster, ``suffices`` whether there are as many,
        and ``warnings``.

    Raises InputError if alignment or model cannot be used, and DeviceError if a device asked for by name is missing or
    cannot be used.
    """
    data, models = resolve_inputs(alignment, model, rooted=True)
    reduced = without_duplicates(data)[0]
    memory = plan_memory(reduced.patterns, models, Hardware.of(**hardware))
    parts = [_check_part(*own) for own in zip(data.parts, reduced.patterns, models, strict=True)]
    sites = sum(part["n_sites"] for part in parts)
    warnings = [*data.warnings, *remarks_on_data(data, models, DEFAULT_LINKAGE)]
    for part in parts:
        where = f"{data.source}: partition {part['name']}: " if part["name"] else f"{data.source}: "
        warnings += remarks_on_saturation(where, part["saturation"] or 0.0)
    return {
        "alignment": data.source,
        "data": ", ".join(dict.fromkeys(part["data"] for part in parts)),
        "n_taxa": data.n_sequences,
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
        "suffices": memory.suffices,
        "warnings": warnings,
    }


def _check_part(part: Part, patterns: Patterns, model: Model) -> dict[str, Any]:
    states = part.alignment.states
    frequencies = empirical_frequencies(part.alignment, states).tolist()
    own = without_root(part.alignment)
    symmetry, saturation = compare_pairs(own) or (None, None)
    return {
        "name": part.name,
        "data": states.name,
        "sites": part.ranges,
        "n_sites": part.n_sites,
        "n_patterns": patterns.n_patterns,
        "gap_share": gap_share(part.alignment),
        "frequencies": dict(zip(states.symbols, frequencies, strict=True)),
        "model": str(model.spec),
        "composition": dict(zip(own.names, composition_p_values(own).tolist(), strict=True)),
        "symmetry": symmetry,
        "saturation": saturation,
    }
