"""Definitions of documents: JSON values, schemas, the tables of docs/json.md."""

from __future__ import annotations

import json
import math
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Annotated

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner
from msgspec import UNSET, UnsetType

from wavecast.api.schema import schema as schema_of
from wavecast.cli.schema import command
from wavecast.documents.registry import documents
from wavecast.errors import UnknownName, UsageError
from wavecast.json_objects import Count, JsonObject, Size3, doc, dumps, plain, values
from wavecast.json_schema import json_schema, markdown

PAGE = Path(__file__).parents[2] / "docs" / "json.md"


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class LeafJson(JsonObject):
    """A leaf."""

    size: Annotated[Size3, doc("x, y, z")]
    side: str = msgspec.field(name="in")
    note: Annotated[str | UnsetType, doc("optional")] = UNSET


class TreeDocument(JsonObject, tag_field="schema", tag="test.tree/1"):
    """A tree."""

    count: Annotated[Count, doc("leaves | nodes")]
    rate: float | None
    leaves: list[LeafJson]
    by_name: dict[str, float | None]


class Source:
    count = 2
    rate = math.inf
    size = (1, 2, 3)
    note = UNSET


def tree() -> TreeDocument:
    leaf = LeafJson.of(Source, side="left")
    return TreeDocument.of(Source, leaves=[leaf], by_name={"a": math.nan, "b": 1})


def test_keys_are_the_fields_in_order_and_numbers_json_lacks_are_null() -> None:
    assert dumps(tree()) == (
        '{"schema": "test.tree/1", "count": 2, "rate": null, '
        '"leaves": [{"size": [1, 2, 3], "in": "left"}], "by_name": {"a": null, "b": 1}}'
    )


def test_a_field_that_neither_side_has_and_an_unknown_field_are_errors() -> None:
    with pytest.raises(AttributeError, match="by_name"):
        TreeDocument.of(Source, leaves=[])
    with pytest.raises(TypeError, match="other"):
        LeafJson.of(Source, side="left", other=1)


def test_values_refuse_what_has_no_json_form() -> None:
    assert values([Colour.RED, Number.ONE, True, None, 1.5]) == ["red", 1, True, None, 1.5]
    with pytest.raises(TypeError, match="object has no JSON form"):
        values({"a": object()})
    assert plain({1: {"b", "a"}, "p": Path("x"), "n": math.nan}) == {
        "1": ["a", "b"],
        "p": "x",
        "n": None,
    }


def test_a_schema_accepts_its_document_and_refuses_others() -> None:
    schema = json_schema(TreeDocument)
    assert (schema["title"], schema["$id"]) == ("test.tree/1", "urn:test:tree:1")
    document = values(tree())
    jsonschema.validate(document, schema)
    for change in ({"more": 1}, {"count": -1}, {"schema": "test.tree/2"}, {"leaves": [{}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, **change}, schema)
    assert schema["$defs"]["LeafJson"]["required"] == ["size", "in"]


def test_tables_of_fields() -> None:
    text = markdown([TreeDocument])
    assert text.startswith("### test.tree/1\n\nA tree.\n\n| key | type | meaning |\n")
    assert "| `count` | integer | leaves \\| nodes |" in text
    assert "| `leaves` | list of leaf |  |" in text
    assert "#### leaf\n\nA leaf.\n" in text
    assert "| `note` | string, optional | optional |" in text


@pytest.mark.parametrize("name", documents())
def test_every_object_is_strict_and_described(name: str) -> None:
    schema = json_schema(documents()[name])
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == name
    for part in (schema, *schema["$defs"].values()):
        assert part["additionalProperties"] is False
        assert part.get("description"), part["title"]


def test_the_page_has_the_tables_of_all_documents() -> None:
    result = CliRunner().invoke(command, ["--format", "markdown"], catch_exceptions=False)
    fields = PAGE.read_text(encoding="utf-8").partition("## Fields\n")[2]
    assert fields.partition("\n\n")[2] == result.output


def test_the_verb_lists_documents_and_prints_schemas() -> None:
    def run(*arguments: str) -> str:
        return CliRunner().invoke(command, arguments, catch_exceptions=False).output

    assert run().split() == list(documents())
    for name in ("trace", "wavecast.trace/1"):
        assert json.loads(run(name)) == json_schema(documents()["wavecast.trace/1"])
        assert schema_of(name).to_dict() == json_schema(documents()["wavecast.trace/1"])
    with pytest.raises(UsageError, match="name one document"):
        run("gate", "diff")
    assert "### wavecast.gate/1" in run("gate", "diff", "--format", "markdown")
    with pytest.raises(UnknownName, match="trace"):
        run("trase")
