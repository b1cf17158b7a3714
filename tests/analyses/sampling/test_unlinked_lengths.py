"""Partitions with branch lengths of their own: answers of engines, posteriors by quadrature, files, runs that go on."""

import re

import dendropy
import numpy as np
import pytest
from helpers import numpy_engine, random_codes
from interruptions import assert_pieces_make
from oracles.posteriors import all_topologies, splits_of
from sampling.test_stepping_stones import PRIORS, integrate_lengths
from sampling.toys import Shape, ToyLikelihoods, draw_state, lnl_of, make_space

import plltool
from plltool.analyses.sampling.informed_moves import Interchanges, Quartet
from plltool.analyses.sampling.joint_moves import CoordinateSlopes
from plltool.analyses.sampling.likelihoods import EngineLikelihoods
from plltool.analyses.sampling.state import Proposal, Slopes, sampling_slots
from plltool.analyses.sampling.topology_moves import Regrafts
from plltool.engine.composite import Composite
from plltool.errors import InputError

N_TAXA, MODELS = 6, ("HKY+FO+G4", "JC+G4")
PARTS = "JC, a = 1-12\nJC, b = 13-32\n"
ROWS = {  # the parts favour different topologies
    "a": "ACGTACGAGAAG" + "ACGTACGTACGTAGCATGTC",
    "b": "ACGTACGAGCCG" + "ACGTACGTACGTCTTACGTA",
    "c": "ACGTACGCTACG" + "ACGTACGTACGTAGCGCATC",
    "d": "ACGTACGCTCCA" + "ACGTACGTACGTCTTGCGAC",
}


class Codes(ToyLikelihoods):
    """Of the codes of each part, by the oracle."""

    def __init__(self, codes):
        self._codes = codes

    def lnls(self, chain, state):
        return [lnl_of(state, own, part) for part, own in enumerate(self._codes)]


@pytest.fixture(params=["one engine", "an engine for each part"])
def asked(request):
    """What an engine is asked through, the same by the oracle, and a state."""
    space, rng = make_space(MODELS, N_TAXA), np.random.default_rng(3)
    codes, weights = random_codes(rng, N_TAXA, 40), np.ones(40)
    shapes, slots, sizes = [Shape(model.components()) for model in space.models], sampling_slots(N_TAXA, 1), (25, 15)
    if request.param == "one engine":
        engine = numpy_engine(slots, codes, weights, shapes, sizes)
    else:
        ends = np.split(np.arange(40), [25])
        pairs = zip(ends, shapes, strict=True)
        engines = [numpy_engine(slots, codes[:, own], weights[own], [shape]) for own, shape in pairs]
        engine = Composite.of_whole_parts(engines, [[0], [1]])
    oracle = Codes(np.split(codes, [25], axis=1))
    return space, EngineLikelihoods(space, engine, 1), oracle, draw_state(space, rng)


def test_answers_are_those_of_the_oracle(asked):
    """rel 1e-11 of values: double, short sums; 1e-6 of slopes: central differences."""
    space, likelihoods, oracle, state = asked
    (state,) = likelihoods.begin([state])
    assert state.lnl == pytest.approx(sum(oracle.lnls(0, state)), rel=1e-11)
    topology = state.topology
    lower = next(k for k in range(N_TAXA, topology.n_nodes) if k != topology.top)
    node = next(k for k in range(1, N_TAXA) if topology.parent[topology.parent[k]] > 0)
    questions = [Quartet(lower), Interchanges(N_TAXA), Regrafts.of(topology, node, 9)]
    for question in questions:
        (found,) = likelihoods.ask([Proposal(state, 0.0, (), question=question)])
        (expected,) = oracle.ask([Proposal(state, 0.0, (), question=question)])
        assert found.known.values == pytest.approx(expected.known.values, rel=1e-11)

    def slope(change):
        """The slope of lnL in the size of a change of all lengths, a factor for each."""
        ends = (state._replace(lengths=(state.lengths * (1.0 + own)).tolist()) for own in (change, -change))
        high, low = (sum(oracle.lnls(0, end)) for end in ends)
        return (high - low) / 2e-5

    n = len(state.lengths)
    (found,) = likelihoods.ask([Proposal(state, 0.0, (), question=Slopes(topology.n_nodes))])
    expected = [slope(1e-5 * np.eye(n)[k]) / state.lengths[k] for k in range(1, n)]
    assert np.reshape(found.known.values, (-1, 3))[:, 1] == pytest.approx(np.array(expected), rel=1e-6, abs=1e-6)
    (found,) = likelihoods.ask([Proposal(state, 0.0, (), question=CoordinateSlopes(space))])
    whole = [slope(1e-5 * (np.arange(n) // (topology.n_branches + 1) == part)) for part in (0, 1)]
    assert found.known.values[-2:] == pytest.approx(np.array(whole), rel=1e-6, abs=1e-6)


def split_rows():
    return [{name: row[begin:end] for name, row in ROWS.items()} for begin, end in ((0, 12), (12, 32))]


def test_posterior_by_quadrature():
    """Topologies, and the mean length of the tree of each part; 4.5 standard errors."""
    found = [integrate_lengths(rows.values(), 8) for rows in split_rows()]
    logs = sum(np.log(mass) for mass, _ in found)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    alone = [mass / mass.sum() for mass, _ in found]
    assert np.abs(alone[0] - alone[1]).max() > 0.1
    options = plltool.SampleOptions(generations=5_000, chains=1, sample_every=5)
    sampled = plltool.sample(
        ROWS, PARTS, brlen="unlinked", options=options, priors=PRIORS, device="numpy", workers=1, seed=4
    )
    for part, (mass, lengths) in enumerate(found, start=1):
        own = sampled.posterior.numbers[f"TL{{{part}}}"]
        assert own.size > 100
        expected = float(shares @ (lengths / mass))
        assert own.mean == pytest.approx(expected, abs=4.5 * own.deviation / own.size**0.5)
    for branches, share in zip(all_topologies(4), shares, strict=True):
        (split,) = splits_of(branches, 4)
        found_share = sampled.posterior.splits.get(sum(1 << tip for tip in split), 0.0)
        assert found_share == pytest.approx(share, abs=4.5 * (share / 100) ** 0.5)  # at least 100 independent trees


def test_marginal_likelihood_by_quadrature():
    rows = [{name: own[name] for name in "bcd"} for own in split_rows()]
    expected = sum(np.log(integrate_lengths(own.values(), 10)[0].sum()) for own in rows)
    options = plltool.StoneOptions(800, steps=6, sample_every=4)
    whole = {name: ROWS[name] for name in "bcd"}
    found = plltool.marginal_likelihood(
        whole, PARTS, brlen="unlinked", options=options, priors=PRIORS, device="numpy", seed=2
    )
    assert found.error < 0.3
    assert found.log_marginal_likelihood == pytest.approx(expected, abs=4 * found.error)


def test_prior_of_lengths_is_that_of_each_part():
    """Their trees have independent gamma distributions of lengths: mean, deviation and correlation."""
    options = plltool.SampleOptions(generations=9_000, chains=1, sample_every=3, prior_only=True)
    priors = plltool.Priors(lengths="gammadir(2,4,1,1)")
    found = plltool.sample(ROWS, PARTS, brlen="unlinked", options=options, priors=priors)
    columns = [found.samples.columns.index(f"TL{{{part}}}") for part in (1, 2)]
    first, second = np.moveaxis(found.samples.numbers(found.first)[:, :, columns], 2, 0)
    for part, values in ((1, first), (2, second)):
        size = found.posterior.numbers[f"TL{{{part}}}"].size
        assert size > 100
        assert values.mean() == pytest.approx(0.5, abs=4.5 * 0.125**0.5 / size**0.5)
        assert values.std() == pytest.approx(0.125**0.5, rel=0.25)  # long tails
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.25


FEW = plltool.SampleOptions(generations=90, chains=2, sample_every=5, burnin=0.4)


def test_files_have_the_lengths_of_each_part_and_summaries_their_means():
    found = plltool.sample(ROWS, PARTS, brlen="unlinked", options=FEW, device="numpy", workers=1)
    texts = found.texts()
    names = [f"tree{part}.run{run}.t" for part in (1, 2) for run in (1, 2)]
    assert sorted(own for own in texts if own.endswith(".t")) == names
    rows = [line.split("\t") for line in texts["run2.p"].splitlines()[1:]]
    assert rows[0] == ["Gen", "LnL", "LnPr", "TL{1}", "TL{2}"]
    lengths, mcc = [], []
    for part in (1, 2):
        assert f"[Param: tree{{{part}}}]" in texts[f"tree{part}.run2.t"]
        trees = dendropy.TreeList.get(data=texts[f"tree{part}.run2.t"], schema="nexus")
        written = [tree.length() for tree in trees]
        assert written == pytest.approx([float(row[2 + part]) for row in rows[1:]], rel=1e-5)  # seven digits
        lengths.append(written)
    means = [found.samples.tree(1, number)[1] for number in range(len(lengths[0]))]
    expected = 12 / 32 * np.array(lengths[0]) + 20 / 32 * np.array(lengths[1])
    assert [sum(own) for own in means] == pytest.approx(expected, rel=1e-5)
    tips = [own[1] for run in (0, 1) for own in (found.samples.tree(run, k)[1] for k in range(found.first, 19))]
    for text in (texts["consensus.nwk"], texts["mcc.nwk"]):
        mcc.append(float(re.search(r"\bb:([0-9.e-]+)", text)[1]))
    assert mcc == pytest.approx([np.mean(tips)] * 2)
    assert found.as_record()["brlen"] == "unlinked"


def test_a_run_goes_on_with_the_same_bits_in_any_number_of_processes(tmp_path, monkeypatch):
    for name in ("REPORT_SECONDS", "SAVE_SECONDS", "constants.CHECKPOINT_PATIENCE"):
        monkeypatch.setattr(f"plltool.analyses.sampling.analysis.{name}", 0.0)
    settings = {"brlen": "unlinked", "options": FEW, "device": "numpy", "threads": 1}
    whole = plltool.sample(ROWS, PARTS, workers=1, **settings)
    others = plltool.sample(ROWS, PARTS, workers=2, **settings)
    trees = "tree2.run2.t"
    assert others.texts()[trees] == whole.texts()[trees]
    kept = settings | {"checkpoint": tmp_path / "kept", "workers": 1}
    assert_pieces_make(whole, lambda listener: plltool.sample(ROWS, PARTS, listener=listener, **kept), each=6)


def test_the_trees_of_a_start_have_the_lengths_of_parts(tmp_path):
    (tmp_path / "trees.nwk").write_text("(a:1,b:2,(c:3,d:4):5);\n(a:.1,b:.2,(c:.3,d:.4):.5);\n")
    options = plltool.SampleOptions(generations=2, runs=1, chains=1, sample_every=2, burnin=0.0)
    given = {"brlen": "unlinked", "options": options, "device": "numpy"}
    found = plltool.sample(ROWS, PARTS, start=str(tmp_path / "trees.nwk"), **given)
    assert found.samples.numbers()[0, 0, 2:] == pytest.approx([15.0, 1.5])


def test_a_clock_has_one_tree():
    with pytest.raises(InputError, match=r"^brlen: found unlinked with a clock, expected linked or scaled$"):
        plltool.sample(ROWS, PARTS, brlen="unlinked", clock="strict", dates=dict.fromkeys(ROWS, 2000.0))
