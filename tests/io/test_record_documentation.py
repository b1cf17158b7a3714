"""`docs/record.md` says what is in a record: every key, its type, and nothing that is not there."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import plltool
from plltool.analyses.ancestral.analysis import ancestral_states
from plltool.analyses.dating.analysis import date
from plltool.analyses.placement.analysis import place
from plltool.analyses.search.analysis import search
from plltool.analyses.supports.alrt import alrt
from plltool.analyses.supports.search_supports import search_supports
from plltool.analyses.supports.support import supports
from plltool.analyses.topology_tests.analysis import topology_tests
from plltool.io.record import RECORD_KEYS
from plltool.optimise.polish import Other
from plltool.progress import StopSearch
from plltool.registry import ANALYSES
from plltool.run.evaluation import evaluate
from plltool.schema import json_schema

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "record.md"
TYPES = {"number": (int, float), "integer": int, "text": str, "object": dict}


def documented():
    """Key to (type, meaning)."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 30
    assert len({key for key, _, _ in rows}) == len(rows)
    return {key: (kind.strip(), meaning.strip()) for key, kind, meaning in rows}


def is_of(value, kind):
    if kind.endswith(" or null"):
        return value is None or is_of(value, kind.removesuffix(" or null"))
    if kind.startswith("list of "):
        return isinstance(value, list) and all(is_of(item, kind.removeprefix("list of ")) for item in value)
    return isinstance(value, TYPES[kind]) and not isinstance(value, bool)


def check(record, kind):
    """Every value is of the documented type; returns the keys that were seen."""
    known = documented()
    seen = set()

    def walk(value, path):
        if path:
            assert path in known, f"{path} is not documented"
            assert is_of(value, known[path][0]), f"{path}: {value!r} is no {known[path][0]}"
            seen.add(path)
        if isinstance(value, dict) and (not path or path + "." in opened):
            for key, item in value.items():
                walk(item, f"{path}.{key}" if path else key)
        elif isinstance(value, list) and path + "[]." in opened:
            for item in value:
                for key, inner in item.items():
                    walk(inner, f"{path}[].{key}")

    opened = {key[: match.end()] for key in known for match in re.finditer(r"\.", key)}
    walk(record, "")
    wanted = {
        key
        for key, (_, meaning) in known.items()
        if "optional" not in meaning and not (kind == "evaluate" and key.startswith("trace"))
    }
    assert seen >= wanted, f"documented, but not there: {wanted - seen}"


@pytest.fixture(scope="module")
def found(data_dir):
    options = {"device": "numpy", "start": "random", "effort": "fast", "seed": 3}
    return search(data_dir / "primates.phy", "HKY+F+G4", **options)


def test_the_record_of_a_search(found):
    check(json.loads(found.to_json("plltool search x")), "search")


def test_the_record_of_a_search_that_chose_its_model(data_dir):
    options = {"device": "numpy", "start": "random", "effort": "fast", "seed": 3}
    lines = (data_dir / "primates.phy").read_text().splitlines()[1:]
    digits = str.maketrans("ACGT", "0011")  # few models go with two states
    result = search({name: row.translate(digits) for name, row in map(str.split, lines)}, "TEST", **options)
    check(json.loads(result.to_json()), "search")
    known = (*RECORD_KEYS, "data", "model_choice")
    assert set(result.choice.as_record()) <= set(known)


def test_the_record_of_an_evaluation(found, data_dir):
    result = evaluate(data_dir / "primates.phy", found.tree, "JC", fixed=True, device="numpy")
    check(json.loads(result.to_json()), "evaluate")


def test_the_records_of_what_is_asked_of_a_tree(found, data_dir):
    given = data_dir / "primates.phy", found.tree, "JC"
    trees = [found.tree, found.tree]
    settings = {"fixed": True, "device": "numpy"}
    for result, key in (
        (evaluate(*given, length_errors=True, **settings), "branches"),
        (evaluate(*given[:2], "JC+PSR4", device="numpy"), "psr"),
        (alrt(*given, replicates=10, **settings), "supports"),
        (topology_tests(given[0], trees, "JC", replicates=10, **settings), "tests"),
        (ancestral_states(*given, **settings), "ancestors"),
        (place(*given[:2], data_dir / "queries" / "fragments.fasta", "JC", graft=True, **settings), "placement"),
    ):
        record = json.loads(result.to_json())
        assert key in record
        check(record, "evaluate")


def test_the_record_of_dates(data_dir):
    pytest.importorskip("treetime", reason="TreeTime is not installed: pip install plltool[dating]")
    rows = {"a": "ACGTACGTAA", "b": "ACGTACGTAC", "c": "ACGAACGAAG", "d": "TCGAACTAAG"}
    years = {"a": 2001.0, "b": 2003.5, "c": 2002.0, "d": 2004.0}
    settings = {"clock_rate": 0.05, "fixed": True, "device": "numpy"}
    result = date(rows, "((a:0.1,b:0.1):0.1,c:0.1,d:0.1);", years, "JC", **settings)
    check(json.loads(result.to_json()), "evaluate")


def test_the_record_of_supports(found, data_dir):
    """Of all kinds: the same object as in the record of `alrt`, and the one in PREFIX.support.json."""
    trees = [found.tree, found.tree]
    by_replicates = supports(found.tree, trees, ("fbp", "tbe"))
    ultrafast = search_supports(found, ["ufboot"], device="numpy", listener=stop).supports
    rooted = supports("((a,b),(c,(d,e)));", ["(a,(b,(c,(d,e))));"], ("rootstrap",))
    by_neighbours = alrt(data_dir / "primates.phy", found.tree, "JC", replicates=10, fixed=True, device="numpy")
    for made in (by_replicates, rooted, ultrafast, by_neighbours.supports):
        text = made.texts()["support.json"]
        assert json.loads(text) == made.as_record()
        check(json.loads(json.dumps(found.as_record())) | {"supports": json.loads(text)}, "search")
    assert by_neighbours.as_record()["supports"] == by_neighbours.supports.as_record()


def stop(event):
    raise StopSearch


def test_the_record_of_two_optima(found):
    assert "other_optimum" not in found.as_record()
    record = replace(found, other=Other(-12.5, 6.1)).as_record()
    assert record["other_optimum"] == {"lnl": -12.5, "length": 6.1}
    check(json.loads(json.dumps(record)), "search")


def paths_of(schema, start=""):
    """Every key of a schema, as the table writes it."""
    for own in schema.get("anyOf", [schema]):
        for name, inner in own.get("properties", {}).items():
            yield start + name
            yield from paths_of(inner, f"{start}{name}.")
        if isinstance(own.get("items"), dict):
            yield from paths_of(own["items"], f"{start[:-1]}[].")


def test_schemas_have_the_documented_keys():
    """Those of records of runs; where some keys of an object are documented, all are."""
    commands = ["search", "evaluate", "alrt", "test", "ancestral", "place", "date", "select-model"]
    results = [getattr(plltool, name) for command in commands for name in ANALYSES[command].results]
    found = {path for own in results for path in paths_of(json_schema(own))}
    known = documented()
    assert known.keys() <= found
    opened = {"", *(path.rpartition(".")[0] for path in known)}
    assert {path for path in found if path.rpartition(".")[0] in opened} == known.keys()


def test_every_key_of_a_record_is_documented():
    top = [key for key in documented() if "." not in key]
    some = ("data", "psr", "model_choice", "start_distances", "climb_distances", "settings", "trace", "profile")
    some += (
        "other_optimum",
        "branches",
        "root_places",
        "supports",
        "tests",
        "ancestors",
        "placement",
        "dated_tree",
        "dating",
    )
    assert tuple(key for key in top if key not in some) == RECORD_KEYS
