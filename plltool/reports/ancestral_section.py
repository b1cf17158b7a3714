"""The section on ancestral states and the mutations between them."""

from __future__ import annotations

from plltool.io.newick import parse_nodes
from plltool.reports.blocks import Facts, Prose, Section, Table
from plltool.reports.methods import Cited
from plltool.reports.picture import Mark
from plltool.reports.records import Records
from plltool.reports.tree_section import mark_tree

COMMAND = "ancestral"
MOST_LISTED = 30  # mutations of a branch


def describe(records: Records) -> list[Section]:
    ancestors, mutations, name = records.runs[COMMAND]["ancestors"], records.mutations, records.prefix.name
    nodes = parse_nodes(ancestors["tree"], "the record")
    joint: dict[str, list[str]] = {}
    for row in mutations:
        if row["Joint"] == "1":
            joint.setdefault(row["Node"], []).append(f"{row['From']}{row['Site']}{row['To']}")
    facts = Facts((
        ("Internal nodes", str(len(ancestors["sequences"]))),
        ("Log-probability of the joint states", f"{ancestors['joint_lnl']:.4f}"),
        ("Mutations by joint states", str(sum(map(len, joint.values())))),
        ("Mutations by marginal states", str(sum(row["Marginal"] == "1" for row in mutations))),
    ))  # fmt: skip
    tips = [not below for below in nodes.children()]
    numbers = [len(joint.get(label, ())) for label in nodes.labels]
    marks = [
        Mark(str(number) if tip else f"{label}: {number}")
        for label, number, tip in zip(nodes.labels, numbers, tips, strict=True)
    ]
    caption = (
        "Names of internal nodes, as in the files, and the number of mutations on the branch above each node (joint"
        " reconstruction). Mutations point away from Node1, the root of the drawing."
    )
    parent_of = dict(zip(nodes.labels[1:], (nodes.labels[parent] for parent in nodes.parents[1:]), strict=True))
    order = sorted(joint, key=lambda node: -len(joint[node]))
    rows = []
    for node in order:
        labels, n = joint[node][:MOST_LISTED], len(joint[node])
        labels += [f"and {n - MOST_LISTED} more"] if n > MOST_LISTED else []
        rows.append((node, " ".join(labels), str(n), parent_of.get(node, "")))
    columns = ("Branch to", "Mutations", "Number", "From")
    table = Table("Mutations by joint reconstruction, sorted by number", columns, tuple(rows), is_text=True)
    remark = f"{name}.mutations.tsv lists all mutations, {name}.state has the probabilities of all states."
    picture = mark_tree(nodes, marks, caption, keeps_root=True)
    return [Section("ancestors", "Ancestral states", (facts, picture, table, Prose(remark)))]


def tell(records: Records, cited: Cited) -> list[str]:
    marginal, joint = cited.cite("Yang, Kumar & Nei 1995"), cited.cite("Pupko et al. 2000")
    text = f"Ancestral states at internal nodes were reconstructed by marginal{marginal} and joint{joint} likelihood."
    return [text]
