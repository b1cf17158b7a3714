"""Supports of a tree's branches by the likelihood of their nearest neighbours: `alrt`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Unpack

import numpy as np

from plltool.analyses.evaluate import Settings, evaluate_and_ask
from plltool.analyses.likelihood import LENGTHS, Likelihood
from plltool.analyses.support import Supports
from plltool.constants import ABAYES, ALRT_REPLICATES, DEFAULT_LINKAGE, DEFAULT_SEED, SH_ALRT, SUPPORT_KINDS
from plltool.errors import InputError
from plltool.hardware import Hardware, HardwareSettings
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree
from plltool.run.memory import until_memory_suffices
from plltool.run.results import Result, mean_tree, write_rooted
from plltool.tree.splits import smaller_sides
from plltool.tree.topology import Tree
from plltool.tree_search.branch_supports import BranchSupports
from plltool.tree_search.progress import announce


@dataclass(frozen=True, eq=False)
class SupportResult(Result):
    """What `alrt` computed.

    Attributes
    ----------
    supports : of inner branches, numbered as those of `tree`
    kinds : which of them the labels show, in their order
    n_replicates, support_seed : that SH-aLRT was made of
    labelled : the tree as Newick, the supports of each inner branch at the node that it leads to, such as 97.5/0.999:
        SH-aLRT in per cent, aBayes from 0 to 1
    """

    supports: BranchSupports = field(kw_only=True)
    kinds: tuple[str, ...] = field(kw_only=True)
    n_replicates: int = field(kw_only=True)
    support_seed: int = field(kw_only=True)
    labelled: str = field(kw_only=True)

    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """As of any result, and the supports of each inner branch, which is named by the taxa on its smaller side."""
        supports = self.supports
        sides = smaller_sides(self.tree, supports.branches)
        branches = [
            {
                "taxa": taxa,
                "length": float(self.tree.lengths[branch]),
                "sh_alrt": None if supports.sh_alrt is None else float(supports.sh_alrt[row]),
                "abayes": float(supports.abayes[row]),
                "lnl": supports.lnl[row].tolist(),
            }
            for row, (branch, taxa) in enumerate(zip(supports.branches.tolist(), sides, strict=True))
        ]
        described = {
            "labels": list(self.kinds),
            "n_replicates": self.n_replicates,
            "seed": self.support_seed,
            "tree": self.labelled,
            "branches": branches,
        }
        return super().as_record(command) | {"supports": described}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool alrt` writes, by the ends of their names; `command` as of `as_record`."""
        return {"alrt.json": self.to_json(command) + "\n", "support.nwk": self.labelled + "\n"}


def alrt(
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike | None = None,
    *,
    kinds: Sequence[str] = SUPPORT_KINDS,
    n_replicates: int = ALRT_REPLICATES,
    seed: int = DEFAULT_SEED,
    **settings: Unpack[Settings],
) -> SupportResult:
    """SH-aLRT and aBayes of every inner branch of a tree, lengths and model parameters optimised.

    Each branch is compared with its two nearest-neighbour interchanges, whose five lengths around it are optimised.
    SH-aLRT (Guindon et al. 2010) is the share of RELL replicates in which the branch stands against chance, aBayes
    (Anisimova et al. 2011) its posterior probability among the three.

    Parameters
    ----------
    kinds : some of SUPPORT_KINDS: what is computed and shown, in this order
    n_replicates, seed : of SH-aLRT
    alignment, tree, model, settings : see `evaluate`, also for errors

    Raises
    ------
    InputError
        If a kind is unknown, or there are less than 1 replicates.
    """
    for kind in kinds:
        if kind not in SUPPORT_KINDS:
            raise InputError(f"supports: found {kind!r}, expected some of: {', '.join(SUPPORT_KINDS)}")
    if n_replicates < 1:
        raise InputError(f"replicates: found {n_replicates}, expected at least 1")
    if seed < 0:
        raise InputError(f"seed: found {seed}, expected at least 0")

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        supports = likelihood.support_branches(n_replicates if SH_ALRT in kinds else 0, seed)
        shown = mean_tree(likelihood.tree, np.array([len(part.sites) for part in likelihood.data.parts]))
        labels = format_supports(supports, kinds, shown)
        return {
            "supports": supports,
            "kinds": tuple(kinds),
            "n_replicates": n_replicates,
            "support_seed": seed,
            "labelled": write_rooted(shown, settings.get("outgroup"), labels)[0],
        }

    return evaluate_and_ask(ask, SupportResult, alignment, tree, model, {"neighbours": True}, **settings)


def local_supports(
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike,
    kinds: Sequence[str] = SUPPORT_KINDS,
    *,
    n_replicates: int = ALRT_REPLICATES,
    seed: int = DEFAULT_SEED,
    brlen: str = DEFAULT_LINKAGE,
    **hardware: Unpack[HardwareSettings],
) -> Supports:
    """SH-aLRT, aBayes or both as `Supports`, as those by replicate trees are; lengths are optimised, the model is held.

    Parameters and errors as of `alrt`; `hardware` as of `plltool.hardware.Hardware`.
    """
    announce("supports by nearest neighbours")

    def attempt(hardware: Hardware) -> tuple[BranchSupports, Tree]:
        with Likelihood(alignment, tree, model, brlen=brlen, neighbours=True, **asdict(hardware)) as likelihood:
            likelihood.optimise(LENGTHS)
            return likelihood.support_branches(n_replicates if SH_ALRT in kinds else 0, seed), likelihood.tree

    found, target = until_memory_suffices(attempt, Hardware(**hardware))
    values = {}
    for kind in kinds:
        values[kind] = np.full(target.n_edges, np.nan)
        values[kind][found.branches] = found.abayes if kind == ABAYES else found.sh_alrt
    given = as_tree(tree, target.names)
    return Supports(given, {kind: n_replicates if kind == SH_ALRT else 1 for kind in kinds}, values)


def format_supports(supports: BranchSupports, kinds: Sequence[str], tree: Tree) -> list[str]:
    """(n_edges,) the label of each branch; empty at tips."""
    labels = [""] * tree.n_edges
    for row, branch in enumerate(supports.branches.tolist()):
        texts = []
        for kind in kinds:
            if kind == ABAYES:
                texts.append(f"{supports.abayes[row]:.3f}")
            elif supports.sh_alrt is not None:
                texts.append(f"{100 * supports.sh_alrt[row]:.1f}")
        labels[branch] = "/".join(texts)
    return labels
