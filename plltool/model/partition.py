"""Parts of an alignment, columns that share a model: as the user describes them, and cut from an alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from plltool.alignment.alignment import Alignment, Sequences, encode, refuse_constant_sites, sort_columns
from plltool.alignment.facts import data_warnings, find_states, first_identical, gap_share, refuse_no_data
from plltool.alignment.patterns import Patterns, compress
from plltool.alignment.spaces import (
    COUNTED,
    count_bytes,
    detect_states,
    find_digits,
    find_space,
    has_bases,
    settle_space,
)
from plltool.alignment.states import DNA, GENOTYPES, ILLEGAL_CODE, MULTISTATE, PROTEIN, UNDETERMINED, StateSpace
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

    Taxa are sorted by name, and the columns of each part by content, so that no result depends on the order in which
    the file has them.
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

    def with_root(self) -> Dataset:
        """The same data with a first row of gaps, which stands for the root of trees, see `plltool.tree.rooted`."""
        if self.has_root:
            return self
        blocks = self.alignments
        codes = [np.vstack([np.full_like(own.codes[:1], own.states.all_states_code), own.codes]) for own in blocks]
        return self.with_rows((ROOT_NAME, *self.names), codes)

    def with_rows(self, names: tuple[str, ...], codes: Sequence[npt.NDArray[np.unsignedinteger]]) -> Dataset:
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


def cut_alignment(given: Sequences | Alignment, scheme: Scheme) -> Dataset:
    """Cut an alignment into parts."""
    check_files(scheme, given.source)
    added = given.constant_sites if isinstance(given, Sequences) else ()
    model = scheme[0].model
    is_whole = scheme == (PartSpec(model),)
    if added and not is_whole:
        refuse_constant_sites(given.source, "parts")
    if added and model is not None and model.data != DNA.name:
        refuse_constant_sites(given.source, f"{model.data} data")
    n_columns = given.n_sites - sum(count > 0 for count in added)
    sites = assign_sites(scheme, given.n_sites, given.source)
    if is_whole:
        blocks = [_whole(given, model)]
        warnings = _bases_warnings(given, blocks[0])
    else:
        blocks = [_encode_part(given, spec, own) for spec, own in zip(scheme, sites, strict=True)]
        warnings = [*_unassigned_warnings(sites, given), *_kind_warnings(given, scheme, sites)]
        empty = [spec for spec, block in zip(scheme, blocks, strict=True) if gap_share(block) == 1.0]
        warnings += [f"{spec.shown()}: found no data (only gaps)" for spec in empty]
    refuse_no_data(blocks)
    widths = [1 if isinstance(given, Alignment) else block.states.width for block in blocks]
    wide = [own.reshape(-1, n)[: block.n_sites] for own, n, block in zip(sites, widths, blocks, strict=True)]
    weights = given.column_weights if isinstance(given, Sequences) else None
    if weights is not None:
        blocks, wide = _weigh(blocks, wide, weights)
    warnings += _two_state_warnings(scheme, blocks)
    blocks, wide = _sort(blocks, wide)
    pairs = zip(scheme, sites, strict=True)
    named = [to_ranges(own) if REMAINDER in spec.ranges else spec.ranges for spec, own in pairs]
    ranges = [", ".join(map(str, some)).replace(".", str(n_columns)) for some in named]
    fields = zip(scheme, ranges, wide, blocks, strict=True)
    parts = tuple(Part(spec.name, text, own, block) for spec, text, own, block in fields)
    warnings += given.warnings
    if isinstance(given, Sequences):
        warnings += _gap_warnings(scheme, blocks)
        warnings += [line for block in blocks for line in block.warnings] + data_warnings(blocks)
    names_are = given.names_are if isinstance(given, Sequences) else WHOLE
    n_sites = n_columns if weights is None else int(weights.sum())
    is_weighted = isinstance(given, Sequences) and bool(given.site_weights)
    about = (given.source, n_sites, n_columns, parts, tuple(warnings), names_are, added, is_weighted)
    return Dataset(blocks[0].names, *about)


def _weigh(
    blocks: Sequence[Alignment], sites: Sequence[IndexArray], of_columns: FloatArray
) -> tuple[list[Alignment], list[IndexArray]]:
    """The parts with the weights of their sites, and the columns of these; sites of weight 0 are left out."""
    weighed, kept = [], []
    for block, own in zip(blocks, sites, strict=True):
        weights = of_columns[own]
        wrong = np.flatnonzero((weights != weights[:, :1]).any(axis=1))
        if len(wrong):
            found = f"found different weights of columns {own[wrong[0], 0] + 1} to {own[wrong[0], -1] + 1}"
            raise InputError(
                f"{block.source}: {found}, expected the same, because they are one site of {block.states.name} data"
            )
        used = weights[:, 0] > 0
        if not used.any():
            raise InputError(
                f"{block.source}: found a part whose columns all have weight 0, expected at least one above"
            )
        codes = block.codes[:, used]
        codes.setflags(write=False)
        weighed.append(replace(block, codes=codes, weights=weights[used, 0]))
        kept.append(own[used])
    return weighed, kept


def _sort(blocks: Sequence[Alignment], sites: Sequence[IndexArray]) -> tuple[list[Alignment], list[IndexArray]]:
    """The parts with their taxa sorted by name and their columns by content, and the new order of their sites."""
    names = blocks[0].names
    taxa = sorted(range(len(names)), key=names.__getitem__)
    in_order = tuple(names[taxon] for taxon in taxa)
    sorted_blocks, sorted_sites = [], []
    for block, own in zip(blocks, sites, strict=True):
        order = sort_columns(block.codes, taxa)
        codes = np.empty_like(block.codes)
        for place, taxon in enumerate(taxa):
            codes[place] = block.codes[taxon, order]
        codes.setflags(write=False)
        weights = None if block.weights is None else block.weights[order]
        sorted_blocks.append(replace(block, names=in_order, codes=codes, weights=weights))
        sorted_sites.append(own[order])
    return sorted_blocks, sorted_sites


def _whole(given: Sequences | Alignment, model: ModelSpec | None) -> Alignment:
    """The whole alignment; InputError for a model of other data."""
    if isinstance(given, Sequences) and given.kinds:
        words = ", ".join(kind.word for kind in given.kinds)
        raise InputError(f"{given.source}: found data of several kinds ({words}), expected a model for each partition")
    states = given.states or detect_states(given.rows) if isinstance(given, Sequences) else given.states
    wanted = _space_of(model)
    if isinstance(given, Sequences) and model is not None and model.tells_data:
        return encode(given, find_space(model.data, model.n_states), np.arange(given.n_sites))
    if isinstance(given, Sequences) and not given.told and given.table is None:
        _refuse_mixture(given, states, model)
        states = _believe(wanted, states, given)
    of_letters = isinstance(given, Sequences) and wanted is not None and wanted.letters is states
    if model is not None and model.data != states.name and not of_letters:
        of_vcf = states is GENOTYPES  # which --data-type does not change
        hint = "" if of_vcf else " (--data-type says what the data are, if they were taken for something else)"
        raise InputError(f"{given.source}: {_describe_misfit(states.name, model)}{hint}")
    if isinstance(given, Alignment):
        check_states(given, model)
        return given
    return encode(given, wanted or settle_space(states, given.rows, given.sets), np.arange(given.n_sites))


def _believe(wanted: StateSpace | None, shown: StateSpace, given: Sequences) -> StateSpace:
    """The letters of a model's data where they fit and the letters of the detected data, `shown`, do not.

    A few columns of proteins may look like DNA, and columns of ambiguous bases like proteins. Letters that fit both are
    what they look like if this is DNA: all bases are amino acids, too.
    """
    if wanted is None or wanted.letters not in (DNA, PROTEIN):
        return shown
    counts = count_bytes(given.rows)
    fits_wanted, fits_shown = (not counts[space.code_of == ILLEGAL_CODE].any() for space in (wanted.letters, shown))
    return wanted.letters if fits_wanted and not (fits_shown and shown is DNA) else shown


def _refuse_mixture(given: Sequences, states: StateSpace, model: ModelSpec | None) -> None:
    """Raise InputError, with a partition file, where some columns have digits and others letters of DNA or proteins."""
    has_digit = find_digits(given.rows)
    if has_digit is None:
        return
    letters = detect_states(given.columns(np.flatnonzero(~has_digit)))
    is_morphology = states is COUNTED and not count_bytes(given.rows)[list(BEYOND_MORPHOLOGY)].any()
    is_multistate = states is COUNTED and model is not None and model.data == MULTISTATE
    if letters is COUNTED or is_morphology or is_multistate:
        return
    chosen = model if model is not None and model.data == letters.name else DEFAULT_MODELS[letters.name]
    ranges = [", ".join(map(str, to_ranges(np.flatnonzero(own)))) for own in (has_digit, ~has_digit)]
    digits, others = f"{DEFAULT_MULTISTATE_MODEL}, digits = {ranges[0]}", f"{chosen}, letters = {ranges[1]}"
    raise InputError(
        f"{given.source}: found digits in columns {ranges[0]} and letters of {letters.name} in columns {ranges[1]},"
        f' expected one kind of data, or --partitions FILE with the lines "{digits}" and "{others}"'
    )


def _encode_part(given: Sequences | Alignment, spec: PartSpec, sites: IndexArray) -> Alignment:
    """Encode a part as the data that it holds, see `_kind_of`."""
    try:
        if isinstance(given, Sequences):
            states = _kind_of(given, spec, sites)
            if states.width > 1 and any(some.stride > 1 for some in spec.ranges):
                found = f"found {states.name} data in columns {', '.join(map(str, spec.ranges))}"
                raise InputError(f"{spec.where}: {found}, expected all columns of each codon")
            return encode(given, states, sites)
        check_states(given, spec.model)
    except InputError as problem:
        raise InputError(f"{problem} (part {show_name(spec.name)})") from None
    codes = np.ascontiguousarray(given.codes[:, sites])
    codes.setflags(write=False)
    return replace(given, codes=codes, warnings=())


def check_states(given: Alignment, model: ModelSpec | None) -> None:
    """Raise InputError unless an alignment has the states of a model."""
    if model is None:
        return
    if given.states.name != model.data:
        raise InputError(f"{given.source}: {_describe_misfit(given.states.name, model)}")
    if model.n_states not in (0, given.states.n_states):
        found = f"found data of {given.states.n_states} states, expected {model.n_states}"
        raise InputError(f"{given.source}: {found} for model {model.shown}")


def _space_of(model: ModelSpec | None) -> StateSpace | None:
    """The states of a model; None without one, or if the data have the same states."""
    return find_space(model.data, model.n_states) if model is not None and model.n_states else None


def _kind_of(given: Sequences, spec: PartSpec, sites: IndexArray) -> StateSpace:
    """The data that the model is for; without one the declared kind of the columns, or what their characters show."""
    rows = given.columns(sites)
    declared = given.declared_at(sites)
    if declared is None and given.kinds:
        raise InputError(f"{given.source}: the columns have several kinds of data, expected one kind")
    shown = declared or detect_states(rows)
    is_multistate = spec.model is not None and spec.model.data == MULTISTATE
    if is_multistate and not any(row.strip(UNDETERMINED.encode()) for row in rows):
        shown = COUNTED
    if is_multistate and shown.name != MULTISTATE:
        raise InputError(f"{given.source}: {_describe_misfit(shown.name, spec.model)}")
    return _space_of(spec.model) or settle_space(shown, rows, given.sets)


def _describe_misfit(found: str, model: ModelSpec | None) -> str:
    """Part of a message that says that a model is for other data."""
    assert model is not None
    return f"found {found} data, expected {model.data} for model {model.shown}"


def _unassigned_warnings(sites: Sequence[IndexArray], given: Sequences | Alignment) -> list[str]:
    """At most one line on columns that no part has."""
    left = np.setdiff1d(np.arange(given.n_sites), np.concatenate(sites))
    if not len(left):
        return []
    columns = "1 column is" if len(left) == 1 else f"{len(left)} columns are"
    return [f"{given.source}: {columns} in no partition and left out, first column {left[0] + 1}"]


def _kind_warnings(given: Sequences | Alignment, scheme: Scheme, sites: Sequence[IndexArray]) -> list[str]:
    """A line for each protein part whose letters look like DNA; all of them are amino acids, too."""
    if isinstance(given, Alignment):
        return []
    return [
        f"{spec.shown()}: found letters that look like DNA under model {spec.model.shown}"
        for spec, own in zip(scheme, sites, strict=True)
        if spec.model is not None and spec.model.data == "protein" and detect_states(given.columns(own)).name == "DNA"
    ]


def _bases_warnings(given: Sequences | Alignment, whole: Alignment) -> list[str]:
    """A line where data that nobody declared are taken for proteins, but most letters are bases."""
    if (
        isinstance(given, Alignment)
        or given.told
        or whole.states is not PROTEIN
        or not has_bases(count_bytes(given.rows))
    ):
        return []
    found = "read as protein, although at least half of the letters are A, C, G or T"
    return [f"{given.source}: {found}; do some sequences or columns hold DNA?"]


def _gap_warnings(scheme: Scheme, blocks: Sequence[Alignment]) -> list[str]:
    """A line for each part whose largest symbol says the number of states, if most states do not occur."""
    warnings = []
    for spec, block in zip(scheme, blocks, strict=True):
        found, n_states = find_states(block), block.states.n_states
        if block.states.name == MULTISTATE and not (spec.model and spec.model.n_states) and 2 * len(found) < n_states:
            where, last = spec.shown(block.source), block.states.symbols[-1]
            warnings.append(f"{where}: the symbol {last} makes {n_states} states, of which only {len(found)} occur")
    return warnings


def _two_state_warnings(scheme: Scheme, blocks: Sequence[Alignment]) -> list[str]:
    """A line for each part with two states only: it may be binary data."""
    warnings = []
    for spec, block in zip(scheme, blocks, strict=True):
        found = find_states(block)
        if len(found) == 2 and block.states.name in ("DNA", "protein"):
            doubt = f"are they binary data? Those are written with 0 and 1; these are analysed as {block.states.name}"
            warnings.append(f"{spec.shown(block.source)}: only the states {found[0]} and {found[1]} occur; {doubt}")
    return warnings


# --- identical sequences ----------------------------------------------------------------------------------

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
