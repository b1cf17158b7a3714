"""`raxml-ng`: the commands of RAxML-NG."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import plltool
from plltool.constants import FIRST_WORD, VERSION
from plltool.front_ends.options import Given, UsageError
from plltool.front_ends.work import Session, Work, list_files, read_lines, states_of
from plltool.registry import split_words

BANNER = f"RAxML-NG v. 1.2.2+plltool{VERSION} released as a front end of plltool {VERSION}, which is not RAxML-NG"
METRICS = {"fbp": "fbp", "tbe": "tbe", "sh": "sh-alrt", "rbs": "fbp"}
LABELS = {"fbp": "FBP", "tbe": "TBE", "sh-alrt": "SH"}
STOP_RULES = {"": None, "off": "epsilon"}  # others: kh
CUTOFF = "0.03"
EFFORTS = {
    **dict.fromkeys(("", "classic", "v1", "adaptive")),
    **dict.fromkeys(("fast", "adafast", "simple", "simplified"), "fast"),
}
START = re.compile(r"(pars|rand)(?:\{(\d+)\})?")
KINDS = {"pars": "parsimony", "rand": "random"}


def run(arguments: Sequence[str]) -> None:
    given = Given("raxml-ng", arguments, one_dash=True)
    if given.answers(BANNER, "[OPTIONS]"):
        return
    task = next(filter(given.has, ("consense", "rfdist", "moose")), given.text("task", "search"))
    own = given.text("rfdist").removeprefix("yes")
    prefix = (given.text("prefix") or own or given.first("alignment", "tree", "replicates")).split(",")[0]
    endings = [ending + given.text("consense").upper() for ending in given.files[task]]
    Session(given, lambda ending: Path(f"{prefix}.raxml.{ending}"), endings, "--redo").run(BANNER, TASKS[task])


def _read(given: Given, session: Session, task: str = "") -> Work:
    """The data, the model and the settings; with a `task` the model is chosen if none is given."""
    beside = f"{given.first('alignment')}.model"  # of an .rba, if --parse was given a model
    word = given.text("model") or (beside if os.path.isfile(beside) else given.first("model") if task else "")
    states = states_of(given.text("data_type"))
    weights = given.text("site_weights") or None
    data = plltool.read_alignment(given.first("alignment"), states, names=FIRST_WORD, site_weights=weights)
    if (likelihoods := given.text("likelihoods")) == "on" and data.likelihoods is None:
        raise UsageError(f"--prob-msa: found on, expected off, because {data.source} is no CATG file")
    data = replace(data, likelihoods=None) if likelihoods == "off" else data
    work = Work(session, data, word if os.path.isfile(word) else spell_here(word), given.number("seed", 1))
    work.brlen, work.outgroup = given.text("brlen", "scaled"), given.text("outgroup") or None
    work.hardware["threads"] = given.number("threads") or None
    if task:
        given.refuse_rest()
    if word.upper() in ("DNA", "AA", "AUTO"):
        work.model = plltool.select_model(data, seed=work.seed, **work.hardware).model if task else None
        session.say(f"Best model: {spell_there(work.model)}" if task else "")
    return work


def spell_here(model: str) -> str:
    """A model of RAxML-NG as plltool reads it: values behind +FO are given frequencies."""
    return re.sub(r"\+FO(?=\{)", "+FU", re.sub(r"\+FM\b", "", model))


def spell_there(model: str) -> str:
    """A model of plltool with all values as RAxML-NG reads it."""
    return re.sub(r"\+GA(\d+)", r"+G\1a", re.sub(r"\+G(\d+)(?=[+{,]|$)", r"+G\1m", model, flags=re.MULTILINE))


def _write_model(session: Session, result: Any) -> None:
    one = "" if "=" in result.model else f", noname = 1-{result.data.n_columns}"
    session.write("bestModel", spell_there(result.model) + one, "Optimized model")


def _search(given: Given, session: Session) -> None:
    name, effort = given.text("task", "search"), _read_effort(given)
    wanted = _read_bootstrap(given) if name == "all" else {}
    radii = (given.number("radius"),) if given.has("radius") else None
    stop, workers, _ = (
        STOP_RULES.get(given.text("stop_rule"), "kh"),
        given.number("workers") or None,
        given.has("constraint"),
    )
    starts = _read_starts(given, {"search1": "pars{1}", "start": "pars{10},rand{10}"}.get(name, "pars"))
    if given.text("opt_branches") == "off":
        raise UsageError("--opt-branches: found off, expected on in a search")
    optimises = False if given.text("opt_model") == "off" else None
    work, found, began = _read(given, session, name if name != "start" else ""), [], list[str]()
    how: dict[str, Any] = {"constraint": given.text("constraint") or None, "seed": work.seed}
    for kind, number in starts:
        is_kind = kind in KINDS.values()
        began += plltool.start_trees(work.data, kind=kind, number=number or 1, **how) if is_kind else read_lines(kind)
        own: dict[str, Any] = {"starts": number or None, "stop": stop, "radii": radii, "optimise_parameters": optimises}
        options = plltool.SearchOptions(effort or "default", **own)
        for start in [] if name == "start" else [kind] if is_kind else work.trees(kind):
            found.append(work.call(plltool.search, work.model, start=start, options=options, workers=workers, **how))
    session.write("startTree", "\n".join(began), f"{len(began)} starting trees")
    if name == "start":
        return
    session.write("mlTrees", "\n".join(line for one in found for line in one.climbs))
    for number, lnl in enumerate((lnl for one in found for lnl in one.start_lnls), 1):
        session.say(f"ML tree search #{number}, logLikelihood: {lnl:.6f}")
    best = max(found, key=lambda one: float(one.lnl))
    _write_best(session, best)
    if wanted:
        session.most_replicates = wanted["most"]
        made, trees = work.supports(best, wanted["kinds"], rapid=wanted["rapid"], workers=workers)
        if made.bootstrap is not None:
            _write_replicates(session, trees, made.bootstrap)
        _write_supports(session, made.supports)


def _read_effort(given: Given) -> str | None:
    return EFFORTS[given.text("opt_topology")] or ("fast" if given.has("fast") else None)


def _read_starts(given: Given, default: str) -> list[tuple[str, int]]:
    starts = []
    for word in split_words(given.text("tree", default)):
        match = START.fullmatch(word)
        if match is None and not os.path.exists(word):
            raise UsageError(f"--tree: found {word!r}, expected pars{{N}}, rand{{N}} or the name of a file")
        starts.append((KINDS[match[1]], int(match[2] or 0)) if match else (word, 1))
    return starts


def _read_bootstrap(given: Given) -> dict[str, Any]:
    """The number of replicates, or the test that finds it, for each kind of supports."""
    word, metrics = given.text("replicates", "autoMRE"), split_words(given.text("metrics", "fbp"))
    counts = dict(re.findall(r"(\w+)\{(\d+)\}", word)) if word.startswith(tuple(METRICS)) else {}
    sh_replicates = int(counts.pop("sh", "") or given.number("sh_replicates", 1000))
    if counts.keys() - set(metrics) or len(set(counts.values())) > 1:
        raise UsageError(f"--bs-trees: found {word!r}, expected metrics of --bs-metric and one number for all but sh")
    word = next(iter(counts.values()), "100") if word.startswith(tuple(METRICS)) else word
    if (match := re.fullmatch(r"([1-9]\d*)|(autoMRE|autoFC)(?:\{(\d+)\})?", word)) is None:
        raise UsageError(f"--bs-trees: found {word!r}, expected a number of replicates, autoMRE or autoMRE{{N}}")
    if float(given.text("cutoff", CUTOFF)) != float(CUTOFF):
        raise UsageError(f"--bs-cutoff: found {given.text('cutoff')}, expected {CUTOFF}; others are for --bsconverge")
    number = int(match[1]) if match[1] else match[2]
    kinds = {METRICS[metric]: sh_replicates if metric == "sh" else number for metric in metrics}
    return {"number": number, "most": int(match[3] or 0), "kinds": kinds, "rapid": "rbs" in metrics}


def _write_best(session: Session, result: Any) -> None:
    session.say("", "Optimized model parameters:", "")
    for number, part in enumerate(result.parts):
        session.say(f"   Partition {number}: {part.name or 'noname'}", f"   Model: {spell_there(part.model)}", "")
    scores = " / ".join(f"{name} score: {result.scores[name]:.6f}" for name in ("AIC", "AICc", "BIC"))
    session.say(f"Final LogLikelihood: {result.lnl:.6f}", "", scores)
    session.say(f"Free parameters (model + branch lengths): {result.scores['n_parameters']}", "")
    session.write("bestTree", result.newick, "Best ML tree")
    if (collapsed := result.collapsed())[1]:
        session.write("bestTreeCollapsed", collapsed[0], "Best ML tree with collapsed near-zero branches")
    if trees := [part.newick for part in result.parts if part.newick is not None]:
        session.write("bestPartitionTrees", "\n".join(trees))
    _write_model(session, result)


def _bootstrap(given: Given, session: Session) -> None:
    wanted, effort, trees = _read_bootstrap(given), _read_effort(given), list[str]()
    how: dict[str, Any] = {"constraint": given.text("constraint") or None, "workers": given.number("workers") or None}
    work = _read(given, session, "bootstrap")
    how |= {"rapid": wanted["rapid"], "options": plltool.replicate_options(effort, wanted["rapid"]), "seed": work.seed}
    how |= {"brlen": work.brlen, "taken": trees.append, **work.hardware}
    session.most_replicates = wanted["most"]
    found = plltool.bootstrap(work.data, work.model, replicates=wanted["number"], listener=session.hear, **how)
    _write_replicates(session, trees, found)


def _write_replicates(session: Session, trees: Sequence[str], found: plltool.BootstrapResult) -> None:
    for number, lnl in enumerate(found.lnls, 1):
        session.say(f"Bootstrap tree #{number}, logLikelihood: {lnl:.6f}")
    if found.convergence and found.convergence[-1].converged:
        session.say(f"Bootstrapping converged after {len(trees)} replicates.")
    session.write("bootstraps", "\n".join(trees), "Bootstrap trees")


def _write_supports(session: Session, supports: plltool.Supports) -> None:
    for kind in supports.kinds:
        ending = f"support{LABELS[kind]}" if len(supports.kinds) > 1 else "support"
        session.write(ending, supports.newick(kind), f"Best ML tree with {LABELS[kind]} support values")


def _evaluate(given: Given, session: Session) -> None:
    name, paths = given.text("task"), list_files(given.first("tree"))
    switches = [given.text(field, "on") == "on" for field in ("opt_model", "opt_branches")]
    work, found = _read(given, session, name), []
    for number, tree in enumerate(work.trees(*paths), 1):
        how: dict[str, Any] = {"fixed": name == "loglh" or not any(switches), "site_lnl": name == "sitelh"}
        how["only"] = None if all(switches) else "parameters" if switches[0] else "lengths"
        found.append(work.call(plltool.evaluate, tree, work.model, **how))
        session.say(f"Tree #{number}, final logLikelihood: {found[-1].lnl:.6f}")
    best = max(found, key=lambda one: float(one.lnl))
    if name == "sitelh":
        rows = [one.format_site_lnl(".sitelh").splitlines()[1].partition(" ")[2] for one in found]
        lines = [f"{len(rows)} {len(rows[0].split())}", *(f"tree{k} {row}" for k, row in enumerate(rows, 1))]
        session.write("siteLH", "\n".join(lines), "Site log-likelihoods")
    if len(found) > 1 and name == "evaluate":
        session.write("mlTrees", "\n".join(one.newick for one in found))
    _write_best(session, best) if name == "evaluate" else session.say("", f"Final LogLikelihood: {best.lnl:.6f}")


def _ancestral(given: Given, session: Session) -> None:
    is_fixed, path = {given.text("opt_model"), given.text("opt_branches")} == {"off"}, given.first("tree")
    work = _read(given, session, "ancestral")
    found = work.call(plltool.ancestral_states, work.trees(path)[0], work.model, fixed=is_fixed)
    states = [f"{name}\t{sequence}" for name, sequence in found.sequences().items()]
    session.write("ancestralProbs", found.format_states(), "Marginal ancestral probabilities")
    session.write("ancestralStates", "\n".join(states), "Reconstructed ancestral sequences")
    session.write("ancestralTree", found.labelled, "Node-labeled tree")
    _write_model(session, found)
    session.say("", f"Final LogLikelihood: {found.lnl:.6f}")


def _support(given: Given, session: Session) -> None:
    tree, replicates = given.first("tree"), list_files(given.first("replicates"))
    kinds, outgroup = split_words(given.text("metrics", "fbp")), given.text("outgroup") or None
    given.has("alignment", "model", "cutoff")  # not needed, but given by many scripts
    _write_supports(session, plltool.supports(tree, replicates, kinds, outgroup))


def _bsconverge(given: Given, session: Session) -> None:
    trees, cutoff = list_files(given.first("replicates")), float(given.text("cutoff", CUTOFF))
    given.has("alignment", "model")
    tests = plltool.bootstrap_convergence(trees, cutoff=cutoff, seed=given.number("seed", 1))
    session.say(f" # trees       avg WRF in %    # perms: wrf <= {100 * cutoff:.2f} %    converged?")
    for test in tests:
        found = f"{100 * test.mean:14.3f} {10 * round(100 * test.agreeing):18d}"
        session.say(f"{test.n_trees:8d} {found} {'YES' if test.converged else 'NO':>16}")
    good = [f"converged after {test.n_trees}" for test in tests if test.converged]
    session.say(f"Bootstopping test {(*good, f'did not converge after {tests[-1].n_trees}')[0]} trees")


def _rfdist(given: Given, session: Session) -> None:
    own = given.text("rfdist").removeprefix("yes")
    trees = plltool.read_tree_set(list_files(own or given.first("tree")))
    absolute, relative = plltool.tree_distances(trees), plltool.tree_distances(trees, relative=True)
    pairs = [(a, b) for a in range(trees.n_trees) for b in range(a + 1, trees.n_trees)]
    for word, matrix in (("absolute", absolute), ("relative", relative)):
        mean = sum(float(matrix[pair]) for pair in pairs) / max(1, len(pairs))
        session.say(f"Average {word} RF distance in this tree set: {mean:.6f}")
    n_unique = sum(all(absolute[a, b] for a in range(b)) for b in range(trees.n_trees))
    session.say(f"Number of unique topologies in this tree set: {n_unique}")
    rows = [f"{a}\t{b}\t{absolute[a, b]:.0f}\t{relative[a, b]:.6f}" for a, b in pairs]
    session.write("rfDistances", "\n".join(rows), "Pairwise RF distances")


def _consense(given: Given, session: Session) -> None:
    word, trees = given.text("consense").upper(), list_files(given.first("tree"))
    if (match := re.fullmatch(r"(STRICT|MRE)|MR([5-9]\d)?", word)) is None:
        raise UsageError(f"--consense: found {word!r}, expected MR, MRE, STRICT or MR50 to MR99")
    rule = {"MRE": "extended", "STRICT": "strict"}.get(word, "majority")
    found = plltool.consensus(trees, rule, int(match[2] or 50) / 100)
    session.write(f"consensusTree{word}", plltool.write_consensus(found), f"{word} consensus tree")


def _check(given: Given, session: Session) -> None:
    name, work = given.text("task"), _read(given, session)
    given.has("tree")
    facts = plltool.check(work.data, work.model or None, **work.hardware)
    sizes = f"{facts['n_taxa']} taxa, {len(facts['parts'])} partitions and {facts['n_patterns']} patterns"
    session.say(f"Alignment comprises {sizes}", "")
    for number, part in enumerate(facts["parts"]):
        session.say(f"Partition {number}: {part['name'] or 'noname'}", f"Model: {part.get('model') or facts['model']}")
        session.say(f"Alignment sites / patterns: {part['n_sites']} / {part['n_patterns']}")
        session.say(f"Gaps: {100 * part['gap_share']:.2f} %", "")
    warnings = [f"WARNING: {warning}" for warning in facts["warnings"]]
    session.say(*warnings, "Alignment can be successfully read by plltool.", "")
    if name == "parse":
        session.write("rba", Path(given.text("alignment")).read_bytes(), "The alignment, in place of a binary file,")
        if model := work.model:
            whole = f"{model}, noname = 1-{work.data.n_sites}"
            session.write("rba.model", Path(model).read_text() if os.path.isfile(model) else whole, "Its model")
        session.say(f"* Estimated memory requirements                : {max(1, facts['device_bytes'] >> 20)} MB")
        session.say(f"* Recommended number of threads / MPI processes: {max(1, facts['n_patterns'] // 1000)}")


def _moose(given: Given, session: Session) -> None:
    path, work = given.text("tree"), _read(given, session)
    tree = work.trees(path)[0] if path and not START.match(path) else None
    how: dict[str, Any] = {"seed": work.seed, **work.hardware}
    for word in filter(None, given.text("moose").removeprefix("yes").split("/")):
        key, _, value = word.partition("=")
        if key == "criterion":
            how["criterion"] = value
        elif key == "substitution-models":
            how["candidates"] = split_words(value)
        elif key == "freerate-categories" and value.split("-")[-1].isdecimal():
            how["max_rates"] = int(value.split("-")[-1])
        else:
            raise UsageError(f"--moose: found {word!r}, expected criterion, substitution-models or freerate-categories")
    choice = plltool.select_model(work.data, tree, **how)
    best, kind = choice.best, choice.criterion
    session.say(f"Best model(s): {best.name}", f"{kind}: {best.score(kind):.6f}", f"logLH: {best.lnl:.6f}")
    _write_model(session, choice)


TASKS: dict[str, Callable[[Given, Session], None]] = {
    **dict.fromkeys(("search", "search1", "all", "start"), _search), "check": _check, "parse": _check,
    "evaluate": _evaluate, "loglh": _evaluate, "sitelh": _evaluate, "bootstrap": _bootstrap, "support": _support,
    "moose": _moose, "bsconverge": _bsconverge, "ancestral": _ancestral, "rfdist": _rfdist, "consense": _consense,
}  # fmt: skip
