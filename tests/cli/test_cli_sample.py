"""The command `sample`: its files, more generations later, other priors, and wrong usage."""

import json
from collections import Counter

import dendropy
import pytest


def test_sample(plltool, small, tmp_path):
    common = ("sample", small, "--model", "HKY+FO", "--device", "numpy", "--chains", "2", "--sample-every", "2")
    common = (*common, "--workers", "1")
    done = plltool(*common, "--generations", "12", "--prefix", tmp_path / "run", "--burnin", "0", status=0)
    assert "prior of lengths: gammadir(1.0,0.1,1.0,1.0)" in done.stderr
    assert "generation 12/12" in done.stderr
    assert f"trees of a run: {tmp_path / 'run.run1.t'}" in done.stdout.splitlines()
    assert "PREFIX.runN.t  " in plltool("sample", "--help").stdout
    first = (tmp_path / "run.run1.p").read_text()
    columns = ["Gen", "LnL", "LnPr", "TL", "kappa", "pi(A)", "pi(C)", "pi(G)", "pi(T)"]
    assert first.splitlines()[1].split("\t") == columns
    record = json.loads((tmp_path / "run.sample.json").read_text())
    assert record["priors"]["rates"] == "dirichlet(1.0)"
    assert record["posterior"]["samples"] == 6  # without the start
    assert "Generations:          12, a sample every 2" in (tmp_path / "run.txt").read_text()
    (tmp_path / "run.html").unlink()
    more = plltool(*common, "--generations", "16", "--prefix", tmp_path / "run", "--burnin", "0", status=0)
    assert "resuming from generation 12" in more.stderr
    longer = (tmp_path / "run.run1.p").read_text()
    assert longer.startswith(first)
    assert longer.splitlines()[-1].startswith("16\t")
    assert "Generations:          16, a sample every 2" in (tmp_path / "run.txt").read_text()
    assert (tmp_path / "run.html").exists(), "a run that goes on writes the report, too"
    assert json.loads((tmp_path / "run.sample.json").read_text())["tuning"] == 0
    fewer = plltool(*common, "--generations", "12", "--prefix", tmp_path / "run", "--burnin", "0", status=1)
    assert "generations: found 12, expected at least 16, which " in fewer.stderr.splitlines()[-1]


def test_a_short_run_goes_on(plltool, small, tmp_path):
    """Its steps were tuned for a quarter of its generations, and stay as they are."""
    common = ("sample", small, "--model", "JC", "--device", "numpy", "--chains", "1", "--sample-every", "4")
    common = (*common, "--workers", "1", "--prefix", tmp_path / "run")
    for generations in ("40", "80"):
        done = plltool(*common, "--generations", generations, status=0)
        record = json.loads((tmp_path / "run.sample.json").read_text())
        assert (record["tuning"], record["generations"]) == (10, int(generations))
    assert "resuming from generation 40" in done.stderr


def test_the_record_has_what_its_report_shows(plltool, small, tmp_path):
    """Traces, ASDSF and splits, recomputed from the files of samples."""
    common = ("--device", "numpy", "--chains", "2", "--sample-every", "1", "--generations", "421", "--no-report")
    assert plltool("sample", small, "--model", "HKY+FO", *common, "--prefix", tmp_path / "run").exit_code == 0
    assert not (tmp_path / "run.html").exists()
    record = json.loads((tmp_path / "run.sample.json").read_text())
    rows, trees = [], []
    for run in (1, 2):
        lines = (tmp_path / f"run.run{run}.p").read_text().splitlines()[1:]
        rows.append([dict(zip(lines[0].split("\t"), map(float, line.split("\t")), strict=True)) for line in lines[1:]])
        trees.append(dendropy.TreeList.get(path=tmp_path / f"run.run{run}.t", schema="nexus", rooting="force-unrooted"))
    trace = record["trace"]
    assert trace["generations"] == [*range(0, 421, 3), 421]  # 422 samples, at most 200 and the last one
    assert set(trace["numbers"]) == {"LnL", "LnPr", "TL", "kappa", *(f"pi({base})" for base in "ACGT")}
    for name, values in trace["numbers"].items():
        for own, whole in zip(values, rows, strict=True):
            assert own == pytest.approx([whole[generation][name] for generation in trace["generations"]], rel=2e-6)
    assert record["burnin_generation"] == record["burnin_samples"] == 106  # above 105 generations of tuning

    def share(run, first, end):
        counted = Counter()
        for tree in trees[run][first:end]:
            tree.migrate_taxon_namespace(trees[0].taxon_namespace)
            tree.encode_bipartitions()
            counted.update(
                {
                    frozenset(b.leafset_taxa(tree.taxon_namespace))
                    for b in tree.bipartition_encoding
                    if not b.is_trivial()
                }
            )
        return {side: number / (end - first) for side, number in counted.items()}

    def deviation(first, end):
        own = [share(run, first, end) for run in (0, 1)]
        sides = {side for some in own for side, value in some.items() if value >= 0.1}
        pairs = [(own[0].get(side, 0.0), own[1].get(side, 0.0)) for side in sides]
        return sum(abs(a - b) / 2**0.5 for a, b in pairs) / len(pairs)  # of two values

    looks = record["asdsf"]
    assert looks[-1] == {"generation": 421, "asdsf": record["posterior"]["asdsf"]}
    assert 10 < len(looks) <= 25
    for look in (looks[0], looks[-1]):
        end = look["generation"] + 1
        assert look["asdsf"] == pytest.approx(deviation(max(106, end // 4), end))
    found = {}
    for own in record["splits"]:
        found[frozenset(own["taxa"])] = own["shares"]
    names = {taxon.label.replace(" ", "_") for taxon in trees[0].taxon_namespace}
    shares = [share(run, 106, 422) for run in (0, 1)]
    expected = {}
    for side in {side for some in shares for side, value in some.items() if value >= 0.1}:
        labels = frozenset(taxon.label.replace(" ", "_") for taxon in side)
        rest = frozenset(names - labels)
        key = next(one for one in (labels, rest) if one in found)
        assert len(key) <= 3
        expected[key] = [some.get(side, 0.0) for some in shares]
    assert found.keys() == expected.keys()
    for key, values in found.items():
        assert values == pytest.approx(expected[key])


def test_another_prior_and_wrong_usage(plltool, small, tmp_path):
    common = ("sample", small, "--model", "JC", "--device", "numpy", "--generations", "4", "--sample-every", "2")
    common = (*common, "--workers", "1")
    assert plltool(*common, "--prefix", tmp_path / "run").exit_code == 0
    other = plltool(*common, "--prefix", tmp_path / "run", "--prior-lengths", "exponential(10)", status=1)
    expected = "prior of lengths: the checkpoint has gammadir(1.0,0.1,1.0,1.0), this command exponential(10.0)"
    assert expected in other.stderr.splitlines()[-1]
    wrong = plltool(*common, "--prefix", tmp_path / "other", "--prior-alpha", "gamma(1)")
    assert wrong.stderr.splitlines()[-1].endswith(
        "prior of alpha: found 'gamma(1)', expected exponential(10) or uniform(0,1)"
    )
    for option, value, found in (
        ("--seed", "3", "seed: the checkpoint has 1, this command 3; --redo starts over"),
        ("--model", "HKY", "model: the checkpoint has JC, this command HKY+FO; --redo starts over"),
        ("--chains", "2", "chains: the checkpoint has 4, this command 2; --redo starts over"),
    ):
        changed = plltool(*common, "--prefix", tmp_path / "run", option, value, status=1)
        assert changed.stderr.splitlines()[-1].endswith(f"run.sample.checkpoint: a checkpoint of another run: {found}")
    (tmp_path / "start.nwk").write_text("(a,b,(c,d));\n")
    strange = plltool(*common, "--prefix", tmp_path / "other", "--start", tmp_path / "start.nwk", status=1)
    assert "start.nwk: the taxa are not those of the alignment: missing from the tree: " in strange.stderr
    for option, value in (("--generations", "0"), ("--burnin", "1"), ("--temperature", "-1"), ("--runs", "0")):
        assert plltool(*common, option, value).exit_code == 2
