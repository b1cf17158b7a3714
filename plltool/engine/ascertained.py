"""An engine for models that correct lnL for ascertainment bias, see `plltool.model.ascertainment`.

A correction needs the likelihood of an invariable site of each state. The engine within holds these sites as further
*parts* of one pattern each, behind the parts of the alignment, with the model and the lengths of the part that they
belong to. Every request so returns lnL of each invariable site beside the sums of the parts, with the same derivatives,
and the chain rule makes the correction and its derivatives of them: exactly, in every kind of request, and without a
kernel of its own. From the outside there are the parts of the alignment only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine.contract import InstructionWord, Opcode
from plltool.engine.group import EngineGroup
from plltool.engine.layout import Layout
from plltool.engine.program import Request
from plltool.engine.requests import Answer, Parts, Requests, ShapedAnswer, of_parts
from plltool.engine.shards import ClasOfPatterns, PatternEngine
from plltool.model.ascertainment import Ascertainment

_LENGTHS = {Opcode.EVALUATE: 0, Opcode.INSERT: 0, Opcode.DERIVATIVE: 1, Opcode.TRIPLET: 3}  # in which values are slopes
_GRADIENTS = (Opcode.RATE_MATRIX_GRADIENT, Opcode.MASS_GRADIENT)


class AscertainedEngine(EngineGroup[PatternEngine]):
    """Parts of an alignment, some with a correction; requests and errors are those of `Engine`.

    Parameters
    ----------
    engine : holds the parts of the alignment, and then for each part with a correction the invariable sites, one part
        for each state in the order of states
    corrections : of each part of the alignment, None for no correction

    Attributes
    ----------
    n_parts : parts of the alignment
    part_patterns : patterns of each
    weights : float64 (n_patterns,), in use
    """

    def __init__(self, engine: PatternEngine, corrections: Sequence[Ascertainment | None]):
        super().__init__([engine])
        self.n_parts = len(corrections)
        self.part_patterns = engine.part_patterns[: self.n_parts]
        owner = list(range(self.n_parts))
        n_corrected = sum(correction is not None for correction in corrections)
        n_states = (engine.n_parts - self.n_parts) // max(n_corrected, 1)
        self._corrections: list[tuple[int, Ascertainment, slice]] = []  # of a part, with its invariable sites within
        for part, correction in enumerate(corrections):
            if correction is not None:
                first = len(owner)
                owner += [part] * n_states
                self._corrections.append((part, correction, slice(first, first + n_states)))
        self._owner = np.array(owner, dtype=np.intp)
        self.weights = engine.weights[: self.n_patterns]

    # --- what it is -----------------------------------------------------------------------------------------

    @property
    def _engine(self) -> PatternEngine:
        """The only one."""
        return self.engines[0]

    @property
    def n_patterns(self) -> int:
        """Patterns of the alignment."""
        return sum(self.part_patterns)

    def describe(self) -> dict[str, object]:
        """What a result file records of the layout."""
        return self._engine.describe()

    # --- models and weights ---------------------------------------------------------------------------------

    def set_model(self, parts: Parts) -> None:
        """Use one model per part from now on."""
        self._engine.set_model(self._for_all(parts))

    def _for_all(self, parts: Parts) -> Parts:
        """The model of each part within."""
        return [parts[part] for part in self._owner]

    def set_weights(self, weights: FloatArray) -> None:
        """Use other pattern weights from now on, float64 (n_patterns,)."""
        self._engine.set_weights(np.append(weights, self._engine.weights[self.n_patterns :]))
        self.weights = np.array(weights, dtype=np.float64)

    @property
    def _part_sites(self) -> FloatArray:
        """(n_parts,) number of sites of each part: the sum of its weights."""
        return np.add.reduceat(self.weights, np.cumsum((0, *self.part_patterns[:-1])))

    # --- requests -------------------------------------------------------------------------------------------

    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        """Sums over the patterns of each part (n_parts, n_values); see `Requests.execute`."""
        return self.ask_within(self._engine, request, lengths)

    def ask_within(self, within: Requests, request: Request, lengths: FloatArray) -> Answer:
        """Let the engine within, or CLAs of it, answer the request; the answer is corrected."""
        answer = within.ask(request.of_parts(self._owner), of_parts(lengths, self._owner))
        return lambda: self._correct(request, answer())

    def _correct(self, request: Request, values: FloatArray) -> FloatArray:
        """The sums (n_parts, n_values) with their corrections, from those of the parts within."""
        sums, n_sites = values[: self.n_parts].copy(), self._part_sites
        for part, correction, sites in self._corrections:
            if request.wants(part):
                sums[part] += _corrections_of(correction, n_sites[part], request.program, values[sites])
        return sums

    def ask_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> ShapedAnswer:
        """See `Holder.execute_shaped`."""
        answer = self.ask(make(self._engine.layout), lengths)
        return lambda: list(answer())

    def ask_likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> Answer:
        """lnL (n_models, n_parts) under each of several models; see `Holder.likelihoods`."""
        of_all = [self._for_all(parts) for parts in models]
        answer = self._engine.ask_likelihoods(program, of_parts(lengths, self._owner), of_all)
        return lambda: self._correct_lnls(answer())

    def _correct_lnls(self, values: FloatArray) -> FloatArray:
        """lnL (n_models, n_parts) with the corrections, from those of the parts within."""
        sums, n_sites = values[:, : self.n_parts].copy(), self._part_sites
        for part, correction, sites in self._corrections:
            sums[:, part] += correction.correct(values[:, sites].T, n_sites[part]).value
        return sums

    def ask_sites(self, request: Request, lengths: FloatArray) -> Answer:
        """lnL (n_values, n_patterns) with an equal share of the correction for each site; see `Requests`."""
        return self.ask_sites_within(self._engine, request, lengths)

    def ask_sites_within(self, within: Requests, request: Request, lengths: FloatArray) -> Answer:
        """The same from the engine within or CLAs of it."""
        answer = within.ask_sites(request.of_parts(self._owner), of_parts(lengths, self._owner))
        return lambda: self._correct_sites(request, answer())

    def _correct_sites(self, request: Request, values: FloatArray) -> FloatArray:
        """lnL of the sites of the alignment with their share; values that may be impossible are not corrected."""
        lnl, of_sites, n_sites = values[:, : self.n_patterns].copy(), values[:, self.n_patterns :], self._part_sites
        if request.impossible:
            return lnl
        ends = np.cumsum(self.part_patterns)
        for part, correction, sites in self._corrections:
            if request.wants(part):
                own = of_sites[:, sites.start - self.n_parts : sites.stop - self.n_parts].T
                share = correction.correct(own, n_sites[part]).value / n_sites[part]
                lnl[:, ends[part] - self.part_patterns[part] : ends[part]] += share[:, None]
        return lnl

    def prepare(self, operations: IntArray, lengths: FloatArray) -> AscertainedClas:
        """CLAs for later requests; see `Engine.prepare`."""
        prepared = self._engine.prepare(operations, of_parts(lengths, self._owner))
        return AscertainedClas(self, prepared, self._owner, lengths)


class AscertainedClas(Requests):
    """CLAs of the sites of an alignment and of invariable sites; see `PreparedClas`.

    `owner` (n_parts within,) is the part of the alignment to which each part within belongs.
    """

    def __init__(self, engine: AscertainedEngine, prepared: ClasOfPatterns, owner: IndexArray, lengths: FloatArray):
        self._engine = engine
        self._prepared = prepared
        self._owner = owner
        self.n_parts = engine.n_parts
        self.lengths = np.array(lengths, dtype=np.float64)

    def extend(self, program: IntArray, lengths: FloatArray) -> AscertainedClas:
        """See `PreparedClas.extend`."""
        extended = self._prepared.extend(program, of_parts(lengths, self._owner))
        return AscertainedClas(self._engine, extended, self._owner, self.lengths)

    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        """Begin a program that reads the CLAs; see `Requests.execute`."""
        return self._engine.ask_within(self._prepared, request, lengths)

    def ask_sites(self, request: Request, lengths: FloatArray) -> Answer:
        return self._engine.ask_sites_within(self._prepared, request, lengths)


def _corrections_of(correction: Ascertainment, n_sites: float, program: IntArray, values: FloatArray) -> FloatArray:
    """What a correction adds to every value of a program (n_values,), from those of invariable sites (n_states, n).

    A gradient in the model goes with the only EVALUATE of its program, and all other values belong to it.
    """
    added = np.zeros(values.shape[1])
    opcodes, results = program[:, InstructionWord.OPCODE], program[:, InstructionWord.RESULT]
    if np.isin(opcodes, _GRADIENTS).any():
        (at,) = results[opcodes == Opcode.EVALUATE]
        found = correction.correct(values[:, [at]], n_sites)
        added[:] = (found.shares * values).sum(axis=0)
        added[at] = found.value[0]
        return added
    for opcode, n in _LENGTHS.items():
        at = results[opcodes == opcode]
        if not len(at):
            continue
        found = correction.correct(values[:, at], n_sites)
        added[at] = found.value
        slopes = [values[:, at + 1 + a] for a in range(n)]
        sums = [(found.shares * slope).sum(axis=0) for slope in slopes]
        for a in range(n):
            added[at + 1 + a] = sums[a]
        for k, (a, b) in enumerate([*((a, a) for a in range(n)), *combinations(range(n), 2)]):
            curves = values[:, at + 1 + n + k] + found.squares * slopes[a] * slopes[b]
            added[at + 1 + n + k] = (found.shares * curves).sum(axis=0) + found.products * sums[a] * sums[b]
    return added
