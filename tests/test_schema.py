"""The JSON Schema of records: what types become, and that wrong records do not follow it.

`conftest.py` holds every record that a test writes to the schema of its class.
"""

import copy
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

import plltool
from plltool.cli import main
from plltool.io.files import RECORD_KEYS, Recorded
from plltool.registry import ANALYSES
from plltool.schema import Keys, json_schema, schema_of


class Point(NamedTuple):
    x: float
    y: int | None


@dataclass
class Named(Recorded):
    name: str
    points: tuple[Point, ...]

    @property
    def size(self) -> int:
        return len(self.points)

    @Keys("name n=size points", maybe={"last": Point})
    def as_record(self, command=None):
        return {"name": self.name}


def test_attributes_are_read_and_keys_in_order():
    """A record has the attributes that its function leaves out, those of the classes above first."""
    made = Child("t", (Point(1.0, None),), ((2, 3),)).as_record()
    expected = {"name": "t", "n": 1, "points": [{"x": 1.0, "y": None}], "pairs": [[2, 3]], "own": 7, "b": "first"}
    assert made == expected
    assert list(made) == list(expected)


@dataclass
class Child(Named):
    pairs: tuple[tuple[int, int], ...]

    @Keys("pairs own:int b=best", b=str)
    def as_record(self, command=None):
        return super().as_record(command) | {"own": 7}

    def best(self):
        return "first"


def closed(required, properties):
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


NUMBER, INTEGER, TEXT = {"type": "number"}, {"type": "integer"}, {"type": "string"}
POINT = closed(["x", "y"], {"x": NUMBER, "y": {"type": ["integer", "null"]}})


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (float, NUMBER),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (str | None, {"type": ["string", "null"]}),
        ((None, [str]), {"anyOf": [{"type": "null"}, {"type": "array", "items": TEXT}]}),
        (Sequence[int], {"type": "array", "items": INTEGER}),
        (tuple[str, float], {"type": "array", "prefixItems": [TEXT, NUMBER], "items": False, "minItems": 2}),
        (Mapping[str, float], {"type": "object", "additionalProperties": NUMBER}),
        (Annotated[dict[str, Any], Keys(a=int)], closed(["a"], {"a": INTEGER})),
        (Point, POINT),
        (
            Named,
            closed(
                ["name", "n", "points"],
                {"name": TEXT, "n": INTEGER, "points": {"type": "array", "items": POINT}, "last": POINT},
            ),
        ),
        (
            Keys(like=Point, z=str, maybe={"x": int}),
            closed(["y", "z"], POINT["properties"] | {"z": TEXT, "x": INTEGER}),
        ),
    ],
)
def test_what_types_become(kind, schema):
    assert schema_of(kind) == schema


@pytest.mark.parametrize("command", [name for name, own in ANALYSES.items() if own.results])
def test_the_schema_of_each_command(command):
    done = CliRunner().invoke(main, ["schema", command])
    schema = json.loads(done.stdout)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:plltool:{plltool.__version__}:{'+'.join(ANALYSES[command].results)}"
    for own in schema.get("anyOf", [schema]):
        assert own["additionalProperties"] is False


def test_results_of_every_class_have_a_schema():
    """A class of results that becomes JSON is one of a command."""
    results = {name for name in plltool.__all__ if isinstance(getattr(plltool, name), type)}
    written = {name for name in results if issubclass(getattr(plltool, name), Recorded)}
    assert written == {name for own in ANALYSES.values() for name in own.results}


def test_the_keys_of_every_record():
    """What readers of a record ask for is what every record of a run has, and `data`, which older ones lack."""
    assert {*json_schema(plltool.EvaluationResult)["required"]} == {*RECORD_KEYS, "data"}


@pytest.fixture(scope="module")
def record():
    rows = {"a": "ACGTACGTAA", "b": "ACGTACGTAC", "c": "ACGAACGAAG", "d": "TCGAACTAAG"}
    found = plltool.search(rows, "HKY+G4", device="numpy", effort="fast", seed=1)
    return json.loads(found.to_json("plltool search x"))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda record: record.update(extra=1), "'extra' was unexpected"),
        (lambda record: record["parts"][0].update(extra=1), "'extra' was unexpected"),
        (lambda record: record["data"]["taxa"][0].pop("gaps"), "'gaps' is a required property"),
        (lambda record: record.update(lnl="-1.5"), "'-1.5' is not of type 'number'"),
        (lambda record: record.pop("n_taxa"), "'n_taxa' is a required property"),
    ],
)
def test_a_wrong_record_does_not_follow_the_schema(record, spoil, message):
    validator = Draft202012Validator(json_schema(plltool.SearchResult))
    validator.validate(record)
    spoilt = copy.deepcopy(record)
    spoil(spoilt)
    with pytest.raises(ValidationError, match=message):
        validator.validate(spoilt)


def test_the_schema_of_all_records(record):
    schema = json.loads(CliRunner().invoke(main, ["schema"]).stdout)
    Draft202012Validator(schema).validate(record)
    with pytest.raises(ValidationError):
        Draft202012Validator(schema).validate(record | {"extra": 1})


def test_import_loads_no_validator():
    code = "import sys, plltool; plltool.json_schema(plltool.SearchResult); print('jsonschema' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
