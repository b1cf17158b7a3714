"""What a report says of samples of a posterior distribution, and what stands where in its plots."""

import re

import numpy as np
import pytest
from page_reader import pictures_of, read_page, texts_of
from page_records import HOSTILE, NAMES, record_of_samples, record_of_search, write

import plltool


@pytest.fixture
def make(tmp_path):
    def make_report(record):
        write(tmp_path / "run.sample.json", record)
        return plltool.report(tmp_path / "run")

    return make_report


def plot_of(html, title):
    return next((own for own in pictures_of(html) if own.find("{*}title").text == title), None)


def test_all_that_was_run_and_found(make):
    text = make(record_of_samples()).text
    for line in (
        "Model:            HKY+FO+G4; JC",
        "Prior of lengths: gammadir(1.0,0.1,1.0,1.0)",
        "Chains:           2 runs of 3 chains, temperature 0.1, seed 5",
        "Generations:      100, a sample every 10",
        "Burn-in:          the first 3 samples, before generation 30",
        "Time:             5.0 s",
        "  ASDSF                                     0.0306             below 0.01",
        "  Smallest effective sample size (ESS)     80 (TL)              above 200",
        "  Largest R-hat                         1.030 (TL)  below 1.01 is advised",
        "  LnL      1.5                0.25    1.25          1   2  400  1.002",
        "  alpha    1.5                0.25    1.25          1   2    -      -",
        "  Gorilla … Hylobates (3 taxa)  75.0 %  87.5 %",
        "  2              0.2500      1.0000",
        "  NNI                    12.5 %",
        "  multiplier of alpha         -",
        "  1 and 2    50.0 %",
        "  2 and 3         -",
        "Constant sites:                50 (50.0 %)",
        "- more <generations>",
        "  plltool sample x.phy",
    ):
        assert f"\n{line}\n" in text, line
    assert "Pongo Hylobates  " not in text, "runs agree on this split"
    flat = " ".join(text.split())
    assert "The runs have not converged: ASDSF 0.0306, smallest ESS 80 (TL), largest R-hat 1.030 (TL)." in flat
    assert (
        "from here; about 2.5 times as many generations bring the smallest ESS above the limit; if ASDSF stays high"
        in flat
    )
    assert "under the models HKY+FO+G4 (Hasegawa" in flat
    assert ", for 2 partitions with the same branch lengths. We performed" in flat
    chains = "2 runs of 3 Metropolis-coupled chains (Geyer 1991; Altekar et al. 2004) for 100 generations each"
    assert f"We performed {chains} (random seed 5) and sampled every" in flat
    assert (
        "gammadir(1.0,0.1,1.0,1.0) for branch lengths (Zhang, Rannala & Yang 2012) and exponential(1.0) for alpha."
        in flat
    )
    assert "split frequencies (Lakner et al. 2008) was 0.0306 and the smallest effective sample size" in flat
    assert "- Vehtari A." in text
    assert "0.9┤" in text or "0.9┬" in text


def test_what_is_not_enough_is_coloured(make):
    cells = [
        (given.get("class"), text) for name, given, text in read_page(make(record_of_samples()).html) if name == "td"
    ]
    assert {("bad", "0.0306"), ("bad", "80 (TL)"), ("good", "400"), ("bad", "80")} <= set(cells)
    marked = {text for kind, text in cells if kind not in (None, "words")}
    assert marked == {"0.0306", "80 (TL)", "400", "80", "0.0400"}  # of a composition


def test_verdicts(make):
    whole = record_of_samples()
    whole["converged"] = True
    assert "The runs have converged: ASDSF 0.0306" in " ".join(make(whole).text.split())
    assert "resumes from here" not in make(whole).text
    alone = make(record_of_samples(n_runs=1))
    flat = " ".join(alone.text.split())
    assert "so convergence between runs cannot be assessed: smallest ESS 80 (TL), largest R-hat 1.030" in flat
    assert "bring the smallest ESS above the limit. Several runs (--runs 2) show whether they agree." in flat
    assert "The first 3 samples were discarded as burn-in." in flat
    assert "ASDSF 0" not in flat
    assert plot_of(alone.html, "Split frequencies of the runs") is None
    early = record_of_samples()
    early["posterior"] |= {"numbers": {"LnL": {"mean": 1.0, "deviation": 0.0, "median": 1.0, "low": 1.0, "high": 1.0}}}
    early["posterior"]["asdsf"], early["asdsf"], early["splits"] = None, [], []
    early["options"]["prior_only"] = True
    flat = " ".join(make(early).text.split())
    assert (
        "The runs have not converged: no ASDSF, because no split is in a tenth of the trees of a run, too few" in flat
    )
    assert "too few samples for an ESS. The same command with more --generations resumes from here." in flat
    assert "Likelihood: none: the prior was sampled" in flat
    assert "sampled from their prior distribution, without the data, under" in flat
    assert "SAMPLES OF THE PRIOR DISTRIBUTION" in flat
    assert "Branch labels are prior probabilities" in flat
    assert "posterior prob" not in flat
    endless = record_of_samples()
    endless["options"]["generations"], endless["posterior"]["numbers"]["TL"]["size"] = "auto", 7.0
    assert "The same command resumes from here; about 29 times as many generations bring" in " ".join(
        make(endless).text.split()
    )


def test_traces(make):
    """The range is that of the values after the burn-in; what is before it ends at the edge."""
    picture = plot_of(make(record_of_samples()).html, "Trace of LnL")
    lines = [own.get("d") for own in picture.findall(".//{*}path") if "trace" in own.get("class")]
    assert len(lines) == 2
    points = [tuple(map(float, pair.split())) for pair in lines[0][1:].split("L")]
    across, upwards = zip(*points, strict=True)
    assert upwards[0] == upwards[1] == max(upwards), "-2000 ends at the lowest value that is kept, -1000"
    assert upwards[3] == pytest.approx((upwards[1] + upwards[2]) / 2, abs=0.1)  # -950 of -1000 to -900
    width = across[3] - across[0]
    assert across[1] - across[0] == pytest.approx(0.3 * width, abs=0.1)
    (shade,) = [own for own in picture.findall(".//{*}rect") if own.get("class") == "left-out"]
    assert float(shade.get("x")) + float(shade.get("width")) == pytest.approx(across[1], abs=0.1)
    whole = record_of_samples()
    whole["burnin_generation"] = 0
    assert not list(plot_of(make(whole).html, "Trace of LnL").findall(".//{*}rect"))


def test_skygrids_and_rates_of_branches(make):
    """Steps of the medians between even heights; the slowest branch is blue, the fastest one red."""
    whole = record_of_samples()
    numbers = {"logPopSize1": (2.0, 1.0, 3.0), "logPopSize2": (4.0, 2.0, 5.0), "logPopSize3": (1.0, 0.0, 3.0)}
    keys = "mean", "deviation", "median", "low", "high"
    rows = {name: dict(zip(keys, (0.0, 0.0, *own), strict=True)) for name, own in numbers.items()}
    whole["posterior"]["numbers"] |= rows
    size = whole["posterior"]["mcc"].count(":")  # branches
    rates = [None, *(0.001 * 2.0**k for k in range(size))]
    nodes = [{"taxa": [], "posterior": 1.0, "height": 1.0, "interval": [0.5, 1.5], "rate": rate} for rate in rates]
    whole["time"] = {"clock": "relaxed", "tree_prior": "skygrid(3,8.0)", "latest": 2000.0, "nodes": nodes}
    html, flat = make(whole).html, " ".join(make(whole).text.split())
    assert "with a relaxed clock, the dates of the taxa and a skygrid coalescent as prior." in flat
    whole["priors"]["the age of apes"], whole["time"]["latest"] = "uniform from 3.0 to 4.0", 0.0
    flat = " ".join(make(whole).text.split())
    assert "with a relaxed clock, ages of clades and a skygrid coalescent as prior." in flat
    picture = plot_of(html, "Population")
    _, median, _ = ([*map(float, re.findall(r"[\d.]+", own.get("d")))] for own in picture.findall(".//{*}path")[-3:])
    across, upwards = median[::2], median[1::2]
    assert np.diff(across[::2]) == pytest.approx(np.diff(across[1::2])), "steps are of one length"
    assert upwards[0] == upwards[1] > upwards[2] == upwards[3] < upwards[4]
    assert (upwards[0] - upwards[2]) / (upwards[4] - upwards[2]) == pytest.approx(2 / 3, abs=0.01)  # 2, 4 and 1
    colours = re.findall(r'stroke="(#\w+)" stroke-width="5"', html)
    assert {"#2166ac", "#b2182b"} < set(colours)
    assert f"from 0.001 (blue) to {0.001 * 2.0 ** (size - 1):.3g} (red)" in html


def test_splits_and_deviations_are_where_they_belong(make):
    html = make(record_of_samples(n_runs=3)).html
    dots = {
        own.find("{*}title").text: own for own in plot_of(html, "Split frequencies of the runs").findall(".//{*}circle")
    }
    assert sorted(dots) == [
        "Gorilla … Hylobates (3 taxa), 0.75: 0.5",
        "Gorilla … Hylobates (3 taxa), 0.75: 0.88",
        "Pongo Hylobates and 1 more, 1: 1",
    ]
    looks = [own.find("{*}title").text for own in plot_of(html, "ASDSF against generations").findall(".//{*}circle")]
    assert looks == ["generation, 50: 0.08", "generation, 70: 0.02", "generation, 100: 0.0306"]


def test_the_samples_stand_beside_a_search(make, tmp_path):
    write(tmp_path / "run.json", record_of_search())
    made = make(record_of_samples())
    titles = texts_of(read_page(made.html), "h2")
    assert titles[:3] == ["Tree", "Samples of the posterior distribution", "Majority-rule tree"]
    assert titles.count("Data") == 1
    assert "Time of search:        1.5 min\nTime of sample:        5.0 s\n" in made.text
    assert {"- mind <the> gap", "- more <generations>"} <= set(made.text.splitlines())


def test_names_cannot_become_code(make):
    whole = record_of_samples()
    whole["splits"][1]["taxa"] = list(HOSTILE)
    whole["models"], whole["priors"] = [HOSTILE[0]], {"lengths": HOSTILE[1], "alpha": HOSTILE[3]}
    whole["trace"]["numbers"] = {HOSTILE[2]: whole["trace"]["numbers"]["TL"]}
    whole["posterior"]["consensus"] = "('" + "':1,'".join((*HOSTILE[:3], *NAMES)) + "':1);"
    elements = read_page(make(whole).html)
    assert not [name for name, _, _ in elements if name in ("img", "iframe", "b")]
    assert len([name for name, given, _ in elements if name == "script" and not given.get("type")]) == 1
