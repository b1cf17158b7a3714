"""Every analysis and tool, declared once: its command, the files that it writes, and its part of a report.

The command line with its help and `--redo`, ranks of MPI, reports, manual pages and tests of the documentation read
`ANALYSES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from glob import escape
from pathlib import Path

from plltool.constants import SUPPORT_KINDS

ANY_NUMBER = "N"  # in an ending: a number from 1 on
ANY_KIND = "KIND"  # in an ending: each of `OutputFile.kinds`
LOG, CHECKPOINT = "log", "checkpoint"
BEFORE_TREE, AFTER_TREE, AFTER_MODEL = range(3)  # where a report has the sections of an analysis


def name_file(prefix: Path, ending: str) -> Path:
    """PREFIX.ENDING."""
    return prefix.parent / f"{prefix.name}.{ending}"


@dataclass(frozen=True)
class OutputFile:
    """A file that a command writes, PREFIX.ENDING."""

    ending: str  # the end of its name; N stands for any number, KIND for each of `kinds`
    what: str  # what it holds, a noun
    when: str = ""  # when it is written, or what else to know; empty if it always is
    kinds: tuple[str, ...] = ()  # what KIND stands for
    # whether it is made from other files, and so is made again by each command with the prefix
    is_derived: bool = False

    @property
    def is_log(self) -> bool:
        return self._last == LOG

    @property
    def is_checkpoint(self) -> bool:
        """Whether it is a folder in which a run keeps its state."""
        return self._last == CHECKPOINT

    @property
    def help(self) -> str:
        return f"{self.what}, {self.when}" if self.when else self.what

    @property
    def _last(self) -> str:
        return self.ending.rpartition(".")[2]

    def present(self, prefix: Path) -> list[Path]:
        """The paths of this file that may exist: all kinds, and the numbers that there are."""
        if self.kinds:
            return [name_file(prefix, self.ending.replace(ANY_KIND, kind)) for kind in self.kinds]
        if ANY_NUMBER not in self.ending:
            return [name_file(prefix, self.ending)]
        pattern = self.ending.replace(ANY_NUMBER, "[0-9]*")
        return sorted(prefix.parent.glob(f"{escape(prefix.name)}.{pattern}"))


Table = tuple[OutputFile, ...]


@dataclass(frozen=True)
class Analysis:
    """An analysis or a tool: a command, with a module of its name in `plltool.cli`.

    Attributes
    ----------
    group : the title above it in the help
    summary : a line of the help
    files : all that it may write with a prefix
    record : ending of the record that reports read, if it has the keys of a run
    own_choices : what this record need not share with the other records of a prefix, "model" or "tree"
    section : the module of `plltool.reports` with its sections and its sentences on methods
    order : counts its records, sections and sentences in reports
    where : where its sections stand
    by_ranks : whether the ranks of an MPI job share its likelihoods
    by_workers : whether it has --workers
    """

    name: str
    group: str
    summary: str
    files: Table = ()
    record: str = ""
    own_choices: tuple[str, ...] = ()
    section: str = ""
    order: int = 0
    where: int = AFTER_TREE
    by_ranks: bool = False
    by_workers: bool = False


# --- files that several commands write --------------------------------------------------------------------
REPORT_FILES = (
    OutputFile("html", "report", "for a browser, on all runs with this prefix, unless --no-report", is_derived=True),
    OutputFile("txt", "report as text", "likewise", is_derived=True),
)
SUPPORT_FILES = (
    OutputFile("support.nwk", "tree with supports", "labels such as 91.3/92.4: the kinds in the order of --supports"),
    OutputFile(
        "support.KIND.nwk", "tree with supports of one kind", "a file for each kind asked for", kinds=SUPPORT_KINDS
    ),
    OutputFile("support.nex", "tree with supports as NEXUS", "all kinds by name, as FigTree reads them"),
    OutputFile("support.json", "supports of each branch", "JSON"),
)
BOOTSTRAPS = "bootstraps.nwk"
REPLICATE_FOLDER, UFBOOT_FOLDER, ADOPTED_FOLDER = "bootstrap.checkpoint", "ufboot.checkpoint", "adopted.checkpoint"
ALIGNMENT_FILES = (OutputFile("replicate.N.fasta", "resampled alignment", "with --write-replicates"),)
REPLICATE_TREES = (OutputFile(BOOTSTRAPS, "bootstrap trees", "one a line"), *ALIGNMENT_FILES)
REPLICATE_FILES = (*REPLICATE_TREES, OutputFile(REPLICATE_FOLDER, "replicates of an unfinished bootstrap", "a folder"))
UFBOOT_FILES = (
    OutputFile(UFBOOT_FOLDER, "state of an unfinished ultrafast bootstrap", "a folder"),
    OutputFile(ADOPTED_FOLDER, "state of the search from a better tree that it met", "a folder"),
)
TREE_FILES = (
    OutputFile("best.nwk", "tree", "the best one found, with branch lengths"),
    OutputFile("json", "record", "JSON: lnL, model, settings and what else is known of the run"),
    OutputFile("best.model", "models of partitions", "if there are several; a file for --model"),
    OutputFile("parts.nwk", "trees of partitions", "with --brlen unlinked"),
    OutputFile("best.nex", "tree as NEXUS", "with --nexus"),
    OutputFile("collapsed.nwk", "collapsed tree", "if internal branches are as short as --collapse says"),
)
CF_FILES = (
    OutputFile("cf.nwk", "tree with concordance factors", "labels such as 71.4/43.2: gCF/sCF, behind those it had"),
    OutputFile("cf.stat", "table of branches", "separated by tabs, with the columns of IQ-TREE's .cf.stat and others"),
    OutputFile("cf.branch.nwk", "tree with the numbers of the branches in the table"),
    OutputFile("cf.nex", "tree as NEXUS", "all columns by name, as FigTree reads them"),
    OutputFile("cf.json", "record", "JSON"),
)

# --- all analyses and tools, in the order of the help -----------------------------------------------------
TREES, MODELS, GENES = "Trees and supports", "Models", "Many genes"
ON_TREES, FILES, MACHINE = "Ancestors, dates, placement, posterior", "Files, pictures, checks", "This machine"
_DECLARED = (
    Analysis("search", TREES, "Find the maximum-likelihood tree of an alignment.", record="json",
             section="search_section", order=1, where=AFTER_MODEL, by_ranks=True, by_workers=True, files=(
        *TREE_FILES,
        OutputFile("log", "log"),
        OutputFile("checkpoint", "state of an unfinished search", "a folder; its best.nwk is the best tree so far"),
        *(*SUPPORT_FILES, *REPLICATE_FILES, *UFBOOT_FILES, *REPORT_FILES),
    )),
    Analysis("evaluate", TREES, "Compute the likelihood of a given tree.", record="evaluate.json", order=2,
             by_ranks=True, files=(
        OutputFile("evaluate.nwk", "tree", "with optimised branch lengths"),
        OutputFile("evaluate.json", "record", "JSON"),
        OutputFile("evaluate.log", "log"),
        OutputFile("evaluate.model", "models of partitions", "if there are several"),
        OutputFile("evaluate.parts.nwk", "trees of partitions", "with --brlen unlinked"),
        OutputFile("evaluate.nex", "tree as NEXUS", "with --nexus"),
        OutputFile("evaluate.collapsed.nwk", "collapsed tree", "if internal branches are as short as --collapse says"),
        *REPORT_FILES,
    )),
    Analysis("bootstrap", TREES, "Make bootstrap trees, and the supports of a tree.", by_ranks=True, by_workers=True,
             files=(
        *REPLICATE_TREES,
        OutputFile(REPLICATE_FOLDER, "all replicates", "a folder; needed to add more replicates later"),
        OutputFile("bootstrap.log", "log"),
        *(*SUPPORT_FILES, *REPORT_FILES),
    )),
    Analysis("support", TREES, "Compute supports of a tree by replicate trees.", (*SUPPORT_FILES, *REPORT_FILES),
             section="support_section", order=4, where=AFTER_MODEL),
    Analysis("alrt", TREES, "Compute supports of a tree by likelihood: SH-aLRT, aBayes.", record="alrt.json", order=5,
             by_ranks=True, files=(
        *SUPPORT_FILES,
        OutputFile("alrt.json", "record", "JSON, with the supports of each branch"),
        OutputFile("alrt.log", "log"),
        *REPORT_FILES,
    )),
    Analysis("test", TREES, "Test which of several trees the data reject.", record="test.json", own_choices=("tree",),
             section="support_section", order=6, where=AFTER_MODEL, by_ranks=True, files=(
        OutputFile("test.nwk", "trees", "with optimised branch lengths"),
        OutputFile("test.json", "record", "JSON, with all numbers"),
        OutputFile("test.log", "log"),
        *REPORT_FILES,
    )),
    Analysis("select-model", MODELS, "Choose the substitution model of an alignment.", record="select-model.json",
             own_choices=("model", "tree"), by_ranks=True, files=(
        OutputFile("select-model.model", "chosen model", "or models of partitions, without values; for --model"),
        OutputFile("select-model.json", "record", "JSON, with all models that were fitted"),
        OutputFile("select-model.log", "log"),
        *REPORT_FILES,
    )),
    Analysis("genes", GENES, "Find the trees of many genes, and gene and site concordance factors.", by_workers=True,
             files=(
        OutputFile("genes.nwk", "gene trees", "one a line, in the order of the table"),
        OutputFile("genes.tsv", "table of genes", "separated by tabs: name, file, size, lnL, model"),
        OutputFile("genes.fasta", "alignment of all genes side by side"),
        OutputFile("genes.part", "partition file", "the columns of each gene and its model, for --model"),
        OutputFile("best.nwk", "tree of all genes", "with branch lengths"),
        OutputFile("best.model", "models of the genes in it", "a file for --model"),
        OutputFile("json", "record of its search", "JSON"),
        OutputFile("parts.nwk", "trees of genes in it", "with --brlen unlinked"),
        OutputFile("collapsed.nwk", "collapsed tree", "if internal branches are as short as the bound"),
        *CF_FILES,
        OutputFile("log", "log"),
        *REPORT_FILES,
        OutputFile("checkpoint", "state of an unfinished run", "a folder: the genes that are done"),
        OutputFile("search.checkpoint", "state of its last search", "a folder"),
    )),
    Analysis("concordance", GENES, "Compute gene and site concordance factors of a tree.",
             (*CF_FILES, OutputFile("concordance.log", "log"), *REPORT_FILES), section="concordance_section", order=7),
    Analysis("ancestral", ON_TREES, "Reconstruct ancestral states.", record="ancestral.json",
             section="ancestral_section", order=9, by_ranks=True, files=(
        OutputFile("state", "states", "a table of node, site, most probable state and probabilities, as IQ-TREE's"),
        OutputFile("state.nwk", "tree with the names of the nodes"),
        OutputFile("joint.fasta", "joint states", "the jointly most probable sequences of the nodes"),
        OutputFile("joint.tsv", "table of joint states", "in place of joint.fasta where states have names"),
        OutputFile("mutations.tsv", "mutations", "a table of node, parent, site and the two states"),
        OutputFile("mutations.nex", "tree with the mutations on its branches", "NEXUS, by joint states"),
        OutputFile("ancestral.json", "record", "JSON, with the most probable sequences"),
        OutputFile("ancestral.log", "log"),
        *REPORT_FILES,
    )),
    Analysis("date", ON_TREES, "Date a tree by the dates on which taxa were sampled.", record="date.json",
             section="date_section", order=10, where=BEFORE_TREE, files=(
        OutputFile("date.nwk", "time-scaled tree", "Newick, with lengths in years"),
        OutputFile("date.nex", "tree with dates",
                   "NEXUS, with dates, heights and their intervals as FigTree shows them"),
        OutputFile("date.tsv", "dates", "a table of nodes, dates, intervals and rates"),
        OutputFile("date.clock.tsv", "root-to-tip regression", "a table of tips, dates and distances"),
        OutputFile("date.json", "record", "JSON"),
        OutputFile("date.log", "log"),
        *REPORT_FILES,
    )),
    Analysis("place", ON_TREES, "Place sequences on the branches of a reference tree.", record="place.json",
             section="placement_section", order=8, files=(
        OutputFile("jplace", "placements", "jplace 3, as gappa, guppy and iTOL read it"),
        OutputFile("place.json", "record", "JSON, of the reference"),
        OutputFile("place.log", "log"),
        *REPORT_FILES,
    )),
    Analysis("sample", ON_TREES, "Sample trees from their posterior distribution.", section="sample_section", order=3,
             by_workers=True, files=(
        OutputFile("runN.t", "trees of a run", "NEXUS, as MrBayes writes them"),
        OutputFile("runN.p", "parameters of a run", "a table for Tracer and other programs"),
        OutputFile("consensus.nwk", "majority-rule tree", "with posterior probabilities"),
        OutputFile("mcc.nwk", "maximum clade credibility tree", "with posterior probabilities"),
        OutputFile("credible.tsv", "credible set of topologies", "95 % of the posterior probability"),
        OutputFile("sample.json", "record", "JSON: summaries, settings and what else is known of the run"),
        OutputFile("sample.log", "log"),
        *REPORT_FILES,
        OutputFile("sample.checkpoint", "all samples", "a folder; needed to add more generations later"),
    )),
    Analysis("check", FILES, "Check an alignment, and the memory that a search takes."),
    Analysis("show", FILES, "Draw a tree: characters, SVG, PDF or PNG."),
    Analysis("report", FILES, "Write a report of the runs with a prefix: HTML and text."),
    Analysis("trees", FILES, "Compute distances and consensus of trees; root them."),
    Analysis("simulate", FILES, "Simulate an alignment along a tree."),
    Analysis("front-ends", MACHINE, "Write commands with the names and options of other programs."),
    Analysis("devices", MACHINE, "List and test the OpenCL devices."),
    Analysis("bench", MACHINE, "Measure the speed of an engine."),
    Analysis("compare", MACHINE, "Compare trees and likelihoods of two devices, or two searches.",
             record="compare.json", section="compare_section", order=11, where=BEFORE_TREE, files=(
        OutputFile("compare.json", "record", "JSON; two folders have none"),
        OutputFile("compare.log", "log"),
        *REPORT_FILES,
    )),
)  # fmt: skip
_CPUS = ("", "-SSE3", "-AVX", "-AVX2")  # at the ends of names of RAxML's commands
FRONT_ENDS = {  # programs whose options and files `plltool.front_ends` has, and the names of their commands
    **{"iqtree": ("iqtree", "iqtree2", "iqtree3"), "raxml-ng": ("raxml-ng",), "epa-ng": ("epa-ng",)},
    "FastTree": ("FastTree", "fasttree", "FastTreeMP"),
    "raxmlHPC": tuple(f"raxmlHPC{threads}{cpu}" for threads in ("", "-PTHREADS") for cpu in _CPUS),
}
ANALYSES = {declared.name: declared for declared in _DECLARED}
IN_REPORTS = sorted(_DECLARED, key=lambda declared: declared.order)
