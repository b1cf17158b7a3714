"""The section on the model: parameters, rates over sites, criteria, how it was chosen, and parts."""

from __future__ import annotations

from plltool.constants import CRITERIA, UNLINKED
from plltool.io.newick import parse_nodes
from plltool.model.criteria import information_score
from plltool.model.describe import EQUAL_RATES, is_at_bound, shorten_model
from plltool.reports.blocks import Block, Facts, Folded, Picture, Prose, Section, Table
from plltool.reports.figures import score, share
from plltool.reports.plots import draw_bars, draw_named_bars
from plltool.reports.records import Record, Records
from plltool.reports.tree_section import sum_lengths
from plltool.tree.rooted_nodes import UnrootedNodes

_SHOWN_PARTS = 12  # more have only a line each
_SHOWN_STATES = 25  # a longer list of frequencies is left to the record


def describe_model(records: Records) -> Section:
    run = records.main or {}
    blocks: list[Block] = []
    parts = run.get("parts", [])
    several = len(parts) > 1
    if "parameters" in run:
        blocks.append(_describe_fit(run, parts))
    if several:
        blocks += _describe_parts(run, parts)
    if len(parts) > _SHOWN_PARTS:
        models = tuple((part["name"], part["model"]) for part in parts)
        blocks.append(Table("Models of the partitions with all values", ("Partition", "Model"), models, is_text=True))
    elif several:
        blocks += [
            Folded(f"Parameters of partition {part['name']}", _describe_part(part, part["name"])) for part in parts
        ]
    elif parts:
        blocks += _describe_part(parts[0], "")
    choice = records.model_choice
    if choice is not None:
        blocks += _describe_choice(choice)
    return Section("model", "Model", tuple(blocks))


def count_parameters(run: Record) -> int:
    """Free parameters of all models, and branch lengths, which each part has for itself if they are unlinked."""
    nodes = parse_nodes(run["tree"], "the record")
    n_branches = len(UnrootedNodes.of(nodes).ends) + (nodes.parents.count(0) == 2)  # a root has a place on its branch
    n_trees = len(run["parts"]) if run["brlen"] == UNLINKED else 1
    return int(run["parameters"]["n_free_parameters"]) + n_trees * n_branches


def _describe_fit(run: Record, parts: list[Record]) -> Facts:
    """The fit and its price."""
    k, n = count_parameters(run), sum(part["n_sites"] for part in parts)
    n_own = int(run["parameters"]["n_free_parameters"])
    specs = list(dict.fromkeys(part["parameters"]["spec"] for part in parts))
    rows = [("Model", shorten_model(specs[0]) if len(specs) == 1 else f"{len(parts)} partitions, see below")]
    if len(parts) > 1:
        rows.append(("Branch lengths of partitions", run["brlen"]))
    rows += [
        ("Log-likelihood (lnL)", f"{run['lnl']:.4f}"),
        ("Free parameters", f"{k}: {n_own} of the model, {k - n_own} branch lengths"),
    ]
    for name in ("AIC", "AICc", "BIC"):
        value = information_score(name, run["lnl"], k, n)
        rows.append((name, f"{value:.3f}" if abs(value) < float("inf") else "not defined: too few sites"))
    return Facts(tuple(rows))


def _describe_parts(run: Record, parts: list[Record]) -> list[Block]:
    """A table and bars of the parts."""
    whole = sum_lengths(parse_nodes(run["tree"], "the record"))
    lengths = [
        sum_lengths(parse_nodes(part["newick"], "the record")) if part["newick"] else part["scaler"] * whole
        for part in parts
    ]
    rows = tuple(
        (
            *(str(part[name]) for name in ("name", "sites", "n_sites", "n_patterns")),
            shorten_model(part["parameters"]["spec"]),
            f"{part['lnl']:.3f}",
            f"{length:.4f}",
        )
        for part, length in zip(parts, lengths, strict=True)
    )
    columns = ("Partition", "Columns", "Sites", "Patterns", "Model", "lnL", "Tree length")
    bars = draw_named_bars([part["name"] for part in parts], lengths, "Tree length in each partition")
    caption = "Tree length in each partition: expected substitutions per site, summed over branches."
    return [Table("Partitions", columns, rows), Picture(bars, caption, len(parts))]


def _describe_part(part: Record, name: str) -> tuple[Facts | Table | Prose | Picture, ...]:
    own, of = part["parameters"], f" of partition {name}" if name else ""
    blocks: list[Facts | Table | Prose | Picture] = []
    labels = {"alpha": f"Alpha, the shape of the gamma distribution{of}", "pinv": f"Proportion of invariable sites{of}"}
    rows = tuple((label, f"{own[key]:.6g}") for key, label in labels.items() if own.get(key) is not None)
    if rows:
        blocks.append(Facts(rows))
    if is_at_bound(own.get("alpha")):
        blocks.append(Prose(f"{EQUAL_RATES[0].upper()}{EQUAL_RATES[1:]}."))
    for key, caption, columns in (
        ("frequencies", f"State frequencies{of}", ("State", "Frequency")),
        ("rates", f"Substitution rates{of}", ("Pair or parameter", "Rate")),
    ):
        values = own.get(key)
        if isinstance(values, dict) and values:
            shown = tuple((state, f"{value:.6f}") for state, value in values.items())
            if len(shown) <= _SHOWN_STATES:
                blocks.append(Table(caption, columns, shown))
            else:
                blocks.append(Prose(f"{caption}: {len(shown)} values, listed in the record."))
    if "class_weights" in own:
        classes = enumerate(zip(own["class_rates"], own["class_weights"], strict=True), start=1)
        mixed = tuple((str(k), f"{rate:.5f}", share(weight)) for k, (rate, weight) in classes)
        blocks.append(Table(f"Classes of the mixture{of}", ("Class", "Relative rate", "Proportion of sites"), mixed))
    by_class = [{**one["frequencies"], **one["rates"]} for one in own.get("class_models", ())]
    if by_class and len(by_class[0]) <= _SHOWN_STATES:
        cells = tuple((name, *(f"{one[name]:.6f}" for one in by_class)) for name in by_class[0])
        header = ("State or pair", *(f"Class {k}" for k in range(1, len(by_class) + 1)))
        blocks.append(Table(f"State frequencies and substitution rates of the classes{of}", header, cells))
    rates, weights = own["category_rates"], own["category_weights"]
    if len(rates) > 1:
        table = tuple(
            (str(k), f"{rate:.5f}", share(w)) for k, (rate, w) in enumerate(zip(rates, weights, strict=True), start=1)
        )
        blocks.append(Table(f"Rates across sites{of}", ("Category", "Relative rate", "Proportion of sites"), table))
        plot = draw_bars(rates, weights, ("proportion of sites", "relative rate"), f"Rates across sites{of}")
        caption = f"Rates across sites{of}: each bar is a category, as wide as its proportion of the sites."
        blocks.append(Picture(plot, caption))
    return tuple(blocks)


def _describe_choice(choice: Record) -> list[Block]:
    if "candidates" not in choice:
        chosen = tuple((part["name"], part["best"], f"{part['lnl']:.3f}") for part in choice["parts"])
        scores = ", ".join(f"{name} {score(choice[name.lower()])}" for name in CRITERIA)
        text = (
            f"The models of the partitions were selected by {choice['criterion']}; all partitions together: {scores}."
        )
        return [Prose(text), Table("Chosen models", ("Partition", "Model", "lnL"), chosen)]
    columns = ("Model", "lnL", "Parameters", "AIC", "AICc", "BIC", "Weight by AIC", "by AICc", "by BIC")
    names = ("aic", "aicc", "bic", "aic_weight", "aicc_weight", "bic_weight")
    rows = tuple(
        (own["name"], score(own["lnl"]), str(own["n_parameters"]), *(score(own[name]) for name in names))
        for own in choice["candidates"]
    )
    left = len(choice["left_out"])
    text = (
        f"{choice['best']} was selected by {choice['criterion']} among {len(rows)} models fitted on the same tree;"
        f" {left} others were clearly worse at the start and were not optimised."
    )
    return [Prose(text), Table("Compared models, best first", columns, rows)]
