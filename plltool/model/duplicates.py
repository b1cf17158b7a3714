"""Taxa with identical sequences, of which a search needs one only."""

from __future__ import annotations

from collections.abc import Sequence

from plltool.alignment.facts import first_identical
from plltool.model.partition import Dataset

MIN_DISTINCT = 4  # taxa of a search, if the alignment has them: fewer have only one unrooted topology


def without_duplicates(data: Dataset, places: Sequence[int] | None = None) -> tuple[Dataset, list[list[int]]]:
    """Keep the first taxon of each group of taxa whose sequences are the same in all parts, in their old order.

    If fewer than `MIN_DISTINCT` taxa would be left, the first duplicates are kept as well to make up that number.
    `places`: (n_taxa,) the place of each taxon in a constraint, negative for taxa that are not in it; the first taxon
    of each place in a group is kept.

    Also returns the groups: ``groups[i]`` holds the taxa of `data` that taxon i of the result stands for, itself first;
    every taxon of `data` is in one group.
    """
    first_of = first_identical(data.alignments)
    if data.has_root:  # which is no twin of taxa without data
        empty = [taxon for taxon, first in enumerate(first_of) if taxon and not first]
        first_of = [first_of[taxon] if taxon not in empty else empty[0] for taxon in range(data.n_taxa)]
    if places is not None:
        first_of = _first_at_place(first_of, places)
    duplicates = [taxon for taxon, first in enumerate(first_of) if first != taxon]
    n_distinct = data.n_taxa - len(duplicates)
    dropped = set(duplicates[max(0, MIN_DISTINCT - n_distinct) :])
    members = {taxon: [taxon] for taxon in range(data.n_taxa) if taxon not in dropped}
    for taxon in sorted(dropped):
        members[first_of[taxon]].append(taxon)
    kept = list(members)
    if len(kept) == data.n_taxa:
        return data, list(members.values())
    names = tuple(data.names[taxon] for taxon in kept)
    return data.with_rows(names, [part.alignment.codes[kept] for part in data.parts]), list(members.values())


def _first_at_place(first_of: Sequence[int], places: Sequence[int]) -> list[int]:
    """The taxon that stands for each one: the first with its place, or if it has none the first with any, or the first.

    Both arguments are (n_taxa,); `first_of` holds the first taxon with the same sequence.
    """
    placed: dict[tuple[int, int], int] = {}
    any_placed: dict[int, int] = {}
    for taxon, (first, place) in enumerate(zip(first_of, places, strict=True)):
        if place >= 0:
            placed.setdefault((first, place), taxon)
            any_placed.setdefault(first, taxon)
    return [
        placed[first, place] if place >= 0 else any_placed.get(first, first)
        for first, place in zip(first_of, places, strict=True)
    ]
