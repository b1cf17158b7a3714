"""Gene trees from a folder: each as of its own search, the whole with its partitions, concordance; interrupted runs."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from plltool.analyses.concordance.analysis import concordance
from plltool.analyses.concordance.genes import genes
from plltool.analyses.search.analysis import search
from plltool.errors import InputError
from plltool.io.alignment_reader import join_alignments, read_alignment, read_folder
from plltool.io.bridge import alignment_from_object
from plltool.io.newick_writer import write_newick
from plltool.tree_search.effort import SearchOptions

SETTINGS = {"seed": 3, "options": SearchOptions("fast"), "device": "numpy", "threads": 1}


@pytest.fixture
def folder(data_dir, tmp_path) -> Path:
    """Three genes of six or five taxa, 60 sites each."""
    place = tmp_path / "genes"
    place.mkdir()
    for number in (1, 2, 3):
        whole = read_alignment(data_dir / "genes" / f"gene{number}.fasta")
        rows = sorted(zip(whole.names, whole.rows, strict=True))[:6]
        text = "".join(f">{name}\n{row[:60].decode()}\n" for name, row in rows)
        (place / f"gene{number}.fasta").write_text(text)
    return place


def test_genes_of_the_examples_are_cut_from_primates(data_dir):
    whole = read_alignment(data_dir / "primates.phy")
    found = read_folder(data_dir / "genes")
    assert list(found) == [f"gene{number}" for number in range(1, 7)]
    for k, gene in enumerate(found.values()):
        own = [i for i in range(12) if k % 2 == 0 or i % 6 != k]
        assert gene.names == tuple(whole.names[i] for i in own)
        assert gene.rows == tuple(whole.rows[i][150 * k : 150 * (k + 1)] for i in own)


def test_each_gene_and_the_whole_are_searches_of_their_own(folder, tmp_path):
    found = genes(folder, "HKY+F", workers=2, **SETTINGS)
    assert [gene.name for gene in found.genes] == ["gene1", "gene2", "gene3"]
    for gene in found.genes:
        alone = search(folder / f"{gene.name}.fasta", "HKY+F", **SETTINGS)
        assert (gene.lnl, write_newick(gene.tree)) == (alone.lnl, write_newick(alone.tree))
    texts = found.texts()
    for ending in ("genes.fasta", "genes.part", "genes.nwk", "best.nwk"):
        (tmp_path / ending).write_text(texts[ending])
    assert texts["genes.part"].splitlines() == [f"HKY+F, gene{k} = {60 * k - 59}-{60 * k}" for k in (1, 2, 3)]
    whole = search(tmp_path / "genes.fasta", tmp_path / "genes.part", **SETTINGS)
    assert (found.search.lnl, found.search.newick) == (whole.lnl, whole.newick)
    again = concordance(tmp_path / "best.nwk", tmp_path / "genes.nwk", tmp_path / "genes.fasta", seed=3)
    assert texts["cf.stat"] == again.format_table()
    rows = [line.split("\t") for line in texts["genes.tsv"].splitlines()]
    assert rows[2][:4] == ["gene2", str(folder / "gene2.fasta"), str(found.genes[1].tree.n_taxa), "60"]


def test_an_interrupted_run_goes_on(folder, tmp_path):
    whole = genes(folder, "JC", workers=1, **SETTINGS)
    stores = {"checkpoint": tmp_path / "c", "search_checkpoint": tmp_path / "s"}

    def stop(event):
        if event.round == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        genes(folder, "JC", workers=1, listener=stop, **stores, **SETTINGS)
    (tmp_path / "c" / "gene-1.state").write_bytes(b"damaged")
    again = genes(folder, "JC", workers=1, **stores, **SETTINGS)
    assert [gene.kept for gene in again.genes] == [False, True, False]
    for ending in ("genes.nwk", "genes.tsv", "best.nwk", "cf.stat"):
        assert again.texts()[ending] == whole.texts()[ending]
    with pytest.raises(InputError, match="a checkpoint of another run: model"):
        genes(folder, "HKY", workers=1, **stores, **SETTINGS)


def test_taxa_that_a_gene_lacks_are_gaps():
    rows = [{"a": "AC", "b": "CC", "d": "GG"}, {"d": "T", "c": "A", "a": "C"}]
    whole, ranges = join_alignments({f"g{k}": alignment_from_object(own) for k, own in enumerate(rows)}, "all")
    assert whole.names == ("a", "b", "c", "d")
    assert whole.rows == (b"ACC", b"CC-", b"--A", b"GGT")
    assert ranges == [(1, 2), (3, 3)]


def test_dna_and_proteins(data_dir):
    """Parts of another kind of data keep their states."""
    rng = np.random.default_rng(4)
    dna = {name: "".join(rng.choice(list("ACGT"), 12)) for name in "abcd"}
    protein = {name: "".join(rng.choice(list("ARNDCQEGHILK"), 6)) for name in "abcd"}
    found = genes({"one": dna, "two": protein}, workers=1, quartets=0, **SETTINGS)
    assert [gene.spec.split("+")[0] for gene in found.genes] == ["GTR", "LG"]
    kinds = [part.alignment.states.name for part in found.search.data.parts]
    assert kinds == ["DNA", "protein"]
    assert found.alignment.states is None


def test_files_that_are_no_alignments_are_left_out_with_a_warning(folder, caplog):
    (folder / "README.md").write_text("Genes, and what they are.\n")
    assert list(read_folder(folder)) == ["gene1", "gene2", "gene3"]
    assert caplog.messages == [f"{folder}: left out, no alignments: 'README.md'"]
    (folder / "gene4.fasta").write_text("no gene\n")
    with pytest.raises(InputError, match=r"gene4\.fasta: found 'no gene' at the start"):
        read_folder(folder)


def test_files_of_a_folder(folder):
    (folder / ".hidden").write_text("nothing")
    (folder / "more").mkdir()
    packed = gzip.compress((folder / "gene3.fasta").read_bytes())
    (folder / "gene3.fasta").unlink()
    (folder / "gene3.fasta.gz").write_bytes(packed)
    assert list(read_folder(folder)) == ["gene1", "gene2", "gene3"]
    shutil.copy(folder / "gene1.fasta", folder / "gene1.fa")
    with pytest.raises(InputError, match=r"gene1.fasta: found gene 'gene1' again, .* \(.*gene1.fa\)"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("content", "model", "message"),
    [
        ("junk", "JC", "last.fasta: found 'junk' at the start of the file"),
        (">a\nAC\n>b\nA\n>c\nAC\n", "JC", "last.fasta"),
        (">a\nMKL\n>b\nMKV\n>c\nMRL\n", "JC", "last.fasta: found protein data, expected DNA for model 'JC'"),
        (">a\n---\n>b\n-N-\n>c\n???\n", "auto", "last.fasta: found nothing but gaps and undetermined characters"),
    ],
)
def test_a_gene_that_cannot_be_used_is_refused_before_any_search(folder, content, model, message):
    (folder / "last.fasta").write_text(content)
    heard = []
    with pytest.raises(InputError, match=message):
        genes(folder, model, workers=1, listener=heard.append, **SETTINGS)
    assert not heard


@pytest.mark.slow
def test_genes_under_a_model_with_a_root(folder, tmp_path):
    """Their trees have roots, which concordance ignores; an interrupted run goes on with the same trees."""
    found = genes(folder, "STRSYM", workers=1, checkpoint=tmp_path / "kept", **SETTINGS)
    texts = found.texts()
    for gene, line in zip(found.genes, texts["genes.nwk"].splitlines(), strict=True):
        alone = search(folder / f"{gene.name}.fasta", "STRSYM", workers=1, **SETTINGS)
        assert (gene.lnl, line) == (alone.lnl, alone.newick)
        assert gene.n_taxa == len(alone.tree.names) - 1
    for ending in ("genes.nwk", "best.nwk", "genes.fasta"):
        (tmp_path / ending).write_text(texts[ending])
    again = concordance(tmp_path / "best.nwk", tmp_path / "genes.nwk", tmp_path / "genes.fasta", seed=3)
    columns = found.concordance.columns
    assert all(np.array_equal(columns[name], values, equal_nan=True) for name, values in again.columns.items())
    with_root = concordance(tmp_path / "best.nwk", alignment=tmp_path / "genes.fasta", model="STRSYM", seed=3)
    assert np.array_equal(with_root.columns["sCF"], columns["sCF"], equal_nan=True)
    kept = genes(folder, "STRSYM", workers=1, checkpoint=tmp_path / "kept", **SETTINGS)
    assert all(gene.kept for gene in kept.genes)
    assert kept.texts()["genes.nwk"] == texts["genes.nwk"]
    with pytest.raises(InputError, match=r"gene1.fasta: model 'STRSYM' is not time-reversible, but site concordance"):
        genes(folder, "STRSYM", workers=1, likelihood=True, **SETTINGS)


def test_folders_that_cannot_be_used(tmp_path):
    with pytest.raises(InputError, match="found no files, expected the alignment of a gene in each"):
        genes(tmp_path)
    with pytest.raises(InputError, match="cannot read the folder: No such file"):
        genes(tmp_path / "nowhere")
