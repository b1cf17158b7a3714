"""The sections on samples of the posterior distribution: what was run, whether the runs agree, trees and numbers."""

import math
from dataclasses import replace

from plltool.constants import ENOUGH_DEVIATION, ENOUGH_SIZE, LINKED, RELAXED
from plltool.errors import count
from plltool.io.newick import parse_nodes
from plltool.reports.blocks import Cell, Content, Plot, Section, Table, duration, share
from plltool.reports.methods import Methods, list_words, read_table, tell, tell_models
from plltool.reports.picture import Mark, TimeScale
from plltool.reports.plots import Markup, draw_path, draw_points, draw_traces
from plltool.reports.records import Record, Records
from plltool.reports.tree_blocks import MarkedTree, TreePicture

PRIORS = read_table("terms.txt", "prior")  # what the records of priors call the parameters, and a text
TREE_PRIORS = read_table("terms.txt", "tree prior")  # texts of priors of trees, up to their numbers
ADVISED_R_HAT = 1.01  # below which Vehtari et al. 2021 wish R-hat to be
MOST_DIFFERING = 20  # splits in the table
MOST_EXACT = 3.0  # times as many generations, up to which there is a digit behind the point
RATE_COLOURS, RATE_WIDTH = ((33, 178), (102, 24), (172, 43)), 5.0  # red, green and blue of low and high rates
SAME_PLACE = 2  # digits of shares: splits that agree in them are one dot


def describe_samples(records: Records, methods: Methods) -> list[Section]:
    run, name = records.samples, records.prefix.name
    if run is None:
        return []
    methods.say(*_tell_samples(run, methods))
    trees = (("consensus", "Majority-rule tree"), ("mcc", "Maximum clade credibility tree"))
    title = f"Samples of the {_source(run)} distribution"
    return [
        Section("posterior", title, [_describe_run(run), *_describe_verdict(run)]),
        *(_describe_tree(run, *own) for own in trees),
        *_describe_population(run),
        _describe_numbers(run, name),
        _describe_agreement(run, name),
        _describe_moves(run),
    ]


def _source(run: Record) -> str:
    return "prior" if run["options"]["prior_only"] else "posterior"


def _describe_run(run: Record) -> dict[str, str]:
    options, n_samples = run["options"], run["posterior"]["samples"]
    chains = f"{count(options['runs'], 'run')} of {count(options['chains'], 'chain')}"
    heats = ", ".join(f"{temperature:.2g}" for temperature in dict.fromkeys(run["temperatures"]))
    temperature = f", temperature {heats}" if options["chains"] > 1 else ""
    of_each = " of each run" if options["runs"] > 1 else ""
    burnin = count(run["burnin_samples"], "sample")
    return {
        "Model": "; ".join(dict.fromkeys(run["models"])),
        **({"Likelihood": "none: the prior was sampled"} if options["prior_only"] else {}),
        **{f"Prior of {kind}": text for kind, text in run["priors"].items()},
        "Chains": f"{chains}{temperature}, seed {run['seed']}",
        "Generations": f"{run['generations']}, a sample every {options['sample_every']}",
        "Burn-in": f"the first {burnin}, before generation {run['burnin_generation']}",
        "Samples kept": f"{n_samples}{of_each}",
        "Device": run["device"],
        "Time": duration(run["seconds"]),
    }


def _describe_verdict(run: Record) -> list[Content]:
    """Whether there are enough samples, and what to do if not."""
    numbers, deviation = run["posterior"]["numbers"], run["posterior"]["asdsf"]
    sizes = {name: own["size"] for name, own in numbers.items() if "size" in own}
    r_hats = {name: own["r_hat"] for name, own in numbers.items() if "r_hat" in own}
    found: list[str] = []
    rows: list[tuple[str | Cell, ...]] = []
    if deviation is not None:
        found.append(f"ASDSF {deviation:.4f}")
        wanted = f"below {ENOUGH_DEVIATION:g}"
        rows.append(("ASDSF", Cell.judged(f"{deviation:.4f}", deviation < ENOUGH_DEVIATION), wanted))
    elif run["options"]["runs"] > 1:
        found.append("no ASDSF, because no split is in a tenth of the trees of a run")
    if sizes:
        name = min(sizes, key=sizes.__getitem__)
        found.append(f"smallest ESS {sizes[name]:.0f} ({name})")
        cell = Cell.judged(f"{sizes[name]:.0f} ({name})", sizes[name] > ENOUGH_SIZE)
        rows.append(("Smallest effective sample size (ESS)", cell, f"above {ENOUGH_SIZE}"))
    else:
        found.append("too few samples for an ESS")
    if r_hats:
        name = max(r_hats, key=r_hats.__getitem__)
        found.append(f"largest R-hat {r_hats[name]:.3f} ({name})")
        rows.append(("Largest R-hat", f"{r_hats[name]:.3f} ({name})", f"below {ADVISED_R_HAT:g} is advised"))
    verdict = f"The runs have {'' if run['converged'] else 'not '}converged"
    if run["converged"] is None:
        verdict = tell("samples.one_run")
    text = f"{verdict}: {', '.join(found)}. {_advise(run, sizes)}"
    content: list[Content] = [text.rstrip()]
    if rows:
        content += [Table("Convergence", ("Measure", "Found", "Enough"), rows), tell("samples.measures")]
    return content


def _advise(run: Record, sizes: dict[str, float]) -> str:
    """What to do next; nothing if all is well."""
    if run["converged"]:
        return ""
    least = min(sizes.values(), default=0.0)
    is_alone = run["options"]["runs"] == 1
    several = "Several runs (--runs 2) show whether they agree."
    if is_alone and least > ENOUGH_SIZE:
        return several
    more = "" if isinstance(run["options"]["generations"], str) else " with more --generations"
    advice = f"The same command{more} resumes from here"
    if 0.0 < least <= ENOUGH_SIZE:
        factor = ENOUGH_SIZE / least
        shown = math.ceil(factor) if factor > MOST_EXACT else math.ceil(10.0 * factor) / 10.0
        advice += f"; about {shown:g} times as many generations bring the smallest ESS above the limit"
    deviation = run["posterior"]["asdsf"]
    if deviation is not None and deviation >= ENOUGH_DEVIATION:
        advice += "; if ASDSF stays high, try more chains or --temperature auto"
    return f"{advice}. {several}" if is_alone else f"{advice}."


def _describe_tree(run: Record, key: str, title: str) -> Section:
    nodes, source = parse_nodes(run["posterior"][key], "the record").ladderized(), _source(run)
    about = f"{tell(f'samples.{key}')} {tell('samples.heights' if 'time' in run else 'samples.lengths', source=source)}"
    picture = TreePicture(nodes, ((f"{source} probability", "0 to 1"),))
    return Section(key, title, [_mark_times(run) if "time" in run and key == "mcc" else picture, about])


def _mark_times(run: Record) -> MarkedTree:
    """The maximum clade credibility tree in time, with bars over the intervals of its nodes."""
    nodes, latest = parse_nodes(run["posterior"]["mcc"], "the record"), run["time"]["latest"]
    children, logs = nodes.children(), [math.log(own["rate"] or 1.0) for own in run["time"]["nodes"]]
    low, high = min(logs[1:]), max(logs[1:])
    intervals = [own["interval"] for own in run["time"]["nodes"]]
    pairs = zip(children, intervals, strict=True)
    ranges = tuple((latest - high, latest - low) if below else None for below, (low, high) in pairs)
    marks = [Mark(label if below else "") for label, below in zip(nodes.labels, children, strict=True)]
    legend = tell("samples.axis", years="calendar years" if latest else "years")
    if run["time"]["clock"] == RELAXED and high > low:
        for node, own in enumerate(logs[1:], start=1):
            shade = [round(a + (b - a) * (own - low) / (high - low)) for a, b in RATE_COLOURS]
            marks[node] = replace(marks[node], band=RATE_WIDTH, colour=f"#{bytes(shade).hex()}")
        legend += " " + tell("samples.bands", low=math.exp(low), high=math.exp(high))
    time = TimeScale(latest, ranges)
    return MarkedTree.of(nodes, marks, tell("samples.time"), legend=legend, keeps_root=True, time=time)


def _describe_population(run: Record) -> list[Section]:
    """The population over time, if it has a skygrid."""
    name, _, text = run.get("time", {"tree_prior": ""})["tree_prior"].partition("(")
    if name != "skygrid":
        return []
    n, cutoff = map(float, text[:-1].split(","))
    numbers = [run["posterior"]["numbers"][f"logPopSize{k + 1}"] for k in range(int(n))]
    ends = [(k + end) * cutoff / (n - 1) for k in range(int(n)) for end in (0, 1)]
    legend = {"low": "95 % from", "median": "median", "high": "95 % to"}
    lines = [[(at, numbers[k // 2][key] / math.log(10)) for k, at in enumerate(ends)] for key in legend]
    kinds, axes = [[k] * len(ends) for k in range(3)], ("years before the latest taxon", "log10 of the population")
    plot = draw_path(lines, kinds, tuple(legend.values()), axes, "Population")
    return [Section("population", "Population", [Plot(plot, tell("samples.population"))])]


def _describe_numbers(run: Record, name: str) -> Section:
    """Traces and the table of summaries."""
    trace, start = run["trace"], run["burnin_generation"]
    pictures = [
        draw_traces(trace["generations"], values, start, ("generation", own), f"Trace of {own}")
        for own, values in trace["numbers"].items()
    ]
    left = len(run["posterior"]["numbers"]) - len(pictures)
    shown = f" {count(left, 'other number')} with larger ESS {'is' if left == 1 else 'are'} not drawn." if left else ""
    caption = tell("samples.traces", shown=shown)
    columns = ("Number", "Mean", "Standard deviation", "Median", "95 % from", "to", "ESS", "R-hat")
    rows = []
    for own, found in run["posterior"]["numbers"].items():
        size = Cell.judged(f"{found['size']:.0f}", found["size"] > ENOUGH_SIZE) if "size" in found else Cell("-")
        r_hat = f"{found['r_hat']:.3f}" if "r_hat" in found else "-"
        summary = [f"{found[key]:.6g}" for key in ("mean", "deviation", "median", "low", "high")]
        rows.append((own, *summary, size, r_hat))
    table = Table("Means, medians and 95 % highest posterior density intervals", columns, rows)
    text = tell("samples.numbers", name=name)
    return Section("numbers", "Traces and parameters", [Plot(pictures, caption), table, text])


def _describe_agreement(run: Record, name: str) -> Section:
    """What trees the runs found: ASDSF, splits by run, and the credible set."""
    content: list[Content] = []
    if len(run["asdsf"]) > 1:
        points = [(look["generation"], look["asdsf"], "generation") for look in run["asdsf"]]
        line = [(0.0, ENOUGH_DEVIATION), (points[-1][0], ENOUGH_DEVIATION)]
        plot = draw_points(points, line, ("generation", "ASDSF"), "ASDSF against generations")
        content.append(Plot(plot, tell("samples.deviations")))
    n_runs, splits = run["options"]["runs"], run["splits"]
    if n_runs > 1 and splits:
        content.append(Plot(_plot_splits(splits, n_runs), tell("samples.splits")))
        ranges = sorted(((max(own["shares"]) - min(own["shares"]), own) for own in splits), key=lambda own: -own[0])
        rows = [(_name_split(own["taxa"]), *map(share, own["shares"])) for width, own in ranges if width > 0.0]
        columns = ("Split", *(f"Run {number}" for number in range(1, n_runs + 1)))
        content.append(Table("Splits whose frequencies differ most between runs", columns, rows[:MOST_DIFFERING]))
    posterior = run["posterior"]
    n_trees, listed = posterior["credible_topologies"], posterior["credible"]
    has = "is one topology" if n_trees == 1 else f"has {n_trees} of the sampled topologies, the most probable first"
    content.append(tell("samples.credible", source=_source(run), has=has, name=name))
    first = "" if n_trees == len(listed) else f", the first {len(listed)} of {n_trees}"
    shares = [[f"{own[key]:.4f}" for key in ("probability", "cumulative")] for own in listed]
    ranked = [(str(rank), *own) for rank, own in enumerate(shares, start=1)]
    content.append(Table(f"Credible set of topologies{first}", ("Topology", "Probability", "Cumulative"), ranked))
    return Section("agreement", "Trees of the runs", content)


def _plot_splits(splits: list[Record], n_runs: int) -> Markup:
    """The share of each split in run 1 and in each other run."""
    places: dict[tuple[float, float], list[str]] = {}
    for own in splits:
        x, *above = (round(value, SAME_PLACE) for value in own["shares"])
        for y in above:
            places.setdefault((x, y), []).append(_name_split(own["taxa"]))
    points = []
    for (x, y), names in places.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        points.append((x, y, f"{names[0]}{more}"))
    axes = "frequency in run 1", f"frequency in {'run 2' if n_runs == 2 else 'another run'}"
    return draw_points(points, [(0.0, 0.0), (1.0, 1.0)], axes, "Split frequencies of the runs")


def _name_split(taxa: list[str]) -> str:
    return " ".join(taxa) if len(taxa) <= 2 else f"{taxa[0]} … {taxa[-1]} ({len(taxa)} taxa)"


def _describe_moves(run: Record) -> Section:
    accepted = [(move, "-" if rate is None else share(rate)) for move, rate in run["acceptance"].items()]
    content: list[Content] = [Table("Acceptance rates of proposals in the cold chains", ("Move", "Accepted"), accepted)]
    if run["swaps"]:
        rates = enumerate(run["swaps"], start=1)
        rows = [(f"{rank} and {rank + 1}", "-" if rate is None else share(rate)) for rank, rate in rates]
        content.append(Table(tell("samples.swaps"), ("Chains", "Accepted"), rows))
    return Section("moves", "Moves", [*content, "Rates of all runs together, after tuning."])


def _tell_samples(run: Record, methods: Methods) -> list[str]:
    options, posterior = run["options"], run["posterior"]
    model = tell_models(run["models"], run.get("brlen", LINKED), methods)
    kind = "prior distribution, without the data," if options["prior_only"] else "posterior distribution"
    each, of_each = (" each", " of each run") if options["runs"] > 1 else ("", "")
    chains = count(options["chains"], "chain")
    if options["chains"] > 1:
        chains = f"{options['chains']} Metropolis-coupled chains{methods.cite('Geyer 1991', 'Altekar et al. 2004')}"
    what = {"kind": kind, "model": model, "runs": f"{count(options['runs'], 'run')} of {chains}", "each": each}
    burnin = f"{count(run['burnin_samples'], 'sample')}{of_each} {'was' if run['burnin_samples'] == 1 else 'were'}"
    told = [tell("samples", run=run, burnin=burnin, **what)]
    is_compound = run["priors"].get("lengths", "").startswith("gammadir")
    lengths = methods.cite("Zhang, Rannala & Yang 2012") if is_compound else ""
    priors = [
        f"{prior} for {PRIORS.get(kind, kind)}{lengths if kind == 'lengths' else ''}"
        for kind, prior in run["priors"].items()
        if kind != "tree"
    ]
    if "time" in run:
        time = run["time"]
        process = TREE_PRIORS[time["tree_prior"].partition("(")[0]]
        ages = ["ages of clades"] * any(kind.startswith("the age of ") for kind in run["priors"])
        known = f"a {time['clock']} clock", *["the dates of the taxa"] * bool(time["latest"]), *ages, f"a {process}"
        told.append(f"Trees were in time, with {list_words(known)} as prior.")
    told.append(f"The prior{'s were' if len(priors) > 1 else ' was'} {list_words(priors)}.")
    sizes = [own["size"] for own in posterior["numbers"].values() if "size" in own]
    agreement = []
    if posterior["asdsf"] is not None:
        agreement.append(tell("samples.asdsf", source=methods.cite("Lakner et al. 2008"), posterior=posterior))
    if sizes:
        agreement.append(tell("samples.size", source=methods.cite("Vehtari et al. 2021"), least=min(sizes)))
    return [*told, f"At the end, {list_words(agreement)}."] if agreement else told
