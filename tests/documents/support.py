"""Documents against the schemas of their definitions."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema
import msgspec

from wavecast.documents.registry import documents
from wavecast.json_schema import json_schema


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(documents()[name]))


def validated(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The document, which follows the schema `name` and converts back to its definition."""
    assert document["schema"] == name
    _validator(name).validate(document)
    msgspec.convert(document, documents()[name])
    return document
