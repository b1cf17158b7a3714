"""`iqtree`: the commands of IQ-TREE 2 and 3."""

import gzip
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import plltool
from plltool.constants import SELECTION_MAX_RATES, VERSION
from plltool.front_ends import iqtree_texts as texts
from plltool.front_ends.options import Given, UsageError
from plltool.front_ends.work import (
    Session,
    Work,
    cut,
    find_alignments,
    is_kind,
    join_alignments,
    list_files,
    read_lines,
    read_named,
    read_parts,
    states_of,
)
from plltool.registry import split_words

BANNER = f"IQ-TREE multicore version 2.4.0+plltool{VERSION} front end of plltool {VERSION}, which is not IQ-TREE"
COLLAPSED = 4e-6  # -czb
LINKAGES = ("scaled", "linked", "unlinked")  # fields of -p, -q, -Q
SELECTION = split_words("criterion,candidates,sources,also,least_rates,max_rates,rate_kinds")  # mean nothing beside -m
CHOICES = re.compile(r"(MF|MFP|AUTO|TEST(?:NEW)?(MERGE)?(?:ONLY)?)(\+MERGE)?(\+ASC)?", re.IGNORECASE)
# in the order of the labels
SUPPORTS = {"alrt": "sh-alrt", "lbp": "lbp", "abayes": "abayes", "ufboot": "ufboot", "bootstrap": "fbp"}
START_KINDS = dict.fromkeys(("", "PARS", "BIONJ"), "parsimony") | dict.fromkeys(("RAND", "RANDOM"), "random")
STATE_HEADER = "# Ancestral states: marginal probabilities at the nodes of .treefile, separated by tabs\n"


def run(arguments: Sequence[str]) -> None:
    given = Given("iqtree", arguments, bare="tree")
    if given.answers(BANNER, "-s ALIGNMENT [OPTIONS]"):
        return
    task = next(filter(given.has, TASKS), "infer")
    if float(given.text("least_support", "0")) and not given.has("consensus"):
        raise UsageError("-minsup: found it without -con, expected 0, for the extended consensus")
    if task not in ("infer", "test_trees", "gene_folder"):
        given.has(*SELECTION)  # nothing is chosen, but scripts give them
    prefix = given.first("prefix", "alignment", *LINKAGES, "gene_folder", "tree").rstrip("/")
    session = Session(given, lambda ending: Path(f"{prefix}.{ending}"), given.files[task], "-redo")
    session.run(BANNER, TASKS.get(task, _infer_tree))


class Task(Work):
    """The work on an alignment; `parts` are the lines of its partition file, `choice` is how the model is chosen."""

    parts = choice = ""

    @classmethod
    def read(cls, given: Given, session: Session) -> Self:
        linked = [field for field in LINKAGES if given.has(field)]
        if len(linked) > 1:
            raise UsageError("found several partition files, expected only one of -p, -q and -Q")
        path = given.text(linked[0]) if linked else ""
        is_folder, alone = bool(path) and Path(path).is_dir(), bool(path) and not given.has("alignment")
        constant, states = given.text("constant_sites"), states_of(given.text("data_type"))
        counts = tuple(map(int, constant.split(","))) if constant else None
        where = path if is_folder else find_alignments(path) if alone else given.first("alignment")
        data, columns, first = join_alignments(where, states, counts)
        word, definitions, merges = given.text("model", "MFP"), given.text("definitions"), given.has("merge")
        match = CHOICES.fullmatch(word)
        model = "" if match else texts.spell_here(f"{word}{{{definitions}}}" if definitions else word)
        task = cls(session, data, model, given.number("seed", 1), (*linked, "scaled")[0])
        task.hardware |= _read_hardware(given)
        if path:
            lines = [f"{model or at[2]}, {Path(own).stem} = {at[0]}-{at[1]}" for own, at in columns.items()]
            task.parts = "\n".join(lines) if is_folder else read_parts(path, model, texts.spell_here, columns)
            task.model = task.parts
        has_kinds = any(is_kind(line.split(",")[0]) for line in task.parts.splitlines())
        if match and (given.has("model") or has_kinds or not path):
            task.choice = match[1].upper() + ("+MERGE" if match[2] or match[3] or merges else "")
            task.choice += (match[4] or "").upper()
        if not task.choice and given.has(*SELECTION):
            session.say("NOTE: options of the choice of a model change nothing here: the model is given")
        shown = first if task.choice or plltool.is_reversible(task.model) else None  # other models place the root
        task.outgroup = given.text("outgroup") or shown
        return task


def _read_hardware(given: Given) -> dict[str, Any]:
    memory, most = given.text("memory").upper().removesuffix("B"), given.number("most_threads")
    if share := re.fullmatch(r"(\d{1,2}|100)%", memory):
        memory = str(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * int(share[1]) // 100)
    threads = given.number("threads") or most or None
    return {"threads": threads, "memory": plltool.parse_size(memory) if memory else None}


def _infer_tree(given: Given, session: Session) -> None:
    task = Task.read(given, session)
    kinds = _read_supports(given)
    by_site = given.has("site_frequencies", "guide_tree")
    asked = set(filter(given.has, split_words("write_trees,ancestral,site_lnl,site_rates,ml_rates,dates,collapses")))
    ends, has_tree = given.text("iterations") == "0", given.text("tree").upper() not in START_KINDS
    keeps = given.has("fixed_tree", "tree_stays") or (has_tree and ends)
    settings = {} if keeps else _read_search(given, task)
    dates = _read_dates(task) if "dates" in asked else {}
    if dates:
        session.say(*(f"WARNING: {told}" for told in plltool.check_dates(dates, task.data.names)[1]))
    if by_site and (not keeps or given.has("fixed_lengths") or task.choice):
        raise UsageError("-fs, -ft: expected -m and a tree whose topology stays (-te), without -blfix")
    if "ml_rates" in asked and task.parts:
        raise UsageError("--mlrate: the front end does not use this option with partitions")
    tree, holds = given.text("fixed_tree") or given.text("tree"), keeps and given.has("fixed_lengths")
    if keeps and (by_replicates := [kind for kind in kinds if kind in ("fbp", "tbe", "ufboot")]):
        raise UsageError(f"{by_replicates[0]}: supports by replicates are not for a tree whose topology stays")
    choice = _choose_model(given, task) if task.choice else None
    if choice is not None and re.match(r"MF\b|.*ONLY", task.choice):
        session.write("treefile", choice.newick)
        session.write("iqtree", texts.report_choice(choice))
        return
    if keeps:
        if kind := START_KINDS.get(tree.upper()):
            [tree] = plltool.start_trees(task.data, kind, seed=task.seed)  # resolved, as Newick
        model, only = task.model, "parameters" if holds else None
        resolves = (
            kind or kinds or asked & {"ancestral", "dates"} or not plltool.is_reversible(model)
        )  # as these need it
        start = task.trees(tree)[0] if resolves else plltool.read_tree(tree, task.data.names, multifurcations=True)
        sites: Any = given.text("site_frequencies") or None
        if guide := given.text("guide_tree"):  # -ft: the posterior means on this tree, which are written
            found = task.call(plltool.evaluate, task.trees(guide)[0], task.model, pmsf=True)
            session.write("sitefreq", found.format_pmsf(), "Site state frequencies")
            sites = found.pmsf
        result = task.call(plltool.evaluate, start, model, site_lnl=True, only=only, site_frequencies=sites)
        task.data = result.data if by_site else task.data
    else:
        result = task.call(plltool.search, task.model, seed=task.seed, site_lnl=True, **settings)
    session.say(*texts.describe_fit(result))
    result, supports, consensus = _compute_supports(kinds, "write_trees" in asked, result, task)
    _write_values(asked, result, supports, task, dates)
    session.write("iqtree", texts.report(result, supports, choice, consensus=consensus))


def _read_supports(given: Given) -> dict[str, int]:
    """The kinds of supports in the order of the labels, and the number of replicates of each."""
    kinds = dict.fromkeys([kind for field, kind in SUPPORTS.items() if given.has(field)], 1)
    kinds |= {kind: given.number(field) for field, kind in SUPPORTS.items() if kind in kinds and field != "abayes"}
    if len({number for kind, number in kinds.items() if kind in ("sh-alrt", "lbp")} - {0}) > 1:
        raise UsageError("-lbp: found another number of replicates than that of -alrt, expected the same")
    if given.has("ufboot") and given.has("bootstrap"):
        raise UsageError("-B: found also -b, expected only one of them")
    if given.has("transfer"):
        kinds["tbe"] = kinds.get("fbp", 0)
    if 0 in [number for kind, number in kinds.items() if kind != "sh-alrt"]:
        raise UsageError("found 0 replicates for supports, expected at least 1, such as -b 100")
    return kinds


def _read_search(given: Given, task: Work) -> dict[str, Any]:
    word, runs, effort = given.text("tree"), given.number("runs", 1), "fast" if given.has("fast") else "default"
    start = START_KINDS.get(word.upper()) or task.trees(word)[0]
    iterations = given.number("iterations") if given.has("iterations") else None
    options = plltool.SearchOptions(effort, starts=runs if runs > 1 else None, perturbations=iterations)
    return {"start": start, "options": options, "constraint": given.text("constraint") or None}


def _choose_model(given: Given, task: Task) -> Any:
    free_rates, kinds = not re.match(r"TEST(?!NEW)", task.choice), set(split_words(given.text("rate_kinds").upper()))
    if kinds and kinds - {"R"} != {"E", "I", "G", "I+G"}:
        found = f"-mrate: found {given.text('rate_kinds')}, expected E,I,G,I+G or E,I,G,I+G,R"
        raise UsageError(f"{found}, because plltool always compares the first four")
    how: dict[str, Any] = {"criterion": given.text("criterion", "BIC")}
    if (least_rates := given.number("least_rates", 2)) != 2:
        raise UsageError(f"-cmin: found {least_rates}, expected 2: plltool compares free rates from two categories on")
    word, source = given.text("candidates"), given.text("sources")
    kind = task.data.states.name if task.data.states else "DNA"
    how["candidates"] = given.files.get(f"{(word or source).lower()}.{kind}", split_words(word))
    how |= {"free_rates": "R" in kinds if kinds else free_rates, "seed": task.seed, **task.hardware}
    how["max_rates"] = given.number("max_rates", SELECTION_MAX_RATES)
    if task.parts:
        how |= {"merge": given.text("merge", "rclusterf") if "MERGE" in task.choice else None, "brlen": task.brlen}
        given.refuse_rest()
        choice: Any = plltool.select_scheme(task.data, task.parts, **how)
        task.session.write("best_scheme", choice.scheme)
        task.session.write("best_scheme.nex", texts.write_scheme(choice.scheme))
    else:
        also = list(map(texts.spell_here, split_words(given.text("also"))))
        how |= {"ascertainment": "+ASC" in task.choice, "also": also}
        given.refuse_rest()
        choice = plltool.select_model(task.data, **how)
        task.session.write("model.gz", gzip.compress(texts.report_choice(choice).encode(), mtime=0))
    task.session.say(f"Best-fit model: {texts.spell_scheme(choice.scheme)} chosen according to {choice.criterion}")
    task.model = choice.scheme
    return choice


def _compute_supports(kinds: dict[str, int], writes_trees: bool, result: Any, task: Work) -> tuple[Any, Any, str]:
    """The result, from which the ultrafast bootstrap may have gone on, the supports of its tree, and a consensus."""
    if not kinds:
        return result, None, ""
    is_parametric, consensus = kinds.get("sh-alrt") == 0, ""
    kinds = {kind: number or kinds.get("lbp", 1) for kind, number in kinds.items()}
    if isinstance(result, plltool.SearchResult):
        made, trees = task.supports(result, kinds)
        result, found = made.result, made.supports
        if trees and isinstance(task, Task):
            if writes_trees or "ufboot" not in kinds:
                task.session.write("ufboot" if "ufboot" in kinds else "boottrees", "\n".join(trees))
            consensus = _write_consensus(plltool.read_tree_set(trees), result, task.session)
        if "tbe" in kinds:
            task.session.write("tbe.tree", found.newick("tbe"))
            found = replace(found, values={kind: own for kind, own in found.values.items() if kind != "tbe"})
    else:
        how = {"kinds": tuple(kinds), "replicates": kinds.get("sh-alrt") or kinds.get("lbp", 1), "seed": task.seed}
        found = task.call(plltool.alrt, result.tree, result.models, **how).supports
    return result, texts.round_supports(texts.make_parametric(found) if is_parametric else found), consensus


def _write_consensus(trees: Any, result: Any, session: Session) -> str:
    """Write the extended consensus of replicates, with ML lengths if it is resolved; what the report says of it."""
    found, lnl = texts.round_shares(plltool.consensus(trees, "extended")), None
    newick = plltool.write_consensus(found)
    if len(found.splits) == len(found.names) - 3:
        with plltool.Likelihood(result.data, newick, result.models) as likelihood:
            lnl = likelihood.optimise("lengths")
            own = plltool.supports(likelihood.newick(), trees, ("fbp",)).with_outgroup(result.outgroup)
            newick = texts.round_supports(own).newick()
    session.write("contree", newick)
    session.write("splits.nex", plltool.write_network(trees))
    distance = plltool.tree_distances([newick, result.newick])[0, 1]
    return texts.fill("consensus", {"n_trees": trees.n_trees, "lnl": lnl, "distance": distance, "newick": newick})


def _write_values(asked: set[str], result: Any, supports: Any, task: Task, dates: dict[str, Any]) -> None:
    session, newick = task.session, result.newick if supports is None else supports.newick()
    if "ancestral" in asked:
        found = task.call(plltool.ancestral_states, result.tree, result.model, fixed=True)
        session.write("state", STATE_HEADER + found.format_states())
        newick = texts.label_nodes(newick, found.labelled)
    newick = re.sub(r"\)NA(/NA)*:", "):", newick)  # beside a root, where nothing tells
    session.write("treefile", plltool.collapse_newick(newick, COLLAPSED)[0] if "collapses" in asked else newick)
    if "site_lnl" in asked:
        session.write("sitelh", result.format_site_lnl(".sitelh"))
    if "site_rates" in asked:
        with plltool.Likelihood(result.data, result.tree, result.models, brlen=task.brlen, **task.hardware) as rated:
            session.write("rate", texts.write_rates(result, rated.site_rates(), rated.site_categories()))
    if "ml_rates" in asked:
        model = re.sub(r"\+(IU?|IO|G|GA|R)\d*(\{[^}]*\})*", "", result.model) + "+PSR"
        [part] = task.call(plltool.evaluate, result.tree, model).psr.parts
        rows = [f"{site}\t{part.rates[category]:.5f}" for site, category in enumerate(part.categories, 1)]
        session.write("mlrate", "\n".join(["# Rates of sites", "Site\tRate", *rows]))
    if result.parts[0].name:
        session.write("best_model.nex", texts.write_fitted(result))
    if trees := [part.newick for part in result.parts if part.newick]:
        session.write("parttrees", "\n".join(trees))
    if "dates" in asked:
        outgroup = session.given.text("outgroup") or None
        dated = task.call(plltool.date, result.tree, dates, result.models, outgroup=outgroup).texts()
        for ending in ("nex", "nwk"):
            session.write(f"timetree.{ending}", dated[f"date.{ending}"])


def _read_dates(task: Task) -> dict[str, Any]:
    """The dates of taxa: lines with a taxon and its date, or what is behind the last | of their names."""
    path, rest, names = task.session.given.text("dates"), task.session.given.text("tip_date"), task.data.names
    found: dict[str, Any] = dict.fromkeys(names, rest) if rest else {}
    if path.upper() == "TAXNAME":
        return found | {name: name.rpartition("|")[2] for name in names if "|" in name}
    for line in read_lines(path):
        name, *date = line.split()
        if len(date) != 1 or ("," in name and name not in names):
            raise UsageError(f"{path}: found {line!r}, expected a taxon and its date, no ancestors")
        found[name] = f"[{date[0]}]" if re.fullmatch(r"[^\[\]:]+:[^\[\]:]+", date[0]) else date[0]
    return found


def _test_trees(given: Given, session: Session) -> None:
    task = Task.read(given, session)
    tests = ["bp", "kh", "sh", *["wkh", "wsh"] * given.has("weighted"), "elw", *["au"] * given.has("au")]
    how = {"replicates": given.number("test_replicates", 1000), "seed": task.seed}
    with_sites, _ = given.has("site_lnl"), given.has("iterations")
    if given.has("tree", "fixed_tree"):
        session.say("NOTE: -t and -te change nothing here: plltool optimises the model on the best tree of -z")
    choice = _choose_model(given, task) if task.choice else None
    result = task.call(plltool.topology_tests, task.trees(given.text("test_trees")), task.model, **how)
    session.say(*texts.describe_fit(result))
    session.write("treefile", result.newick)
    session.write("trees", "\n".join(result.newicks))
    if with_sites:
        session.write("sitelh", result.format_site_lnl())
    session.write("iqtree", texts.report(result, None, choice, texts.report_tests(result.tests, tests)))


def _summarize_trees(given: Given, session: Session) -> None:
    """-con, -net, -sup, -rf_all, -rf, -rf_adj: what follows from the trees of -t, one a line, without the burn-in."""
    trees = read_lines(given.first("tree"))[given.number("burnin") :]
    if given.has("consensus"):
        least = float(given.text("least_support", "0"))
        if 0 < least < 0.5 or least > 1:
            raise UsageError(f"-minsup: found {least:g}, expected 0 for the extended consensus, or 0.5 to 1")
        rule = "strict" if least == 1 else "majority" if least else "extended"
        found = plltool.consensus(trees, rule, least if rule == "majority" else 0.5)
        session.write("contree", plltool.write_consensus(texts.round_shares(found)))
    elif given.has("support_tree"):
        own = plltool.supports(given.text("support_tree"), trees, ("fbp",), given.text("outgroup") or None)
        session.write("suptree", texts.round_supports(own).newick())
    if given.has("consensus", "network"):
        session.write("splits.nex" if given.has("consensus") else "nex", plltool.write_network(trees))
    elif not given.has("support_tree"):
        others = given.text("distances")
        matrix = plltool.tree_distances([*trees, others] if others else trees)
        rows = (matrix[: len(trees), len(trees) :] if others else matrix).tolist()
        heads = [f"{len(rows)} {len(rows[0])}", *(f"Tree{k:<6d}  " for k in range(len(rows)))]
        if given.has("distances_next"):  # the last tree has none, for which IQ-TREE writes 0
            heads, rows = [f"XXX        1 {len(trees)}", " "], [[*(row[k] for k, row in enumerate(rows[:-1], 1)), 0]]
        lines = [head + " ".join(f"{value:.0f}" for value in row) for head, row in zip(heads[1:], rows, strict=True)]
        session.write("rfdist", "\n".join([heads[0], *lines]))


def _find_concordance(given: Given, session: Session) -> None:
    genes, by_likelihood = given.text("gene_trees") or None, given.has("likelihood_quartets")
    quartets, tree = given.number("quartets") or given.number("likelihood_quartets"), given.first("fixed_tree", "tree")
    task = Task.read(given, session) if quartets else Work(session, None)
    how: dict[str, Any] = {"quartets": quartets, "likelihood": by_likelihood, "seed": given.number("seed", 1)}
    how |= {"listener": session.hear, **task.hardware, **_read_hardware(given)}
    found = plltool.concordance(tree, genes, task.data, task.model or None, **how)
    kept = {name: own for name, own in found.columns.items() if name[0] in "gs"}  # neither quartets nor certainty
    files = replace(found, columns=kept).texts()
    files["cf.stat"] = re.sub(r"\tNA(?=\t[^\t\n]*$)", "\t", files["cf.stat"], flags=re.MULTILINE)
    for there, here in (("tree", "nwk"), ("branch", "branch.nwk"), ("stat", "stat"), ("tree.nex", "nex")):
        session.write(f"cf.{there}", files[f"cf.{here}"])


def _search_genes(given: Given, session: Session) -> None:
    folder, word, seed = given.text("gene_folder"), given.text("model", "MFP"), given.number("seed", 1)
    states, trees = states_of(given.text("data_type")), list[str]()
    kinds, done = _read_supports(given), list[tuple[str, Any, Any]]()
    model = "auto" if CHOICES.fullmatch(word) else texts.spell_here(word)
    if where := given.text("alignment") or (find_alignments(folder) if Path(folder).is_file() else ""):
        whole, columns, _ = join_alignments(where, states, None)  # -S is a partition file
        genes = cut(whole, folder, model.removeprefix("auto"), texts.spell_here, columns)
    else:
        genes = [(Path(path).name, model, read_named(path, states)) for path in list_files(folder)]
    for name, own, data in genes:
        model = "auto" if is_kind(own) else own
        outgroup = data.names[0] if model == "auto" or plltool.is_reversible(model) else None
        work = Work(session, data, model, seed, outgroup=outgroup)
        work.hardware |= _read_hardware(given)
        found = work.call(plltool.search, model, seed=seed, **_read_search(given, work))
        session.say(f"{name}: lnL {found.lnl:.4f}, {texts.spell_there(found.parts[0].parameters['spec'])}")
        found, supports, _ = _compute_supports(kinds, False, found, work)
        trees.append(found.newick if supports is None else supports.newick())
        done.append((name, found, supports))
    session.write("treefile", "\n".join(trees))
    session.write("iqtree", texts.report_genes(done))


TASKS: dict[str, Callable[[Given, Session], None]] = {
    "test_trees": _test_trees, "gene_folder": _search_genes, "consensus": _summarize_trees, "network": _summarize_trees,
    **dict.fromkeys(("support_tree", "distances_all", "distances", "distances_next"), _summarize_trees),
    **dict.fromkeys(("gene_trees", "quartets", "likelihood_quartets"), _find_concordance),
}  # fmt: skip
