"""The messages of Chakra execution traces, built from a table instead of generated code.

Facts of the public schema of MLCommons (mlcommons/chakra, schema/protobuf/et_def.proto, 2026):
package, messages, fields, their numbers and types. Lists of values are left out but for those of
booleans (`involved_dim`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

from wavecast.protobuf import Fields, message_classes

PACKAGE: Final = "ChakraProtoMsg"
VERSION: Final = "0.0.4"
"""What traces of Chakra's own tools say in `GlobalMetadata.version`."""
NODE_TYPES: Final = {
    "INVALID_NODE": 0,
    "METADATA_NODE": 1,
    "MEM_LOAD_NODE": 2,
    "MEM_STORE_NODE": 3,
    "COMP_NODE": 4,
    "COMM_SEND_NODE": 5,
    "COMM_RECV_NODE": 6,
    "COMM_COLL_NODE": 7,
}
COLLECTIVES: Final = {
    "ALL_REDUCE": 0,
    "REDUCE": 1,
    "ALL_GATHER": 2,
    "GATHER": 3,
    "SCATTER": 4,
    "BROADCAST": 5,
    "ALL_TO_ALL": 6,
    "REDUCE_SCATTER": 7,
    "REDUCE_SCATTER_BLOCK": 8,
    "BARRIER": 9,
}
_ENUMS: Final = {"NodeType": NODE_TYPES, "CollectiveCommType": COLLECTIVES}
_MESSAGES: Final[Mapping[str, Fields]] = {
    "AttributeProto": (
        ("name", 1, "string"),
        ("doc_string", 2, "string"),
        ("double_val", 3, "double", "value"),
        ("float_val", 5, "float", "value"),
        ("int32_val", 7, "int32", "value"),
        ("int64_val", 9, "int64", "value"),
        ("uint32_val", 11, "uint32", "value"),
        ("uint64_val", 13, "uint64", "value"),
        ("sint32_val", 15, "sint32", "value"),
        ("sint64_val", 17, "sint64", "value"),
        ("fixed32_val", 19, "fixed32", "value"),
        ("fixed64_val", 21, "fixed64", "value"),
        ("sfixed32_val", 23, "sfixed32", "value"),
        ("sfixed64_val", 25, "sfixed64", "value"),
        ("bool_val", 27, "bool", "value"),
        ("bool_list", 28, "BoolList", "value"),
        ("string_val", 29, "string", "value"),
    ),
    "BoolList": (("values", 1, "*bool"),),
    "GlobalMetadata": (("version", 1, "string"), ("attr", 2, "*AttributeProto")),
    "IOInfo": (("values", 1, "string"), ("shapes", 2, "string"), ("types", 3, "string")),
    "Node": (
        ("id", 1, "uint64"),
        ("name", 2, "string"),
        ("type", 3, "NodeType"),
        ("ctrl_deps", 4, "*uint64"),
        ("data_deps", 5, "*uint64"),
        ("start_time_micros", 6, "uint64"),
        ("duration_micros", 7, "uint64"),
        ("inputs", 8, "IOInfo"),
        ("outputs", 9, "IOInfo"),
        ("attr", 10, "*AttributeProto"),
    ),
}
_VALUES: Final = {bool: "bool_val", int: "int64_val", float: "double_val", str: "string_val"}
_UNSIGNED: Final = ("tensor_size",)
_NARROW: Final = ("comm_src", "comm_dst", "comm_tag", "comm_priority")
"""Attributes that readers of traces expect as `uint64_val` and as `int32_val`."""


@cache
def messages() -> SimpleNamespace:
    """The classes of `_MESSAGES` by name. Raises MissingTool without the runtime of protobuf."""
    return message_classes(PACKAGE, _MESSAGES, _ENUMS, extra="chakra")


def attributes(values: Mapping[str, bool | int | float | str]) -> list[Any]:
    """`AttributeProto` messages of these names and values."""
    attribute_protos = []
    for name, value in values.items():
        field = _VALUES[type(value)]
        if name in _UNSIGNED:
            field = "uint64_val"
        elif name in _NARROW:
            field = "int32_val"
        attribute_protos.append(messages().AttributeProto(name=name, **{field: value}))
    return attribute_protos


def attribute_values(attributes: Iterable[Any]) -> dict[str, bool | int | float | str | list[bool]]:
    """The values of `AttributeProto` messages by name, without those of kinds that are left out."""
    values = {}
    for attribute in attributes:
        field = attribute.WhichOneof("value")
        if field is not None:
            value = getattr(attribute, field)
            values[attribute.name] = list(value.values) if field == "bool_list" else value
    return values


def encode_delimited(message: Any) -> bytes:
    """A message after its length (a base-128 varint), as files have one after the other."""
    content = message.SerializeToString()
    length, prefix = len(content), bytearray()
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes((*prefix, length)) + content


__all__ = [
    "COLLECTIVES",
    "NODE_TYPES",
    "PACKAGE",
    "VERSION",
    "attribute_values",
    "attributes",
    "encode_delimited",
    "messages",
]
