"""A paragraph of methods, ready to paste, and the references that it owes."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from plltool.constants import VERSION
from plltool.errors import count
from plltool.reports.plots import read_part
from plltool.reports.records import Record, Records

REPOSITORY = "plltool: maximum-likelihood phylogenetic trees on OpenCL devices"  # there is no paper yet


@cache
def read_table(name: str, group: str = "") -> dict[str, str]:
    """A table of this package: lines "key = text", or those "group: key = text" of a group."""
    head = f"{group}: " if group else ""
    lines = [line.removeprefix(head) for line in read_part(name).splitlines() if line.startswith(head)]
    return dict(line.split(" = ", 1) for line in lines)


def tell(key: str, **values: Any) -> str:
    """A text of `sentences.txt`, with these values."""
    return read_table("sentences.txt")[key].format_map(values)


CRITERION_SOURCES = read_table("terms.txt", "criterion")
# what a model string has, what it is called, and its sources
RATE_SOURCES = [(pattern, *text.split(" | ")) for pattern, text in read_table("terms.txt", "rates").items()]


class Methods:
    """A paragraph of sentences, and the references that it owes."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._sentences: list[str] = []

    def say(self, *sentences: str) -> None:
        self._sentences += sentences

    def cite(self, *keys: str, also: str = "") -> str:
        """The sources, and what is said `also`, in brackets with a blank before them; empty without any."""
        self._keys.update(keys)
        shown = [re.sub(r"(?<=\d)[ab]$", "", key) for key in keys]  # a letter tells two sources of one year apart
        told = "; ".join(filter(None, (*shown, also)))
        return f" ({told})" if told else ""

    def begin(self, records: Records) -> None:
        """Say what the data are, how the model was chosen, and what was computed on a tree that was given."""
        for run in list(records.all_runs.values())[:1]:
            self.say(_tell_data(run), *_tell_choice(records, self))
        main = records.main or {}
        if "search" not in records.runs and "parts" in main and "trace" not in main:  # the tree was given
            source, trees = self.cite("Felsenstein 1981"), "trees" if "tests" in main else "tree"
            self.say(tell("methods.given", source=source, trees=trees, model=tell_model(main, self)))

    def finish(self, records: Records) -> tuple[str, list[str]]:
        """The paragraph, and the full references in alphabetical order."""
        first = next(iter(records.all_runs.values()), None)
        version = VERSION if first is None else first["version"]
        is_prior = first is not None and first is records.samples and first["options"]["prior_only"]
        device = "" if first is None or is_prior else f" on {first['device']}"
        self.say(f"All analyses were run with plltool {version}{device}.")
        references = [read_table("citations.txt")[key] for key in sorted(self._keys)]
        return " ".join(self._sentences), [f"{REPOSITORY}, version {version}.", *references]


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


def list_words(words: Sequence[str]) -> str:
    """ "a", "a and b", or "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _tell_data(run: Record) -> str:
    names = run.get("data", {}).get("kinds", ())
    kinds = list_words([re.sub(r"^(codon)(\d+)$", r"\1 (code \2)", kind) for kind in names])
    patterns = f" ({count(run['n_patterns'], 'distinct site pattern')})" if "n_patterns" in run else ""
    sites = count(run["n_sites"], "site")
    n_added = sum(run.get("data", {}).get("constant_sites") or ())
    added = f", including {n_added} constant sites that were added to the file" if n_added else ""
    columns = run.get("data", {}).get("weighted_columns")
    added += f"; they are the {columns} columns of the file with their weights" if columns else ""
    return f"The alignment comprised {run['n_taxa']} taxa and {sites} of {kinds or 'aligned'} data{patterns}{added}."


def _tell_choice(records: Records, methods: Methods) -> list[str]:
    choice = records.model_choice
    if choice is None or not records.chosen_model_is_used:
        return []
    source, strategy = methods.cite(CRITERION_SOURCES[choice["criterion"]]), methods.cite("Kalyaanamoorthy et al. 2017")
    what = f" {choice['best']}" if "candidates" in choice else " of each partition"
    merged = tell("choice.merged", source=methods.cite("Lanfear et al. 2012")) if choice.get("merges") else ""
    return [tell("choice", what=what, choice=choice, source=source, strategy=strategy, merged=merged)]


def tell_model(run: Record, methods: Methods) -> str:
    """The models of all parts, with their sources."""
    return tell_models([part["parameters"]["spec"] for part in run["parts"]], run["brlen"], methods)


def tell_models(specs: Sequence[str], brlen: str, methods: Methods) -> str:
    """The models of parts with their sources, from the model string of each."""
    told = []
    for spec in dict.fromkeys(re.sub(r"\+BU?(\{[^}]*\})?$", "", spec) for spec in specs):
        rates = [what + methods.cite(*sources) for pattern, what, *sources in RATE_SOURCES if re.search(pattern, spec)]
        bare = re.sub(r"\{[^{}]*\}", "", spec).replace("+FU", "+F").replace("+IU", "+I").partition("{")[0]
        given = f"{spec if len(spec) <= 60 else bare}{methods.cite(*source_of_model(spec))}"
        told.append(f"{given} with {list_words(rates)}" if rates else given)
    models = f"the model {told[0]}" if len(told) == 1 else f"the models {'; '.join(told[:-1])}; and {told[-1]}"
    if len(specs) == 1:
        return models
    return f"{models}, for {len(specs)} partitions with {read_table('terms.txt', 'linkage')[brlen]}"
