"""`select_model` chooses a substitution model by an information criterion."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Unpack

from plltool.analyses.selection.course import Candidates, Selection, run_together
from plltool.analyses.selection.model_fits import ModelFitter, PartData, ask_fitter, compare_fits
from plltool.constants import CRITERIA, DEFAULT_SEED, LINKED
from plltool.errors import InputError, check_least, check_one_of
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.model_reader import read_model
from plltool.io.newick import ROOT_REMOVED
from plltool.model.ascertainment import Ascertainment
from plltool.model.candidates import GAMMA, parse_candidate
from plltool.progress import announce
from plltool.run.inputs import AlignmentLike, TreeLike, as_tree, refuse_invariable, resolve_inputs
from plltool.run.keywords import takes_keywords
from plltool.run.model_choice import ModelChoice
from plltool.run.rooting import write_rooted
from plltool.run.run import Run
from plltool.seeds import STARTS, generator
from plltool.tree.topology import Tree


@takes_keywords(HardwareSettings)
def select_model(
    alignment: AlignmentLike,
    tree: TreeLike | None = None,
    *,
    criterion: str = CRITERIA[0],
    free_rates: bool = True,
    ascertainment: bool = False,
    also: Sequence[str] = (),
    seed: int = DEFAULT_SEED,
    **hardware: Unpack[HardwareSettings],
) -> ModelChoice:
    """Choose the model that describes an alignment best, with all lengths and parameters optimised on one tree.

    Parameters
    ----------
    alignment : as for `plltool.search`; it is not cut into parts
    tree : as for `plltool.evaluate`; by default the parsimony tree that a search with this seed starts from. Only
        candidates that are not time-reversible have a root, for which `plltool.evaluate` says what holds
    criterion : "BIC", "AIC" or "AICc"; the others are reported, but models that only they prefer may be left out
    free_rates : whether +R2 to +R10 are among the candidates
    ascertainment : whether all candidates have +ASC_LEWIS, and none has +I, because invariable sites were left out
    also : model strings of more candidates, such as mixtures, without rates over sites, which they get in turn
    seed : of the parsimony tree
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises
    ------
    InputError
        If alignment, tree or a candidate cannot be used, the criterion is unknown, or it is AICc and the sites are too
        few for it; and for a column that does not vary if `ascertainment` says that all do.
    DeviceError
        If the device cannot be used.
    """
    began = perf_counter()
    check_one_of("criterion", criterion, CRITERIA)
    check_least("seed", seed, 0)
    data, models = resolve_inputs(alignment, None)
    if len(data.parts) > 1:
        names = ", ".join(part.name for part in data.parts)
        found = f"found several kinds of data ({names})"
        raise InputError(f"{data.source}: {found}, expected a file with the partitions (--partitions)")
    run = Run(data, models, LINKED, Hardware.of(**hardware), began, seed=seed, all_taxa=True)
    run.announce_data()
    [patterns] = run.task.parts
    correction = Ascertainment("lewis") if ascertainment else None
    possible = Candidates.of(patterns.states, free_rates, correction, [read_model(text) for text in also])
    if correction is not None:
        refuse_invariable(parse_candidate(possible.substitutions[0], GAMMA), data.parts[0])
    chosen_on, remarks = choose_tree(run, tree)
    if possible.any_rooted:
        remarks = tuple(remark for remark in remarks if ROOT_REMOVED not in remark)
    n_sites = data.parts[0].n_sites

    def choose(fitter: ModelFitter) -> Selection:
        selection = Selection(PartData(patterns), possible, criterion, n_sites)
        run_together([selection], fitter)
        return selection

    selection = ask_fitter(choose, run, chosen_on)
    best = selection.best
    return ModelChoice(
        lnl=best.lnl,
        candidates=compare_fits(list(selection.fits.values()), n_sites, criterion),
        criterion=criterion,
        left_out=tuple(selection.left_out),
        newick=write_rooted(best.tree, None)[0],
        spec=best.spec,
        data=data,
        n_patterns=patterns.n_patterns,
        **run.known,
        seed=seed,
        seconds=run.seconds,
        warnings=run.warn(remarks),
    )


def choose_tree(run: Run, tree: TreeLike | None) -> tuple[Tree, tuple[str, ...]]:
    """The tree on which all models are fitted, and warnings about it."""
    if tree is not None:
        given = as_tree(tree, run.data.names)
        return given, given.warnings
    announce("parsimony tree")
    return run.task.parsimony_tree(generator(run.task.seed, STARTS, 0)), ()
