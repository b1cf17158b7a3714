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
        "spec": "HKY+FC+IO+G4",
        "model": "HKY{1/4}+FC+IU{0.2}+G4{0.5}",
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
    node = {"name": "Node1", "year": 1980.604, "day": "1980-08-08", "interval": [1978.0, 1983.4], "rate": 1.0}
    tips = [
        {"name": name, "year": 1990.0 + 5 * k, "distance": 0.03 + 0.02 * k, "expected": 0.0320 + 0.0182 * k}
        for k, name in enumerate(NAMES)
    ]
    clock = {"rate": 0.00364, "interval": [0.0031, 0.0042], "origin": 1980.8, "r_squared": 0.975}
    dating = {"clock": clock | {"coalescent_time": 8.5}, "nodes": [node], "root_to_tip": tips, "lengths": "input"}
    return record_of_search() | {"dating": dating | {"level": 0.9, "treetime": "0.12.1"}}


def write(path, record):
    path.write_text(json.dumps(record))
