"""Tip codes: indices into a table with the likelihoods of states, 1 and 0 for a set of states.

Up to `MASK_STATES` states the table may be implicit: it then has all 2^S sets, and a code is a bit mask. With more
states, or other likelihoods, the caller gives the table, and engines reorder it: code s < S is state s alone, code S is
every state, which padding lanes have too, and the other rows follow. So a code up to S is also the column to look up in
a table of P.
"""

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.constants import MASK_STATES
from plltool.errors import EngineError

MAX_CODES = 1 << 31  # kernels compare them as int

Codes = npt.NDArray[np.integer]


def encode_tips(n_states: int, codes: Codes, state_sets: npt.ArrayLike | None) -> tuple[Codes, FloatArray]:
    """Codes (n_taxa, n_patterns) in the engines' order, and the table (n_codes, n_states) that they index.

    Up to `MASK_STATES` states codes are bit masks if no table is given. Raises EngineError if the table is missing, has
    the wrong shape or entries outside 0 and 1, or if a code lies outside the table or allows no state.
    """
    if state_sets is None and n_states <= MASK_STATES:
        sets = ((np.arange(1 << n_states)[:, None] >> np.arange(n_states)) & 1).astype(np.float64)
        _check_codes(codes, sets)
        return codes, sets
    if state_sets is None:
        raise EngineError(f"codes of {n_states} states need a table of state sets")
    given = np.asarray(state_sets, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != n_states or not ((given >= 0) & (given <= 1)).all():
        raise EngineError(f"expected state sets, numbers from 0 to 1 (n_codes, {n_states}), found {given.shape}")
    _check_codes(codes, given)
    is_set = np.isin(given, (0, 1)).all(axis=1)
    sizes = given.sum(axis=1)
    other = ~is_set | ((sizes != 1) & (sizes != n_states))
    renamed = np.where(sizes == 1, given.argmax(axis=1), n_states)
    renamed[other] = n_states + 1 + np.arange(np.count_nonzero(other))
    plain = np.vstack([np.eye(n_states), np.ones(n_states)])
    return renamed[codes], np.concatenate([plain, given[other]])


def _check_codes(codes: Codes, sets: npt.NDArray[np.generic]) -> None:
    """Raise EngineError, naming taxon and pattern, for a code without a set or with an empty one."""
    if not np.issubdtype(codes.dtype, np.integer):
        raise EngineError(f"codes are {codes.dtype}, not integers")
    inside = (codes >= 0) & (codes < len(sets))
    legal = inside & (sets.max(axis=1) > 0)[np.where(inside, codes, 0)]
    if not legal.all():
        taxon, pattern = np.argwhere(~legal)[0]
        code = codes[taxon, pattern]
        wrong = "is an empty set" if inside[taxon, pattern] else f"is not one of the {len(sets)} state sets"
        raise EngineError(f"code {code} of taxon {taxon}, pattern {pattern} {wrong}")
