"""The public namespace: what `dir(plltool)` shows, and that each function in it can be called."""

import importlib.util
import inspect
import json
import pkgutil
import re
import subprocess
import sys

import pytest

import plltool
from plltool.errors import InputError

TREE = "((a:0.1,b:0.1):0.1,c:0.1,(d:0.1,e:0.1):0.1);"
OTHER_TREE = "((a:0.1,c:0.1):0.1,b:0.1,(d:0.1,e:0.1):0.1);"
ROWS = {"a": "ACGTACGTAA", "b": "ACGTACGTAC", "c": "ACGAACGAAG", "d": "TCGAACTAAG", "e": "TCGAACTACG"}
YEARS = {"a": 2001.0, "b": 2003.5, "c": "2002-05-XX", "d": None, "e": (2004.0, 2005.0)}
NUMPY = {"device": "numpy"}
CPU = plltool.Hardware("numpy")


@pytest.fixture
def files(tmp_path):
    """An alignment, a tree, two trees and the record of a search."""
    (tmp_path / "x.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    (tmp_path / "x.nwk").write_text(TREE + "\n")
    (tmp_path / "two.nwk").write_text(f"{TREE}\n{OTHER_TREE}\n")
    found = plltool.search(ROWS, "JC", effort="fast", **NUMPY)
    plltool.write_record(tmp_path / "x.json", found.as_record())
    return tmp_path


def write_benchmark(path):
    record = plltool.bench(CPU, shapes=[(5, 20)], repetitions=1).as_record()
    path.write_text(json.dumps(record))
    return path


def write_sets(path):
    path.write_text("3 4\na ACGT\nb ACGA\nc ACGG\n" * 2)
    return path


def write_query(path):
    path.write_text(">q\nACGTACGTAC\n")
    return path


def build_library(folder):
    """The path of the library, or the line that says what is missing here."""
    try:
        return plltool.build_beagle_library(folder)
    except InputError as error:
        return re.search("needs (cffi|a C compiler)", str(error))


CALLS = {
    "build_beagle_library": lambda at: build_library(at / "library"),
    "alrt": lambda at: plltool.alrt(ROWS, TREE, "JC", replicates=10, **NUMPY),
    "ancestral_states": lambda at: plltool.ancestral_states(ROWS, TREE, "JC", **NUMPY),
    "bench": lambda at: plltool.bench(CPU, shapes=[(5, 20)], repetitions=1),
    "bootstrap": lambda at: plltool.bootstrap(ROWS, "JC", replicates=2, workers=1, **NUMPY),
    "bootstrap_convergence": lambda at: plltool.bootstrap_convergence([TREE] * 50),
    "check": lambda at: plltool.check(ROWS, "JC", **NUMPY),
    "collapse_newick": lambda at: plltool.collapse_newick(TREE, 0.0),
    "compare": lambda at: plltool.compare(ROWS, CPU, CPU, model="JC"),
    "compare_folder": lambda at: list(plltool.compare_folder(at, CPU, CPU, model="JC")),
    "compare_likelihoods": lambda at: plltool.compare_likelihoods(ROWS, TREE, {"a": CPU, "b": CPU}, model="JC"),
    "compare_record_folders": lambda at: list(plltool.compare_record_folders(at, at)),
    "compare_records": lambda at: plltool.compare_records(at / "x.json", at / "x.json"),
    "concordance": lambda at: plltool.concordance(TREE, [TREE]),
    "consensus": lambda at: plltool.consensus(at / "two.nwk"),
    "check_dates": lambda at: plltool.check_dates(YEARS, list(ROWS)),
    "date": lambda at: plltool.date(ROWS, TREE, YEARS, "JC", clock_rate=0.05, **NUMPY),
    "devices": lambda at: plltool.devices(),
    "every_hardware": lambda at: plltool.every_hardware(),
    "evaluate": lambda at: plltool.evaluate(ROWS, TREE, "JC", **NUMPY),
    "format_fasta": lambda at: plltool.format_fasta(["a"], ["ACGT"]),
    "genes": lambda at: plltool.genes({"g": ROWS}, "JC", workers=1, **NUMPY),
    "has_checkpoint": lambda at: plltool.has_checkpoint(at / "x.checkpoint"),
    "mark_checkpoint": lambda at: plltool.mark_checkpoint(at / "x.checkpoint", {"a": 1}) is None,
    "json_schema": lambda at: plltool.json_schema(plltool.SearchResult),
    "parse_hardware": lambda at: plltool.parse_hardware("numpy:vw=2"),
    "parse_share": lambda at: plltool.parse_share("0.6,0.4"),
    "parse_size": lambda at: plltool.parse_size("2G"),
    "place": lambda at: plltool.place(ROWS, TREE, write_query(at / "q.fasta"), "JC", **NUMPY),
    "read_alignment": lambda at: plltool.read_alignment(at / "x.fasta"),
    "read_alignment_sets": lambda at: plltool.read_alignment_sets(write_sets(at / "sets.phy")),
    "read_benchmark": lambda at: plltool.read_benchmark(write_benchmark(at / "bench.json")),
    "read_mark": lambda at: plltool.read_mark(at / "x.checkpoint"),
    "join_alignments": lambda at: plltool.join_alignments({"g": plltool.read_alignment(at / "x.fasta")}, "all"),
    "cut_parts": lambda at: plltool.cut_parts(at / "x.fasta", "DNA, all = 1-."),
    "is_reversible": lambda at: plltool.is_reversible("GTR+G4"),
    "read_queries": lambda at: plltool.read_queries([write_query(at / "q.fasta")]),
    "read_record": lambda at: plltool.read_record(at / "x.json"),
    "report": lambda at: plltool.report(at / "x").write(),
    "read_tree": lambda at: plltool.read_tree(at / "x.nwk"),
    "read_tree_set": lambda at: plltool.read_tree_set([at / "two.nwk"]),
    "read_trees": lambda at: plltool.read_trees(at / "two.nwk", tuple(ROWS)),
    "remove_checkpoint": lambda at: plltool.remove_checkpoint(at / "x.checkpoint") is None,
    "replicate_options": lambda at: plltool.replicate_options(),
    "resampled_alignments": lambda at: list(plltool.resampled_alignments(ROWS, "JC", replicates=2)),
    "marginal_likelihood": lambda at: plltool.marginal_likelihood(
        ROWS, "JC", options=plltool.StoneOptions(60, steps=2, sample_every=2), **NUMPY
    ),
    "sample": lambda at: plltool.sample(ROWS, "JC", options=plltool.SampleOptions(9, sample_every=3), **NUMPY),
    "search_supports": lambda at: plltool.search_supports(
        plltool.search(ROWS, "JC", effort="fast", **NUMPY), ("abayes",), **NUMPY
    ),
    "select_model": lambda at: plltool.select_model(ROWS, candidates=["JC", "HKY"], **NUMPY),
    "select_scheme": lambda at: plltool.select_scheme(ROWS, "DNA, all = 1-.", candidates=["JC", "HKY"], **NUMPY),
    "software_versions": lambda at: plltool.software_versions(),
    "search": lambda at: plltool.search(ROWS, "JC", effort="fast", **NUMPY),
    "root_trees": lambda at: plltool.root_trees(at / "two.nwk", "midpoint"),
    "show": lambda at: plltool.show(TREE),
    "simulate": lambda at: plltool.simulate(TREE, "JC", 10),
    "start_trees": lambda at: plltool.start_trees(ROWS, "random"),
    "supports": lambda at: plltool.supports(TREE, at / "two.nwk"),
    "topology_tests": lambda at: plltool.topology_tests(ROWS, [TREE, OTHER_TREE], "JC", replicates=10, **NUMPY),
    "tree_distances": lambda at: plltool.tree_distances(at / "two.nwk"),
    "ultrafast_bootstrap": lambda at: plltool.ultrafast_bootstrap(ROWS, TREE, "JC", workers=1, replicates=10, **NUMPY),
    "write_consensus": lambda at: plltool.write_consensus(plltool.consensus(at / "two.nwk")),
    "write_network": lambda at: plltool.write_network(at / "two.nwk"),
    "write_bytes": lambda at: plltool.write_bytes(at / "x.bin", b"a") is None,
    "write_text": lambda at: plltool.write_text(at / "x.txt", "a") is None,
    "write_record": lambda at: plltool.write_record(at / "y.json", plltool.read_record(at / "x.json")) is None,
}


def import_every_module():
    """All modules of the package; those for OpenCL where pyopencl is installed."""
    has_opencl = bool(importlib.util.find_spec("pyopencl"))
    for module in pkgutil.walk_packages(plltool.__path__, "plltool."):
        if has_opencl or not module.name.startswith("plltool.engine.opencl."):
            importlib.import_module(module.name)


def test_importing_every_module_hides_no_public_name():
    import_every_module()
    assert dir(plltool) == sorted(plltool.__all__)
    for name in plltool.__all__:
        assert getattr(plltool, name).__module__.startswith("plltool."), name
        assert callable(getattr(plltool, name)), name


def test_every_public_function_is_called_below():
    assert {name for name in plltool.__all__ if inspect.isfunction(getattr(plltool, name))} == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_calling(name, files):
    import_every_module()
    assert CALLS[name](files) is not None


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, plltool; assert not {'numpy', 'scipy', 'pyopencl', 'click', 'dendropy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_a_misspelt_name_gets_a_hint():
    with pytest.raises(AttributeError, match=r"module 'plltool' has no attribute 'serch'; did you mean 'search'\?"):
        plltool.serch  # noqa: B018
    assert not hasattr(plltool, "xyzzy")
