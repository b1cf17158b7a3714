"""Site patterns: the distinct columns of an alignment, how often each occurs, and how often if it is resampled.

Sites are drawn with replacement, as many as there are (Felsenstein 1985). RELL (Kishino, Miyata & Hasegawa 1990): the
lnL of a tree on a resampled alignment is approximated by the sum of its site lnL over the resampled columns, with the
same branch lengths and model. So one matrix product gives the lnL of all trees on all replicates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plltool.alignment.alignment import Alignment, Sequences, check_characters, show_character, sort_columns
from plltool.alignment.spaces import OWN_STATES, WIDTH, CodonSpace, NamedSpace
from plltool.alignment.states import (
    ALLELES,
    GENOTYPES,
    ILLEGAL_CODE,
    PHASED_ALLELES,
    PHASED_GENOTYPES,
    CodeArray,
    StateSpace,
)
from plltool.arrays import AnyArray, FloatArray, IndexArray, slices
from plltool.errors import InputError, count, shorten


def encode(given: Sequences, states: StateSpace, sites: IndexArray) -> Alignment:
    """The codes of some columns, with warnings of characters whose meaning is doubtful."""
    if given.likelihoods is not None:
        vectors = given.likelihoods.vectors
        if states is PHASED_GENOTYPES and vectors.shape[1] == GENOTYPES.n_states:
            # the two phases of a heterozygote are as likely as the genotype without phase
            place = {"".join(sorted(pair)): k for k, pair in enumerate(ALLELES)}
            vectors = vectors[:, [place["".join(sorted(pair))] for pair in PHASED_ALLELES]]
        elif states.width > 1 or vectors.shape[1] != states.n_states:
            found = f"found likelihoods of {vectors.shape[1]} states in each cell"
            expected = f"{states.name} data, which has {states.n_states} states"
            raise InputError(f"{given.source}: {found}, expected {expected}")
        graded, code_of = states.with_likelihoods(vectors)
        codes = np.ascontiguousarray(code_of[given.likelihoods.numbers[:, sites]])
        codes.setflags(write=False)
        return Alignment(given.names, codes, graded, given.source)
    rows = given.columns(sites)
    if given.table is not None and states.name.startswith(OWN_STATES):
        states = states.with_cells(given.table.cells)
    elif given.table is not None:
        expected = "a model with their names, MATRIX{FILE}"
        raise InputError(f"{given.source}: found a table of named states, expected {expected}, or another alignment")
    elif isinstance(states, NamedSpace):
        expected = "a table of taxa by characters, because states of the model have names, such as"
        expected += f" {shorten(states.symbols[0])}"
        raise InputError(f"{given.source}: found sequences of characters, expected {expected}")
    elif given.sets:
        states = states.with_sets(given.sets)
    for taxon, row in enumerate(rows):
        check_characters(given, taxon, row, states, sites)
    warnings = _doubtful_warnings(given, rows, states, sites)
    if isinstance(states, CodonSpace):
        codes, dropped = read_codons(given, states, rows, sites)
        warnings += dropped
    else:
        codes = np.empty((len(rows), len(sites) // states.width), dtype=states.code_of.dtype)
        for own, row in zip(codes, rows, strict=True):
            own[:] = states.encode(row)
    codes.setflags(write=False)
    return Alignment(given.names, codes, states, given.source, warnings)


def _doubtful_warnings(
    given: Sequences, rows: Sequence[bytes], states: StateSpace, sites: IndexArray
) -> tuple[str, ...]:
    """At most one line on characters that are read as undetermined but may mean something else."""
    is_doubtful = np.zeros(256, dtype=bool)
    is_doubtful[list(states.doubtful.encode("ascii"))] = True
    n_doubtful, first = 0, ""
    for taxon, row in enumerate(rows):
        found = np.flatnonzero(is_doubtful[np.frombuffer(row, dtype=np.uint8)])
        if len(found) and not first:
            where = f"{given.describe_taxon(taxon)}, site {sites[found[0]] + 1}"
            first = f"{show_character(row, int(found[0]), given.sets)} in {where}"
        n_doubtful += len(found)
    if not n_doubtful:
        return ()
    return (f"{given.source}: {count(n_doubtful, 'character')} of '{states.doubtful}' read as a gap, first {first}",)


def read_codons(
    given: Sequences, states: CodonSpace, rows: Sequence[bytes], sites: IndexArray
) -> tuple[CodeArray, tuple[str, ...]]:
    """The codes of columns of DNA, and warnings; a last codon that is a stop wherever it is known is dropped.

    `rows`, `sites`: the columns, with characters of DNA only, and their places in `given`, from 0.
    """
    n_codons, left = divmod(len(sites), WIDTH)
    if left:
        found = f"found {len(sites)} sites, that is {n_codons} codons and {left} more"
        raise InputError(f"{given.source}: {found}, expected a multiple of {WIDTH} for {states.name} data")
    codes = np.stack([states.encode(row) for row in rows])
    warnings: tuple[str, ...] = ()
    last = codes[:, -1]
    if (last == ILLEGAL_CODE).any() and np.isin(last, (ILLEGAL_CODE, states.all_states_code)).all() and n_codons > 1:
        codes = np.ascontiguousarray(codes[:, :-1])
        warnings = (f"{given.source}: the last codon, site {sites[-WIDTH] + 1}, is a stop codon and left out",)
    if (codes == ILLEGAL_CODE).any():
        taxon, codon = np.argwhere(codes == ILLEGAL_CODE)[0].tolist()
        triplet = rows[taxon][WIDTH * codon : WIDTH * (codon + 1)].decode("ascii")
        where = f"{given.describe_taxon(taxon)}, site {sites[WIDTH * codon] + 1} (codon {codon + 1})"
        code = f"genetic code {states.genetic_code}"
        hint = "--data-type codonN says which code it is; else check the reading frame"
        found = f"found the stop codon {triplet}, expected a codon of {code} ({hint})"
        raise InputError(f"{given.source}: {where}: {found}")
    return codes, warnings


# A frequency of 0 breaks the eigensystem, whose symmetric form divides by its square root. lnL with the bound is within
# 1e-5 of its limit for 0, which RAxML-NG and IQ-TREE give.
MIN_EMPIRICAL_FREQUENCY = 1e-8


@dataclass(frozen=True, eq=False)
class Patterns:
    """Distinct columns in lexicographic order, the first taxon first."""

    codes: CodeArray  # uint8 array (n_taxa, n_patterns), C-contiguous
    weights: FloatArray  # float64 array (n_patterns,), the number of sites with each pattern
    # intp array (n_sites,), the pattern of each column; ``codes[:, site_pattern]`` is the alignment.
    site_pattern: IndexArray
    states: StateSpace  # what the codes mean

    @property
    def masks(self) -> AnyArray:
        """The codes as bit masks of states (n_taxa, n_patterns)."""
        return self.states.masks[self.codes]

    @property
    def n_taxa(self) -> int:
        return self.codes.shape[0]

    @property
    def n_patterns(self) -> int:
        return self.codes.shape[1]


def compress(alignment: Alignment) -> Patterns:
    """The site patterns of an alignment, in an order that does not depend on the order of its columns."""
    codes, labels = alignment.codes, alignment.labels
    first = np.arange(alignment.n_sites) if labels is None else np.argsort(labels, kind="stable")
    order = sort_columns(codes) if labels is None else first[sort_columns(codes[:, first])]
    is_new = np.zeros(alignment.n_sites, dtype=bool)
    is_new[0] = True
    for row in codes if labels is None else (*codes, labels):
        cells = row[order]
        is_new[1:] |= cells[1:] != cells[:-1]
    site_pattern = np.empty(alignment.n_sites, dtype=np.intp)
    site_pattern[order] = np.cumsum(is_new) - 1
    weights = np.bincount(site_pattern, alignment.weights).astype(np.float64)
    return Patterns(np.take(alignment.codes, order[is_new], axis=1), weights, site_pattern, alignment.states)


def invariable_columns(part: Patterns) -> CodeArray:
    """A column for each state that all taxa have (n_taxa, n_states); taxa without data in the part are left without."""
    undetermined = part.states.all_states_code
    has_data = (part.codes != undetermined).any(axis=1)
    return np.where(has_data[:, None], part.states.state_codes, undetermined).astype(part.codes.dtype)


def empirical_frequencies(data: Alignment | Patterns, states: StateSpace) -> FloatArray:
    """State frequencies (n_states,) of sum 1 counted in the data, as RAxML-NG counts them (its +FC), none 0.

    Undetermined cells are left out. Any other cell adds the weight of its pattern, divided by the number of states that
    it allows, to each of these states; of likelihoods of states the most likely ones count. Frequencies below
    `MIN_EMPIRICAL_FREQUENCY` are raised to it. If no cell counts, all states are equally frequent.
    """
    if isinstance(data, Alignment):
        data, states = data.called, data.called.states
        totals = data.code_counts.sum(axis=0).astype(np.float64)
    else:
        rows = (np.bincount(row, weights=data.weights, minlength=data.states.n_codes) for row in data.codes)
        totals = sum(rows, np.zeros(data.states.n_codes))
    set_sizes = states.state_sets.sum(axis=1)
    counted = (set_sizes > 0) & (set_sizes < states.n_states)
    totals = (totals[counted] / set_sizes[counted]) @ states.state_sets[counted]
    if totals.sum() == 0:
        return np.full(states.n_states, 1 / states.n_states)
    frequencies = np.maximum(totals / totals.sum(), MIN_EMPIRICAL_FREQUENCY)
    return frequencies / frequencies.sum()


RESAMPLED_VALUES = 16_000_000  # site lnL, and as many weights, that the host holds at once (128 MB each)
LISTED_SITES = 1 << 24


def draw_sites(n_sites: Sequence[int], rng: np.random.Generator) -> list[IndexArray]:
    """The sites of a replicate, (n_sites of the part,) for each part, in the order in which they are drawn."""
    return [rng.integers(0, size, size) for size in n_sites]


class Urn:
    """The sites of a part, from which patterns are drawn with replacement.

    Patterns are in the order of the sorted columns, so that site k has the pattern that `draw_sites` means by k. Up to
    LISTED_SITES sites are listed; of more, whole counts of patterns are drawn.
    """

    def __init__(self, weights: FloatArray):
        self._weights = weights
        self.size = int(weights.sum())
        self._patterns: IndexArray | None = None
        if self.size <= LISTED_SITES:
            self._patterns = np.repeat(np.arange(len(weights)), weights.astype(np.intp))

    def draw(self, number: int, rng: np.random.Generator) -> FloatArray:
        """How often each pattern is among a number of sites (n_patterns,)."""
        if self._patterns is None:
            return rng.multinomial(number, self._weights / self.size).astype(np.float64)
        drawn = self._patterns[rng.integers(0, self.size, number)]
        return np.bincount(drawn, minlength=len(self._weights)).astype(np.float64)


def take_patterns(part: Patterns, weights: FloatArray) -> Patterns:
    """The patterns of a part with other weights (n_patterns,), those with 0 left out; each is one column."""
    kept = np.flatnonzero(weights)
    return Patterns(np.ascontiguousarray(part.codes[:, kept]), weights[kept], np.arange(len(kept)), part.states)


def resample_once(urns: Sequence[Urn], rng: np.random.Generator, scale: float = 1.0) -> FloatArray:
    """Pattern weights (n_patterns,) of columns drawn from `urns`, part by part, `scale` times as many, at least one."""
    return np.concatenate([urn.draw(max(1, round(scale * urn.size)), rng) for urn in urns])


def resampled_sums(
    sites: FloatArray, parts: Sequence[FloatArray], n_replicates: int, rng: np.random.Generator, scale: float = 1.0
) -> FloatArray:
    """Sums (n_replicates, n) of site values (n, n_patterns) over resampled alignments, see `resample_once`.

    `parts` are pattern weights, whole numbers. RESAMPLED_VALUES weights are held at a time; draws do not depend on it.
    """
    sums = np.empty((n_replicates, len(sites)))
    urns = [Urn(own) for own in parts]
    for some in batches(n_replicates, sites.shape[1]):
        weights = np.stack([resample_once(urns, rng, scale) for _ in range(some.start, some.stop)])
        sums[some] = weights @ sites.T
    return sums


def batches(n: int, n_values: int) -> Iterator[slice]:
    """Slices of 0 .. n - 1 with at most RESAMPLED_VALUES values each, if an item has `n_values` values."""
    return slices(n, max(1, RESAMPLED_VALUES // max(1, n_values)))
