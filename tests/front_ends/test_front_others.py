"""The commands of FastTree and EPA-ng."""

import io
import json
import re

import dendropy
import pytest

import plltool


def test_fasttree_of_augur(call, folder):
    _, out, _ = call("FastTree -nt -nosupport a.fasta", 0)
    assert re.fullmatch(r"\([^)]*\(.*\);\n", out)
    assert set(re.findall(r"[(,]([A-G]):", out)) == set("ABCDEFG")


def test_fasttree_of_qiime_quotes_names_and_reads_stdin(call, folder, monkeypatch):
    text = (folder / "a.fasta").read_text().replace(">A\n", ">A_1 x\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    _, out, _ = call("FastTree -quote -nt", 0)
    assert "'A_1 x':" in out
    labels = [float(label) for label in re.findall(r"\)([\d.]+):", out)]
    assert len(labels) == 4
    assert all(0 <= label <= 1 for label in labels)


def test_fasttree_quotes_names_that_newick_needs_in_quotes_once(call, folder):
    text = (folder / "a.fasta").read_text()
    (folder / "b.fasta").write_text(text.replace(">A\n", ">A (1): it's\n").replace(">B\n", ">B 2\n"))
    _, out, _ = call("FastTree -quote -nt b.fasta", 0)
    tree = dendropy.Tree.get(data=out, schema="newick", preserve_underscores=True)
    assert {taxon.label for taxon in tree.taxon_namespace} == {"A (1): it's", "B 2", *"CDEFG"}


def test_fasttree_of_gubbins_fits_a_model(call, folder):
    line = "FastTree -nt -rawdist -gtr -nocat -seed 1 -mllen -nome -nosupport -intree true.nwk -log g.log"
    _, out, _ = call(f"{line} -out g.nwk a.fasta", 0)
    assert out == ""
    assert plltool.tree_distances([folder / "true.nwk", folder / "g.nwk"])[0][1] == 0
    log = (folder / "g.log").read_text()
    assert re.search(r"^GTRRates(\t[\d.]+){6}$", log, re.MULTILINE)
    assert re.search(r"^GTRFreq(\t[\d.]+){4}$", log, re.MULTILINE)


def test_fasttree_refuses_a_model_of_other_data(call):
    call("FastTree -gtr a.fasta", 2, "GTR")


@pytest.fixture
def reference(folder, call):
    """A reference of 6 taxa, a query, and the model."""
    rows = (folder / "a.fasta").read_text().split(">")[1:]
    (folder / "ref.fasta").write_text("".join(f">{row}" for row in rows if row[0] != "G"))
    (folder / "query.fasta").write_text("".join(f">{row}" for row in rows if row[0] == "G"))
    (folder / "ref.nwk").write_text("((A:0.1,B:0.2):0.1,(C:0.1,D:0.15):0.12,(E:0.2,F:0.18):0.1);")
    line = "raxml-ng --evaluate --msa ref.fasta --model JC --tree ref.nwk --prefix r"
    assert call(line)[0] == 0


@pytest.mark.usefixtures("reference")
def test_epa_ng_of_nf_core(call, folder):
    (folder / "out").mkdir()
    line = (
        "epa-ng --threads 1 --query query.fasta --ref-msa ref.fasta --tree r.raxml.bestTree --model r.raxml.bestModel"
    )
    call(f"{line} --outdir out", 0)
    found = json.loads((folder / "out" / "epa_result.jplace").read_text())
    assert found["version"] == 3
    [placed] = found["placements"]
    best = max(placed["p"], key=lambda row: row[found["fields"].index("like_weight_ratio")])
    assert re.search(rf"F:[\d.e-]+\{{{best[found['fields'].index('edge_num')]}\}}", found["tree"])
    assert "not EPA-ng" in (folder / "out" / "epa_info.log").read_text()
    call(f"{line} --outdir out", 1, "epa_result.jplace: exists already; --redo replaces it")


@pytest.mark.usefixtures("reference")
def test_epa_ng_keeps_lengths_under_a_model_with_values(call, folder):
    line = "epa-ng --query query.fasta --ref-msa ref.fasta --tree ref.nwk --redo --model"
    for model, stay in ("HKY{3}+FU{0.3/0.2/0.2/0.3}+G4{0.8}", True), ("HKY+G4", False):
        call(f"{line} {model}", 0)
        tree = json.loads((folder / "epa_result.jplace").read_text())["tree"]
        kept = [re.search(rf"{name}:([\d.e-]+)", tree)[1] for name in "ABCDEF"]
        assert (list(map(float, kept)) == [0.1, 0.2, 0.1, 0.15, 0.2, 0.18]) == stay


def test_epa_ng_says_what_is_missing(call):
    call("epa-ng --tree true.nwk --query a.fasta --model JC", 2, "found no -s")


def test_fasttree_of_several_alignments(call, folder):
    """As FastTree -n: a tree for each, from the start tree of its own or one for all; interleaved as SEQBOOT writes."""
    rows = [f"{name:10}{'ACGTACGTAA'[k:]}{'ACGTACGTAA'[:k]}" for k, name in enumerate("ABCDE")]
    block = "\n".join(["    5    20", *rows, "", *(row[10:] for row in rows)])
    other = block.replace("ACGTA", "AAGTA")
    (folder / "two.phy").write_text(f"{block}\n{other}\n")
    trees = ["((A,B),(C,D),E);", "((A,E),(C,D),B);"]
    (folder / "starts.nwk").write_text("\n".join(trees))
    (folder / "one.nwk").write_text(trees[1])
    line = "FastTree -nt -nosupport -mllen -n 2 -out o.nwk"
    for word, expected in (("-intree starts.nwk", [0, 0]), ("-intree1 one.nwk", [2, 0])):
        call(f"{line} {word} two.phy", 0)
        found = (folder / "o.nwk").read_text().splitlines()
        assert [plltool.tree_distances(pair)[0][1] for pair in zip(found, trees, strict=True)] == expected
    wrong = line.replace("-n 2", "-n 3") + " -intree starts.nwk two.phy"
    call(wrong, 2, "-n: found 3, expected 1 to 2, the number of alignments in two.phy")
    call(f"{line} -intree one.nwk two.phy", 2, "-intree: found 1 trees, expected one for each alignment")


def test_fasttree_tells_the_likelihood_under_as_many_gamma_categories_as_asked_for(call, folder):
    """-cat N -gamma: Gamma(N), 20 by default; the log's lines are those of FastTree 2.1.11 (Debian)."""
    call("FastTree -nt -nosupport -mllen -intree true.nwk -gamma -log g.log -out g.nwk a.fasta", 0)
    expected = plltool.evaluate("a.fasta", "true.nwk", "JC+G20", device="numpy").lnl
    log = (folder / "g.log").read_text()
    lnl, alpha = re.search(r"Gamma\(20\) LogLk = (\S+) alpha = (\S+) rescaling lengths by \d\.\d{3}\n", log).groups()
    assert float(lnl) == pytest.approx(expected, abs=0.01)  # each ends when a round gains less
    assert f"Gamma20LogLk\t{lnl}\tApproximate\tAlpha\t{alpha}\tRescale\t" in log
    _, _, err = call("FastTree -nt -nosupport -mllen -intree true.nwk -cat 5 -gamma -out g.nwk a.fasta", 0)
    assert "Gamma(5) LogLk = " in err


def test_fasttree_takes_the_rates_of_its_expert_options(call, folder):
    rates, shares = "1 2.5 1 1 2.5 1", "0.3 0.2 0.2 0.3"
    line = "FastTree -nt -nosupport -nocat -mllen -intree true.nwk -pseudo -nomatrix"
    _, out, err = call(f"{line} -gtrrates {rates} -gtrfreq {shares} a.fasta", 0)
    model = "GTR{1/2.5/1/1/2.5/1}+FU{0.3/0.2/0.2/0.3}"
    expected = plltool.evaluate("a.fasta", "true.nwk", model, device="numpy").lnl
    assert f"Optimize all lengths: LogLk = {expected:.3f}" in err
    assert plltool.tree_distances([out, "true.nwk"])[0, 1] == 0
    assert call(f"{line} -pseudo 1.5 -gtrfreq {shares} a.fasta")[0] == 0
    for words, told in (
        ("-gtrfreq x 1 1 1", "-gtrfreq: found 'x', expected a number"),
        ("-gtrfreq 1 2", "found nothing"),
    ):
        status, _, err = call(f"{line} {words}")
        assert (status, told in err) == (2, True), err


@pytest.mark.usefixtures("reference")
def test_epa_ng_reads_the_model_of_raxml_info(call, folder):
    """The file that `raxmlHPC -f e -m GTRGAMMAX` of RAxML 8.2.12 (Debian) writes."""
    rates = dict(
        zip(("A <-> C", "A <-> G", "A <-> T", "C <-> G", "C <-> T", "G <-> T"), (44, 499, 38, 32, 412, 1), strict=True)
    )
    (folder / "RAxML_info.e").write_text(
        "DataType: DNA\nSubstitution Matrix: GTR\nBase frequencies: ML estimate\n\nModel Parameters of Partition 0, "
        "Name: No Name Provided, Type of Data: DNA\nalpha: 0.377437\nTree-Length: 3.195356\n"
        + "".join(f"rate {pair}: {rate}.000000\n" for pair, rate in rates.items())
        + "\nfreq pi(A): 0.353378\nfreq pi(C): 0.321255\nfreq pi(G): 0.081618\nfreq pi(T): 0.243749\n"
    )
    line = "epa-ng --query query.fasta --msa ref.fasta --tree ref.nwk --redo -T 0 --model"
    model = "GTR{44/499/38/32/412/1}+FU{0.353378/0.321255/0.081618/0.243749}+G4{0.377437}"
    found = []
    for given in ("RAxML_info.e", model):
        _, out, _ = call(f"{line} {given}", 0)
        found.append(re.search(r"lnL of the reference: (\S+)", out)[1])
    assert found[0] == found[1]


@pytest.mark.usefixtures("reference")
def test_epa_ng_leaves_out_places_of_less_than_a_hundredth(call, folder):
    """--filter-min-lwr is 0.01 by default, unless --filter-acc-lwr is given."""
    line = "epa-ng --query query.fasta --ref-msa ref.fasta --tree ref.nwk --model r.raxml.bestModel --redo --no-heur"
    weights = []
    for words in ("", "--filter-min-lwr 0", "--filter-acc-lwr 1"):
        call(f"{line} {words}", 0)
        found = json.loads((folder / "epa_result.jplace").read_text())
        weights.append([row[found["fields"].index("like_weight_ratio")] for row in found["placements"][0]["p"]])
    assert weights[0] == [weight for weight in weights[1] if weight >= 0.01] != weights[1]
    assert weights[1] == weights[2]


def test_epa_ng_splits_an_alignment(call, folder):
    rows = (folder / "a.fasta").read_text().split(">")[1:]
    (folder / "ref.fasta").write_text("".join(f">{row}" for row in rows if row[0] in "ABC"))
    call("epa-ng --split ref.fasta a.fasta", 0)
    for name, expected in (("reference", "ABC"), ("query", "DEFG")):
        assert "".join(re.findall(r"^>(.*)$", (folder / f"{name}.fasta").read_text(), re.MULTILINE)) == expected
    assert plltool.read_alignment("query.fasta").rows == plltool.read_alignment("a.fasta").rows[3:]
    (folder / "reference.fasta").unlink()
    call("epa-ng --split a.fasta a.fasta --redo", 2, "found no sequence of query.fasta in a.fasta")
    assert not (folder / "reference.fasta").exists()
    call("epa-ng --split a.fasta --redo", 2, "found no --combined, expected the alignment of --split")
    wrong = "epa-ng -B --tree true.nwk --ref-msa a.fasta"
    call(wrong, 2, "-B: the front end cannot do this: plltool keeps no binary reference")
