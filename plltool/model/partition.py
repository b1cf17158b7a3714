"""Parts of an alignment, columns that share a model: as the user describes them, and cut from an alignment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from plltool.alignment import spaces
from plltool.alignment.alignment import Alignment, Sequences, refuse_constant_sites, sort_columns
from plltool.alignment.facts import data_warnings, find_states, first_identical, gap_share, refuse_no_data
from plltool.alignment.patterns import Patterns, compress, encode
from plltool.alignment.states import (
    DNA,
    GENOTYPES,
    ILLEGAL_CODE,
    MULTISTATE,
    PHASED_GENOTYPES,
    PROTEIN,
    UNDETERMINED,
    CodeArray,
    StateSpace,
)
from plltool.arrays import FloatArray, IndexArray
from plltool.constants import DEFAULT_MODELS, DEFAULT_MULTISTATE_MODEL, ROOT_NAME, WHOLE
from plltool.errors import InputError, show_name
from plltool.model.scheme import REMAINDER, PartSpec, Scheme, assign_sites, check_files, to_ranges
from plltool.model.spec import ModelSpec

BEYOND_MORPHOLOGY = b"GTUgtu"  # bases that would be the 17th state and later ones of a character


@dataclass(frozen=True, eq=False)
class Part:
    """Columns of an alignment that share a model."""

    name: str  # see `PartSpec`
    ranges: str  # the columns as text, such as ``1-100, 200-300\\3``
    # (n, width) the columns of each site, from 0, in the order of `alignment`; a codon has three, a doublet two
    columns: IndexArray
    alignment: Alignment  # of these columns only, sorted by their content

    @property
    def sites(self) -> IndexArray:
        """(n,) the first column of each site."""
        return self.columns[:, 0]

    @property
    def n_sites(self) -> int:
        """The number of sites, added constant ones included."""
        return self.alignment.count_sites()


@dataclass(frozen=True, eq=False)
class Dataset:
    """An alignment cut into parts, by default one.

    Taxa are sorted by name, columns by content, so that no result depends on the order in the file.
    """

    names: tuple[str, ...]  # taxon names, the same in every part
    source: str  # the file, for messages
    n_sites: int  # of the whole alignment, columns without a part and added constant sites included
    n_columns: int  # of the alignment as it was given, without added constant sites
    parts: tuple[Part, ...]  # in the order in which they were described
    warnings: tuple[str, ...]  # what a user should know about the data, one line each
    names_are: str = WHOLE  # see `Sequences`
    constant_sites: tuple[int, ...] = ()  # likewise
    is_weighted: bool = False  # whether the columns have weights, see `Sequences.with_site_weights`

    def __repr__(self) -> str:
        data = ", ".join(dict.fromkeys(block.states.name for block in self.alignments))
        several = f" in {len(self.parts)} parts" if len(self.parts) > 1 else ""
        return f"<Dataset: {self.n_sequences} taxa, {self.n_sites} sites{several}, {data}, {self.source}>"

    @property
    def n_taxa(self) -> int:
        return len(self.names)

    @property
    def n_sequences(self) -> int:
        """The number of taxa, without a root."""
        return self.n_taxa - self.has_root

    @property
    def has_root(self) -> bool:
        """Whether taxon 0 is the root of all trees and has no data, see `with_root`."""
        return self.names[0] == ROOT_NAME

    def with_root(self) -> Self:
        """The same data with a first row of gaps, which stands for the root of trees, see `plltool.tree.rooted`."""
        if self.has_root:
            return self
        blocks = self.alignments
        codes = [np.vstack([np.full_like(own.codes[:1], own.states.all_states_code), own.codes]) for own in blocks]
        return self.with_rows((ROOT_NAME, *self.names), codes)

    def with_rows(self, names: tuple[str, ...], codes: Sequence[CodeArray]) -> Self:
        """The same columns of other taxa, whose codes (n_taxa, n_sites) of each part are given."""
        parts = []
        for part, rows in zip(self.parts, codes, strict=True):
            rows.setflags(write=False)
            parts.append(replace(part, alignment=replace(part.alignment, names=names, codes=rows)))
        return replace(self, names=names, parts=tuple(parts))

    @property
    def alignments(self) -> list[Alignment]:
        return [part.alignment for part in self.parts]

    @cached_property
    def patterns(self) -> list[Patterns]:
        """The distinct columns of each part."""
        return [compress(part.alignment) for part in self.parts]


def cut_alignment(given: Sequences, scheme: Scheme) -> Dataset:
    check_files(scheme, given.source)
    added = given.constant_sites
    model, is_whole = scheme[0].model, scheme == (PartSpec(scheme[0].model),)
    if added and not is_whole:
        refuse_constant_sites(given.source, "parts")
    if added and model is not None and model.data != DNA.name:
        refuse_constant_sites(given.source, f"{model.data} data")
    n_columns = given.n_sites - sum(count > 0 for count in added)
    sites = assign_sites(scheme, given.n_sites, given.source)
    if is_whole:
        encoded = [_whole(given, model)]
    else:
        encoded = [_encode_part(given, spec, own) for spec, own in zip(scheme, sites, strict=True)]
    refuse_no_data(encoded)
    weights, parts = given.column_weights, list[Part]()
    for spec, own, block in zip(scheme, sites, encoded, strict=True):
        pair = block, own.reshape(-1, block.states.width)[: block.n_sites]
        cut, columns = _sort(*(pair if weights is None else _weigh(*pair, weights)))
        ranges = to_ranges(own) if REMAINDER in spec.ranges else spec.ranges
        parts.append(Part(spec.name, ", ".join(map(str, ranges)).replace(".", str(n_columns)), columns, cut))
    blocks = [part.alignment for part in parts]
    n_sites = n_columns if weights is None else int(weights.sum())
    warnings = tuple(_find_warnings(given, scheme, sites, encoded, blocks))
    about = given.source, n_sites, n_columns, tuple(parts), warnings, given.names_are, added, bool(given.site_weights)
    return Dataset(blocks[0].names, *about)


def _weigh(block: Alignment, sites: IndexArray, of_columns: FloatArray) -> tuple[Alignment, IndexArray]:
    """A part with the weights of its sites, and the columns of these; sites of weight 0 are left out."""
    weights = of_columns[sites]
    wrong = np.flatnonzero((weights != weights[:, :1]).any(axis=1))
    if len(wrong):
        found = f"found different weights of columns {sites[wrong[0], 0] + 1} to {sites[wrong[0], -1] + 1}"
        expected = f"expected the same, because they are one site of {block.states.name} data"
        raise InputError(f"{block.source}: {found}, {expected}")
    used = weights[:, 0] > 0
    if not used.any():
        found = "found a part whose columns all have weight 0"
        raise InputError(f"{block.source}: {found}, expected at least one above")
    codes = block.codes[:, used]
    codes.setflags(write=False)
    return replace(block, codes=codes, weights=weights[used, 0]), sites[used]


def _sort(block: Alignment, sites: IndexArray) -> tuple[Alignment, IndexArray]:
    """A part with its taxa sorted by name and its columns by content, and the new order of its sites."""
    taxa = sorted(range(block.n_taxa), key=block.names.__getitem__)
    order = sort_columns(block.codes, taxa)
    codes = np.empty_like(block.codes)
    for place, taxon in enumerate(taxa):
        codes[place] = block.codes[taxon, order]
    codes.setflags(write=False)
    weights = None if block.weights is None else block.weights[order]
    names = tuple(block.names[taxon] for taxon in taxa)
    return replace(block, names=names, codes=codes, weights=weights), sites[order]


def _whole(given: Sequences, model: ModelSpec | None) -> Alignment:
    """The whole alignment; InputError for a model of other data."""
    if given.kinds:
        words = ", ".join(kind.word for kind in given.kinds)
        raise InputError(f"{given.source}: found data of several kinds ({words}), expected a model for each partition")
    states = given.states or spaces.detect_states(given.rows)
    wanted = _space_of(model)
    told = (GENOTYPES.name, PHASED_GENOTYPES.name)  # whose characters other data may have; so with a user's own states
    if model is not None and (model.data in told or model.data.startswith(spaces.OWN_STATES)):
        return encode(given, spaces.find_space(model.data, model.n_states), np.arange(given.n_sites))
    if not given.told and given.table is None:
        _refuse_mixture(given, states, model)
        states = _believe(wanted, states, given)
    of_letters = wanted is not None and wanted.letters is states
    if model is not None and model.data != states.name and not of_letters:
        of_vcf = states is GENOTYPES  # which --data-type does not change
        hint = "" if of_vcf else " (--data-type says what the data are, if they were taken for something else)"
        raise InputError(f"{given.source}: {_describe_misfit(states.name, model)}{hint}")
    return encode(given, wanted or spaces.settle_space(states, given.rows, given.sets), np.arange(given.n_sites))


def _believe(wanted: StateSpace | None, shown: StateSpace, given: Sequences) -> StateSpace:
    """The letters of a model's data where they fit and the letters of the detected data, `shown`, do not.

    A few columns of proteins may look like DNA, and columns of ambiguous bases like proteins. Letters that fit both are
    what they look like if this is DNA: all bases are amino acids, too.
    """
    if wanted is None or wanted.letters not in (DNA, PROTEIN):
        return shown
    counts = spaces.count_bytes(given.rows)
    fits_wanted, fits_shown = (not counts[space.code_of == ILLEGAL_CODE].any() for space in (wanted.letters, shown))
    return wanted.letters if fits_wanted and not (fits_shown and shown is DNA) else shown


def _refuse_mixture(given: Sequences, states: StateSpace, model: ModelSpec | None) -> None:
    """Raise InputError, with a partition file, where some columns have digits and others letters of DNA or proteins."""
    has_digit = spaces.find_digits(given.rows)
    if has_digit is None:
        return
    letters = spaces.detect_states(given.columns(np.flatnonzero(~has_digit)))
    is_morphology = states is spaces.COUNTED and not spaces.count_bytes(given.rows)[list(BEYOND_MORPHOLOGY)].any()
    is_multistate = states is spaces.COUNTED and model is not None and model.data == MULTISTATE
    if letters is spaces.COUNTED or is_morphology or is_multistate:
        return
    chosen = model if model is not None and model.data == letters.name else DEFAULT_MODELS[letters.name]
    ranges = [", ".join(map(str, to_ranges(np.flatnonzero(own)))) for own in (has_digit, ~has_digit)]
    digits, others = f"{DEFAULT_MULTISTATE_MODEL}, digits = {ranges[0]}", f"{chosen}, letters = {ranges[1]}"
    raise InputError(
        f"{given.source}: found digits in columns {ranges[0]} and letters of {letters.name} in columns {ranges[1]},"
        f' expected one kind of data, or --partitions FILE with the lines "{digits}" and "{others}"'
    )


def _encode_part(given: Sequences, spec: PartSpec, sites: IndexArray) -> Alignment:
    """Encode a part as the data that it holds, see `_kind_of`."""
    try:
        states = _kind_of(given, spec, sites)
        if states.width > 1 and any(some.stride > 1 for some in spec.ranges):
            found = f"found {states.name} data in columns {', '.join(map(str, spec.ranges))}"
            raise InputError(f"{spec.where}: {found}, expected all columns of each codon")
        return encode(given, states, sites)
    except InputError as problem:
        raise InputError(f"{problem} (part {show_name(spec.name)})") from None


def check_states(given: Alignment, model: ModelSpec) -> None:
    """Raise InputError unless an alignment has the states of a model."""
    if given.states.name != model.data:
        raise InputError(f"{given.source}: {_describe_misfit(given.states.name, model)}")
    if model.n_states not in (0, given.states.n_states):
        found = f"found data of {given.states.n_states} states, expected {model.n_states}"
        raise InputError(f"{given.source}: {found} for model {model.shown}")


def _space_of(model: ModelSpec | None) -> StateSpace | None:
    """The states of a model; None without one, or if the data have the same states."""
    return spaces.find_space(model.data, model.n_states) if model is not None and model.n_states else None


def _kind_of(given: Sequences, spec: PartSpec, sites: IndexArray) -> StateSpace:
    """The data that the model is for; without one the declared kind of the columns, or what their characters show."""
    rows = given.columns(sites)
    declared = given.declared_at(sites)
    if declared is None and given.kinds:
        raise InputError(f"{given.source}: the columns have several kinds of data, expected one kind")
    shown = declared or spaces.detect_states(rows)
    is_multistate = spec.model is not None and spec.model.data == MULTISTATE
    if is_multistate and not any(row.strip(UNDETERMINED.encode()) for row in rows):
        shown = spaces.COUNTED
    if is_multistate and shown.name != MULTISTATE:
        raise InputError(f"{given.source}: {_describe_misfit(shown.name, spec.model)}")
    return _space_of(spec.model) or spaces.settle_space(shown, rows, given.sets)


def _describe_misfit(found: str, model: ModelSpec | None) -> str:
    """Part of a message that says that a model is for other data."""
    assert model is not None
    return f"found {found} data, expected {model.data} for model {model.shown}"


def _find_warnings(
    given: Sequences,
    scheme: Scheme,
    sites: Sequence[IndexArray],
    encoded: Sequence[Alignment],
    blocks: Sequence[Alignment],
) -> Iterator[str]:
    """What a user should know: a line each. `blocks` are the parts, `encoded` these with columns of weight 0."""
    is_whole = scheme == (PartSpec(scheme[0].model),)
    left = np.setdiff1d(np.arange(given.n_sites), np.concatenate(sites))
    if len(left):
        columns = "1 column is" if len(left) == 1 else f"{len(left)} columns are"
        yield f"{given.source}: {columns} in no partition and left out, first column {left[0] + 1}"
    for spec, own in zip(scheme, sites, strict=True):  # all letters of DNA are amino acids, too
        is_protein = not is_whole and spec.model is not None and spec.model.data == PROTEIN.name
        if spec.model and is_protein and spaces.detect_states(given.columns(own)) is DNA:
            yield f"{spec.shown()}: found letters that look like DNA under model {spec.model.shown}"
    for spec, block in zip(scheme, encoded, strict=True):
        if gap_share(block) == 1.0:
            yield f"{spec.shown()}: found no data (only gaps)"
    is_doubtful = is_whole and blocks[0].states is PROTEIN
    if is_doubtful and not given.told and spaces.has_bases(spaces.count_bytes(given.rows)):
        found = "read as protein, although at least half of the letters are A, C, G or T"
        yield f"{given.source}: {found}; do some sequences or columns hold DNA?"
    for spec, block in zip(scheme, blocks, strict=True):
        found_states, data = find_states(block), block.states.name
        if len(found_states) == 2 and data in (DNA.name, PROTEIN.name):
            doubt = f"are they binary data? Those are written with 0 and 1; these are analysed as {data}"
            yield f"{spec.shown(given.source)}: only the states {' and '.join(found_states)} occur; {doubt}"
    yield from given.warnings
    for spec, block in zip(scheme, blocks, strict=True):  # whose largest symbol tells the number of states
        n_found, n_states = len(find_states(block)), block.states.n_states
        if block.states.name == MULTISTATE and not (spec.model and spec.model.n_states) and 2 * n_found < n_states:
            found = f"the symbol {block.states.symbols[-1]} makes {n_states} states, of which only {n_found} occur"
            yield f"{spec.shown(given.source)}: {found}"
    yield from (line for block in blocks for line in block.warnings)
    yield from data_warnings(blocks)


# --- identical sequences ----------------------------------------------------------------------------------

MIN_DISTINCT = 4  # taxa of a search, if the alignment has them: fewer have only one unrooted topology


def without_duplicates(data: Dataset, places: Sequence[int] | None = None) -> tuple[Dataset, list[list[int]]]:
    """Keep the first taxon of each group with the same sequences in all parts; the groups come second.

    If fewer than `MIN_DISTINCT` taxa would be left, the first duplicates are kept as well. `places` (n_taxa,) are those
    in a constraint, negative for taxa that are not in it; the first taxon of each place in a group is kept. Every taxon
    of `data` is in one group: ``groups[i]`` begins with taxon i of the result.
    """
    first_of = first_identical(data.alignments)
    if data.has_root:  # which is no twin of taxa without data
        empty = [taxon for taxon, first in enumerate(first_of) if taxon and not first]
        first_of = [first_of[taxon] if taxon not in empty else empty[0] for taxon in range(data.n_taxa)]
    if places is not None:  # the first twin at the same place stands for a taxon, or at any place, or the first of all
        twins = list(zip(first_of, places, strict=True))
        placed: dict[tuple[int, int], int] = {}
        any_placed: dict[int, int] = {}
        for taxon, (first, place) in enumerate(twins):
            if place >= 0:
                placed.setdefault((first, place), taxon)
                any_placed.setdefault(first, taxon)
        first_of = [placed.get(twin, any_placed.get(twin[0], twin[0])) for twin in twins]
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
