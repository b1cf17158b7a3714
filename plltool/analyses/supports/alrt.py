"""Supports of a tree's branches by the likelihood of their nearest neighbours: `alrt`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from plltool.constants import ALRT_KINDS, ALRT_REPLICATES, DEFAULT_SEED, LBP, SH_ALRT
from plltool.reports.blocks import Row
from plltool.reports.tree_blocks import Drawn
from plltool.run.evaluation import EvaluationSettings, evaluate_and_ask
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike
from plltool.run.likelihood import Likelihood, check_neighbour_request
from plltool.run.results import Result
from plltool.run.rooting import usable_outgroup
from plltool.run.supports import Supports
from plltool.schema import Keys
from plltool.settings import takes_keywords


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AlrtResult(Result):
    """An evaluation of a tree, and the supports of its inner branches, which its table shows."""

    supports: Supports

    def _drawn(self) -> Drawn | None:
        return self.supports._drawn()

    def _rows(self) -> Sequence[Row]:
        return self.supports._rows()

    @Keys("supports")
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The record of an evaluation, and the supports."""
        return super().as_record(command) | {"supports": self.supports.as_record()}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool alrt` writes, by the ends of their names; `command` as for `as_record`."""
        return {"alrt.json": self.to_json(command) + "\n", **self.supports.texts()}


@takes_keywords(EvaluationSettings)
def alrt(
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike | None = None,
    *,
    kinds: str | Sequence[str] = ALRT_KINDS,
    replicates: int = ALRT_REPLICATES,
    seed: int = DEFAULT_SEED,
    **settings: Unpack[EvaluationSettings],
) -> AlrtResult:
    """SH-aLRT, aBayes, LBP and SPRTA supports of the branches of a tree; lengths and model parameters are optimised.

    Each branch is compared with its two nearest-neighbour interchanges, on which the five lengths around it are
    optimised. SH-aLRT (Guindon et al. 2010) is the per cent of resampled alignments in which chance alone gains less
    than the branch does; aBayes (Anisimova et al. 2011) is its posterior probability among the three, from 0 to 1.
    LBP (Adachi & Hasegawa 1996) is the per cent of resampled alignments in which it is the best of the three.
    SPRTA (De Maio et al. 2025), from 0 to 1, compares the place of the subtree at either end of the branch with all
    other places of it, see `plltool.tree_search.branch_supports`; the smaller of the two counts. Branches of tips have
    it, too.

    Parameters
    ----------
    alignment, tree, model, settings : see `evaluate`, also for errors
    kinds : any of "sh-alrt", "abayes", "lbp" and "sprta", in the order of the labels
    replicates, seed : number of resampled alignments for SH-aLRT and LBP, and the seed of the resampling

    Raises InputError if a kind is unknown, there are fewer than 1 replicates, or the seed is negative.
    """
    kinds = check_neighbour_request(kinds, replicates, seed)

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        found = likelihood.support_branches(kinds, replicates, seed)
        outgroup = usable_outgroup(found.tree, settings.get("outgroup"))[0]
        return {"supports": replace(found, outgroup=outgroup), "seed": seed if {SH_ALRT, LBP} & set(kinds) else None}

    return evaluate_and_ask(ask, AlrtResult, alignment, tree, model, {"neighbours": True}, **settings)
