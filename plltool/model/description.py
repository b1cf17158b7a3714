"""What is in an alignment, as the record of a run and its report tell it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plltool.alignment.alignment import Alignment
from plltool.alignment.composition import composition_p_values, without_root
from plltool.alignment.facts import digest_data, identical_groups, may_be_invariable
from plltool.arrays import BoolArray
from plltool.constants import ROOT_NAME
from plltool.model.partition import Dataset

_COLUMN_CHUNK = 4096  # columns whose states are counted together


def describe_data(data: Dataset) -> dict[str, Any]:
    """The data for a JSON record: strings, numbers, lists and dictionaries only.

    A share of gaps is that of the cells about which nothing is known, from 0 to 1.
    """
    blocks = [without_root(block) for block in data.alignments]
    n_sites = sum(block.count_sites() for block in blocks)
    gaps = np.sum([block.undetermined_counts for block in blocks], axis=0) / n_sites
    tests = np.array([composition_p_values(block) for block in blocks]).T.tolist()
    taxa = [
        {"name": name, "gaps": share, "composition": [p if math.isfinite(p) else None for p in values]}
        for name, share, values in zip(blocks[0].names, gaps.tolist(), tests, strict=True)
    ]
    groups = [[data.names[taxon] for taxon in group] for group in identical_groups(data.alignments)]
    groups = [[name for name in group if name != ROOT_NAME] for group in groups]
    return {
        "source": data.source,
        "names": data.names_are,
        "constant_sites": list(data.constant_sites) or None,
        "digest": digest_data(blocks),
        "kinds": list(dict.fromkeys(block.states.name for block in data.alignments)),
        "n_constant": sum(block.count_sites(may_be_invariable(block)) for block in data.alignments),
        "n_informative": sum(int(are_informative(block).sum()) for block in data.alignments),
        "gaps": float(gaps.mean()),
        "taxa": taxa,
        "identical": [group for group in groups if len(group) > 1],
    }


def are_informative(block: Alignment) -> BoolArray:
    """(n_sites,) whether two states occur in at least two taxa each: parsimony prefers some trees to others.

    Cells that allow several states do not count.
    """
    found = np.zeros(block.n_sites, dtype=bool)
    n_codes = block.states.n_codes
    for start in range(0, block.n_sites, _COLUMN_CHUNK):
        codes = block.codes[:, start : start + _COLUMN_CHUNK].astype(np.intp)
        n_columns = codes.shape[1]
        places = codes + n_codes * np.arange(n_columns)
        counts = np.bincount(places.ravel(), minlength=n_codes * n_columns).reshape(n_columns, n_codes)
        found[start : start + n_columns] = (counts[:, block.states.state_codes] >= 2).sum(axis=1) >= 2
    return found
