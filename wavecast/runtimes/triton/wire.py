"""Captured launches on their way from the process that ran the program to the one that asked.

A stream is a file of frames, each a length and a document (`packing`). Frames are appended with one
`write`, so what a dying process leaves behind is whole frames and at most one cut one.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter
from wavecast.packing import pack, unpack
from wavecast.systems.sources.calls import GraphLibraryCall, OperatorCall, TensorSizes

_LENGTH = struct.Struct("<Q")


class FrameWriter:
    """Appends frames to a file; every frame is on its way when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, document: dict[str, Any]) -> None:
        data = pack(document)
        frame = memoryview(_LENGTH.pack(len(data)) + data)
        while frame:
            frame = frame[os.write(self._file, frame) :]


class FrameReader:
    """Reads what a `FrameWriter` has written so far; a missing file has no frames."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def poll(self) -> Iterator[dict[str, Any]]:
        """Whole frames not read before."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        start = 0
        while start + _LENGTH.size <= len(data):
            (size,) = _LENGTH.unpack_from(data, start)
            end = start + _LENGTH.size + size
            if end > len(data):
                break
            self._offset += end - start
            yield unpack(data[start + _LENGTH.size : end])
            start = end


def encode_code(code: CodeObject) -> dict[str, Any]:
    """A `CodeObject` as a msgpack document."""
    return {**_fields(code), "parameters": [_fields(item) for item in code.parameters]}


def decode_code(document: dict[str, Any]) -> CodeObject:
    """The `CodeObject` that `encode_code` was given."""
    parameters = tuple(Parameter(**item) for item in document["parameters"])
    return CodeObject(**{**document, "parameters": parameters})


def encode_launch(launch: Launch) -> dict[str, Any]:
    """A `Launch` as a msgpack document that names its code by digest."""
    return {
        **_fields(launch),
        "code": launch.code.digest,
        "arguments": [_fields(item) for item in launch.arguments],
        "members": [_fields(item) for item in launch.members],
    }


def decode_launch(document: dict[str, Any], codes: dict[str, CodeObject]) -> Launch:
    """The `Launch` that `encode_launch` was given; `codes` maps digests."""
    return Launch(
        **{
            **document,
            "code": codes[document["code"]],
            "arguments": tuple(Argument(**item) for item in document["arguments"]),
            "members": tuple(Argument(**item) for item in document["members"]),
        }
    )


def encode_call(call: GraphLibraryCall) -> dict[str, Any]:
    """A `GraphLibraryCall` as a msgpack document."""

    def plain(value: Any) -> Any:
        if isinstance(value, TensorSizes):
            return {"sizes": _fields(value)}
        return tuple(map(plain, value)) if isinstance(value, tuple) else _packable(value)

    operator = {field.name: getattr(call.call, field.name) for field in fields(call.call)}
    operator["arguments"] = {
        name: plain(argument) for name, argument in call.call.arguments.items()
    }
    operator["inputs"], operator["outputs"] = plain(call.call.inputs), plain(call.call.outputs)
    return {"call": operator, "lines": call.lines, "count": call.count}


def decode_call(document: dict[str, Any]) -> GraphLibraryCall:
    """The `GraphLibraryCall` that `encode_call` was given."""

    def decode_value(value: Any) -> Any:
        if isinstance(value, dict):
            return TensorSizes(**value["sizes"])
        return tuple(map(decode_value, value)) if isinstance(value, tuple) else value

    operator = dict(document["call"])
    operator["arguments"] = {
        name: decode_value(argument) for name, argument in operator["arguments"].items()
    }
    operator["inputs"], operator["outputs"] = (
        decode_value(operator["inputs"]),
        decode_value(operator["outputs"]),
    )
    return GraphLibraryCall(OperatorCall(**operator), document["lines"], document["count"])


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: _packable(getattr(value, field.name)) for field in fields(value)}


def _packable(value: Any) -> Any:
    """msgpack has no integers beyond 64 bits; such a constant travels as text."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, (tuple, list)):
        return tuple(_packable(item) for item in value)
    if isinstance(value, Mapping):
        return {key: _packable(item) for key, item in value.items()}
    return value
