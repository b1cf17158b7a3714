"""The commands of RAxML-NG and RAxML 8: accepted, the files that they write, and their syntax."""

import re

import pytest

import plltool

# `raxmlHPC -f d -m GTRCAT -p 235813` of RAxML 8.2.12 (Debian) ends at this lnL, under GTR+F+G4
RAXML_LNL = -5719.450387


def names(folder, start):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(start))


def test_search_and_what_follows_from_its_files(call, folder):
    line = "raxml-ng --search --msa a.fasta --model HKY+G --tree pars{1},rand{1} --seed 2 --threads 1 --fast --prefix S"
    _, out, _ = call(line, 0)
    assert names(folder, "S.") == [f"S.raxml.{x}" for x in ("bestModel", "bestTree", "log", "mlTrees", "startTree")]
    number = r"\d+\.\d+(e-\d+)?"
    model = rf"HKY\{{1\.0/{number}\}}\+FU\{{{number}/{number}/{number}/{number}\}}\+G4m\{{{number}\}}, noname = 1-150\n"
    assert re.fullmatch(model, (folder / "S.raxml.bestModel").read_text())
    assert plltool.read_tree_set([folder / "S.raxml.mlTrees"]).n_trees == 2
    lnl = float(re.search(r"^Final LogLikelihood: (-\d+\.\d{6})$", out, re.MULTILINE)[1])
    assert re.search(r"^AIC score: [\d.]+ / AICc score: [\d.]+ / BIC score: [\d.]+$", out, re.MULTILINE)
    assert "Final LogLikelihood" in (folder / "S.raxml.log").read_text()
    for task in ("--loglh", "--evaluate --opt-model off --opt-branches off", "--evaluate --opt-branches off"):
        line = f"raxml-ng {task} --msa a.fasta --model S.raxml.bestModel --tree S.raxml.bestTree --prefix E --redo"
        _, out, _ = call(line, 0)
        assert float(re.search(r"final logLikelihood: (-[\d.]+)", out)[1]) == pytest.approx(lnl, abs=1e-5)
    call("raxml-ng --sitelh --msa a.fasta --model S.raxml.bestModel --tree S.raxml.mlTrees --prefix L", 0)
    rows = (folder / "L.raxml.siteLH").read_text().split("\n")
    assert rows[0] == "2 150"
    assert max(sum(map(float, row.split()[1:])) for row in rows[1:3]) == pytest.approx(lnl, abs=1e-5)


def test_a_search_may_keep_its_model(call, folder):
    line = "raxml-ng --search1 --msa a.fasta --model HKY{3}+FU{0.3/0.2/0.2/0.3}+G4{0.8} --seed 2 --fast --prefix O"
    call(f"{line} --opt-model off", 0)
    model = (folder / "O.raxml.bestModel").read_text()
    assert model == "HKY{1.0/3.0}+FU{0.3/0.2/0.2/0.3}+G4m{0.8}, noname = 1-150\n"
    call(f"{line} --redo --opt-branches off", 2, "--opt-branches: found off, expected on in a search")


@pytest.mark.parametrize("algorithm", ["D", "E", "j"])
def test_algorithms_of_raxml_8_are_told_apart_by_their_case(call, algorithm):
    wrong = f"raxmlHPC -f {algorithm} -s a.fasta -m GTRCAT -p 1 -n x"
    call(wrong, 2, f"-f: found '{algorithm}', expected among d, o, a, e, b, A, J")


def test_bootstrap_of_gubbins(call, folder):
    base = "raxml-ng --threads 1 --model JC --seed 1"
    call(f"{base} --bootstrap --msa a.fasta --prefix B --bs-trees 50 --fast", 0)
    assert plltool.read_tree_set([folder / "B.raxml.bootstraps"]).n_trees == 50
    call(f"{base} --support --bs-trees B.raxml.bootstraps --tree true.nwk --prefix B.s --bs-metric fbp", 0)
    assert len(re.findall(r"\)\d+:", (folder / "B.s.raxml.support").read_text())) == 4
    _, out, _ = call("raxml-ng --bsconverge --bs-trees B.raxml.bootstraps --prefix C --bs-cutoff 0.99", 0)
    assert "Bootstopping test converged after 50 trees" in out


def test_ancestral_states_of_gubbins(call, folder):
    call("raxml-ng --threads 1 --model JC --seed 1 --ancestral --msa a.fasta --prefix A --tree true.nwk", 0)
    rows = [line.split() for line in (folder / "A.raxml.ancestralStates").read_text().splitlines()]
    assert [(name, len(states)) for name, states in rows] == [(name, 150) for name, _ in rows]
    labels = set(re.findall(r"\)(Node\d)", (folder / "A.raxml.ancestralTree").read_text()))
    assert {name for name, _ in rows} == labels
    assert (folder / "A.raxml.ancestralProbs").read_text().startswith("Node\tSite\tState\tp_A\tp_C\tp_G\tp_T\n")


def test_all_with_two_metrics(call, folder):
    call("raxml-ng --all --msa a.fasta --model JC --bs-trees 3 --bs-metric fbp,tbe --seed 1 --fast --prefix T", 0)
    assert {"T.raxml.supportFBP", "T.raxml.supportTBE", "T.raxml.bootstraps"} <= set(names(folder, "T."))


def test_options_of_version_2(call, folder):
    """Of 7 taxa, 4 branches are tested: AICc has k + 11 parameters (Hurvich & Tsai 1989) for 150 sites."""
    how = "criterion=AICc/substitution-models=HKY,JC/freerate-categories=2"
    _, out, _ = call(f"raxml-ng --moose {how} --msa a.fasta --prefix V --seed 1", 0)
    assert "Best model(s): HKY+" in out
    lnl, aicc = (float(re.search(rf"^{word}: (\S+)$", out, re.MULTILINE)[1]) for word in ("logLH", "AICc"))
    assert any(aicc == pytest.approx(2 * (k - lnl) + 2 * k * (k + 1) / (149 - k), abs=1e-4) for k in range(12, 20))
    line = "raxml-ng --all --msa a.fasta --model JC --seed 1 --opt-topology simple --adaptive off --prefix U"
    call(f"{line} --bs-metric fbp,sh --bs-trees fbp{{3}},sh{{7}} --opt-freerate em --stop-rule sn-rell", 0)
    assert plltool.read_tree_set([folder / "U.raxml.bootstraps"]).n_trees == 3
    supports = re.findall(r"\)([\d.]+):", (folder / "U.raxml.supportSH").read_text())
    assert len(supports) == 4
    assert all(7 * float(own) / 100 == pytest.approx(round(7 * float(own) / 100), abs=1e-2) for own in supports)


def test_tasks_on_trees_and_alignments(call, folder):
    _, out, _ = call("raxml-ng --rfdist --tree three.nwk --prefix R", 0)
    assert "Average absolute RF distance in this tree set: 2.666667" in out
    assert "Number of unique topologies in this tree set: 2" in out
    assert (folder / "R.raxml.rfDistances").read_text() == "0\t1\t0\t0.000000\n0\t2\t4\t0.500000\n1\t2\t4\t0.500000\n"
    for line, file in (
        ("raxml-ng --consense MRE --tree three.nwk --prefix X", "X.raxml.consensusTreeMRE"),
        ("raxml-ng --start --msa a.fasta --tree pars{1},rand{1} --prefix Y", "Y.raxml.startTree"),
        ("raxml-ng --parse --msa a.fasta --model JC --prefix Z", "Z.raxml.rba"),
        ("raxml-ng --check --msa Z.raxml.rba --model JC+G --prefix W", "W.raxml.log"),
        ("raxml-ng --msa Z.raxml.rba --tree true.nwk --adaptive start --prefix Z2", "Z2.raxml.bestTree"),
    ):
        call(line, 0)
        assert (folder / file).exists()
    assert (folder / "Z2.raxml.bestModel").read_text() == "JC, noname = 1-150\n"


def test_partition_files(call, folder):
    (folder / "p.part").write_text("HKY+FC+G4m, one = 1-70\nJC, two = 71-150\n")
    call("raxml-ng --evaluate --msa a.fasta --model p.part --tree true.nwk --brlen unlinked --prefix P", 0)
    assert [line.split(",")[1] for line in (folder / "P.raxml.bestModel").read_text().splitlines()] == [
        " one = 1-70",
        " two = 71-150",
    ]
    assert len((folder / "P.raxml.bestPartitionTrees").read_text().splitlines()) == 2
    call("raxml-ng --parse --msa a.fasta --model p.part --prefix Z", 0)
    call("raxml-ng --evaluate --msa Z.raxml.rba --tree true.nwk --brlen unlinked --prefix Z", 0)
    assert (folder / "Z.raxml.bestModel").read_text() == (folder / "P.raxml.bestModel").read_text()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("raxml-ng --msa a.fasta --prefix no", "found no --model"),
        ("raxml-ng --msa a.fasta --model GTR+XX", "+XX"),
        ("raxml-ng --bootstrap --msa a.fasta --model JC --bs-trees 0", "--bs-trees: found '0'"),
        ("raxml-ng --rfdist --tree three.nwk --spr-radius 4", "--spr-radius"),
        ("raxml-ng --all --msa a.fasta --model JC --bs-trees tbe{3}", "--bs-trees: found 'tbe{3}', expected metrics"),
        ("raxml-ng --moose rhas=G --msa a.fasta", "--moose: found 'rhas=G', expected criterion"),
        ("raxml-ng --allfast --msa a.fasta --model JC", "plltool has no guesser of supports"),
        ("raxml-ng --msa a.fasta --model JC --terrace", "--terrace"),
        ("raxmlHPC -s a.fasta -m GTRWRONG -n x", "-m: found 'GTRWRONG'"),
        ("raxmlHPC -s a.fasta -m GTRGAMMA", "found no -n"),
    ],
)
def test_wrong_input_is_told_in_one_line(line, told, call):
    status, _, err = call(line)
    assert status in (1, 2)
    assert told in err
    assert err.count("\n") == 1


def test_the_command_of_augur_for_raxml(call, folder):
    (folder / "RAxML_log.4ed91a").write_text("stdout goes here")
    line = "raxmlHPC -T 1 -n 4ed91a -s a.fasta -f d -m GTRCAT -c 25 -p 235813"
    call(line, 0)
    assert plltool.read_tree(folder / "RAxML_bestTree.4ed91a").n_taxa == 7
    assert plltool.read_tree(folder / "RAxML_result.4ed91a").n_taxa == 7
    call(line, 1, "RAxML_parsimonyTree.4ed91a: exists already")


def test_other_tasks_of_raxml(call, folder):
    for line, file in (
        ("raxmlHPC -f a -x 1 -p 1 -N 2 -m GTRCAT -V -n a -s a.fasta", "RAxML_bipartitions.a"),
        ("raxmlHPC -f e -t true.nwk -m GTRCAT -V -n e -s a.fasta", "RAxML_result.e"),
        ("raxmlHPC -f b -t true.nwk -z three.nwk -m GTRGAMMA -n b", "RAxML_bipartitions.b"),
        ("raxmlHPC -J MRE -z three.nwk -m GTRGAMMA -n j", "RAxML_MajorityRuleExtendedConsensusTree.j"),
        ("raxmlHPC -f A -t true.nwk -m GTRCAT -V -n A -s a.fasta", "RAxML_nodeLabelledRootedTree.A"),
        ("raxmlHPC -y -d -p 1 -m GTRCAT -n y -s a.fasta", "RAxML_parsimonyTree.y"),
        ("raxmlHPC -m GTRCAT -y -p 6078763987288513948 -m GTRGAMMA -n yy -s a.fasta", "RAxML_parsimonyTree.yy"),
    ):
        call(line, 0)
        assert plltool.read_tree(folder / file).n_taxa == 7


def test_the_commands_of_galaxy_for_raxml(call, folder):
    """What raxml.xml of tools-iuc writes with all options; the labels of branches are those of nodes."""
    line = "raxmlHPC-PTHREADS -T 1 -s a.fasta -n g -m GTRGAMMA -p 9 -B 0.03 -c 25 -K GTR -W 100"
    call(f"{line} -N 1 -f d", 0)
    for path in folder.glob("RAxML_*"):
        path.unlink()
    call(f"{line} -N 4 -f a -x 5", 0)
    nodes, branches = ((folder / f"RAxML_bipartitions{end}.g").read_text() for end in ("", "BranchLabels"))
    assert branches.count("[") == 4
    assert re.sub(r":([\d.e-]+)\[(\d+)\]", r"\2:\1", branches) == nodes


def test_matrices_of_multistate_data(call, folder):
    """The manual of RAxML 8: -K is GTR, MK or ORDERED, by default GTR."""
    (folder / "m.fasta").write_text(plltool.format_fasta("abcd", ["0120121", "0120020", "1121121", "1020210"]))
    for more, model in (("", "MULTI3_GTR{"), (" -K MK", "MULTI3_MK+G4"), (" -K ORDERED", "MULTI3_ORDERED+G4")):
        name = model[7:9]
        call(f"raxmlHPC -s m.fasta -n {name} -m MULTIGAMMA -p 1{more}", 0)
        assert (folder / f"RAxML_bestModel.{name}").read_text().startswith(model)


def test_weights_of_sites(call, folder):
    """As the alignment with every column twice."""
    (folder / "w.txt").write_text("\n".join(["2"] * 150))
    rows = plltool.read_alignment("a.fasta")
    pairs = zip(rows.names, rows.rows, strict=True)
    (folder / "twice.fasta").write_text("".join(f">{name}\n{(row * 2).decode()}\n" for name, row in pairs))
    lnls = []
    for data in ("a.fasta --site-weights w.txt", "twice.fasta"):
        _, out, _ = call(f"raxml-ng --evaluate --msa {data} --model JC+G --tree true.nwk --prefix W --redo", 0)
        lnls.append(float(re.search(r"^Final LogLikelihood: (.*)$", out, re.MULTILINE)[1]))
        columns = 150 if "w.txt" in data else 300
        assert f", noname = 1-{columns}\n" in (folder / "W.raxml.bestModel").read_text()
    assert lnls[0] == pytest.approx(lnls[1], abs=2e-6)
    _, out, _ = call("raxmlHPC -f e -s a.fasta -a w.txt -m GTRGAMMA --JC69 -t true.nwk -n w", 0)
    assert float(re.search(r"^Final LogLikelihood: (.*)$", out, re.MULTILINE)[1]) == pytest.approx(lnls[0], abs=2e-6)
    (folder / "w.txt").write_text("2")
    wrong = "raxml-ng --evaluate --msa a.fasta --site-weights w.txt --model JC --tree true.nwk --prefix V"
    call(wrong, 1, "w.txt: number of weights: found 1, expected 150")


def test_likelihoods_of_states(call, folder):
    """--prob-msa off takes the characters, whose lnL is that of FASTA; a file without likelihoods has none to take."""
    columns = ["GATCAGC", "GATTACA", "AATCCCC"]
    sizes = (1, 1, 0.6, 1, 1, 0.9, 1)
    cells = [[[x * (base == own) or 0.1 for base in "ACGT"] for own, x in zip(column, sizes, strict=True)]
             for column in columns]  # fmt: skip
    lines = [
        "\t".join([own, *(",".join(map(str, cell)) for cell in row)]) for own, row in zip(columns, cells, strict=True)
    ]
    (folder / "a.catg").write_text("\n".join(["7 3", "A B C D E F G", *lines]))
    (folder / "c.fasta").write_text(
        "".join(f">{name}\n{''.join(row)}\n" for name, *row in zip("ABCDEFG", *columns, strict=True))
    )
    lnls = []
    for data in ("a.catg", "a.catg --prob-msa on", "a.catg --prob-msa off", "c.fasta"):
        _, out, _ = call(f"raxml-ng --loglh --msa {data} --model JC --tree true.nwk --prefix W --redo", 0)
        lnls.append(float(re.search(r"final logLikelihood: (-[\d.]+)", out)[1]))
    expected = plltool.evaluate(folder / "a.catg", folder / "true.nwk", "JC", fixed=True, device="numpy").lnl
    assert lnls[0] == lnls[1] == pytest.approx(expected, abs=1e-6)
    assert lnls[2] == lnls[3] != lnls[0]
    wrong = "raxml-ng --loglh --msa c.fasta --prob-msa on --model JC --tree true.nwk --prefix V"
    call(wrong, 2, "--prob-msa: found on, expected off, because c.fasta is no CATG file")
    call("raxml-ng --parse --msa a.catg --model JC --prefix Z", 0)
    assert (folder / "Z.raxml.rba").read_bytes() == (folder / "a.catg").read_bytes()
    told = "found likelihoods of states, expected sequences as one of several alignments"
    call("iqtree -s a.catg,c.fasta -m JC --prefix I", 1, told)


@pytest.mark.slow
def test_lnl_of_raxml(call, primates):
    _, out, _ = call(f"raxmlHPC -s {primates} -m GTRGAMMA -p 1 -n p", 0)
    assert float(re.search(r"Final LogLikelihood: (-[\d.]+)", out)[1]) >= RAXML_LNL


def test_the_sh_like_supports_of_ete(call, folder):
    """`ete3 build` reads whole numbers in brackets behind the lengths of the file."""
    _, out, _ = call("raxmlHPC -f J -p 3 -s a.fasta -m GTRGAMMA -n J -t true.nwk", 0)
    assert f"saved to: {folder / 'RAxML_fastTreeSH_Support.J'}" in out
    text = (folder / "RAxML_fastTreeSH_Support.J").read_text()
    supports = [int(label) for label in re.findall(r"\):[\d.e-]+\[(\d+)\]", text)]
    assert len(supports) == text.count(")") - 1 == 4
    assert all(0 <= support <= 100 for support in supports)
    tree = plltool.read_tree(folder / "RAxML_bestTree.J")
    assert plltool.tree_distances([re.sub(r"\[\d+\]", "", text), tree])[0, 1] == 0


def test_the_version_as_nf_core_reads_it(call):
    """`raxml-ng --version 2>&1 | sed 's/^.*RAxML-NG v. //; s/released.*$//'`."""
    _, out, _ = call("raxml-ng --version")
    version = re.sub(r"released.*$", "", re.sub(r"^.*RAxML-NG v. ", "", out, flags=re.MULTILINE), flags=re.MULTILINE)
    assert re.fullmatch(r"1\.2\.2\+plltool\S+ \n", version)


def test_values_that_may_be_missing(call, folder):
    """--consense is MR by default; --rfdist takes its files as a value or from --tree."""
    for line, ending in (
        ("raxml-ng --consense --tree three.nwk --prefix C", "C.raxml.consensusTreeMR"),
        ("raxml-ng --consense MR70 --tree three.nwk --prefix C", "C.raxml.consensusTreeMR70"),
        ("raxml-ng --consense=STRICT --tree three.nwk --prefix C", "C.raxml.consensusTreeSTRICT"),
        ("raxml-ng --rfdist three.nwk --prefix D", "D.raxml.rfDistances"),
        ("raxml-ng --rf true.nwk,three.nwk", "true.nwk.raxml.rfDistances"),
        ("raxml-ng --loglh --msa a.fasta --tree true.nwk --model JC --force --prefix L", "L.raxml.log"),
        ("raxml-ng --loglh --msa a.fasta --tree true.nwk --model JC --force model_lh_impr --prefix M", "M.raxml.log"),
    ):
        call(line, 0)
        assert (folder / ending).exists()
    assert len((folder / "true.nwk.raxml.rfDistances").read_text().splitlines()) == 6


def test_no_files(call, folder):
    before = sorted(folder.iterdir())
    _, out, _ = call("raxml-ng --rfdist --tree three.nwk --nofiles", 0)
    assert "0\t2\t4\t0.500000" in out
    assert sorted(folder.iterdir()) == before


def test_raxml_8_writes_distances_and_lnl_of_sites(call, folder):
    """As `raxmlHPC -f r` and `-f g` of RAxML 8.2.12 write them: the third tree differs in 2 of 4 splits."""
    call("raxmlHPC -f r -z three.nwk -m GTRCAT -n r", 0)
    assert (folder / "RAxML_RF-Distances.r").read_text() == "0 1: 0 0.000000\n0 2: 4 0.500000\n1 2: 4 0.500000\n"
    call("raxmlHPC -f g -z three.nwk -s a.fasta -m GTRGAMMA -n g", 0)
    head, *rows = (folder / "RAxML_perSiteLLs.g").read_text().splitlines()
    assert (head, [row.partition("\t")[0] for row in rows]) == ("3 150", ["tr1", "tr2", "tr3"])
    assert {len(row.split()) for row in rows} == {151}
