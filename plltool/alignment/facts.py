"""What is in an alignment: gaps, identical sequences, states that occur, what users should know, and composition.

Two sequences that evolved under the same stationary, reversible and homogeneous process from a common ancestor change
from state i to j as often as from j to i. With n_ij the number of sites where one has i and the other j,

    symmetry             sum over i < j of (n_ij - n_ji)^2 / (n_ij + n_ji)       Bowker 1948
    marginal symmetry    u V^-1 u, with u_i = n_i. - n_.i                        Stuart 1955
    internal symmetry    the difference of the two                               Ababneh et al. 2006

are chi-square distributed. Degrees of freedom are the number of pairs of states that occur, the number of states less
one, and the difference.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b, sha256

import numpy as np

from plltool.alignment.alignment import MIN_TAXA, Alignment
from plltool.alignment.states import GradedSpace
from plltool.arrays import BoolArray, FloatArray
from plltool.constants import ROOT_NAME
from plltool.errors import InputError, count, list_names

_COLUMN_CHUNK = 512  # columns that are looked at together
_DIGEST_LETTERS = 16


def gap_share(alignment: Alignment) -> float:
    """The share of undetermined cells, from 0 to 1."""
    return float(alignment.undetermined_counts.sum() / (alignment.n_taxa * alignment.count_sites()))


def may_be_invariable(alignment: Alignment) -> BoolArray:
    """(n_sites,) whether all taxa may have the same state, counting every state that an ambiguous cell allows."""
    allowed = np.ones((alignment.n_sites, alignment.states.n_states), dtype=bool)
    for row in alignment.codes:
        allowed &= alignment.states.state_sets[row]
    return np.asarray(allowed.any(axis=1))


def identical_groups(blocks: Sequence[Alignment]) -> list[list[int]]:
    """Groups of several taxa with the same codes at every site of all `blocks`, in the order of their first members."""
    members: dict[int, list[int]] = {}
    for taxon, first in enumerate(first_identical(blocks)):
        members.setdefault(first, []).append(taxon)
    return [group for group in members.values() if len(group) > 1]


def first_identical(blocks: Sequence[Alignment]) -> list[int]:
    """For each taxon the first one with the same codes in all `blocks`, which have the same taxa."""
    first: dict[bytes, int] = {}
    found = []
    for taxon, rows in enumerate(zip(*(block.codes for block in blocks), strict=True)):
        digest = blake2b(digest_size=32)  # which differs between rows that differ, beyond any doubt that matters
        for row in rows:
            digest.update(np.ascontiguousarray(row).data)
        found.append(first.setdefault(digest.digest(), taxon))
    return found


def digest_data(blocks: Sequence[Alignment]) -> str:
    """A digest of the names and characters of all blocks, which have the same taxa."""
    digest = sha256("\0".join(blocks[0].names).encode("utf-8", "surrogateescape"))
    for block in blocks:
        digest.update(block.states.name.encode())
        digest.update(np.ascontiguousarray(block.codes).data)
        digest.update(b"" if block.weights is None else block.weights.tobytes())
        digest.update(block.states.likelihoods.tobytes() if isinstance(block.states, GradedSpace) else b"")
    return digest.hexdigest()[:_DIGEST_LETTERS]


def data_warnings(blocks: Sequence[Alignment]) -> Iterator[str]:
    """Lines on columns and taxa without data, identical sequences and a lack of information in an alignment's parts."""
    source, names = blocks[0].source, blocks[0].names
    n_empty_columns = 0
    for block in blocks:
        is_unknown = np.ones(block.n_sites, dtype=bool)
        for row in block.called.codes:
            is_unknown &= row == block.states.all_states_code
            if not is_unknown.any():
                break
        n_empty_columns += int(is_unknown.sum())
    if n_empty_columns:
        yield f"{source}: {count(n_empty_columns, 'column')} without data (only gaps)"
    is_empty = np.all([block.undetermined_counts == block.count_sites() for block in blocks], axis=0)
    empty_taxa = np.flatnonzero(is_empty).tolist()
    if empty_taxa:
        listed = list_names(names[taxon] for taxon in empty_taxa)
        yield f"{source}: {count(len(empty_taxa), 'taxon', 'taxa')} without data (only gaps): {listed}"
    groups = identical_groups(blocks)
    if groups:
        more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
        found = count(len(groups), "group")
        listed = list_names(names[taxon] for taxon in groups[0])
        yield f"{source}: {found} of identical sequences: ({listed}){more}"
    if len(names) == MIN_TAXA:
        yield f"{source}: {MIN_TAXA} taxa have only one topology"
    elif not any(map(has_informative_site, blocks)):
        yield f"{source}: no site is parsimony-informative, so the topology is practically arbitrary"


def refuse_no_data(blocks: Sequence[Alignment]) -> None:
    """Raise InputError if nothing is known at any site of any part of an alignment."""
    if all(gap_share(block) == 1.0 for block in blocks):
        found = "found nothing but gaps and undetermined characters"
        raise InputError(f"{blocks[0].source}: {found}, expected {blocks[0].states.name} data")


def has_informative_site(block: Alignment) -> bool:
    """Whether a site has two states, each in at least two taxa that cannot have the other one.

    Without ambiguous cells this is what makes a site parsimony-informative; with them it is necessary, not sufficient.
    """
    block = block.called
    occurring = np.flatnonzero(block.code_counts.any(axis=0))
    place_of = np.zeros(block.states.n_codes, dtype=np.intp)
    place_of[occurring] = np.arange(len(occurring))
    sets = block.states.state_sets[occurring]
    n_codes, n_states = sets.shape
    # (n_codes, n_states ** 2): whether a code allows one state but not another one
    contrasts = (sets[:, :, None] & ~sets[:, None, :]).reshape(n_codes, -1).astype(np.float64)
    for start in range(0, block.n_sites, _COLUMN_CHUNK):
        codes = place_of[block.codes[:, start : start + _COLUMN_CHUNK]]
        n_columns = codes.shape[1]
        places = codes + n_codes * np.arange(n_columns)
        counts = np.bincount(places.ravel(), minlength=n_codes * n_columns).reshape(n_columns, n_codes)
        repeated = (counts @ contrasts >= 2).reshape(n_columns, n_states, n_states)
        if (repeated & repeated.transpose(0, 2, 1)).any():
            return True
    return False


def find_states(block: Alignment) -> tuple[str, ...]:
    """The names of the states that occur, cells about which nothing is known left out."""
    occurs = block.code_counts.sum(axis=0) > 0
    occurs[block.states.all_states_code] = False
    found = block.called.states.state_sets[occurs].any(axis=0)
    return tuple(np.array(block.states.symbols)[found].tolist())


def composition_statistic(counts: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Chi-square (n_taxa,) of the states (n_taxa, n_states) of each taxon, expected with these frequencies (n_states,).

    There are n_states - 1 degrees of freedom. States without frequency are left out, and a taxon without states has 0.
    """
    occurs = frequencies > 0
    expected = counts.sum(axis=1, keepdims=True) * frequencies[occurs]
    gap = counts[:, occurs] - expected
    return np.asarray(np.sum(gap**2 / np.where(expected > 0, expected, 1.0), axis=1))


def symmetry_statistics(pairs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Chi-square and degrees of freedom (n, 3) of tests of symmetry, marginal and internal symmetry; 0 if impossible.

    `pairs`: (n, n_states, n_states), how often each state of one sequence meets each of the other.
    """
    n_states = pairs.shape[-1]
    upper = np.triu_indices(n_states, 1)
    sums = (pairs + pairs.swapaxes(1, 2))[:, upper[0], upper[1]]
    gaps = (pairs - pairs.swapaxes(1, 2))[:, upper[0], upper[1]]
    values, degrees = np.zeros((len(pairs), 3)), np.zeros((len(pairs), 3))
    values[:, 0] = np.sum(np.divide(gaps**2, sums, out=np.zeros_like(gaps), where=sums > 0), axis=1)
    degrees[:, 0] = np.sum(sums > 0, axis=1)
    rows, columns = pairs.sum(axis=2), pairs.sum(axis=1)
    u = (rows - columns)[:, :-1]
    v = -(pairs + pairs.swapaxes(1, 2))[:, :-1, :-1]
    diagonal = np.arange(n_states - 1)
    v[:, diagonal, diagonal] = (rows + columns - 2 * np.diagonal(pairs, axis1=1, axis2=2))[:, :-1]
    regular = np.linalg.matrix_rank(v) == n_states - 1
    values[regular, 1] = np.sum(u[regular] * np.linalg.solve(v[regular], u[regular][..., None])[..., 0], axis=1)
    degrees[regular, 1] = n_states - 1
    both = regular & (degrees[:, 0] >= n_states)
    values[both, 2] = np.maximum(0.0, values[both, 0] - values[both, 1])
    degrees[both, 2] = degrees[both, 0] - degrees[both, 1]
    return values, degrees


def p_values(values: FloatArray, degrees: FloatArray) -> FloatArray:
    """The probability of chi-square at least as large; NaN without degrees of freedom.

    Sums of as many positive terms as half the degrees of freedom (Abramowitz & Stegun 26.4.4 and 26.4.5), of the
    gamma distribution of half the values. scipy.special has them, but its import takes a fifth of a second.
    """
    halves, odd = values / 2.0, degrees % 2 == 1
    tails = np.exp(-halves)
    tails[odd] = [math.erfc(root) for root in np.sqrt(halves[odd]).tolist()]
    with np.errstate(divide="ignore"):
        logs = np.log(halves)
    for twice in range(1, int(degrees.max(initial=0.0)) - 1):
        shape, more = twice / 2.0, (degrees > twice) & (degrees % 2 == twice % 2)
        tails[more] += np.exp(shape * logs[more] - halves[more] - math.lgamma(shape + 1.0))
    return np.where(degrees > 0, tails, np.nan)


FREQUENCY_ROUNDS = 8  # as IQ-TREE has them, so that p-values are the same


def without_root(alignment: Alignment) -> Alignment:
    """The alignment without the row that stands for a root, if there is one."""
    first = int(alignment.names[0] == ROOT_NAME)
    return replace(alignment, names=alignment.names[first:], codes=alignment.codes[first:])


def composition_p_values(alignment: Alignment) -> FloatArray:
    """The p-value of each taxon (n_taxa,): whether its states are as frequent as in all taxa; a chi-square test."""
    values = composition(alignment)
    return p_values(values, np.full_like(values, alignment.states.n_states - 1))


def composition(alignment: Alignment) -> FloatArray:
    """Chi-square of each taxon's states (n_taxa,)."""
    sets = alignment.called.states.state_sets
    single = np.where((sets.sum(axis=1) == 1)[:, None], sets, False).astype(np.float64)
    counts = alignment.code_counts @ single
    return composition_statistic(counts, shared_frequencies(alignment))


def shared_frequencies(alignment: Alignment) -> FloatArray:
    """State frequencies (n_states,); sets of states, gaps included, are shared out by the frequencies, again and again.

    Each round uses those of the one before; the first ones are equal.
    """
    sets = alignment.called.states.state_sets
    counts = alignment.code_counts.sum(axis=0).astype(np.float64)
    frequencies = np.full(alignment.states.n_states, 1.0 / alignment.states.n_states)
    for _ in range(FREQUENCY_ROUNDS):
        shares = sets * frequencies
        totals = shares.sum(axis=1)
        frequencies = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0) @ shares
        frequencies /= frequencies.sum()
    return frequencies
