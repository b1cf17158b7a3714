"""A paragraph of methods, ready to paste, and the references that it owes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from plltool.constants import ABAYES, FBP, GCF, LINKED, ROOTSTRAP, SCF, SCFL, SH_ALRT, TBE, UFBOOT, VERSION
from plltool.pages.figures import count
from plltool.pages.records import Record, Records

REPOSITORY = "plltool: maximum-likelihood phylogenetic trees on OpenCL devices"  # there is no paper yet
CRITERION_SOURCES = {"BIC": "Schwarz 1978", "AIC": "Akaike 1974", "AICc": "Hurvich & Tsai 1989"}
SUPPORT_SOURCES = {  # what a kind of support is called in a text, and its source
    FBP: ("Felsenstein's bootstrap proportions", "Felsenstein 1985"),
    TBE: ("transfer bootstrap expectations", "Lemoine et al. 2018"),
    ROOTSTRAP: ("rootstrap supports of the root", "Naser-Khdour, Minh & Lanfear 2022"),
    UFBOOT: ("ultrafast bootstrap supports", "Minh et al. 2013"),
    SH_ALRT: ("SH-like approximate likelihood ratio tests", "Guindon et al. 2010"),
    ABAYES: ("aBayes supports", "Anisimova et al. 2011"),
}
RATE_SOURCES = (  # what a model string has, what it is called, and its sources
    (r"\+I[OUC]?(?=[+{]|$)", "a share of invariable sites", ()),
    (r"\+GA?\d*(?=[+{]|$)", "gamma-distributed rates across sites", ("Yang 1994b",)),
    (r"\+R\d*(?=[+{]|$)", "free rates across sites", ("Yang 1995", "Soubrier et al. 2012")),
    (r"\+C[1-6]0(?=[+{]|$)", "profiles of amino acid frequencies", ("Le, Gascuel & Lartillot 2008",)),
    (r"\+FMIX\{", "given profiles of frequencies", ()),
    (r"^MIX\{", "a mixture of given matrices", ()),
    (r"\+ASC_LEWIS", "a correction for the lack of invariable sites", ("Lewis 2001",)),
    (r"\+ASC_(?:FELS|STAM)", "a correction for the lack of invariable sites", ("Leaché et al. 2015",)),
)

MOVES = (("nni", "nearest-neighbour interchanges"), ("spr", "subtree pruning and regrafting"))  # the stages that move


class Methods(NamedTuple):
    """The paragraph, and the full references in alphabetical order."""

    text: str
    references: tuple[str, ...]


def write_methods(records: Records) -> Methods | None:
    """The methods of all runs with the prefix; None if no run left a record."""
    cited, first = _Cited(), next(iter(records.all_runs.values()), None)
    if first is None and records.concordance is None:
        return None
    sentences = [] if first is None else [_tell_data(first), *_tell_choice(records, cited)]
    if "search" in records.runs:
        sentences += _tell_search(records.runs["search"], cited)
    elif records.main is not None:
        sentences += _tell_evaluation(records.main, cited)
    if records.samples is not None:
        sentences += _tell_samples(records.samples, cited)
    sentences += _tell_supports(records, cited)
    if "test" in records.runs:
        sentences.append(_tell_tests(records.runs["test"], cited))
    if records.concordance is not None:
        sentences += _tell_concordance(records.concordance, cited)
    if "place" in records.runs:
        sentences.append(_tell_placements(records.runs["place"], cited))
    if "ancestral" in records.runs:
        sentences.append(_tell_ancestors(cited))
    if "date" in records.runs:
        sentences.append(_tell_dates(records.runs["date"], cited))
    version = VERSION if first is None else first["version"]
    is_prior = first is not None and first is records.samples and first["options"]["prior_only"]
    device = "" if first is None or is_prior else f" on {first['device']}"
    sentences.append(f"The computations were made with plltool {version}{device}.")
    return Methods(" ".join(sentences), (f"{REPOSITORY}, version {version}.", *cited.references()))


class _Cited:
    """Collects what was cited."""

    def __init__(self) -> None:
        self._keys: set[str] = set()

    def cite(self, *keys: str) -> str:
        """The sources in brackets, with a blank before them; empty without any."""
        self._keys.update(keys)
        shown = [re.sub(r"(?<=\d)[ab]$", "", key) for key in keys]  # a letter tells two sources of one year apart
        return f" ({'; '.join(shown)})" if keys else ""

    def references(self) -> list[str]:
        """The full references."""
        return [read_table("citations.txt")[key] for key in sorted(self._keys)]


@cache
def read_table(name: str) -> dict[str, str]:
    """A table of this package: lines "key = text"."""
    lines = files("plltool.pages").joinpath(name).read_text(encoding="utf-8").splitlines()
    return dict(line.split(" = ", 1) for line in lines)


def source_of_model(spec: str) -> tuple[str, ...]:
    """The source of a substitution model, by the name that its model string begins with; nothing if it has none."""
    name = re.split(r"[+{]", spec, maxsplit=1)[0]
    name = re.sub(r"^CODON\d*_", "", name)
    if re.match(r"MULTI[\dX*]*_MK$|MK$", name):
        return ("Lewis 2001",)
    if re.match(r"MULTI[\dX*]*_GTR$|GTRX$|DNA\d{6}$", name):
        return ("Tavaré 1986",)
    source = read_table("models.txt").get(name)
    return () if source is None else (source,)


def _tell_data(run: Record) -> str:
    kinds = " and ".join(run.get("data", {}).get("kinds", ())) or "aligned"
    patterns = f" ({count(run['n_patterns'], 'distinct pattern')})" if "n_patterns" in run else ""
    n_added = sum(run.get("data", {}).get("constant_sites") or ())
    added = f", {n_added} of which are constant sites added to the alignment," if n_added else ""
    return f"We analysed {count(run['n_sites'], 'site')}{patterns}{added} of {kinds} data of {run['n_taxa']} taxa."


def _tell_choice(records: Records, cited: _Cited) -> list[str]:
    choice = records.model_choice
    if choice is None or not records.chosen_model_is_used:
        return []
    name, finder = choice["criterion"], cited.cite("Kalyaanamoorthy et al. 2017")
    by = cited.cite(CRITERION_SOURCES[name])
    if "candidates" in choice:
        return [f"The model {choice['best']} was chosen by {name}{by} in the way of ModelFinder{finder}."]
    merged = ""
    if choice["merges"]:
        merged = f"; parts were merged in the way of PartitionFinder{cited.cite('Lanfear et al. 2012')}"
    return [f"The model of each part was chosen by {name}{by} in the way of ModelFinder{finder}{merged}."]


def _tell_model(run: Record, cited: _Cited) -> str:
    """The models of all parts, with their sources."""
    return _tell_models([part["parameters"]["spec"] for part in run["parts"]], run["brlen"], cited)


def _tell_models(specs: Sequence[str], brlen: str, cited: _Cited) -> str:
    """The models of parts with their sources, from the model string of each."""
    told = []
    for spec in dict.fromkeys(specs):
        rates = [what + cited.cite(*sources) for pattern, what, sources in RATE_SOURCES if re.search(pattern, spec)]
        name = re.split(r"\{", spec, maxsplit=1)[0] if len(spec) > 60 else spec
        given = f"{name}{cited.cite(*source_of_model(spec))}"
        told.append(f"{given} with {' and '.join(rates)}" if rates else given)
    if len(told) == 1:
        return f"the model {told[0]}"
    return f"{len(specs)} parts with {brlen} branch lengths under the models {', '.join(told)}"


def _tell_search(run: Record, cited: _Cited) -> list[str]:
    starts = count(len(run["start_lnls"]), "start tree")
    stages = {event["stage"] for event in run.get("trace", ())}
    ratchet = f", and with perturbations by a ratchet{cited.cite('Nixon 1999')}" if "perturb" in stages else ""
    moves = [words for stage, words in MOVES if stage in stages]
    by = f", by {' and '.join(moves)}" if moves else ", without moves of subtrees" if "start" in stages else ""
    method = cited.cite("Felsenstein 1981")
    text = (
        f"The tree of maximum likelihood{method} was searched under {_tell_model(run, cited)}, from {starts}"
        f" (seed {run['seed']}){by}{ratchet}."
        f" Model parameters and branch lengths were optimised; the tree found has a log-likelihood of {run['lnl']:.4f}."
    )
    if "psr" in run:
        rates = cited.cite("Stamatakis 2006")
        text += f" Most of the search was made with per-site rates{rates}; the log-likelihood is that of gamma rates."
    return [text]


def _tell_evaluation(run: Record, cited: _Cited) -> list[str]:
    if "parts" not in run:
        return []
    method = cited.cite("Felsenstein 1981")
    return [f"The likelihood{method} of given trees was computed under {_tell_model(run, cited)}."]


def _tell_samples(run: Record, cited: _Cited) -> list[str]:
    """The chains and their samples."""
    options, posterior = run["options"], run["posterior"]
    coupled = cited.cite("Geyer 1991", "Altekar et al. 2004") if options["chains"] > 1 else ""
    model = _tell_models(run["models"], LINKED, cited)
    kind = "prior distribution, without the data," if options["prior_only"] else "posterior distribution"
    each, of_each = (" each", " of each run") if options["runs"] > 1 else ("", "")
    chains = f"{count(options['runs'], 'run')} of {count(options['chains'], 'chain')}{coupled}"
    text = (
        f"Trees and parameters were sampled from their {kind} under {model}, by {chains} and {run['generations']}"
        f" generations{each} (seed {run['seed']}). Of the samples taken every {options['sample_every']} generations,"
        f" the first {run['burnin_samples']}{of_each} were left out."
    )
    lengths = cited.cite("Zhang, Rannala & Yang 2012") if run["priors"]["lengths"].startswith("gammadir") else ""
    kinds = [f"{prior} of {kind}{lengths if kind == 'lengths' else ''}" for kind, prior in run["priors"].items()]
    told = f"s were {', '.join(kinds[:-1])} and" if len(kinds) > 1 else " was"
    text += f" The prior{told} {kinds[-1]}."
    sizes = [own["size"] for own in posterior["numbers"].values() if "size" in own]
    agreement = []
    if posterior["asdsf"] is not None:
        source = cited.cite("Lakner et al. 2008")
        agreement.append(f"the average standard deviation of split frequencies{source} was {posterior['asdsf']:.4f}")
    if sizes:
        source = cited.cite("Vehtari et al. 2021")
        agreement.append(f"the smallest effective sample size{source} was {min(sizes):.0f}")
    return [text, f"At the end {' and '.join(agreement)}."] if agreement else [text]


def _tell_supports(records: Records, cited: _Cited) -> list[str]:
    if records.supports is None or not records.supports_are_of_main_tree:
        return []
    told = []
    for kind, own in records.supports["kinds"].items():
        name, source = SUPPORT_SOURCES[kind]
        number = "" if own["replicates"] is None else f" from {count(own['replicates'], 'replicate')}"
        told.append(f"{name}{cited.cite(source)}{number}")
    stop = ""
    if records.supports.get("convergence"):
        criterion = records.supports["convergence"][-1]["criterion"]
        stop = f" The number of bootstrap replicates was found by {criterion}{cited.cite('Pattengale et al. 2010')}."
    listed = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return [f"Supports of branches are {listed}.{stop}"]


def _tell_tests(run: Record, cited: _Cited) -> str:
    tests = run["tests"]
    told = [
        name + cited.cite(source)
        for name, source in (
            ("the KH test", "Kishino & Hasegawa 1989"),
            ("the SH test", "Shimodaira & Hasegawa 1999"),
            ("their weighted forms and the AU test", "Shimodaira 2002"),
            ("expected likelihood weights", "Strimmer & Rambaut 2002"),
        )
    ]
    by = f"{', '.join(told[:-1])}, and {told[-1]}"
    return f"We compared {len(tests['trees'])} trees by {by}, with {tests['n_replicates']} resampled alignments."


def _tell_concordance(found: Record, cited: _Cited) -> list[str]:
    kinds, told = found["kinds"], []
    by = cited.cite("Minh, Hahn & Lanfear 2020") if kinds.keys() & {GCF, SCF} else ""
    if GCF in kinds:
        told.append(f"gene concordance factors{by} from {count(kinds[GCF]['replicates'], 'gene tree')}")
    if SCF in kinds:
        told.append(f"site concordance factors{by} from {kinds[SCF]['replicates']} quartets around each branch")
    if SCFL in kinds:
        told.append(f"site concordance factors by likelihood{cited.cite('Mo et al. 2023')}")
    return [f"The agreement of the data with each branch was measured by {' and '.join(told)}."] if told else []


def _tell_placements(run: Record, cited: _Cited) -> str:
    number = count(run["placement"]["n_placed"], "sequence")
    source = cited.cite("Berger, Krompass & Stamatakis 2011")
    return f"We placed {number} on the branches of this tree by maximum likelihood{source}."


def _tell_ancestors(cited: _Cited) -> str:
    marginal, joint = cited.cite("Yang, Kumar & Nei 1995"), cited.cite("Pupko et al. 2000")
    return f"States at inner nodes were reconstructed by their marginal probabilities{marginal} and jointly{joint}."


def _tell_dates(run: Record, cited: _Cited) -> str:
    dating = run["dating"]
    tips = count(len(dating["root_to_tip"]), "sampling date")
    source = cited.cite("Sagulenko, Puller & Neher 2018")
    return f"Nodes were dated by TreeTime {dating['treetime']}{source} from {tips}."
