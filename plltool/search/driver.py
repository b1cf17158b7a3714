"""The stages of a search: lengths and model, NNI rounds, SPR rounds of growing radius, a final polish."""

from __future__ import annotations

import time
from dataclasses import dataclass

from plltool.constants import SEARCH_RADII
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.parameters import optimise_model
from plltool.search.climb import climb_round
from plltool.search.progress import Listener, Progress, ignore


@dataclass(frozen=True)
class SearchOptions:
    """How hard to search.

    Attributes
    ----------
    radii : SPR radii, one stage each
    epsilon : lnL gained by a round below which a stage ends, and the last polish's precision
    optimise_parameters : whether free model parameters are optimised
    """

    radii: tuple[int, ...] = SEARCH_RADII
    epsilon: float = 0.1
    optimise_parameters: bool = True


def search_tree(
    likelihood: TreeLikelihood, options: SearchOptions | None = None, report: Listener = ignore
) -> float:
    """Improve the likelihood's tree, lengths and models in place; returns the final lnL."""
    raise RuntimeError("being written")
