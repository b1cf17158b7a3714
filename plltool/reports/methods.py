"""A paragraph of methods, ready to paste, and the references that it owes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from plltool.constants import ABAYES, FBP, GCF, LINKED, ROOTSTRAP, SCF, SCFL, SH_ALRT, TBE, UFBOOT, VERSION
from plltool.reports.figures import count
from plltool.reports.records import Record, Records

REPOSITORY = "plltool: maximum-likelihood phylogenetic trees on OpenCL devices"  # there is no paper yet
CRITERION_SOURCES = {"BIC": "Schwarz 1978", "AIC": "Akaike 1974", "AICc": "Hurvich & Tsai 1989"}
SUPPORT_SOURCES = {  # what a kind of support is called in a text, and its source
    FBP: ("the nonparametric bootstrap", "Felsenstein 1985"),
    TBE: ("the transfer bootstrap expectation", "Lemoine et al. 2018"),
    ROOTSTRAP: ("rootstrap support for the root", "Naser-Khdour, Minh & Lanfear 2022"),
    UFBOOT: ("the ultrafast bootstrap", "Minh et al. 2013"),
    SH_ALRT: ("the SH-like approximate likelihood ratio test", "Guindon et al. 2010"),
    ABAYES: ("the approximate Bayes test", "Anisimova et al. 2011"),
}
LINKING = {  # of branch lengths, in a text
    "linked": "the same branch lengths",
    "scaled": "proportional branch lengths",
    "unlinked": "separate branch lengths",
}
PRIORS = {  # what the records of priors call the parameters, and a text
    "lengths": "branch lengths",
    "rates": "substitution rates",
    "frequencies": "state frequencies",
    "pinv": "the proportion of invariable sites",
}
RATE_SOURCES = (  # what a model string has, what it is called, and its sources
    (r"\+I[OUC]?(?=[+{]|$)", "a proportion of invariable sites", ()),
    (r"\+GA?\d*(?=[+{]|$)", "gamma-distributed rates across sites", ("Yang 1994b",)),
    (r"\+R\d*(?=[+{]|$)", "free rates across sites", ("Yang 1995", "Soubrier et al. 2012")),
    (r"\+C[1-6]0(?=[+{]|$)", "amino acid frequency profiles", ("Le, Gascuel & Lartillot 2008",)),
    (r"\+FMIX\{", "user-defined frequency profiles", ()),
    (r"^MIX\{", "a mixture of substitution matrices", ()),
    (r"\+ASC_LEWIS", "a correction for ascertainment bias", ("Lewis 2001",)),
    (r"\+ASC_(?:FELS|STAM)", "a correction for ascertainment bias", ("Leaché et al. 2015",)),
)

MOVES = (  # the stages that move subtrees
    ("nni", "nearest-neighbour interchanges (NNI)"),
    ("spr", "subtree pruning and regrafting (SPR)"),
)


class Methods(NamedTuple):
    """The paragraph, and the full references in alphabetical order."""

    text: str
    references: tuple[str, ...]


def write_methods(records: Records) -> Methods | None:
    """The methods of all runs with the prefix; None if no run left a record."""
    cited, first = _Cited(), next(iter(records.all_runs.values()), None)
    if first is None and records.concordance is None and records.supports is None:
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
    sentences.append(f"All analyses were run with plltool {version}{device}.")
    return Methods(" ".join(sentences), (f"{REPOSITORY}, version {version}.", *cited.references()))


class _Cited:
    """Collects what was cited."""

    def __init__(self) -> None:
        self._keys: set[str] = set()

    def cite(self, *keys: str, also: str = "") -> str:
        """The sources, and what is said `also`, in brackets with a blank before them; empty without any."""
        self._keys.update(keys)
        shown = [re.sub(r"(?<=\d)[ab]$", "", key) for key in keys]  # a letter tells two sources of one year apart
        told = "; ".join(filter(None, (*shown, also)))
        return f" ({told})" if told else ""

    def references(self) -> list[str]:
        """The full references."""
        return [read_table("citations.txt")[key] for key in sorted(self._keys)]


@cache
def read_table(name: str) -> dict[str, str]:
    """A table of this package: lines "key = text"."""
    lines = files("plltool.reports").joinpath(name).read_text(encoding="utf-8").splitlines()
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


def _list(words: Sequence[str]) -> str:
    """ "a", "a and b", or "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _tell_data(run: Record) -> str:
    kinds = _list([re.sub(r"^(codon)(\d+)$", r"\1 (code \2)", kind) for kind in run.get("data", {}).get("kinds", ())])
    patterns = f" ({count(run['n_patterns'], 'distinct site pattern')})" if "n_patterns" in run else ""
    sites = count(run["n_sites"], "site")
    n_added = sum(run.get("data", {}).get("constant_sites") or ())
    added = f", including {n_added} constant sites that were added to the file" if n_added else ""
    return f"The alignment comprised {run['n_taxa']} taxa and {sites} of {kinds or 'aligned'} data{patterns}{added}."


def _tell_choice(records: Records, cited: _Cited) -> list[str]:
    choice = records.model_choice
    if choice is None or not records.chosen_model_is_used:
        return []
    name = choice["criterion"]
    by = f"by {name}{cited.cite(CRITERION_SOURCES[name])} following the strategy of ModelFinder"
    by += cited.cite("Kalyaanamoorthy et al. 2017")
    if "candidates" in choice:
        return [f"The substitution model {choice['best']} was selected {by}."]
    if choice["merges"]:
        merged = cited.cite("Lanfear et al. 2012")
        by += f", and partitions were merged following the strategy of PartitionFinder{merged}"
    return [f"The substitution model of each partition was selected {by}."]


def _tell_model(run: Record, cited: _Cited) -> str:
    """The models of all parts, with their sources."""
    return _tell_models([part["parameters"]["spec"] for part in run["parts"]], run["brlen"], cited)


def _tell_models(specs: Sequence[str], brlen: str, cited: _Cited) -> str:
    """The models of parts with their sources, from the model string of each."""
    told = []
    for spec in dict.fromkeys(re.sub(r"\+BU?(\{[^}]*\})?$", "", spec) for spec in specs):
        rates = [what + cited.cite(*sources) for pattern, what, sources in RATE_SOURCES if re.search(pattern, spec)]
        bare = re.sub(r"\{[^{}]*\}", "", spec).replace("+FU", "+F").replace("+IU", "+I").partition("{")[0]
        given = f"{spec if len(spec) <= 60 else bare}{cited.cite(*source_of_model(spec))}"
        told.append(f"{given} with {_list(rates)}" if rates else given)
    models = f"the model {told[0]}" if len(told) == 1 else f"the models {'; '.join(told[:-1])}; and {told[-1]}"
    return models if len(specs) == 1 else f"{models}, for {len(specs)} partitions with {LINKING[brlen]}"


def _tell_search(run: Record, cited: _Cited) -> list[str]:
    kind = run.get("settings", {}).get("start", "")
    starts = count(
        len(run["start_lnls"]), f"{kind} starting tree" if kind in ("parsimony", "random") else "starting tree"
    )
    stages = {event["stage"] for event in run.get("trace", ())}
    moves = [words for stage, words in MOVES if stage in stages]
    if "perturb" in stages:
        moves.append(f"perturbations as in the parsimony ratchet{cited.cite('Nixon 1999')}")
    by = f" and used {_list(moves)}" if moves else ", and no subtrees were moved" if "start" in stages else ""
    method = cited.cite("Felsenstein 1981")
    text = (
        f"The maximum-likelihood tree{method} was inferred under {_tell_model(run, cited)}."
        f" The search began from {starts} (random seed {run['seed']}){by}."
        f" Model parameters and branch lengths were optimised; the best tree has a log-likelihood of {run['lnl']:.4f}."
    )
    if run.get("settings", {}).get("constraint"):
        text += " The tree was constrained to contain the splits of a given tree."
    if "psr" in run:
        rates = cited.cite("Stamatakis 2006")
        text += f" Most of the search used per-site rates{rates}; the log-likelihood is under gamma-distributed rates."
    return [text]


def _tell_evaluation(run: Record, cited: _Cited) -> list[str]:
    if "parts" not in run:
        return []
    trees = "the given trees" if "tests" in run else "the given tree"
    return [f"The likelihood{cited.cite('Felsenstein 1981')} of {trees} was computed under {_tell_model(run, cited)}."]


def _tell_samples(run: Record, cited: _Cited) -> list[str]:
    """The chains and their samples."""
    options, posterior = run["options"], run["posterior"]
    model = _tell_models(run["models"], LINKED, cited)
    kind = "prior distribution, without the data," if options["prior_only"] else "posterior distribution"
    each, of_each = (" each", " of each run") if options["runs"] > 1 else ("", "")
    chains = count(options["chains"], "chain")
    if options["chains"] > 1:
        chains = f"{options['chains']} Metropolis-coupled chains{cited.cite('Geyer 1991', 'Altekar et al. 2004')}"
    runs = f"{count(options['runs'], 'run')} of {chains}"
    text = (
        f"Trees and parameters were sampled from their {kind} under {model}. We performed {runs} for"
        f" {run['generations']} generations{each} (random seed {run['seed']}) and sampled every"
        f" {options['sample_every']} generations. The first {count(run['burnin_samples'], 'sample')}{of_each}"
        f" {'was' if run['burnin_samples'] == 1 else 'were'} discarded as burn-in."
    )
    lengths = cited.cite("Zhang, Rannala & Yang 2012") if run["priors"]["lengths"].startswith("gammadir") else ""
    priors = [
        f"{prior} for {PRIORS.get(kind, kind)}{lengths if kind == 'lengths' else ''}"
        for kind, prior in run["priors"].items()
    ]
    text += f" The prior{'s were' if len(priors) > 1 else ' was'} {_list(priors)}."
    sizes = [own["size"] for own in posterior["numbers"].values() if "size" in own]
    agreement = []
    if posterior["asdsf"] is not None:
        source = cited.cite("Lakner et al. 2008")
        agreement.append(f"the average standard deviation of split frequencies{source} was {posterior['asdsf']:.4f}")
    if sizes:
        source = cited.cite("Vehtari et al. 2021")
        agreement.append(f"the smallest effective sample size{source} was {min(sizes):.0f}")
    return [text, f"At the end, {_list(agreement)}."] if agreement else [text]


def _tell_supports(records: Records, cited: _Cited) -> list[str]:
    if records.supports is None or not records.supports_are_of_main_tree:
        return []
    told = []
    for kind, own in records.supports["kinds"].items():
        name, source = SUPPORT_SOURCES[kind]
        number = "" if own["replicates"] is None else count(own["replicates"], "replicate")
        told.append(name + cited.cite(source, also=number))
    stop = ""
    if records.supports.get("convergence"):
        criterion = records.supports["convergence"][-1]["criterion"]
        source = cited.cite("Pattengale et al. 2010")
        stop = f" The {criterion} criterion{source} determined the number of bootstrap replicates."
    return [f"Branch support was assessed with {_list(told)}.{stop}"]


def _tell_tests(run: Record, cited: _Cited) -> str:
    tests = run["tests"]
    told = [
        name + cited.cite(source)
        for name, source in (
            ("the KH test", "Kishino & Hasegawa 1989"),
            ("the SH test", "Shimodaira & Hasegawa 1999"),
            ("the weighted KH and SH tests and the AU test", "Shimodaira 2002"),
            ("expected likelihood weights", "Strimmer & Rambaut 2002"),
        )
    ]
    return (
        f"We compared {len(tests['trees'])} trees with {_list(told)}, using {tests['n_replicates']:,} RELL replicates."
    )


def _tell_concordance(found: Record, cited: _Cited) -> list[str]:
    kinds, told = found["kinds"], []
    by = cited.cite("Minh, Hahn & Lanfear 2020") if kinds.keys() & {GCF, SCF} else ""
    if GCF in kinds:
        told.append(f"gene concordance factors{by} from {count(kinds[GCF]['replicates'], 'gene tree')}")
    if SCF in kinds:
        told.append(f"site concordance factors{by} from {kinds[SCF]['replicates']} quartets per branch")
    if SCFL in kinds:
        told.append(f"likelihood-based site concordance factors{cited.cite('Mo et al. 2023')}")
    return [f"Concordance was assessed with {_list(told)}."] if told else []


def _tell_placements(run: Record, cited: _Cited) -> str:
    number = count(run["placement"]["n_placed"], "query sequence")
    source = cited.cite("Berger, Krompass & Stamatakis 2011")
    return f"We placed {number} on the branches of the reference tree by maximum likelihood{source}."


def _tell_ancestors(cited: _Cited) -> str:
    marginal, joint = cited.cite("Yang, Kumar & Nei 1995"), cited.cite("Pupko et al. 2000")
    return f"Ancestral states at internal nodes were reconstructed by marginal{marginal} and joint{joint} likelihood."


def _tell_dates(run: Record, cited: _Cited) -> str:
    tips = count(len(run["dating"]["root_to_tip"]), "sampling date")
    treetime = run["dating"]["treetime"] + cited.cite("Sagulenko, Puller & Neher 2018")
    return f"Internal nodes were dated with TreeTime {treetime}, using {tips}."
