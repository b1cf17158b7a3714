"""`plltool.sample`: likelihoods of states, the prior, files that other programs read, and runs that go on."""

import os
import re
import signal
import sys
from pathlib import Path

import dendropy
import numpy as np
import pytest
from helpers import make_alignment
from interruptions import assert_pieces_make
from oracles.likelihood import dna_columns, pruning
from oracles.substitution import gamma_category_means, q_matrix
from sampling.toys import draw_topology, make_space
from scipy import stats
from tree_samples import sides_of_root

import plltool
from plltool.alignment.patterns import compress
from plltool.analyses.sampling.analysis import least_length
from plltool.analyses.sampling.likelihoods import EngineLikelihoods
from plltool.analyses.sampling.moves import TABLE
from plltool.analyses.sampling.result import describe_deviations
from plltool.analyses.sampling.samples import Samples
from plltool.analyses.sampling.state import Sample
from plltool.analyses.sampling.summaries import summarise
from plltool.analyses.sampling.tree import to_tree
from plltool.errors import CheckpointError, DeviceError, EngineError, InputError
from plltool.io.newick import parse_newick
from plltool.tree.splits import rf_distance

ALONE = {"device": "numpy", "workers": 1}
ENDS = ["AA", "AA", "AC", "CC", "CA", "CA"]
FEW = plltool.SampleOptions(generations=30, chains=2, sample_every=5)


@pytest.fixture(scope="module")
def small(sequences):
    """Six taxa, 60 sites."""
    return {name: sequence[100:160] for name, sequence in list(sequences.items())[:6]}


@pytest.mark.parametrize("model", ["GTR+FO+I+G4", "HKY+FO+G4"])
def test_likelihoods_of_samples_are_those_of_the_oracle(small, device, model):
    """After 30 generations of partial traversals, accepted and rejected."""
    found = plltool.sample(small, model, options=FEW, device=device, threads=1, seed=3)
    columns = dna_columns(small, found.names)
    for run in range(2):
        topology, lengths = found.samples.tree(run, -1)
        numbers = dict(zip(found.samples.columns, found.samples.numbers()[run, -1].tolist(), strict=True))
        if "kappa" in numbers:
            rates = [1.0, numbers["kappa"], 1.0, 1.0, numbers["kappa"], 1.0]
        else:
            rates = [numbers[f"r({pair[0]}<->{pair[1]})"] for pair in ("AC", "AG", "AT", "CG", "CT", "GT")]
        pi = [numbers[f"pi({base})"] for base in "ACGT"]
        pinv, q = numbers.get("pinvar", 0.0), q_matrix(rates, pi)
        speeds = gamma_category_means(numbers["alpha"], 4) / (1 - pinv)
        components = [((1 - pinv) / 4, pi, q * speed) for speed in speeds] + [(pinv, pi, q * 0.0)] * (pinv > 0)
        branches = [(topology.parent[node], node) for node in range(1, 10)]
        lnl = pruning(branches, lengths[1:], columns, components).sum()
        assert numbers["LnL"] == pytest.approx(lnl, rel=1e-9)  # the oracle's integration of the categories
        assert numbers["TL"] == pytest.approx(sum(lengths))
    moved = {move for move, share in found.acceptance.items() if share}
    assert len(moved) > 3


def test_parts_of_different_shapes_and_little_memory(small, device, tmp_path, monkeypatch):
    """DNA in two parts with different numbers of categories are two engines; their sum is what `evaluate` finds.

    With little memory there are no walks; without them all bits are the same.
    """
    scheme = tmp_path / "parts.txt"
    scheme.write_text("GTR+FO+G4, one = 1-30\nJC+I, two = 31-60\n")
    found = plltool.sample(small, str(scheme), options=FEW, device=device, threads=1)
    assert {"alpha{1}", "pinvar{2}", "pi(A){1}"} <= set(found.samples.columns)
    numbers = dict(zip(found.samples.columns, found.samples.numbers()[0, -1].tolist(), strict=True))
    rates = "/".join(repr(numbers[f"r({p[0]}<->{p[1]}){{1}}"]) for p in ("AC", "AG", "AT", "CG", "CT", "GT"))
    pi = "/".join(repr(numbers[f"pi({base}){{1}}"]) for base in "ACGT")
    scheme.write_text(
        f"GTR{{{rates}}}+FU{{{pi}}}+G4{{{numbers['alpha{1}']!r}}}, one = 1-30\n"
        f"JC+IU{{{numbers['pinvar{2}']!r}}}, two = 31-60\n"
    )
    tree = tree_of(found, 0, -1)
    checked = plltool.evaluate(small, tree, str(scheme), fixed=True, brlen="linked", device=device, threads=1)
    assert numbers["LnL"] == pytest.approx(checked.lnl, rel=1e-11)
    launches, odd = divmod(found.counters["requests"]["tracks"], 2)
    assert not odd, "two engines"
    assert launches >= 31, "the start and 30 generations, some of which ask several times"
    monkeypatch.setattr("plltool.analyses.sampling.likelihoods.WALK_WORK", 0)
    streamed = plltool.sample(small, "JC", options=FEW, device=device, threads=1, memory=20_000)
    resident = plltool.sample(small, "JC", options=FEW, device=device, threads=1)
    assert (streamed.samples.numbers() == resident.samples.numbers()).all()


def tree_of(found, run, number):
    return to_tree(*found.samples.tree(run, number), found.names)


def test_the_prior_is_sampled_without_data(small):
    """Every parameter has its prior distribution; one in 300 generations is nearly independent of the last."""
    options = plltool.SampleOptions(generations=30_000, runs=2, chains=1, sample_every=300, prior_only=True, burnin=0.1)
    priors = plltool.Priors(lengths="exponential(5)", alpha="uniform(0.5,2)")
    found = plltool.sample(small, "GTR+FO+I+G4", options=options, priors=priors)
    values = dict(zip(found.samples.columns, found.samples.numbers(found.first).reshape(-1, 15).T, strict=True))
    expected = {
        "TL": stats.gamma(9, scale=0.2),
        "r(C<->T)": stats.beta(1, 5),
        "r(A<->C)": stats.beta(1, 5),
        "pi(G)": stats.beta(1, 3),
        "alpha": stats.uniform(0.5, 1.5),
        "pinvar": stats.uniform(0, 1),
    }
    for name, prior in expected.items():
        size = found.posterior.numbers[name].size
        assert size > 50
        distance = stats.kstest(values[name], prior.cdf).statistic
        assert distance < 2.0 / np.sqrt(size), name  # exceeded once in 1,500 samples of this size
    assert set(values["LnL"]) == {0.0}
    assert found.device == "none: the prior is sampled"


def test_both_trees_have_the_outgroup_on_one_side_of_the_root(small):
    def sample(outgroup):
        options = plltool.SampleOptions(generations=100, runs=1, chains=1, sample_every=5)
        return plltool.sample(small, "JC", options=options, device="numpy", seed=4, outgroup=outgroup).posterior

    def tree_of_text(text):
        return dendropy.Tree.get(data=text, schema="newick", preserve_underscores=True)

    unrooted = tree_of_text(sample(None).consensus)
    inner = unrooted.internal_nodes(exclude_seed_node=True)
    clades = ({leaf.taxon.label for leaf in node.leaf_iter()} for node in inner)
    clade = next(clade for clade in clades if len(clade) in (2, 3))
    found = sample(sorted(clade))
    assert found.warnings == ()
    for text in (found.consensus, found.mcc):
        assert any(side in sides_of_root(text) for side in (clade, set(small) - clade))
    assert tree_of_text(found.consensus).length() == pytest.approx(unrooted.length(), rel=1e-12)
    first = min(clade)
    broken = sample([first, min(set(small) - clade)])
    assert [warning.partition(":")[0] for warning in broken.warnings] == ["majority-rule tree", "MCC tree"]
    assert all(warning.endswith(f"'{first}' alone is used as the outgroup") for warning in broken.warnings)
    assert {first} in sides_of_root(broken.consensus)


def test_files_are_read_by_other_programs(small):
    found = plltool.sample(small, "JC+G4", options=FEW, seed=4, outgroup=next(iter(small)), **ALONE)
    assert set(found.as_record()["priors"]) == {"lengths", "alpha"}, "those of the parameters that the model has"
    texts = found.texts()
    assert sorted(texts) == [
        "consensus.nwk", "credible.tsv", "mcc.nwk", "run1.p", "run1.t", "run2.p", "run2.t", "sample.json",
    ]  # fmt: skip
    trees = dendropy.TreeList.get(data=texts["run2.t"], schema="nexus", preserve_underscores=True)
    assert len(trees) == 7
    assert {taxon.label for taxon in trees.taxon_namespace} == set(small)
    names = found.names
    for number, tree in enumerate(trees):
        own = tree_of(found, 1, number)
        assert tree.length() == pytest.approx(own.total_length(), rel=1e-5)  # seven digits of each length
        assert rf_distance(parse_newick(tree.as_string("newick"), "dendropy", names), own) == 0
    rows = [line.split("\t") for line in texts["run1.p"].splitlines()]
    assert rows[0] == ["[ID: 4]"]
    assert rows[1] == ["Gen", "LnL", "LnPr", "TL", "alpha"]
    assert [row[0] for row in rows[2:]] == ["0", "5", "10", "15", "20", "25", "30"]
    assert [float(row[3]) for row in rows[2:]] == pytest.approx(found.samples.numbers()[0, :, 2].tolist(), rel=1e-6)
    assert parse_newick(texts["mcc.nwk"], "mcc", names).total_length() == pytest.approx(
        found.posterior.tree.total_length()
    )
    shares = [float(line.split("\t")[0]) for line in texts["credible.tsv"].splitlines()[1:]]
    assert 0.95 <= sum(shares) <= 1.0


def test_a_run_that_was_stopped_ends_with_the_same_bits(small, device, tmp_path, always, monkeypatch):
    monkeypatch.setattr("plltool.analyses.sampling.joint_moves.FIRST_STATES", 4)  # of two chains at two times
    few = plltool.SampleOptions(generations=120, chains=2, sample_every=5, burnin=0.4)  # 48 generations of tuning
    settings = {"options": few, "device": device, "threads": 1, "seed": 5}
    whole = plltool.sample(small, "HKY+FO+G4", **settings)
    kept = settings | {"checkpoint": tmp_path / "kept"}
    assert_pieces_make(whole, lambda listener: plltool.sample(small, "HKY+FO+G4", listener=listener, **kept), each=2)
    priors = plltool.Priors(lengths="exponential(10)")
    with pytest.raises(CheckpointError, match="prior of lengths: the checkpoint has"):
        plltool.sample(small, "HKY+FO+G4", priors=priors, **kept)


def test_workers_change_no_bit(small, device, always, monkeypatch):
    """Three runs in two processes, sample by sample, so that a run goes from one to the other; then here again."""
    monkeypatch.setattr("plltool.analyses.sampling.runs.RunsInWorkers.seconds", 0.0)
    few = plltool.SampleOptions(generations=90, runs=3, chains=2, sample_every=10, burnin=0.4)
    settings = {"options": few, "device": device, "threads": 1, "seed": 5}
    whole = plltool.sample(small, "HKY+FO+G4", workers=1, **settings)
    others = plltool.sample(small, "HKY+FO+G4", workers=2, **settings)
    assert len({row.tobytes() for row in whole.samples.numbers()}) == 3
    assert (others.samples.numbers() == whole.samples.numbers()).all()
    assert [others.texts()[f"run{run}.t"] for run in (1, 2, 3)] == [whole.texts()[f"run{run}.t"] for run in (1, 2, 3)]
    assert (others.acceptance, others.swaps) == (whole.acceptance, whole.swaps)
    assert others.layout == whole.layout
    assert all(others.counters[name] >= whole.counters[name] > 0 for name in ("instructions", "newviews"))


def test_workers_stop_where_a_look_says_that_it_is_enough(small, monkeypatch):
    """However long they may go on without a look."""
    monkeypatch.setattr("plltool.analyses.sampling.runs.RunsInWorkers.seconds", 1e9)
    monkeypatch.setattr("plltool.analyses.sampling.settings.TUNING_GENERATIONS", 0)
    values = {"FIRST_CHECK": 10, "AUTO_GENERATIONS": 500, "constants.ENOUGH_DEVIATION": 9, "constants.ENOUGH_SIZE": -1}
    for name, value in values.items():
        monkeypatch.setattr(f"plltool.analyses.sampling.analysis.{name}", value)
    few = plltool.SampleOptions(chains=1, sample_every=5)
    found = plltool.sample(small, "JC", options=few, device="numpy", threads=1, workers=2)
    assert found.converged
    assert (found.generations, len(found.samples)) == (45, 10)


def test_a_run_that_is_enough_goes_no_further(small, tmp_path, always, monkeypatch):
    """The same call ends with the same bits, whether the run was over or was stopped."""
    monkeypatch.setattr("plltool.analyses.sampling.settings.TUNING_GENERATIONS", 0)
    for name, value in (("FIRST_CHECK", 10), ("constants.ENOUGH_DEVIATION", 9.0), ("constants.ENOUGH_SIZE", 3.0)):
        monkeypatch.setattr(f"plltool.analyses.sampling.analysis.{name}", value)
    few = plltool.SampleOptions(chains=1, sample_every=5)

    def sample(folder, listener=lambda _: None):
        run = {"options": few, "device": "numpy", "workers": 1, "checkpoint": tmp_path / folder}
        return plltool.sample(small, "JC", **run, listener=listener)

    def stop(event):
        raise plltool.StopSearch

    whole = sample("whole")
    assert (whole.converged, whole.interrupted) == (True, False)
    for _ in range(2):
        again = sample("whole")
        assert again.converged
        assert np.array_equal(again.samples.numbers(), whole.samples.numbers())
    for _ in range(4):
        assert sample("stopped", stop).interrupted
    assert np.array_equal(sample("stopped").samples.numbers(), whole.samples.numbers())


def test_a_likelihood_that_is_no_number_is_an_error(small, monkeypatch):
    ask, nan = EngineLikelihoods.ask, float("nan")
    monkeypatch.setattr(EngineLikelihoods, "ask", lambda *given: [own and own._replace(lnl=nan) for own in ask(*given)])
    with pytest.raises(EngineError, match="chain 1 begins with lnL nan, expected a finite number"):
        plltool.sample(small, "JC", options=FEW, device="numpy", workers=1)


def test_credible_sets_are_no_larger_than_they_must_be():
    """Of 80 topologies that are sampled once, 76 hold 95 %."""
    problem, rng = make_space("JC", n_taxa=8), np.random.default_rng(1)
    topologies = {tuple(sorted(own.splits())): own for own in (draw_topology(problem, rng) for _ in range(120))}
    samples = Samples(problem, 1)
    for number, topology in enumerate(list(topologies.values())[:80]):
        samples.add(number, [Sample([0.0, 0.0, 1.0], topology, [0.0, *[0.1] * (topology.n_nodes - 1)])])
    found = summarise(samples, problem.names, 0, None).credible
    assert len(found) == 76
    assert found[-1].cumulative == pytest.approx(0.95)


def children():
    """The processes that this one has started and that still run."""
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(number) for path in listed for number in path.read_text().split()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds children in /proc")
def test_a_worker_that_is_killed_leaves_a_checkpoint(small, tmp_path, always, monkeypatch):
    monkeypatch.setattr("plltool.io.checkpoint.CHECKPOINT_PATIENCE", 0.0)
    monkeypatch.setattr("plltool.analyses.sampling.runs.RunsInWorkers.seconds", 0.0)
    monkeypatch.setattr("plltool.analyses.sampling.runs.MOST_WORDS", 1)  # workers do not run ahead of the listener
    before = set(children())

    def kill(event):
        if event.round >= 20:
            os.kill(next(number for number in children() if number not in before), signal.SIGKILL)

    settings = {"options": FEW, "device": "numpy", "threads": 1, "seed": 5}
    folder = tmp_path / "kept"
    with pytest.raises(DeviceError, match=r"^a worker process ended before its task did: signal SIGKILL$"):
        plltool.sample(small, "HKY+FO", workers=2, listener=kill, checkpoint=folder, **settings)
    assert not set(children()) - before, "the other worker has ended, too"
    heard = []
    found = plltool.sample(small, "HKY+FO", workers=1, listener=heard.append, checkpoint=folder, **settings)
    assert heard[0].round > 20
    assert (found.samples.numbers() == plltool.sample(small, "HKY+FO", workers=1, **settings).samples.numbers()).all()


def test_deviations_have_burn_ins_of_their_own(small):
    few = plltool.SampleOptions(generations=60, chains=1, sample_every=1, prior_only=True)
    samples = plltool.sample(small, "JC", options=few).samples
    looks = describe_deviations(samples, 0, 0.5)
    ends = [look["generation"] + 1 for look in looks]
    expected = [(end - 1, samples.deviation(max(1, end // 2), end)) for end in ends]
    assert [(look["generation"], look["asdsf"]) for look in looks] == expected
    assert [samples.generations[-1], 18 > looks[0]["generation"] >= 15] == [60, True]  # 8 samples behind half of them


def test_chains_do_not_go_on_with_another_layout_or_other_moves(small, tmp_path, monkeypatch):
    """A checkpoint of another version may ask for other moves."""
    run = {"options": FEW, "device": "numpy", "workers": 1, "checkpoint": tmp_path / "kept"}
    plltool.sample(small, "JC", vw=1, **run)
    told = r"layout: the checkpoint has \{'vw': 1\}, this command \{'vw': 2\}; --redo starts over"
    with pytest.raises(CheckpointError, match=told):
        plltool.sample(small, "JC", vw=2, **run)
    with monkeypatch.context() as patched:
        patched.setitem(
            TABLE, "topology_moves.ParsimonyRegraft", TABLE["topology_moves.ParsimonyRegraft"] | {"weight": 2.0}
        )
        with pytest.raises(CheckpointError, match="a checkpoint of another run: moves: the checkpoint has "):
            plltool.sample(small, "JC", vw=1, **run)
    (tmp_path / "kept" / "run.json").write_text("{")
    for path in (tmp_path / "kept").glob("*.state*"):
        path.write_text("{")
    with pytest.raises(CheckpointError, match=r"found something other than JSON .*; --redo starts over"):
        plltool.sample(small, "JC", vw=1, **run)


def test_least_length():
    """One change at the first site, three at the second, none at the third, where R may be A."""
    columns = ["AAAC", "ACGT", "ARAA"]
    rows = ["".join(row) for row in zip(*columns, strict=True)]
    alignment = make_alignment(list("abcd"), rows, "toy")
    assert least_length([compress(alignment)]) == pytest.approx(4 / 3)
    assert least_length([compress(alignment)] * 2) == pytest.approx(4 / 3)


IN_YEARS = "(((((a:1,b:2):1,c:4):1,d:6):1,e:8):1,f:10);"


@pytest.mark.parametrize("start", ["parsimony", IN_YEARS], ids=["parsimony", "years"])
def test_trees_in_time_begin_with_few_changes(start):
    """Far from them all lengths may reach their bound, where the likelihood says no more of the rate."""
    rng = np.random.default_rng(4)
    row, dates = rng.choice(list("ACGT"), 3000), {name: 2000.0 + number for number, name in enumerate("abcdef")}
    rows = {name: "".join(row[:-2]) + number for name, number in zip(dates, ENDS, strict=True)}
    options = plltool.SampleOptions(generations=5, runs=1, chains=1, sample_every=5)
    found = plltool.sample(rows, "JC", options=options, clock="strict", dates=dates, start=start, **ALONE)
    first = found.samples.numbers()[0, 0, found.samples.columns.index("TL")]
    assert 1 / 3000 < first < 10 / 3000


def test_trees_in_time_begin_with_a_root_that_suits_changes_and_dates():
    """Ten changes a year along a tree whose root is in the year 2000, with most nodes above the early tips."""
    clades = {"ab": 1, "a": 9, "b": 10, "cdef": 1, "cde": 1, "cd": 1, "c": 1, "d": 2, "e": 1, "f": 1}
    dates = {name: 2000.0 + sum(years for clade, years in clades.items() if name in clade) for name in "abcdef"}
    sites = [clade for clade, years in clades.items() for _ in range(10 * years)]
    rows = {name: "".join("CA"[name not in clade] for clade in sites) + 2000 * "ACGT" for name in dates}
    options = plltool.SampleOptions(generations=5, runs=1, chains=1, sample_every=5)
    found = plltool.sample(rows, "JC", options=options, clock="strict", dates=dates, **ALONE)
    newick = re.sub(r"\[[^]]*\]", "", found.texts()["run1.t"].partition("= [&R]")[2].partition(";")[0] + ";")
    names = dict(re.findall(r"^\s*(\d+) (\w)", found.texts()["run1.t"], re.M))
    sides = sorted("".join(sorted(names[tip] for tip in side)) for side in sides_of_root(newick))
    assert sides == ["ab", "cdef"]


def test_bad_input(small):
    def refused(*arguments, **settings):
        with pytest.raises(InputError) as caught:
            plltool.sample(small, *arguments, **{"options": FEW, "device": "numpy"} | settings)
        return str(caught.value)

    others = "(a,b,(c,d));"
    assert "taxa" in refused("JC", start=others)
    assert "per-site rates (+PSR)" in refused("GTR+PSR4")
    assert "not time-reversible" in refused("UNREST")
    assert "prior of frequencies: found 3 values, expected 1 or 4" in refused(
        "HKY+FO", priors=plltool.Priors(frequencies="dirichlet(1,2,3)")
    )
    assert refused("JC", seed=1.5) == "seed: found 1.5, expected a whole number of at least 0"
    assert "seed: found -1" in refused("JC", seed=-1)
    impossible = plltool.Priors(alpha="uniform(0,0.01)", pinv="uniform(0,1e-11)")
    assert refused("JC+G4", priors=impossible) == "prior of alpha: found uniform(0.0,0.01), expected values above 0.02"
    assert "found uniform(0.0,1e-11), expected values from 1e-10 to 1" in refused("JC+I", priors=impossible)


def test_chains_begin_where_the_prior_has_a_density(small):
    """Whatever the model and the start tree say: chains whose prior density is 0 would stay where they are."""
    priors = plltool.Priors(alpha="uniform(10,20)", pinv="uniform(0.9,1)")
    names = list(small)
    start = f"(({names[0]}:0,{names[1]}:900):0,{names[2]}:0,({names[3]}:1,({names[4]}:0,{names[5]}:1):0):0);"
    few = plltool.SampleOptions(generations=100, chains=1, sample_every=50)
    rare = {name: row.replace("A", "C") for name, row in small.items()}  # a frequency would be 0
    found = plltool.sample(rare, "GTR+FO+I+G4", options=few, priors=priors, start=start, **ALONE)
    values = dict(zip(found.samples.columns, found.samples.numbers()[0].T.tolist(), strict=True))
    assert np.isfinite(values["LnPr"]).all()
    assert (values["alpha"][0], values["pinvar"][0]) == (15.0, pytest.approx(0.95))
    assert all(10 < alpha < 20 for alpha in values["alpha"])
    assert len(set(values["LnL"])) == len(values["LnL"]), "they move"


def test_priors_of_nothing_are_told_and_change_no_run(small, tmp_path):
    run = {"options": FEW, "device": "numpy", "workers": 1, "checkpoint": tmp_path / "kept"}
    found = plltool.sample(small, "JC", **run, priors=plltool.Priors(alpha="exponential(2)", lengths="exponential(3)"))
    assert "prior of alpha: the model has no such parameter to sample" in found.warnings
    assert sum("prior of" in text for text in found.warnings) == 1
    again = plltool.sample(small, "JC", **run, priors=plltool.Priors(lengths="exponential(3)"))
    assert again.generations == found.generations, "it goes on"


def test_interrupted(small, always):
    def stop(event):
        if event.round >= 15:
            raise plltool.StopSearch

    found = plltool.sample(small, "JC", options=FEW, device="numpy", listener=stop, workers=1)
    assert found.interrupted
    assert found.converged is False, "two runs can be compared, however early"
    assert found.generations == 15
    assert len(found.samples) == 4


@pytest.mark.parametrize(
    ("generations", "runs", "expected"),
    [
        (10, 2, r"ASDSF 0\.\d{4}, expected below 0\.01; too few samples for an ESS"),
        (10, 1, "too few samples for an ESS"),
        (60, 1, r"smallest ESS \d+ \(\w+\), expected above 200"),
    ],
)
def test_what_is_not_enough_is_named(small, generations, runs, expected):
    options = plltool.SampleOptions(generations=generations, runs=runs, chains=1, sample_every=5)
    found = plltool.sample(small, "JC", options=options, **ALONE)
    assert found.converged is (None if runs == 1 else False)
    assert any(re.fullmatch(f"not enough generations yet: {expected}", text) for text in found.warnings)
    assert any(line.split()[-2:] == ["-", "-"] for line in found.describe()) == (generations == 10), "unknown sizes"


def test_steps_that_were_tuned_for_a_shorter_time(small, tmp_path):
    def warnings_of(generations, burnin=0.25):
        options = plltool.SampleOptions(generations=generations, chains=1, sample_every=4, burnin=burnin)
        found = plltool.sample(small, "JC", options=options, checkpoint=tmp_path / f"{burnin}", **ALONE)
        return [text for text in found.warnings if "tune" in text]

    assert warnings_of(40) == []
    (told,) = warnings_of(80)
    assert "tuned for only 10 generations" in told
    assert "tunes for 20" in told
    (told,) = warnings_of(40, burnin=0.0)
    assert told.startswith("step sizes were not tuned")
