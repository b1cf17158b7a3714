"""How hard to search: options of the user, presets by name, and the plan that follows from the data's difficulty."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING

from plltool.constants import DEFAULT_EFFORT, MAX_RADIUS, STOP_RULES
from plltool.errors import InputError, check_least, check_one_of, show_name
from plltool.settings import make_plain

if TYPE_CHECKING:
    from plltool.tree.constraint import Constraint

SEARCH_EPSILON = 0.1  # a climb ends when a round gains less lnL
SEARCH_RADII = (20,)  # of the SPR stages; walks end at losses long before, except where data are few
RATCHET_PATIENCE = 20  # perturbations in a row without gain after which a thorough search leaves a tree as it is
FIRST_PERTURBATIONS = 4  # of each climb before it is fused with others; the first gain most
EASY = 0.1  # difficulty up to which a search uses the minimum of its effort
MANY_TAXA = 1000  # from which on the limit of the perturbations grows with the number of taxa
MANY_GAPS = 0.5  # share of undetermined characters beyond which several climbs share as many perturbations as one makes
LARGE_ALIGNMENT = 5_000_000  # taxa times patterns from which on gains must be significant by default


@dataclass(frozen=True)
class SearchPlan:
    """What one search does, with all options settled."""

    starts: int = 1  # number of start trees
    radii: tuple[int, ...] = SEARCH_RADII  # of SPR, one stage each; from the second on, one without gain is the last
    perturbations: int = 0  # the most perturbations, on all trees together, the best climb first
    nstop: int = RATCHET_PATIENCE  # number of perturbations in a row without gain after which a tree is left as it is
    # a climb ends when a round gains less lnL; a perturbation that gains less has failed
    epsilon: float = SEARCH_EPSILON
    stop: str = STOP_RULES[0]  # the rule that ends a climb before its last stage, see `state.says_enough`
    optimise_parameters: bool = True  # whether free model parameters are optimised
    constraint: Constraint | None = None  # obeyed by the start trees and all trees after them

    @property
    def first_perturbations(self) -> int:
        """The most perturbations of each climb before the climbs are fused; 0 if there is one climb."""
        return min(FIRST_PERTURBATIONS, self.perturbations // (self.starts + 1)) if self.starts > 1 else 0

    def __post_init__(self) -> None:
        radii = self.radii if isinstance(self.radii, (tuple, list)) else ()
        if not radii or not all(isinstance(radius, Integral) and 1 <= radius <= MAX_RADIUS for radius in radii):
            raise InputError(f"radii: found {self.radii!r}, expected at least one, each 1 to {MAX_RADIUS}")
        if not (isinstance(self.epsilon, Real) and self.epsilon > 0):
            raise InputError(f"epsilon: found {self.epsilon!r}, expected a positive lnL")
        check_one_of("stop", self.stop, STOP_RULES)
        for name, least in (("starts", 1), ("perturbations", 0), ("nstop", 1)):
            check_least(name, getattr(self, name), least)


@dataclass(frozen=True)
class Preset:
    """A preset: a plan, and the numbers of starts and perturbations for easy data and for the most difficult data.

    Data with a difficulty up to EASY are easy; from there to 1 the numbers are interpolated. Starts are rounded to the
    nearest number, as another start costs as much as several perturbations; perturbations are rounded up.
    """

    plan: SearchPlan
    starts: tuple[int, int]
    perturbations: tuple[int, int]
    together: int = 60  # the most perturbations of several climbs, all of them counted, unless there are MANY_GAPS
    # how many times as many perturbations, and as many in a row without gain, there are for several parts that share
    # their branch lengths, and for those that do not
    persistence: tuple[int, int] = (1, 1)


EFFORTS = {
    "fast": Preset(SearchPlan(epsilon=1.0), (1, 1), (0, 0)),
    "default": Preset(SearchPlan(nstop=3), (1, 3), (3, 12), 4, (2, 3)),
    "thorough": Preset(SearchPlan(), (2, 6), (30, 60)),
}


def parse_radii(text: str) -> tuple[int, ...]:
    """The radii of `SearchOptions` from their text."""
    number = r"\s*0*[1-9][0-9]{0,8}\s*"
    if not re.fullmatch(f"{number}(,{number})*", text):
        raise InputError(f"found {show_name(text)}, expected whole numbers from 1, separated by commas")
    return tuple(map(int, text.split(",")))


@dataclass(frozen=True)
class SearchOptions:
    """How hard to search. Options that are None follow from the effort and the data's difficulty.

    Attributes
    ----------
    effort : a name in EFFORTS
    starts, radii, perturbations, nstop, epsilon, stop, optimise_parameters : see `SearchPlan`
    """

    effort: str = DEFAULT_EFFORT
    starts: int | None = None
    radii: tuple[int, ...] | None = None
    perturbations: int | None = None
    nstop: int | None = None
    epsilon: float | None = None
    stop: str | None = None
    optimise_parameters: bool | None = None

    def __post_init__(self) -> None:
        make_plain(self)
        check_one_of("effort", self.effort, EFFORTS)
        self.plan(0.0)  # refuses impossible options

    @property
    def depends_on_difficulty(self) -> bool:
        """Whether the result of `plan` depends on the difficulty."""
        preset = EFFORTS[self.effort]
        free = [(self.starts, preset.starts), (self.perturbations, preset.perturbations)]
        return any(given is None and low != high for given, (low, high) in free)

    def plan(
        self,
        difficulty: float = 0.0,
        n_taxa: int = 0,
        n_patterns: int = 0,
        n_parts: int = 1,
        unlinked: bool = False,
        gaps: float = 0.0,
    ) -> SearchPlan:
        """The plan for data of this difficulty, 0 to 1; parts share branch lengths unless they are `unlinked`.

        Several climbs share fewer perturbations than one makes: another start tree gains more than they do, unless the
        share of undetermined characters, `gaps`, is above MANY_GAPS. The limit of the perturbations grows with the taxa
        beyond MANY_TAXA: the more places there are where a climb can get stuck, the longer each perturbation mends
        some. If taxa times patterns are LARGE_ALIGNMENT or more and the effort is not thorough, there is one climb,
        which ends when a stage gains nothing significant. Where only one start tree is wanted, half of the
        perturbations may fail in a row: no other climb leads out of its surroundings.
        """
        preset = EFFORTS[self.effort]
        hard = min(max((difficulty - EASY) / (1.0 - EASY), 0.0), 1.0)
        starts, perturbations = (low + hard * (high - low) for low, high in (preset.starts, preset.perturbations))
        chosen = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "effort"}
        large = n_taxa * n_patterns >= LARGE_ALIGNMENT and self.effort != "thorough"
        n_starts = 1 if large or self.starts == 1 else round(starts)
        most = perturbations if n_starts == 1 or gaps > MANY_GAPS else min(perturbations, preset.together)
        perturbations = math.ceil(math.ceil(most) * max(1.0, n_taxa / MANY_TAXA))
        stop = "kh" if large else preset.plan.stop
        persistence = preset.persistence[unlinked] if n_parts > 1 else 1
        patience = max(preset.plan.nstop, math.ceil(most) // 2 if self.starts == 1 else 0)
        perturbations, nstop = persistence * perturbations, persistence * patience
        planned = replace(preset.plan, starts=n_starts, perturbations=perturbations, nstop=nstop, stop=stop)
        return replace(planned, **{name: value for name, value in chosen.items() if value is not None})
