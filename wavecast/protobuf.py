"""Messages of protocol buffers from a table, instead of generated code."""

# pyright: reportMissingImports=false
# protobuf is optional.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from wavecast.errors import MissingTool
from wavecast.extras import install_hint

Fields = Sequence[tuple[str, int, str] | tuple[str, int, str, str]]
"""Fields of a message: name, number, type (`*`: repeated), and the union it is a member of."""


def message_classes(
    package: str,
    messages: Mapping[str, Fields],
    enums: Mapping[str, Mapping[str, int]],
    extra: str,
) -> SimpleNamespace:
    """The classes of `messages` by name; a message has one union at most. Types are those of
    proto3, names of `messages`, or names of `enums`.

    Raises MissingTool, with the name of Wavecast's `extra`, without the runtime of protobuf.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise MissingTool(
            f"these traces are protobuf messages: {error}", hint=install_hint(extra)
        ) from error
    file = descriptor_pb2.FileDescriptorProto(
        name=f"wavecast/{extra}.proto", package=package, syntax="proto3"
    )
    for name, values in enums.items():
        enum = file.enum_type.add(name=name)
        for value, number in values.items():
            enum.value.add(name=value, number=number)
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, field, package, messages, enums)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return SimpleNamespace(
        **{
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
            for name in messages
        }
    )


def parse_message(kind: Any, data: bytes) -> Any:
    """The message of a class in `data`. Raises ValueError for data that are damaged."""
    from google.protobuf.message import DecodeError

    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return message


def parse_json_message(kind: Any, value: Any) -> Any:
    """The message of a class from its JSON, without fields that the class lacks. Raises ValueError
    for other values."""
    from google.protobuf.json_format import ParseDict, ParseError

    try:
        return ParseDict(value, kind(), ignore_unknown_fields=True)
    except (ParseError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error


def _add_field(
    message: Any,
    field: tuple[Any, ...],
    package: str,
    messages: Mapping[str, Fields],
    enums: Mapping[str, Mapping[str, int]],
) -> None:
    """Add a field to the descriptor of its message."""
    name, number, kind, *union = field
    descriptor = message.field.add(name=name, number=number)
    descriptor.label = (
        descriptor.LABEL_REPEATED if kind.startswith("*") else descriptor.LABEL_OPTIONAL
    )
    plain = kind.removeprefix("*")
    if plain in messages or plain in enums:
        descriptor.type = descriptor.TYPE_ENUM if plain in enums else descriptor.TYPE_MESSAGE
        descriptor.type_name = f".{package}.{plain}"
    else:
        descriptor.type = descriptor.Type.Value(f"TYPE_{plain.upper()}")
    if union:
        if not message.oneof_decl:
            message.oneof_decl.add(name=union[0])
        descriptor.oneof_index = 0


__all__ = ["Fields", "message_classes", "parse_json_message", "parse_message"]
