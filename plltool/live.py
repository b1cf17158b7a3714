"""A likelihood that stays on its device: get and set lengths and parameters, ask, optimise."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plltool.alignment.patterns import compress
from plltool.constants import (
    MAX_BRANCH_LENGTH,
    MIN_BRANCH_LENGTH,
)
from plltool.engine.storage import Slots
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.io.newick import write_newick
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.polish import polish
from plltool.search.progress import Listener, Progress, ignore
from plltool.session import (
    AlignmentLike,
    ModelLike,
    TreeLike,
    as_alignment,
    as_model,
    as_tree,
    open_engine,
)
from plltool.tree.operations import round_slots, stack_slots
from plltool.tree.topology import FloatArray, Tree

LENGTHS = "lengths"
LENGTH_RANGE = f"{MIN_BRANCH_LENGTH:g} .. {MAX_BRANCH_LENGTH:g}"


class Likelihood:
    """The likelihood of one alignment on one tree under one model, on one device.

    Setting a length or a parameter changes the next answer; nothing is written to files. Use it in a ``with`` block,
    or call `close`. Branches are numbered as in ``likelihood.tree.ends``; lengths are expected substitutions per site.

    Parameters
    ----------
    alignment : file, mapping of names to sequences, dendropy matrix, or Alignment
    tree : file, Newick string, dendropy tree, or Tree; copied, and lengths beyond the bounds moved to them
    model : string such as "GTR+F+G4", file, ModelSpec or Model, as for `plltool.api.search`; copied. Values in braces
        are never optimised
    device, precision, vw, threads, memory : see `plltool.hardware.Hardware`
    lnl_only : hold the few CLAs that `lnl` and `site_lnl` take; `derivatives` and `optimise` raise EngineError

    Attributes
    ----------
    alignment : the Alignment
    patterns : its distinct columns
    engine : what does the arithmetic, with its layout and counters
    reason : why it was chosen
    warnings : what a user should know of the tree, one line each

    Raises
    ------
    InputError
        If alignment, tree or model cannot be used.
    DeviceError
        If the device cannot be used.
    """

    def __init__(
        self,
        alignment: AlignmentLike,
        tree: TreeLike,
        model: ModelLike | None = None,
        *,
        device: str = "auto",
        precision: str = "double",
        vw: int | None = None,
        threads: int | None = None,
        memory: int | None = None,
        lnl_only: bool = False,
    ):
        self.alignment = as_alignment(alignment)
        self._tree = as_tree(tree, self.alignment.names)
        self._model = as_model(model, self.alignment)
        self.patterns = compress(self.alignment)
        self.warnings = self._bound_lengths()
        hardware = Hardware(device, precision, vw, threads, memory)
        n_taxa = self.alignment.n_taxa
        slots = Slots(stack_slots(n_taxa) if lnl_only else round_slots(n_taxa))
        self.engine, self.reason = open_engine(self.patterns, self._model, slots, hardware)
        self._likelihood = TreeLikelihood(self._tree, [self._model], self.engine)

    def _bound_lengths(self) -> tuple[str, ...]:
        """Move the tree's lengths within the bounds; returns a line if that changed any."""
        bounded = np.clip(self._tree.lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
        n_changed = int(np.count_nonzero(bounded != self._tree.lengths))
        self._tree.lengths[:] = bounded
        return (f"{n_changed} branch lengths outside {LENGTH_RANGE} moved to the bound",) if n_changed else ()

    def __enter__(self) -> Likelihood:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free what is held on the device."""
        self.engine.close()

    # --- tree -----------------------------------------------------------------------------------------------

    @property
    def tree(self) -> Tree:
        """A copy of the tree with its present lengths."""
        return self._tree.copy()

    def newick(self) -> str:
        """The tree with its present lengths as Newick text."""
        return write_newick(self._tree)

    @property
    def lengths(self) -> FloatArray:
        """(n_edges,) branch lengths; a copy. Set all of them by assignment."""
        return self._tree.lengths.copy()

    @lengths.setter
    def lengths(self, values: npt.ArrayLike) -> None:
        lengths = np.asarray(values, dtype=np.float64)
        if lengths.shape != self._tree.lengths.shape:
            raise InputError(f"expected {self._tree.n_edges} branch lengths, found an array of shape {lengths.shape}")
        for edge in np.flatnonzero(~((lengths >= MIN_BRANCH_LENGTH) & (lengths <= MAX_BRANCH_LENGTH))).tolist():
            raise InputError(f"branch {edge}: found length {lengths[edge]:g}, expected {LENGTH_RANGE}")
        self._tree.lengths[:] = lengths

    def set_length(self, edge: int, length: float) -> None:
        """Set the length of one branch; InputError outside the bounds or for a branch that does not exist."""
        if not 0 <= edge < self._tree.n_edges:
            raise InputError(f"found branch {edge}, expected 0 .. {self._tree.n_edges - 1}")
        lengths = self.lengths
        lengths[edge] = length
        self.lengths = lengths

    # --- model ----------------------------------------------------------------------------------------------

    @property
    def alpha(self) -> float | None:
        """The shape of the gamma distribution of rates; None without +G."""
        return self._model.alpha

    @alpha.setter
    def alpha(self, value: float) -> None:
        self._model.set_alpha(value)
        self._likelihood.model_changed()

    @property
    def pinv(self) -> float | None:
        """The share of invariable sites; None without +I."""
        return self._model.pinv

    @pinv.setter
    def pinv(self, value: float) -> None:
        self._model.set_pinv(value)
        self._likelihood.model_changed()

    def set_free_rates(self, rates: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Set the rates and weights of +R, both (n_categories,); rates are brought to mean 1."""
        self._model.set_free_rates(rates, weights)
        self._likelihood.model_changed()

    @property
    def exchangeabilities(self) -> FloatArray:
        """Of each pair of states, in the order of ``model.spec.pairs`` (DNA: AC AG AT CG CT GT); only ratios matter."""
        return self._model.exchangeabilities

    @exchangeabilities.setter
    def exchangeabilities(self, values: npt.ArrayLike) -> None:
        self._model.set_exchangeabilities(values)
        self._likelihood.model_changed()

    @property
    def frequencies(self) -> FloatArray:
        """Of each state, in the order of ``model.spec.symbols`` (DNA: A C G T)."""
        return self._model.frequencies

    @frequencies.setter
    def frequencies(self, values: npt.ArrayLike) -> None:
        self._model.set_frequencies(values)
        self._likelihood.model_changed()

    @property
    def model(self) -> Model:
        """A copy of the model with its present values."""
        return self._model.copy()

    @property
    def model_string(self) -> str:
        """The model with all present values in braces."""
        return self._model.to_string()

    # --- answers --------------------------------------------------------------------------------------------

    def lnl(self) -> float:
        """The log-likelihood of the alignment."""
        return self._likelihood.lnl()

    def site_lnl(self) -> FloatArray:
        """(n_sites,) log-likelihood of each site, in the alignment's order; they sum to `lnl`."""
        return self._likelihood.site_lnl()[self.patterns.site_pattern]

    def likelihoods(self, models: Sequence[ModelLike]) -> FloatArray:
        """(n_models,) lnL of the tree under other models with as many rate categories; this one stays what it is.

        On a device they run at the same time, as many as there is room for. Raises InputError for a model that the
        device was not set up for.
        """
        proposals = [as_model(model, self.alignment) for model in models]
        for model in proposals:
            found, expected = model.components().n_components, self.engine.layout.n_components
            if found != expected:
                raise InputError(f"model {str(model.spec)!r}: found {found} rate categories, expected {expected}")
        return self._likelihood.likelihoods([[model] for model in proposals]).sum(axis=1)

    def derivatives(self) -> tuple[float, FloatArray, FloatArray]:
        """lnL, and its first and second derivative in each branch length, both (n_edges,)."""
        lnl, slopes = self._likelihood.all_derivatives()
        return float(lnl.sum()), slopes[..., 0], slopes[..., 1]

    def optimise(self, *names: str, listener: Listener = ignore) -> float:
        """Optimise branch lengths and model parameters in place until neither gains; returns lnL, which never falls.

        Parameters
        ----------
        names : what to optimise, "lengths" or among `plltool.model.model.GROUPS`; nothing for all that is free
        listener : hears of every round

        Raises
        ------
        InputError
            For a name that is not free in this model.
        """
        free = (LENGTHS, *self._model.free_parameters)
        for name in names:
            if name not in free:
                raise InputError(f"cannot optimise {name!r}; free in {str(self._model.spec)!r}: {', '.join(free)}")
        chosen = names or free
        started = time.perf_counter()

        def report(round_: int, lnl: float) -> None:
            listener(Progress("polish", round_, lnl, 0, 0, time.perf_counter() - started))

        return polish(self._likelihood, LENGTHS in chosen, [name for name in chosen if name != LENGTHS], report)
