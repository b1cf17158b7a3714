"""Records of runs, made by hand, so that every number in them is known."""

import json

NAMES = ("Homo", "Pan", "Gorilla", "Pongo", "Hylobates")
TREE = "(Homo:0.1,Pan:0.2,(Gorilla:0.1,(Pongo:0.3,Hylobates:0.1){}:0.05){}:0.15);"

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"onload="alert(1)',
    "a&b",
    "--><b>x</b>",
    "Ünïcode",
    "</svg><iframe src=http://x.org>",
)


def quoted_tree(names):
    a, b, c, *rest = ["'" + name.replace("'", "''") + "'" for name in names]
    for name in rest:
        c = f"({c}:0.1,{name}:0.1)"
    return f"({a}:0.1,{b}:0.1,{c}:0.1);"


def record_of_search(names=NAMES, tree=None):
    """The record of a search of 100 sites under HKY+F+I+G4."""
    parameters = {
        "spec": "HKY+F+IO+G4",
        "model": "HKY{1/4}+F+IU{0.2}+G4{0.5}",
        "data": "DNA",
        "frequencies": {"A": 0.3, "C": 0.2, "G": 0.1, "T": 0.4},
        "alpha": 0.5,
        "pinv": 0.2,
        "category_rates": [0.0, 0.5, 2.0],
        "category_weights": [0.2, 0.4, 0.4],
        "n_free_parameters": 6,
        "rates": {"AC": 1.0, "AG": 4.0},
    }
    part = {
        "name": "", "sites": "1-100", "n_sites": 100, "n_patterns": 40, "model": parameters["model"], "scaler": 1.0,
        "lnl": -1000.0, "parameters": parameters, "newick": None,
    }  # fmt: skip
    event = {"round": 1, "moves": 0, "radius": 0, "n_rounds": 1, "stage_left": 0.0, "left": 0.0, "start": 0}
    trace = [
        event | {"stage": "start", "lnl": -1100.0, "seconds": 0.1},
        event | {"stage": "spr", "lnl": -1010.0, "seconds": 0.3, "moves": 3},
        event | {"stage": "perturb", "lnl": -1000.0, "seconds": 0.5},
    ]
    return {
        "lnl": -1000.0, "model": parameters["model"], "n_taxa": len(names), "n_sites": 100, "n_patterns": 40,
        "device": "a device", "reason": "chosen by hand", "seconds": 90.0, "tree": tree or TREE.format("", ""),
        "seed": 7, "start_lnls": [-1000.0, -1002.5], "start_distances": [0, 4],
        "climb_distances": [[0, 4], [4, 0]], "brlen": "scaled", "parts": [part],
        "parameters": parameters, "layout": {"precision": "double"}, "counters": {}, "warnings": ["mind <the> gap"],
        "version": "0.1.0", "driver": "a driver", "software": {"Python": "3.11"}, "command": "plltool search x.phy",
        "trace": trace,
        "data": {
            "source": "x.phy", "kinds": ["DNA"], "n_constant": 50, "n_informative": 30, "gaps": 0.125,
            "taxa": [{"name": name, "gaps": 0.125, "composition": [0.6, 0.04]} for name in names],
            "identical": [list(names[:2])],
        },
    }  # fmt: skip


def record_of_supports():
    kinds = {
        "fbp": {"meaning": "Felsenstein's bootstrap proportion", "unit": "per cent", "replicates": 50},
        "abayes": {"meaning": "posterior probability", "unit": "0 to 1", "replicates": None},
    }
    branches = [{"fbp": 96.0, "abayes": 0.5}, {"fbp": 40.0, "abayes": 0.99}]
    tests = [
        {"n_trees": 50, "criterion": "autoMRE", "mean": 0.05, "agreeing": 0.5, "converged": False},
        {"n_trees": 100, "criterion": "autoMRE", "mean": 0.01, "agreeing": 1.0, "converged": True},
    ]
    return {"kinds": kinds, "tree": TREE.format("96/0.5", "40/0.99"), "branches": branches, "convergence": tests}


def record_of_tests():
    kept = {"tree": TREE.format("", ""), "lnl": -1000.0, "delta": 0.0, "bp": 0.9, "kh": 0.9, "sh": 1.0, "wkh": 0.9}
    kept |= {"wsh": 0.95, "elw": 0.97, "in_elw_set": True, "au": 0.93, "distance": 1.0, "curvature": 0.1}
    rejected = kept | {"lnl": -1009.0, "delta": 9.0, "kh": 0.012, "au": None, "elw": 0.03, "in_elw_set": False}
    return record_of_search() | {"tests": {"n_replicates": 1000, "seed": 3, "model_tree": 1, "trees": [kept, rejected]}}


def record_of_dates():
    """A tree in time: the tips lived in 1990, 1995, ..., 2010."""
    tree = "(Homo:9.396,(Pan:5,(Gorilla:5,(Pongo:2.5,Hylobates:7.5)Node4:7.5)Node3:5)Node2:9.396)Node1;"
    years = {"Node1": 1980.604, "Node2": 1990.0, "Node3": 1995.0, "Node4": 2002.5}
    years |= {name: 1990.0 + 5 * k for k, name in enumerate(NAMES)}
    nodes = [{"name": name, "year": year, "day": "", "interval": None, "rate": 1.0} for name, year in years.items()]
    nodes[0] |= {"day": "1980-08-08", "interval": [1978.0, 1983.4]}
    tips = [
        {"name": name, "year": 1990.0 + 5 * k, "distance": 0.03 + 0.02 * k, "expected": 0.0320 + 0.0182 * k}
        for k, name in enumerate(NAMES)
    ]
    clock = {"rate": 0.00364, "interval": [0.0031, 0.0042], "origin": 1980.8, "r_squared": 0.975}
    dating = {"clock": clock | {"coalescent_time": 8.5}, "nodes": nodes, "root_to_tip": tips, "lengths": "input"}
    return record_of_search() | {"dating": dating | {"level": 0.9, "treetime": "0.12.1"}, "dated_tree": tree}


def record_of_concordance():
    """Factors of two branches of the tree; the tree is written from another side."""
    columns = {"gCF": "per cent of trees", "gN": "trees", "sCF": "per cent of sites", "sCF_N": "sCF as a number"}
    kinds = {
        "gcf": {"meaning": "trees", "unit": "per cent", "replicates": 12},
        "scf": {"meaning": "sites", "unit": "per cent", "replicates": 100},
    }
    branches = [
        {"id": 1, "taxa": ["Homo", "Pan"], "columns": {"gCF": 75.0, "gN": 12.0, "sCF": 45.25, "sCF_N": 9.5}},
        {"id": 2, "taxa": ["Hylobates", "Pongo"], "columns": {"gCF": 25.0, "gN": 8.0, "sCF": None, "sCF_N": 0.0}},
    ]
    tree = "((Pan:0.2,Homo:0.1)75:0.15,Gorilla:0.1,(Hylobates:0.1,Pongo:0.3)25:0.05);"
    command = "plltool concordance --tree x.nwk"
    return {"kinds": kinds, "tree": tree, "branches": branches, "columns": columns, "seed": 1, "command": command}


def record_of_ancestors():
    tree = "(Homo:0.1,Pan:0.2,(Gorilla:0.1,(Pongo:0.3,Hylobates:0.1)Node3:0.05)Node2:0.15)Node1;"
    ancestors = {"tree": tree, "sequences": dict.fromkeys(("Node1", "Node2", "Node3"), "A"), "joint_lnl": -1200.5}
    return record_of_search() | {"ancestors": ancestors}


def record_of_samples(n_runs=2):
    """Runs of 100 generations that agree on one of the two branches of the tree, and have not converged."""
    summary = {"mean": 1.5, "deviation": 0.25, "median": 1.25, "low": 1.0, "high": 2.0}
    numbers = {
        "LnL": summary | {"size": 400.4, "r_hat": 1.002},
        "TL": summary | {"size": 80.0, "r_hat": 1.0304},
        "alpha": summary,  # constant: nothing is known of it
    }
    posterior = {
        "samples": 8, "numbers": numbers, "asdsf": 0.0306 if n_runs > 1 else None,
        "consensus": TREE.format("0.9", "1"), "mcc": TREE.format("0.8", "1"), "credible_topologies": 2,
        "credible": [{"probability": 0.75, "cumulative": 0.75}, {"probability": 0.25, "cumulative": 1.0}],
    }  # fmt: skip
    splits = [
        {"taxa": list(NAMES[3:]), "shares": [1.0, 1.0, 1.0][:n_runs]},
        {"taxa": list(NAMES[2:]), "shares": [0.75, 0.8754, 0.5][:n_runs]},
    ]
    options = {
        "generations": 100, "runs": n_runs, "chains": 3, "temperature": 0.1, "sample_every": 10, "burnin": 0.25,
        "prior_only": False,
    }  # fmt: skip
    trace = {"LnL": [-2000.0, -1000.0, -900.0, -950.0], "TL": [1.0, 3.0, 2.0, 2.5]}
    looks = [(50, 0.08), (70, 0.02), (100, 0.0306)] if n_runs > 1 else []
    whole = record_of_search()
    kept = ("n_taxa", "n_sites", "n_patterns", "device", "reason", "driver", "layout", "version", "software", "data")
    return {key: whole[key] for key in kept} | {
        "posterior": posterior, "generations": 100, "burnin_samples": 3, "burnin_generation": 30, "splits": splits,
        "trace": {"generations": [0, 30, 60, 100], "numbers": {key: [own] * n_runs for key, own in trace.items()}},
        "asdsf": [{"generation": generation, "asdsf": value} for generation, value in looks],
        "priors": {"lengths": "gammadir(1.0,0.1,1.0,1.0)", "alpha": "exponential(1.0)"}, "options": options,
        "seed": 5, "acceptance": {"NNI": 0.125, "multiplier of alpha": None}, "swaps": [0.5, None],
        "temperatures": [0.1, 0.1],
        "converged": None if n_runs == 1 else False, "seconds": 5.0, "models": ["HKY+FO+G4", "JC"], "brlen": "linked",
        "warnings": ["more <generations>"], "interrupted": False, "command": "plltool sample x.phy",
    }  # fmt: skip


MUTATIONS = """Node	Parent	Site	From	To	Marginal	Joint
Pan	Node1	3	A	G	1	1
Node3	Node2	3	A	C	1	1
Node3	Node2	17	C	T	0	1
Node2	Node1	5	T	A	1	0
"""
GENES = """Gene	File	Taxa	Sites	Patterns	lnL	Model
<b>one</b>	a.fa	5	60	20	-400.5	HKY{1/4}+FU{0.25/0.25/0.25/0.25}+G4{0.5}
two	b.fa	4	40	15	-300.25	JC
"""


def record_of_placements():
    return record_of_search() | {"placement": {"n_placed": 4, "n_distinct": 3, "without_data": []}}


def jplace(**changes):
    """Queries on the branches to Pan (1), to Gorilla (2) and to Pongo and Hylobates together (5)."""
    tree = "(Homo:0.1{0},Pan:0.2{1},(Gorilla:0.1{2},(Pongo:0.3{3},Hylobates:0.1{4}):0.05{5}):0.15{6});"
    fields = ["edge_num", "likelihood", "like_weight_ratio", "distal_length", "pendant_length"]
    placements = [
        {"p": [[1, -1001.5, 0.75, 0.1, 0.01], [5, -1003.0, 0.25, 0.0, 0.02]], "n": ["q1", "q2"]},
        {"p": [[5, -1004.0, 1.0, 0.0, 0.03]], "n": ["</script><b>q3"]},
        {"p": [[2, -1005.0, 0.5, 0.1, 0.01], [5, -1005.5, 0.3, 0.0, 0.02]], "n": ["q4"]},
    ]
    given = {"version": 3, "tree": tree, "fields": fields, "placements": placements, "metadata": {}}
    return json.dumps(given | changes)


def write(path, record):
    path.write_text(json.dumps(record))
