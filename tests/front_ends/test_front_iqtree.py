"""The commands of IQ-TREE: accepted, the files that they write, their syntax, and lnL beside IQ-TREE's."""

import gzip
import math
import re
from types import SimpleNamespace

import dendropy
import numpy as np
import pytest
from helpers import PROTEIN_SEQUENCES
from small_alignments import write_fasta

import plltool
from plltool.front_ends import iqtree_texts as texts
from plltool.front_ends.iqtree import CHOICES, _read_dates
from plltool.front_ends.iqtree_texts import spell_here
from plltool.front_ends.options import Given, UsageError
from plltool.front_ends.work import cut

# lnL by IQ-TREE 2.0.7 (Debian), `iqtree2 -s primates.phy -m MODEL -te TREE`, lengths and parameters optimised
TREE = (
    "(Tarsius_syrichta,Lemur_catta,((((((Homo_sapiens,Pan),Gorilla),Pongo),Hylobates),"
    "(((Macaca_fuscata,M_mulatta),M_fascicularis),M_sylvanus)),Saimiri_sciureus));"
)
LNL = {"JC": -6424.2024, "F81": -6303.6609, "010010": -5984.5428, "TIM2": -5956.3323, "GTR+FO": -5934.1543}
PRECISION = 0.02  # lnL: IQ-TREE stops when a round gains less than 0.01


@pytest.fixture
def fit(call, folder, primates):
    """Fits a model to the primates on their tree, with these words more."""
    (folder / "p.nwk").write_text(TREE)
    return lambda words: call(f"iqtree -s {primates} -te p.nwk -quiet {words}", 0)


def read_report(path):
    """What parsers take from .iqtree: the model and the lnL of the tree."""
    text = path.read_text()
    lnl = float(re.search(r"Log-likelihood of the tree: (-\d+\.\d+)", text)[1])
    model = re.search(r"Model of substitution: (\S+)", text)
    return model and model[1], lnl, text  # of partitions there is none


@pytest.mark.parametrize("model", LNL)
def test_models_mean_what_they_mean_in_iqtree(model, fit, folder):
    fit(f"-m {model} --prefix r")
    assert read_report(folder / "r.iqtree")[1] == pytest.approx(LNL[model], abs=PRECISION)


def test_a_tree_with_multifurcations_stays(call, folder, primates):
    """lnL by IQ-TREE 2.0.7, `iqtree2 -s primates.phy -te TREE -m HKY+F+G4`, which gives such trees no supports."""
    (folder / "p.nwk").write_text(
        "((Tarsius_syrichta,Lemur_catta),Saimiri_sciureus,((Homo_sapiens,Pan,Gorilla),Pongo,Hylobates),"
        "(Macaca_fuscata,M_mulatta,M_fascicularis,M_sylvanus));"
    )
    line = f"iqtree -s {primates} -te p.nwk -m HKY+F+G4 --prefix r -quiet -redo"
    call(line, 0)
    _, lnl, text = read_report(folder / "r.iqtree")
    assert lnl == pytest.approx(-5768.8296, abs=PRECISION)
    assert "#branches + #model parameters): 21\n" in text
    assert plltool.tree_distances([folder / "p.nwk", folder / "r.treefile"])[0, 1] == 0
    call(f"{line} -alrt 100", 0)
    assert plltool.read_tree(folder / "r.treefile").n_taxa == 12


def test_short_branches_are_collapsed(call, folder):
    """The tree by IQ-TREE 2.0.7, `iqtree2 -s a.fasta -m JC -te short.nwk -blfix -czb`, with lengths as there."""
    text = "(A:0.1,B:0.1,(C:0.1,(D:0.1,(E:0.1,(F:0.000001,G:0.1):0.0000041):0.0000039):0.0000011):0.00001);"
    (folder / "short.nwk").write_text(text)
    call("iqtree -s a.fasta -m JC -te short.nwk -blfix -czb --prefix r -quiet", 0)
    expected = "(A:0.1,B:0.1,(C:0.1,D:0.1,E:0.1,(F:0.000001,G:0.1):0.0000041):0.00001);"
    assert plltool.tree_distances([folder / "r.treefile", expected])[0, 1] == 0
    assert (folder / "r.treefile").read_text().count("(") == 3
    call("iqtree -s a.fasta -m JC --polytomy -alrt 100 --prefix s -quiet", 0)
    assert plltool.read_tree(folder / "s.treefile").n_taxa == 7


def test_charsets_with_quoted_names_and_files(call, folder, primates):
    """lnL by IQ-TREE 2.0.7, `iqtree2 -s primates.phy -p q.nex -te p.nwk -me 0.001`, also for columns without a file."""
    (folder / "p.nwk").write_text(TREE)
    text = (
        "#nexus\nbegin sets;\ncharset 'first part' = primates.phy: 1-449;\n"
        "charset second = primates.phy:DNA, 450-898\\2 451-898\\2;\n"
        "charpartition mine = HKY:'first part', TIM2+G:second;\nend;\n"
    )
    lines = "# a comment, which IQ-TREE refuses\nHKY, a = 1-449\nTIM2+G, b = 450-898\n"
    for own in (lines, text, text.replace("primates.phy:DNA,", "").replace("primates.phy:", "")):
        (folder / "q.nex").write_text(own)
        call(f"iqtree -s {primates} -p q.nex -te p.nwk --prefix r -quiet -redo", 0)
        _, lnl, report = read_report(folder / "r.iqtree")
        assert lnl == pytest.approx(-5873.4600, abs=PRECISION)
        assert "#branches + #model parameters): 33\n" in report
    written = (folder / "r.best_model.nex").read_text()
    assert "charset 'first part' = 1-449;" in written
    call(f"iqtree -s {primates} -p r.best_model.nex -te r.treefile -blfix --prefix again -quiet", 0)
    assert read_report(folder / "again.iqtree")[1] == pytest.approx(lnl, abs=1e-3), "values have 6 digits"
    (folder / "q.nex").write_text(text.replace("G:second", "G:2nd"))
    call(f"iqtree -s {primates} -p q.nex -te p.nwk --prefix s", 1, told="q.nex: found '2nd' in charpartition, expected")
    data = plltool.read_alignment(primates)  # the same columns in files of their own, without -s
    for name, columns in (("one.fa", slice(449)), ("'two 2.fa'", slice(449, None))):
        rows = [row.decode()[columns] for row in data.rows]
        write_fasta(folder / name.strip("'"), dict(zip(data.names, rows, strict=True)))
        text = text.replace("primates.phy", name, 1)
    text = text.replace("1-449", "*").replace("450-898\\2 451-898\\2", "2-449\\2 1 -.\\2")
    (folder / "alone.nex").write_text(text)
    call("iqtree -p alone.nex -te p.nwk -quiet", 0)
    assert read_report(folder / "alone.nex.iqtree")[1] == pytest.approx(-5873.4600, abs=PRECISION)
    call("iqtree -S alone.nex --prefix S --fast -n 0 -quiet", 0)
    (folder / "alone.nex").write_text(text.replace("2-449", "2-450"))
    call("iqtree -p alone.nex -redo", 1, told="two 2.fa: found column 450, expected columns from 1 to 449")


def test_binary_models_optimise_frequencies(call, folder):
    """lnL by IQ-TREE 2.0.7, `iqtree2 -s b.phy -m GTR2 -te true.nwk`; its report says "estimated"."""
    tree = (folder / "true.nwk").read_text()
    (folder / "b.phy").write_text(plltool.simulate(tree, "BIN", 60, seed=7).format_alignment("b.phy"))
    call("iqtree -s b.phy -m GTR2 -te true.nwk -quiet", 0)
    assert read_report(folder / "b.phy.iqtree")[1] == pytest.approx(-202.176, abs=PRECISION)


@pytest.mark.parametrize("words", ["-s aa/x.fa -p aa.nex", "-p alone.nex", "-p aa"])
def test_parts_without_a_model_have_the_kind_of_their_data(words, call, folder):
    (folder / "aa").mkdir()
    write_fasta(folder / "aa" / "x.fa", PROTEIN_SEQUENCES)
    (folder / "aa.nex").write_text("#nexus\nbegin sets;\ncharset a = 1-20;\ncharset b = 21-.;\nend;\n")
    (folder / "alone.nex").write_text("#nexus\nbegin sets;\ncharset a = aa/x.fa: 1-20;\nend;\n")
    call(f"iqtree {words} -m MFP -mset LG,WAG -n 0 --fast --prefix r -quiet", 0)
    found = set(re.findall(r"^ +(\w+).*: \w+[,;]$", (folder / "r.best_scheme.nex").read_text(), re.MULTILINE))
    assert found
    assert found <= {"LG", "WAG"}


def test_a_start_tree_without_a_file_is_no_tree_that_stays(call, folder):
    """lnL by IQ-TREE 2.0.7, `iqtree2 -s a.fasta -m JC`."""
    (folder / "a.fasta").write_text((folder / "a.fasta").read_text() + f">empty\n{'-' * 150}\n")
    call("iqtree -s a.fasta -m JC -t BIONJ -n 0 -keep_empty_seq --rcluster-max 10 -quiet", 0)
    assert read_report(folder / "a.fasta.iqtree")[1] == pytest.approx(-763.538, abs=PRECISION)


def test_the_command_of_augur(call, folder):
    line = "iqtree2 --threads-max 1 -s a.fasta -m GTR --ninit 2 -n 2 --epsilon 0.05 -T AUTO --redo"
    _, out, _ = call(line.replace("iqtree2", "iqtree"), 0)
    assert "NOTE: -ninit changes nothing here" in out
    assert plltool.read_tree(folder / "a.fasta.treefile").n_taxa == 7
    model, _, text = read_report(folder / "a.fasta.iqtree")
    assert model == "GTR+F"
    assert re.search(r"A-C: \d+\.\d{4}\n  A-G: ", text)
    assert re.search(r"pi\(A\) = 0\.\d+", text)
    log = (folder / "a.fasta.log").read_text()
    assert re.search(r"^Rate parameters:  A-C: \d", log, re.MULTILINE)
    assert re.search(r"^Base frequencies:  A: 0\.\d{3}  C:", log, re.MULTILINE)


def test_a_choice_from_a_list(call, folder):
    call("iqtree -s a.fasta -m TESTONLY -mset JC,K2P -pre m -quiet", 0)
    assert set(re.findall(r"^(JC|K2P|HKY|GTR)\S* ", (folder / "m.iqtree").read_text(), re.MULTILINE)) == {"JC", "K2P"}


def test_supports_and_ancestors_of_gubbins(call, folder):
    call("iqtree -safe -redo -T 1 -m GTR+G4 -seed 2 -asr -s a.fasta -pre g -te true.nwk -quiet", 0)
    rows = [line.split("\t") for line in (folder / "g.state").read_text().splitlines() if line[0] != "#"]
    assert rows[0] == ["Node", "Site", "State", "p_A", "p_C", "p_G", "p_T"]
    assert len(rows) == 1 + 5 * 150
    assert set(re.findall(r"\)(Node\d)", (folder / "g.treefile").read_text())) == {f"Node{k}" for k in range(1, 6)}
    call("iqtree -s a.fasta -m HKY -te true.nwk -alrt 0 --prefix h -quiet", 0)
    labels = [float(label) for label in re.findall(r"\)([\d.]+):", (folder / "h.treefile").read_text())]
    assert len(labels) == 4
    assert all(0 <= label <= 1 for label in labels)


def test_ultrafast_bootstrap(call, folder):
    call("iqtree -s a.fasta -m JC -bb 100 -alrt 100 -wbt -pre u -st DNA -nt 1 -fast -quiet", 0)
    labels = re.findall(r"\)([^:;]+):", (folder / "u.treefile").read_text())
    assert all(re.fullmatch(r"[\d.]+/[\d.]+", label) for label in labels)
    assert plltool.read_tree_set([folder / "u.ufboot"]).n_trees == 100
    assert plltool.read_tree(folder / "u.contree").n_taxa == 7
    assert re.search(r"BEGIN Splits;\nDIMENSIONS ntax=7 nsplits=\d+;", (folder / "u.splits.nex").read_text())


def test_labels_are_rounded_as_iqtree_rounds_them(call, folder):
    """Bootstraps as whole numbers, SH-aLRT with one decimal, transfer supports in a file of their own."""
    line = "iqtree -s a.fasta -m JC -b 3 --tbe -alrt 1000 --fast -pre b -quiet"
    call(line, 0)
    trees = plltool.read_tree_set([folder / "b.boottrees"])
    exact = plltool.supports(folder / "b.treefile", trees, ("fbp", "tbe"))
    labels = re.findall(r"\)([^:;]+):", (folder / "b.treefile").read_text())
    assert all(re.fullmatch(r"\d+(\.\d)?/(0|33|67|100)", label) for label in labels)
    assert sorted(int(label.split("/")[1]) for label in labels) == sorted(
        round(exact.values["fbp"][branch]) for branch in exact.branches
    )
    assert re.findall(r"\)([\d.]+):", (folder / "b.tbe.tree").read_text()) == re.findall(
        r"\)([\d.]+):", exact.newick("tbe")
    )
    assert set(re.findall(r"\)([^:;]+):", (folder / "b.contree").read_text())) <= {"33", "67", "100"}
    report = (folder / "b.iqtree").read_text()
    assert "Consensus tree is constructed from 3 bootstrap trees\n" in report
    assert (folder / "b.contree").read_text() in report
    assert "Date and time: " in report


def test_words_of_the_choice_of_models():
    found = {word: CHOICES.fullmatch(word).groups()[1:] for word in ("TESTMERGEONLY", "MF+MERGE", "MFP+ASC", "TEST")}
    merged, both, ascertained, plain = found.values()
    assert merged == ("MERGE", None, None)
    assert both == (None, "+MERGE", None)
    assert ascertained == (None, None, "+ASC")
    assert plain == (None, None, None)


@pytest.mark.parametrize(("word", "has_free_rates"), [("TESTONLY", False), ("TESTNEWONLY", True)])
def test_the_model_is_chosen(call, folder, word, has_free_rates):
    _, out, _ = call(f"iqtree -s a.fasta -m {word} -mset HKY,TN --prefix m", 0)
    best = re.search(r"Best-fit model according to BIC: (\S+)", (folder / "m.iqtree").read_text())[1]
    assert f"Best-fit model: {best} chosen according to BIC" in out
    tried = gzip.decompress((folder / "m.model.gz").read_bytes()).decode()
    assert best in tried
    assert ("+R2" in tried) == has_free_rates
    rows = re.findall(r"^\S+ +(-[\d.]+)" + r" +([\d.]+) ([-+]) *([-\d.e]+)" * 3, tried, re.MULTILINE)
    for first in (1, 4, 7):  # weights of Akaike: exp(-difference / 2), which sum to 1
        scores, weights = ([float(row[first + k]) for row in rows] for k in (0, 2))
        shares = [math.exp((min(scores) - score) / 2) for score in scores]
        assert weights == pytest.approx([share / sum(shares) for share in shares], rel=5e-3, abs=1e-9)  # three digits
        inside = [weight for weight, row in zip(weights, rows, strict=True) if row[first + 1] == "+"]
        assert sum(inside) >= 0.95 > sum(inside) - min(inside)


def test_partitions(call, folder):
    (folder / "p.nex").write_text(
        "#nexus\nbegin sets;\n charset one = 1-70;\n charset two = 71-150\\2 72-150\\2;\n"
        " charpartition mine = HKY+G4:one, JC:two;\nend;\n"
    )
    call("iqtree -s a.fasta -p p.nex -te true.nwk --prefix n -quiet", 0)
    text = (folder / "n.iqtree").read_text()
    assert re.search(r"1  HKY\+F\+G4", text)
    assert re.search(r"2  JC ", text)
    assert "charset two = 71-150\\2 72-150\\2;" in (folder / "n.best_model.nex").read_text()
    (folder / "p.part").write_text("DNA, one = 1-70\nDNA, two = 71-150\n")
    call("iqtree -s a.fasta -Q p.part -m JC -te true.nwk --prefix u -quiet", 0)
    own, other = plltool.read_trees("u.parttrees", tuple("ABCDEFG"))  # as IQ-TREE 2.0.7 writes them
    lengths = re.findall(r"JC: (?:one|two)\{([\d.]+)\}", (folder / "u.best_model.nex").read_text())
    assert list(map(float, lengths)) == pytest.approx([own.total_length(), other.total_length()], rel=1e-5)
    call("iqtree -s a.fasta -p p.part -m MF+MERGE --merge greedy -mset JC --prefix g -quiet", 0)
    call("iqtree -s a.fasta -p p.part --merge more", 2, "--merge: found 'more', expected among greedy")
    call("iqtree -s a.fasta -q p.part -m F81 -te true.nwk --prefix r -quiet", 0)
    assert (folder / "r.iqtree").read_text().count("  F81+F ") == 2
    sets = "charset one = 1-70; charset two = 71-150; charpartition combined = one: 1-70, two: 71-150;"  # as Biopython
    (folder / "b.nex").write_text(f"#NEXUS\nbegin sets;\n{sets}\nend;\n")
    call("iqtree -s a.fasta -q b.nex -m F81 -te true.nwk --prefix b -quiet", 0)
    assert (folder / "b.treefile").read_text() == (folder / "r.treefile").read_text()


def test_trees_that_are_given(call, folder):
    for line in (
        "iqtree -con -t three.nwk --prefix c -minsup 0.5 -quiet",
        "iqtree -sup true.nwk three.nwk --prefix s -quiet",
        "iqtree -net three.nwk --prefix n -quiet",
        "iqtree -rf_all -t three.nwk --prefix d -quiet",
        "iqtree -rf_adj -t three.nwk --prefix x -quiet",
        "iqtree -s a.fasta -z three.nwk -m JC -zb 100 -au --prefix z -quiet",
        "iqtree -t true.nwk --gcf three.nwk --prefix f -quiet",
    ):
        call(line, 0)
    assert (folder / "c.contree").read_text().count(")67:") == 2
    assert sorted(re.findall(r"\)([\d.]+):", (folder / "s.suptree").read_text())) == ["100", "100", "67", "67"]
    assert (folder / "d.rfdist").read_text() == "3 3\nTree0       0 0 4\nTree1       0 0 4\nTree2       4 4 0\n"
    assert re.search(r"Tree      logL    deltaL  bp-RELL +p-KH", (folder / "z.iqtree").read_text())
    rows = [line.split("\t") for line in (folder / "f.cf.stat").read_text().splitlines() if line[0] != "#"]
    assert " ".join(rows[0]) == "ID gCF gCF_N gDF1 gDF1_N gDF2 gDF2_N gDFP gDFP_N gN Label Length"  # as IQ-TREE
    assert rows[1][-2] == ""
    assert (folder / "x.rfdist").read_text() == "XXX        1 3\n 0 4 0\n"  # as `iqtree2 -rf_adj`
    assert "\t67\t" in (folder / "n.nex").read_text()


def test_the_table_of_tests():
    """Rows of .iqtree by IQ-TREE 2.0.7, `-z five.trees -n 0 -zb 10000 -zw -au` for trees of the primates."""
    rows = (
        "  1 -5728.066083       0   0.837 +  0.913 +      1 +  0.902 +  0.999 +     0.799 +     0.96 + ",
        "  2 -5735.838168  7.7721  0.0467 - 0.0932 +  0.387 + 0.0932 +  0.256 +    0.0567 +   0.0959 + ",
        "  5 -5791.746452   63.68       0 - 0.0001 - 0.0001 - 0.0001 - 0.0001 -  1.02e-12 - 4.31e-08 - ",
    )
    names = ["lnl", "delta", "bp", "kh", "sh", "wkh", "wsh", "elw", "au"]
    values = np.array([re.sub("[-+] ", "", row).split()[1:] for row in rows], float).T
    tests = SimpleNamespace(**dict(zip(names, values, strict=True)), in_elw_set=[True, True, False])
    text = texts.report_tests(tests, names[2:])
    assert text.splitlines()[-3:] == [*rows[:2], rows[2].replace("5", "3", 1)]
    assert re.search(" +".join(["logL", "deltaL", "bp-RELL", "p-KH", "p-SH", "p-WKH", "p-WSH", "c-ELW", "p-AU"]), text)


def test_folders_of_alignments(call, folder):
    (folder / "genes").mkdir()
    for name in ("x", "y"):
        (folder / "genes" / f"{name}.fasta").write_text((folder / "a.fasta").read_text())
    call("iqtree -s genes -m JC -te true.nwk --prefix j -quiet", 0)
    assert "7 sequences with 300 nucleotide sites" in (folder / "j.iqtree").read_text()
    call("iqtree -S genes -m JC --prefix k -quiet", 0)
    assert plltool.read_tree_set([folder / "k.treefile"]).n_trees == 2
    report = (folder / "k.iqtree").read_text()
    assert "Number of free parameters (#branches + #model parameters): 22\n" in report
    call("iqtree -S genes -m HKY -B 100 -alrt 100 --fast -n 0 --prefix s -quiet", 0)
    labels = re.findall(r"\)([^:;]+):", (folder / "s.treefile").read_text())
    assert len(labels) == 8
    assert all(re.fullmatch(r"\d+(\.\d)?/\d+", label) for label in labels)
    assert re.search(r"\n   1  x.fasta +HKY\+F +[\d.]+  HKY\{[\d.]+\}\+F\{", (folder / "s.iqtree").read_text())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("iqtree -s missing.fasta -m JC", "missing.fasta: cannot read the file"),
        ("iqtree -s a.fasta -m NOMODEL", "NOMODEL"),
        ("iqtree -s a.fasta -m JC -te true.nwk -B 1000", "supports by replicates"),
        ("iqtree -s a.fasta -m JC -t true.nwk -n 0 -B 1000", "supports by replicates"),
        ("iqtree -s a.fasta -m JC -B 1000 -b 100", "-B: found also -b, expected only one of them"),
        ("iqtree -s a.fasta -m HKY -alninfo", "-alninfo: the front end cannot do this"),
        ("iqtree -s a.fasta -lmap 10 -lmclust x", "plltool has no likelihood mapping"),
        ("iqtree -s a.fasta -m 12.12 -te true.nwk -o A", "outgroup: not allowed here, because the model is not"),
        ("iqtree -s a.fasta -m JC -te true.nwk -mem 0%", "memory: found '0'"),
        ("iqtree -s . -m JC", "found '"),
        ("iqtree -s a.fasta -m JC -te true.nwk -lbp 100 -alrt 200", "-lbp: found another number of replicates"),
        ("iqtree -s a.fasta -m JC --scf 3 -t true.nwk --tbe", "--tbe"),
        ("iqtree -con -t three.nwk -minsup 0.2", "-minsup"),
        ("iqtree -s a.fasta -m JC --prefix no/such", "there is no folder no"),
        (f"iqtree -s a.fasta -m JC --prefix {'x' * 300}", "File name too long"),
    ],
)
def test_wrong_input_is_told_in_one_line_and_writes_nothing(line, told, call, folder):
    before = sorted(folder.iterdir())
    status, _, err = call(line)
    assert status in (1, 2)
    assert told in err
    assert err.count("\n") == 1
    assert [path for path in sorted(folder.iterdir()) if path not in before and path.suffix != ".log"] == []


def test_files_of_an_earlier_run_are_replaced_with_redo_alone(call, folder):
    (folder / "a.fasta.treefile").write_text("mine")
    call("iqtree -s a.fasta -m JC -te true.nwk", 1, "a.fasta.treefile: exists already; -redo replaces it")
    assert (folder / "a.fasta.treefile").read_text() == "mine"
    assert call("iqtree -s a.fasta -m JC -te true.nwk -redo")[0] == 0
    assert plltool.read_tree(folder / "a.fasta.treefile").n_taxa == 7


# by `iqtree2 -s primates.phy -p FILE -te TREE` of IQ-TREE 2.0.7: its .best_model.nex, its tree, and its lnL
BEST_MODEL = """#nexus
begin sets;
  charset part1 = 1-300;
  charset part2 = 301-600;
  charset part3 = 601-898\\3 602-898\\3 603-898\\3;
  charpartition mymodels =
    HKY{9.12883}+F{0.274722,0.334722,0.121389,0.269167}+G4{0.374018}: part1{2.64686},
    JC+I{0.363568}: part2{1.49477},
    GTR{16.8378,99.9766,11.7328,17.0769,93.0923}+F{0.354523,0.294315,0.0893307,0.261831}\
+I{0.182741}+G4{1.09072}: part3{2.51774};
end;
"""
BEST_TREE = (
    "(Tarsius_syrichta:0.3282040612,Lemur_catta:0.2364785480,((((((Homo_sapiens:0.0454582957,Pan:0.0598867403)"
    ":0.0216485145,Gorilla:0.0604987144):0.0613841725,Pongo:0.1239421637):0.0343234363,Hylobates:0.1512491785)"
    ":0.0842159477,(((Macaca_fuscata:0.0160168425,M_mulatta:0.0221093779):0.0337849799,M_fascicularis:0.0522667144)"
    ":0.0324024611,M_sylvanus:0.0755323844):0.1981426711):0.0764375185,Saimiri_sciureus:0.3276834882):0.1774594603);"
)
BEST_LNL = -5923.2372


def test_the_models_of_parts_with_their_values(call, folder, primates):
    """What IQ-TREE writes is read, its lnL found, and the same is written again."""
    (folder / "i.best_model.nex").write_text(BEST_MODEL)
    (folder / "p.nwk").write_text(BEST_TREE)
    own = plltool.evaluate(primates, "p.nwk", "i.best_model.nex", fixed=True, device="numpy")  # lengths are scaled, too
    assert own.lnl == pytest.approx(BEST_LNL, abs=2e-3)
    call(f"iqtree -s {primates} -p i.best_model.nex -te p.nwk -blfix --prefix r -quiet", 0)
    lnl = re.search(r"Log-likelihood of the tree: (-\d+\.\d+)", (folder / "r.iqtree").read_text())[1]
    assert float(lnl) == pytest.approx(BEST_LNL, abs=2e-3)  # six digits of the values, of 898 sites
    written = (folder / "r.best_model.nex").read_text().split("\n")
    for line, expected in zip(written, BEST_MODEL.split("\n"), strict=True):
        own, length = re.fullmatch(r"(.*?)(?:\{([\d.]+)\}[,;])?", line).groups()
        theirs, other = re.fullmatch(r"(.*?)(?:\{([\d.]+)\}[,;])?", expected).groups()
        assert own == theirs
        assert length == other or float(length) == pytest.approx(float(other), rel=1e-3)  # scalers are found again


@pytest.mark.parametrize(
    ("model", "written"),  # by IQ-TREE 2.0.7, which has +FQ behind names that imply it
    [
        ("TIM2{6,21,25}+F{0.3,0.3,0.1,0.3}", "TIM2{6,21,25}+F{0.3,0.3,0.1,0.3}"),
        ("K3P{3.3,0.4}", "K3P{3.3,0.4}"),
        ("TPM2u{6.5,26}+F{0.3,0.3,0.1,0.3}", "TPM2u{6.5,26}+F{0.3,0.3,0.1,0.3}"),
        ("010020{4.4,5.5}+FO{0.3,0.3,0.1,0.3}", "010020{4.4,5.5}+F{0.3,0.3,0.1,0.3}"),
        ("SYM{16,21,7,0.5,50}", "SYM{16,21,7,0.5,50}"),
        ("JC+R3{0.2,0.1,0.2,0.4,0.6,1.5}", "JC+R3{0.2,0.1,0.2,0.4,0.6,1.5}"),
        ("JC+I{0.25}+R2{0.4,0.25,0.35,2.571429}", "JC+I{0.25}+R2{0.4,0.25,0.35,2.57143}"),
    ],
)
def test_values_of_models_are_read_and_written_as_iqtree_does(model, written, call, folder):
    (folder / "p.nex").write_text(
        f"#nexus\nbegin sets;\ncharset a = 1-50;\ncharset b = 51-150;\n"
        f"charpartition m = {model}:a, JC:b{{1.5}};\nend;\n"
    )
    call("iqtree -s a.fasta -p p.nex -te true.nwk -blfix --prefix w -quiet", 0)
    assert f"    {written}: a{{" in (folder / "w.best_model.nex").read_text()


def test_free_mixtures(call, folder):
    """The names of classes mean what they mean in IQ-TREE; the oracle is the same model on the tree."""
    _, out, _ = call("iqtree -s a.fasta -te true.nwk -m MIX{HKY,K2P} -pre M", 0)
    expected = plltool.evaluate("a.fasta", "true.nwk", "MIX{HKY+F,K80}", device="numpy").lnl
    assert f"BEST SCORE FOUND : {expected:.3f}" in out
    assert "Model of substitution: MIX{HKY+F,K2P}" in (folder / "M.iqtree").read_text()


# by IQ-TREE 2.0.7, `-m HKY+G -wsr -te TREE` and `-p p.part -m HKY+I+G -wsr -te TREE`, sites 1 to 10 and 896 to 898
CATEGORIES, CATEGORIES_OF_PARTS = [1, 1, 1, 2, 1, 1, 3, 3, 3, 4], [0, 0, 0]


def test_rates_of_sites(fit, folder):
    (folder / "p.part").write_text("DNA, one = 1-300\nDNA, two = 301-600\nDNA, three = 601-898\n")
    fit("-wsr -m HKY+G --prefix one")
    fit("-wsr -m HKY+I+G -p p.part --prefix several")
    one, several = (
        [line.split("\t") for line in (folder / f"{name}.rate").read_text().splitlines() if line[0] != "#"]
        for name in ("one", "several")
    )
    assert one[0] == ["Site", "Rate", "Cat", "C_Rate"]
    assert [int(row[2]) for row in one[1:11]] == CATEGORIES
    assert float(one[1][1]) == pytest.approx(0.22459, rel=0.02)  # IQ-TREE's alpha is 0.6 per cent lower
    assert float(one[1][3]) == pytest.approx(0.01691, rel=0.05)
    assert several[0] == ["Part", "Site", "Rate", "Cat", "C_Rate"]
    assert [row[:2] for row in several[-3:]] == [["3", "296"], ["3", "297"], ["3", "298"]]
    assert [int(row[3]) for row in several[-3:]] == CATEGORIES_OF_PARTS


def test_models_that_are_not_reversible_have_a_root(fit, folder):
    """IQ-TREE 2.0.7 ends at -5932.8614 under 12.12 and stops earlier."""
    fit("-m 12.12 --prefix r -n 0")
    _, lnl, text = read_report(folder / "r.iqtree")
    assert lnl >= -5932.8614
    assert len(re.findall(r"^  [ACGT]-[ACGT]: ", text, re.MULTILINE)) == 12
    tree = dendropy.Tree.get(path=folder / "r.treefile", schema="newick", preserve_underscores=True)
    assert len(tree.seed_node.child_nodes()) == 2


def test_kinds_of_rates_to_choose_from(call, folder):
    def tried(more):
        call(f"iqtree -s a.fasta -m TESTNEWONLY -mset HKY -pre C -quiet -redo {more}", 0)
        report = gzip.decompress((folder / "C.model.gz").read_bytes()).decode()
        return {int(number) for number in re.findall(r"\+R(\d+)\b", report)}

    call("iqtree -s a.fasta -m TEST -mset MrBayes -pre B --fast -quiet", 0)  # IQ-TREE 2.0.7 tries the same
    report = gzip.decompress((folder / "B.model.gz").read_bytes()).decode()
    found = set(re.findall(r"^(\w+)[+ ].* -\d", report, re.MULTILINE))
    assert {"GTR", "JC"} < found <= {"GTR", "SYM", "HKY", "K2P", "F81", "JC"}
    assert tried("-cmax 2") == {2}
    assert tried("-mrate E,I,G,I+G") == set()
    assert {2} <= tried("-mrate I,E,G,R,I+G --cmax 3") <= {2, 3}
    wrong = "iqtree -s a.fasta -m MF -mrate G,R -pre C -redo"
    call(wrong, 2, "-mrate: found G,R, expected E,I,G,I+G or E,I,G,I+G,R, because")


def test_names_have_as_few_words_as_differ(call, folder):
    """As IQ-TREE 2.0.7 changes such names of GISAID, with up to three underscores."""
    text = (folder / "a.fasta").read_text()
    for header, name in (
        ("hCoV-19/X Y/%s|2020 more", "hCoV-19/X_Y/%s|2020"),
        ("x y z %s w", "x_y_z_%s"),
        ("%s w", "%s"),
    ):
        (folder / "n.fasta").write_text(re.sub(r">(\w)", lambda own, header=header: ">" + header % own[1], text))
        call("iqtree -s n.fasta -m JC --fast -quiet -redo", 0)
        assert set(plltool.read_tree(folder / "n.fasta.treefile").names) == {name % own for own in "ABCDEFG"}
    (folder / "n.fasta").write_text(re.sub(r">(\w)", r">v w x y \1", text))
    call("iqtree -s n.fasta -m JC --fast -redo", 1, "have the same first word")
    (folder / "n.fasta").write_text(re.sub(r">(\w)", r">x", text))
    call("iqtree -s n.fasta -m JC --fast -redo", 1, "taxa have the name 'x'")


GALAXY = (
    "--msub nuclear --cmin 2 --cmax 10 --merit AIC --ninit 100 --ntop 20 --nbest 5 --nstop 100 --radius 6 --perturb 0.5"
    " --sup-min 0.0 --nmax 1000 --nstep 100 --bcor 0.99 --beps 0.5"
)


def test_the_commands_of_galaxy(call, folder):
    """What iqtree.xml of tools-iuc writes if nothing is set; -msub has the lists of IQ-TREE's phylotesting.cpp."""
    line = f"iqtree --prefix PREF -T 1 --redo {GALAXY} -quiet"
    call(f"{line} -s a.fasta -m GTR+G{{0.9}} --fast", 0)
    assert plltool.read_tree(folder / "PREF.treefile").n_taxa == 7
    assert "NOTE: options of the choice of a model change nothing here" in (folder / "PREF.log").read_text()
    call(f"{line} -s a.fasta -m JC --trees three.nwk --test 1000", 0)
    call(f"{line} -t three.nwk --con-tree", 0)
    call(f"{line} -t three.nwk --gcf three.nwk", 0)
    call(line.replace("0.0", "0.6") + " -s a.fasta -m JC", 2, "-minsup: found it without -con")
    call(line.replace("cmin 2", "cmin 3") + " -s a.fasta -m TEST", 2, "-cmin: found 3, expected 2")
    (folder / "p.fasta").write_text(plltool.format_fasta("abc", ["MKVLILA", "MKVLVLA", "MRILILG"]))
    call("iqtree -s p.fasta -m TESTONLY --msub viral -pre V -quiet", 0)
    report = gzip.decompress((folder / "V.model.gz").read_bytes()).decode()
    found = set(re.findall(r"^(\w+)[+ ].* -\d", report, re.MULTILINE))
    assert {"HIVb", "FLU"} < found <= {"HIVb", "HIVw", "FLU", "rtREV", "FLAVI"}


@pytest.mark.slow
def test_local_bootstrap_probabilities(fit, folder):
    """In the order of IQ-TREE's labels; those here come from IQ-TREE 2.0.7, `-m TIM2+I+G -te TREE -lbp 1000`."""
    expected = {
        "Homo_sapiens,Pan": 90, "Gorilla,Homo_sapiens,Pan": 99.9, "Gorilla,Homo_sapiens,Pan,Pongo": 93.7,
        "M_mulatta,Macaca_fuscata": 97.6, "M_fascicularis,M_mulatta,Macaca_fuscata": 91.5,
        "Lemur_catta,Tarsius_syrichta": 99.7,
    }  # fmt: skip
    fit("-m TIM2+I+G -lbp 1000 -alrt 1000 --prefix l")
    tree = dendropy.Tree.get(path=folder / "l.treefile", schema="newick", preserve_underscores=True)
    found = {}
    for node in tree.internal_nodes():
        inside = {leaf.taxon.label for leaf in node.leaf_nodes()}
        outside = {taxon.label for taxon in tree.taxon_namespace} - inside
        found |= {",".join(sorted(side)): node.label for side in (inside, outside)}
    for taxa, value in expected.items():
        assert float(found[taxa].split("/")[1]) == pytest.approx(value, abs=3)  # 2 standard errors of 1,000 draws


def test_a_file_with_rates_and_frequencies(fit, folder):
    """IQ-TREE 2.0.7, `-s primates.phy -m mymodel+G -te TREE`: lnL -5923.594."""
    (folder / "mymodel").write_text("1 4 1 1 4 1\n0.3 0.2 0.2 0.3\n")
    fit("-m mymodel+G --prefix r")
    assert read_report(folder / "r.iqtree")[1] == pytest.approx(-5923.594, abs=PRECISION)


def test_the_parsimony_tree_may_stay(call, folder):
    """Long branches to A and C: 6 columns group them, 5 say AB|CD. IQ-TREE 2.0.7: lnL -293.64, -287.48 by a search."""
    columns = ["AAAA"] * 20 + ["CAAA"] * 20 + ["AACA"] * 20 + ["ACAA", "AAAC"] + ["CACA"] * 6 + ["CCAA"] * 5
    rows = ["".join(cells) for cells in zip(*columns, strict=True)]
    (folder / "z.fasta").write_text(plltool.format_fasta("ABCD", rows))
    call("iqtree -s z.fasta -m JC -te PARS --prefix z -quiet", 0)
    assert read_report(folder / "z.iqtree")[1] == pytest.approx(-293.642, abs=PRECISION)
    call("iqtree -s z.fasta -m JC -te missing.nwk --prefix m -quiet", 1, "missing.nwk: cannot read the file")


def test_parts_of_an_alignment_that_get_trees_of_their_own(folder):
    """-m stands in place of a kind of data alone."""
    (folder / "p.part").write_text("DNA, one = 1-50\nTN{1,2}, two = 51, 53-.\\2\n")
    data = plltool.read_alignment("a.fasta")
    one, two = cut(data, "p.part", "", str, {})
    assert (one[:2], two[:2]) == (("one", "DNA"), ("two", "TN{1,2}"))
    assert two[2].rows[0] == data.rows[0][50:51] + data.rows[0][52::2]
    assert [own[1] for own in cut(data, "p.part", "JC", str, {})] == ["JC", "TN{1,2}"]


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        ("--date d.txt", "A 2001-05\nB  2000.5:2001\n", {"A": "2001-05", "B": "[2000.5:2001]"}),
        ("--date d.txt", "A 2001-05-01:2002-XX-XX\n", {"A": "[2001-05-01:2002-XX-XX]"}),
        ("--date d.txt --date-tip 0", "A -10\n", {"A": "-10", "B": "0", "C|1999": "0"}),
        ("--date TAXNAME", "", {"C|1999": "1999"}),
        ("--date d.txt", "A,B -50\n", "found 'A,B -50', expected a taxon and its date"),
    ],
)
def test_dates_as_iqtree_has_them(words, text, expected, folder):
    (folder / "d.txt").write_text(text)
    task = SimpleNamespace(
        session=SimpleNamespace(given=Given("iqtree", words.split())), data=SimpleNamespace(names=("A", "B", "C|1999"))
    )
    if isinstance(expected, dict):
        assert _read_dates(task) == expected
    else:
        with pytest.raises(UsageError, match=re.escape(expected)):
            _read_dates(task)


def test_dates_are_read_before_the_search(call, folder):
    _, out, _ = call("iqtree -s a.fasta -m JC --date missing.txt", 1, "missing.txt: cannot read the file")
    assert "lnL" not in out
    pytest.importorskip("treetime", reason="TreeTime is not installed: pip install plltool[dating]")
    (folder / "few.txt").write_text("A 1990\nC 1995\nf 2005\n")
    why = "taxa with a date: found 2, expected at least 3; dates: no date is given for 'B', 'D'"
    _, out, _ = call("iqtree -s a.fasta -m JC --date few.txt", 1, why)
    assert "lnL" not in out
    (folder / "odd.txt").write_text("A 1990\nC 1995\nF 2005-13-01\n")
    _, out, _ = call("iqtree -s a.fasta -m JC --date odd.txt", 1, "'F': found '2005-13-01' as a date")
    assert "lnL" not in out
    (folder / "d.txt").write_text("A 1990\nC 1995\nF 2005\n")
    call("iqtree -s a.fasta -m JC -te true.nwk --date d.txt --date-tip 2010 --prefix r", 0)
    found = dict(re.findall(r'(\w+)\[&[^]]*?date=(?:"?)([\d.]+)', (folder / "r.timetree.nex").read_text()))
    assert {name: float(found[name]) for name in "ABCDEFG"} == dict.fromkeys("BDEG", 2010) | {
        "A": 1990,
        "C": 1995,
        "F": 2005,
    }


def test_profiles_imply_gamma():
    # .iqtree of IQ-TREE 2.0.7 has "MIX{LG+FC10pi1,...}+G4" of the first, and all have a shape alpha but the last
    said = {"LG+C10": "LG+C10+G4", "c60": "Poisson+c60+G4", "LG+F+C20": "LG+F+C20+G4", "LG+C20+I": "LG+C20+I+G4"}
    said |= {model: model for model in ("LG+C20+G{0.5}", "LG+C20+R4", "LG+FMIX{C10pi1:1:0.1,C10pi2:1:0.9}")}
    assert {model: spell_here(model) for model in said} == said


# of the model TWO, by IQ-TREE 2.0.7: -ft and -te with the same tree
TWO = "LG+FMIX{C10pi1:1:0.119,C10pi2:1:0.881}+G4{0.7}"


def test_posterior_mean_site_frequencies(call, folder):
    write_fasta(folder / "p.fasta", PROTEIN_SEQUENCES)
    (folder / "p.nwk").write_text("((a:0.1,b:0.2):0.1,c:0.3,(d:0.2,e:0.1):0.2);")
    line = f"iqtree -s p.fasta -m {TWO} -te p.nwk -quiet"
    call(f"{line} -ft p.nwk -pre ft", 0)
    call(f"{line} -fs ft.sitefreq -pre fs -alrt 10", 0)
    model, lnl, _ = read_report(folder / "ft.iqtree")
    assert model == "LG+SSF+G4{0.7}"
    assert lnl == pytest.approx(-170.6483, abs=PRECISION)
    assert read_report(folder / "fs.iqtree")[1] == pytest.approx(lnl, abs=1e-4)  # printed so
    call(f"iqtree -s p.fasta -m {TWO} -fs ft.sitefreq -pre search -quiet", 2, "a tree whose topology stays (-te)")
