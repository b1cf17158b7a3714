"""The command `sample`: its files, more generations later, other priors, and wrong usage."""

import json


def test_sample(plltool, small, tmp_path):
    common = ("sample", small, "--model", "HKY+FO", "--device", "numpy", "--chains", "2", "--sample-every", "2")
    done = plltool(*common, "--generations", "12", "--prefix", tmp_path / "run", "--burnin", "0")
    assert done.exit_code == 0, done.stderr
    assert "prior of lengths: gammadir(1.0,0.1,1.0,1.0)" in done.stderr
    assert "round 12/12" in done.stderr
    assert f"trees of a run: {tmp_path / 'run.run1.t'}" in done.stdout.splitlines()
    assert "PREFIX.runN.t  " in plltool("sample", "--help").stdout
    first = (tmp_path / "run.run1.p").read_text()
    columns = ["Gen", "LnL", "LnPr", "TL", "kappa", "pi(A)", "pi(C)", "pi(G)", "pi(T)"]
    assert first.splitlines()[1].split("\t") == columns
    record = json.loads((tmp_path / "run.sample.json").read_text())
    assert record["priors"]["rates"] == "dirichlet(1.0)"
    assert record["posterior"]["samples"] == 6  # without the start
    more = plltool(*common, "--generations", "16", "--prefix", tmp_path / "run", "--burnin", "0")
    assert more.exit_code == 0, more.stderr
    assert "the run goes on from generation 12" in more.stderr
    longer = (tmp_path / "run.run1.p").read_text()
    assert longer.startswith(first)
    assert longer.splitlines()[-1].startswith("16\t")
    fewer = plltool(*common, "--generations", "12", "--prefix", tmp_path / "run", "--burnin", "0")
    assert fewer.exit_code == 1
    assert "generations: found 12, expected at least 16, which " in fewer.stderr.splitlines()[-1]


def test_another_prior_and_wrong_usage(plltool, small, tmp_path):
    common = ("sample", small, "--model", "JC", "--device", "numpy", "--generations", "4", "--sample-every", "2")
    assert plltool(*common, "--prefix", tmp_path / "run").exit_code == 0
    other = plltool(*common, "--prefix", tmp_path / "run", "--prior-lengths", "exponential(10)")
    assert other.exit_code == 1
    expected = (
        "a checkpoint of another run: prior of lengths: found gammadir(1.0,0.1,1.0,1.0), expected exponential(10.0)"
    )
    assert expected in other.stderr.splitlines()[-1]
    wrong = plltool(*common, "--prefix", tmp_path / "other", "--prior-alpha", "gamma(1)")
    assert wrong.stderr.splitlines()[-1].endswith(
        "prior of alpha: found 'gamma(1)', expected exponential(10) or uniform(0,1)"
    )
    for option, value, found in (
        ("--seed", "3", "seed: found 1, expected 3; --redo starts over"),
        ("--model", "HKY", "model: found JC, expected HKY+FO; --redo starts over"),
        ("--chains", "2", "chains: found 4, expected 2; --redo starts over"),
    ):
        changed = plltool(*common, "--prefix", tmp_path / "run", option, value)
        assert changed.exit_code == 1
        assert changed.stderr.splitlines()[-1].endswith(f"run.sample.checkpoint: a checkpoint of another run: {found}")
    (tmp_path / "start.nwk").write_text("(a,b,(c,d));\n")
    strange = plltool(*common, "--prefix", tmp_path / "other", "--start", tmp_path / "start.nwk")
    assert strange.exit_code == 1
    assert "start.nwk: the taxa are not those of the alignment: missing from the tree: " in strange.stderr
    for option, value in (("--generations", "0"), ("--burnin", "1"), ("--temperature", "-1"), ("--runs", "0")):
        assert plltool(*common, option, value).exit_code == 2
