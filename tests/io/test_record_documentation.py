"""`docs/record.md` says what is in a record: every key, its type, and nothing that is not there.

Tests hold every record that they make to its schema, see `conftest.py`; here the table is held to the schemas.
"""

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
from plltool.constants import MOVE_KINDS
from plltool.io.files import RECORD_KEYS
from plltool.optimise.polish import Other
from plltool.progress import StopSearch
from plltool.registry import ANALYSES
from plltool.run.evaluation import evaluate
from plltool.schema import json_schema

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "record.md"
TYPES = {"number": "number", "integer": "integer", "text": "string", "object": "object", "null": "null"}


def documented():
    """Key to (type, meaning)."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 30
    assert len({key for key, _, _ in rows}) == len(rows)
    return {key: (kind.strip(), meaning.strip()) for key, kind, meaning in rows}


def is_of(schema, kind):
    """Whether a type of the table is one that the schema allows."""
    if kind.endswith(" or null"):
        return is_of(schema, kind.removesuffix(" or null")) and is_of(schema, "null")
    if "anyOf" in schema:
        return any(is_of(own, kind) for own in schema["anyOf"])
    if kind.startswith("list of "):
        items = schema.get("items") or schema.get("prefixItems", [{}])[0]
        return schema.get("type") == "array" and is_of(items, kind.removeprefix("list of "))
    return TYPES[kind] in [schema.get("type"), *schema.get("type", ())]


@pytest.fixture(scope="module")
def found(data_dir):
    options = {"device": "numpy", "start": "random", "effort": "fast", "seed": 3}
    return search(data_dir / "primates.phy", "HKY+F+G4", **options)


def test_the_record_of_a_search_that_chose_its_model(data_dir):
    options = {"device": "numpy", "start": "random", "effort": "fast", "seed": 3}
    lines = (data_dir / "primates.phy").read_text().splitlines()[1:]
    digits = str.maketrans("ACGT", "0011")  # few models go with two states
    result = search({name: row.translate(digits) for name, row in map(str.split, lines)}, "TEST", **options)
    result.to_json()
    known = (*RECORD_KEYS, "data", "model_choice")
    assert set(result.choice.as_record()) <= set(known)


def test_the_records_of_a_search_and_of_what_is_asked_of_its_tree(found, data_dir):
    given = data_dir / "primates.phy", found.tree, "JC"
    trees = [found.tree, found.tree]
    settings = {"fixed": True, "device": "numpy"}
    for result, key in (
        (found, "tree"),
        (evaluate(*given, **settings), "lnl"),
        (evaluate(*given, length_errors=True, **settings), "branches"),
        (evaluate(*given[:2], "JC+PSR4", device="numpy"), "psr"),
        (alrt(*given, replicates=10, **settings), "supports"),
        (topology_tests(given[0], trees, "JC", replicates=10, **settings), "tests"),
        (ancestral_states(*given, **settings), "ancestors"),
        (place(*given[:2], data_dir / "queries" / "fragments.fasta", "JC", graft=True, **settings), "placement"),
    ):
        assert key in json.loads(result.to_json())


def test_the_record_of_dates(data_dir):
    pytest.importorskip("treetime", reason="TreeTime is not installed: pip install plltool[dating]")
    rows = {"a": "ACGTACGTAA", "b": "ACGTACGTAC", "c": "ACGAACGAAG", "d": "TCGAACTAAG"}
    years = {"a": 2001.0, "b": 2003.5, "c": 2002.0, "d": 2004.0}
    settings = {"clock_rate": 0.05, "fixed": True, "device": "numpy"}
    result = date(rows, "((a:0.1,b:0.1):0.1,c:0.1,d:0.1);", years, "JC", **settings)
    result.to_json()


def test_the_record_of_supports(found, data_dir):
    """Of all kinds: the same object as in the record of `alrt`, and the one in PREFIX.support.json."""
    trees = [found.tree, found.tree]
    by_replicates = supports(found.tree, trees, ("fbp", "tbe"))
    ultrafast = search_supports(found, ["ufboot"], device="numpy", listener=stop).supports
    rooted = supports("((a,b),(c,(d,e)));", ["(a,(b,(c,(d,e))));"], ("rootstrap",))
    given = data_dir / "primates.phy", found.tree, "JC"
    by_neighbours = alrt(*given, kinds=MOVE_KINDS, replicates=10, fixed=True, device="numpy")
    for made in (by_replicates, rooted, ultrafast, by_neighbours.supports):
        text = made.texts()["support.json"]
        assert json.loads(text) == made.as_record()
    assert by_neighbours.as_record()["supports"] == by_neighbours.supports.as_record()


def stop(event):
    raise StopSearch


def test_the_record_of_two_optima(found):
    assert "other_optimum" not in found.as_record()
    record = json.loads(replace(found, other=Other(-12.5, 6.1)).to_json())
    assert record["other_optimum"] == {"lnl": -12.5, "length": 6.1}


def paths_of(schema, start="", always=True):
    """Every key of a schema, as the table writes it, with its own schema, and whether every record has it."""
    for own in schema.get("anyOf", [schema]):
        for name, inner in own.get("properties", {}).items():
            required = always and name in own["required"]
            yield start + name, inner, required
            yield from paths_of(inner, f"{start}{name}.", required)
        if isinstance(own.get("items"), dict):
            yield from paths_of(own["items"], f"{start[:-1]}[].", always)


def test_schemas_have_the_documented_keys():
    """Those of records of runs, with their types; where some keys of an object are documented, all are."""
    commands = ["search", "evaluate", "alrt", "test", "ancestral", "place", "date", "select-model"]
    results = [getattr(plltool, name) for command in commands for name in ANALYSES[command].results]
    schemas = [own for result in results for own in paths_of(json_schema(result))]
    known, found = documented(), {path for path, _, _ in schemas}
    opened = {"", *(path.rpartition(".")[0] for path in known)}
    assert {path for path in found if path.rpartition(".")[0] in opened} == known.keys()
    right = {path for path, own, _ in schemas if path in known and is_of(own, known[path][0])}
    assert right == known.keys()
    always = {path for path, _, required in paths_of(json_schema(plltool.SearchResult)) if required}
    assert {path for path, (_, meaning) in known.items() if "optional" not in meaning} <= always


def test_every_key_that_readers_ask_for_is_documented():
    assert tuple(key for key in documented() if key in RECORD_KEYS) == RECORD_KEYS
