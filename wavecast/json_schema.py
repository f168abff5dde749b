"""JSON Schemas and tables of fields, from the definitions of documents."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wavecast.json_objects import JsonObject

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFS = "#/$defs/"


def name_of(document: type[JsonObject]) -> str:
    """`wavecast.explain/1`."""
    return str(document.__struct_config__.tag)


def json_schema(document: type[JsonObject]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document, a fresh copy. It refuses keys it does not name."""
    import msgspec

    schema = _publish(msgspec.json.schema(document))
    defs = schema["$defs"]
    root = defs[document.__name__]
    name = name_of(document)
    if not _refers(defs, document.__name__):
        del defs[document.__name__]
    return {
        "$schema": _DIALECT,
        "$id": f"urn:{name.replace('.', ':').replace('/', ':')}",
        **root,
        "title": name,
        "$defs": defs,
    }


def markdown(documents: Sequence[type[JsonObject]]) -> str:
    """Tables of the documents' fields as Markdown: one per object, where it first appears."""
    parts: list[str] = []
    written = {document.__name__ for document in documents}
    for document in documents:
        schema = json_schema(document)
        parts.append(f"### {schema['title']}\n\n{schema['description']}\n\n{_table(schema)}")
        for name in _in_order(schema):
            if name not in written:
                written.add(name)
                part = schema["$defs"][name]
                text = f"{part['description']}\n\n{_table(part)}"
                parts.append(f"#### {_heading(name)}\n\n{text}")
    return "\n\n".join(parts) + "\n"


def _publish(node: Any) -> Any:
    """A schema as it is published: definitions have the names of classes with the suffix `Json`,
    and every field is required unless it can be UNSET, also where the class has a default."""
    if isinstance(node, list):
        return [_publish(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema: dict[str, Any] = {}
    for key, value in node.items():
        if key == "$ref":
            schema[key] = _DEFS + _public_name(value.removeprefix(_DEFS))
        elif key == "$defs":
            schema[key] = {_public_name(name): _publish(part) for name, part in value.items()}
        elif key == "title":
            schema[key] = _public_name(value)
        elif key == "properties":
            required = node.get("required", ())
            schema[key] = {name: _publish(part) for name, part in value.items()}
            schema["required"] = [n for n in value if n in required or "default" in value[n]]
        elif key == "description":  # msgspec before 0.23 has the indentation of the docstring
            schema[key] = inspect.cleandoc(value)
        elif key not in ("required", "default"):
            schema[key] = _publish(value)
    return schema


def _public_name(name: str) -> str:
    return name if name.endswith(("Document", "Json")) else f"{name}Json"


def _refers(node: Any, name: str) -> bool:
    if isinstance(node, Mapping):
        return node.get("$ref") == _DEFS + name or any(_refers(n, name) for n in node.values())
    return isinstance(node, list) and any(_refers(item, name) for item in node)


def _in_order(schema: Mapping[str, Any]) -> list[str]:
    """Names of the objects a document refers to, by first appearance."""
    names: dict[str, None] = {}
    waiting = list(_references(schema["properties"]))
    while waiting:
        name = waiting.pop(0)
        if name not in names:
            names[name] = None
            inner = _references(schema["$defs"][name]["properties"])
            waiting = [*inner, *waiting]
    return list(names)


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "$ref" in node:
            yield node["$ref"].removeprefix(_DEFS)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _table(part: Mapping[str, Any]) -> str:
    rows = ["| key | type | meaning |", "|---|---|---|"]
    required = part.get("required", ())
    for key, field in part["properties"].items():
        optional = "" if key in required else ", optional"
        meaning = field.get("description", "").replace("|", "\\|")
        rows.append(f"| `{key}` | {_type(field)}{optional} | {meaning} |")
    return "\n".join(rows)


def _type(field: Mapping[str, Any]) -> str:
    """`list of loop`, `number or null`."""
    if "$ref" in field:
        return _heading(field["$ref"].removeprefix(_DEFS))
    if "anyOf" in field:
        return " or ".join(_type(variant) for variant in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    kind = field.get("type")
    if kind == "array":
        return f"list of {_type(field.get('items', {}))}"
    if kind == "object":
        values = field.get("additionalProperties")
        return f"object of {_type(values)}" if values else "object"
    return str(kind or "any")


def _heading(name: str) -> str:
    """`LineCostJson` as `line cost`."""
    words = name.removesuffix("Json")
    return "".join(f" {c.lower()}" if c.isupper() else c for c in words).strip()


__all__ = ["json_schema", "markdown", "name_of"]
