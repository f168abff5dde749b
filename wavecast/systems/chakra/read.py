"""Chakra execution traces from files: `NAME.RANK.et` or `.json`, a file per rank, and the ranks of
groups.

Three encodings, told apart by content: messages after their lengths (gzip or not), the JSON text
of these messages one after the other (Chakra's jsonizer), and JSON with a `workload_graph`
(Chakra's feeder). Source of the names: mlcommons/chakra, src/jsonizer and src/feeder/json_node.cpp.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from wavecast.errors import InputError
from wavecast.protobuf import parse_json_message, parse_message
from wavecast.systems.chakra import schema
from wavecast.systems.chakra.trace import ExecutionTrace, RankTrace, TraceNode

_FILE: Final = re.compile(r"(?P<name>.+)\.(?P<rank>\d{1,7})\.(?:et|json)")
_KINDS: Final = {number: name for name, number in schema.NODE_TYPES.items()}
_SPACE: Final = re.compile(r"\s*")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BEGINNING: Final = 256
_REQUIRED: Final = ("Id", "NodeType")
"""What Chakra's feeder reads of every node."""
_MICRO: Final = 1e-6
_LONGEST: Final = 10
"""Bytes of a varint of 64 bits."""
MOST_NODES: Final = 1 << 21
_GROUPS: Final = ("comm_groups.json", "comm_group.json")

Ranks = tuple[int, ...]


def read(
    path: Path, comm_groups: Path | None = None, *, control: bool = True
) -> list[ExecutionTrace]:
    """The runs of a folder, or of the files that begin with `path` (`FOLDER/NAME`, or one file).

    Without `control`, nodes come after their data dependencies only. The ranks of groups are in
    `comm_groups`, else in `comm_groups.json` or `NAME.json` next to the files. Raises InputError
    for files that are missing, damaged or contradict each other, MissingTool without protobuf.
    """
    runs = _files(path)
    traces, nodes = [], 0
    for name, files in sorted(runs.items()):
        missing = next((rank for rank in range(len(files)) if rank not in files), None)
        if missing is not None:
            raise InputError(
                f"{name}: there is a trace of rank {max(files)}, but none of rank {missing}"
            )
        ranks = []
        for rank in range(len(files)):
            ranks.append(_rank(files[rank], control))
            nodes += len(ranks[-1].nodes)
            if nodes > MOST_NODES:
                raise InputError(f"{path}: more than {MOST_NODES:,} nodes", hint="name one run")
        if not any(rank.nodes for rank in ranks):
            raise InputError(f"{files[0]}: a trace without nodes")
        folder = files[0].parent
        stated = comm_groups or _first(
            (*(folder / one for one in _GROUPS), folder / f"{name}.json")
        )
        traces.append(ExecutionTrace(name, tuple(ranks), _groups(stated) if stated else {}))
    return traces


def _files(path: Path) -> dict[str, dict[int, Path]]:
    """The files of every run by rank."""
    single = _FILE.fullmatch(path.name) if path.is_file() else None
    folder = path if path.is_dir() else path.parent
    only = "" if path.is_dir() else single["name"] if single else path.name
    runs: dict[str, dict[int, Path]] = {}
    try:
        names = sorted(
            file.name for file in folder.iterdir() if file.is_file() and file.name[0] != "."
        )
    except OSError as error:
        raise InputError(f"cannot read {folder}: {error.strerror}") from error
    for name in names:
        match = _FILE.fullmatch(name)
        if match is None or (only and match["name"] != only):
            continue
        files = runs.setdefault(match["name"], {})
        if int(match["rank"]) in files:
            raise InputError(f"{folder}: {files[int(match['rank'])].name} and {name} are one rank")
        files[int(match["rank"])] = folder / name
    if not runs:
        raise InputError(f"{path}: no Chakra traces, NAME.RANK.et or NAME.RANK.json")
    return runs


def _first(paths: Iterable[Path]) -> Path | None:
    return next((path for path in paths if path.is_file()), None)


def _groups(path: Path) -> dict[str, Ranks]:
    """The ranks of groups: an object of lists by name."""
    try:
        groups = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    if not isinstance(groups, dict):
        raise InputError(f"{path}: not an object of lists of ranks")
    return {name: _ranks(ranks, f"{path}, group {name}") for name, ranks in groups.items()}


def _ranks(ranks: object, where: str) -> Ranks:
    whole = isinstance(ranks, list) and all(type(rank) is int and rank >= 0 for rank in ranks)
    if not whole or not isinstance(ranks, list) or not ranks or len({*ranks}) < len(ranks):
        raise InputError(f"{where}: not a list of different ranks")
    return tuple(ranks)


def _rank(path: Path, control: bool) -> RankTrace:
    data = _bytes(path)
    if _is_text(data) if path.suffix == ".json" else data.lstrip()[:1] == b"{" and _is_json(data):
        metadata, nodes = _json(path, data)
    else:
        metadata, nodes = _binary(path, data)
    numbers: dict[int, int] = {}
    for number, node in enumerate(nodes):
        if numbers.setdefault(node.id, number) != number:
            raise InputError(f"{path}: two nodes have the id {node.id}")
    unresolved, groups, trace_nodes = 0, {}, []
    for node in nodes:
        after = []
        for before in node.data_deps:
            if before not in numbers:
                raise InputError(f"{path}: node {node.id} depends on {before}, which is not there")
            after.append(numbers[before])
        for before in node.ctrl_deps if control else ():
            if before in numbers:
                after.append(numbers[before])
            else:
                unresolved += 1
        if node.type not in _KINDS:
            raise InputError(
                f"{path}: node {node.id} has type {node.type}, which is none of Chakra"
            )
        kind = _KINDS[node.type]
        if kind == "METADATA_NODE":
            groups |= _stated_groups(node.inputs.values, path)
        trace_nodes.append(
            TraceNode(
                node.name or f"node {node.id}",
                kind,
                tuple(dict.fromkeys(after)),
                node.start_time_micros * _MICRO,
                node.duration_micros * _MICRO,
                schema.attribute_values(node.attr),
            )
        )
    by_wavecast = "wavecast" in schema.attribute_values(metadata.attr)
    return RankTrace(tuple(trace_nodes), unresolved, groups, by_wavecast)


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {why}") from error


def _is_text(data: bytes) -> bool:
    """Whether a file begins like a text: lengths of messages are control characters."""
    return _CONTROL.search(data[:_BEGINNING]) is None


def _is_json(data: bytes) -> bool:
    """Whether bytes that begin like JSON are: a length of messages can look the same."""
    try:
        json.JSONDecoder().raw_decode(data.lstrip().decode())
    except (ValueError, RecursionError):
        return False
    return True


def _binary(path: Path, data: bytes) -> tuple[Any, list[Any]]:
    """The metadata and the nodes of messages after their lengths."""
    classes = schema.messages()
    found: list[Any] = []
    for number, content in enumerate(_delimited(path, data)):
        kind = classes.Node if number else classes.GlobalMetadata
        try:
            found.append(parse_message(kind, content))
        except ValueError as error:
            raise InputError(f"{path}: message {number} is damaged") from error
    if not found or (found[0].ByteSize() and not (found[0].version or found[0].attr)):
        raise InputError(f"{path}: does not begin with the GlobalMetadata of a Chakra trace")
    return found[0], found[1:]


def _delimited(path: Path, data: bytes) -> Iterator[bytes]:
    at, number = 0, 0
    while at < len(data):
        length = shift = 0
        while True:
            if at == len(data) or shift == 7 * _LONGEST:
                why = "ends in" if at == len(data) else "has no end of"
                raise InputError(f"{path}: {why} the length of message {number}")
            byte = data[at]
            length |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not byte & 0x80:
                break
        if length > len(data) - at:
            raise InputError(
                f"{path}: message {number} has {length:,} bytes, but {len(data) - at:,} are left"
            )
        yield data[at : at + length]
        at, number = at + length, number + 1


def _json(path: Path, data: bytes) -> tuple[Any, list[Any]]:
    """The metadata and the nodes of JSON in either form."""
    classes = schema.messages()
    values: list[Any] = _json_values(path, data)
    if len(values) == 1 and isinstance(values[0], dict) and "workload_graph" in values[0]:
        graph = values[0]["workload_graph"]
        if not isinstance(graph, list):
            raise InputError(f"{path}: its workload_graph is not a list")
        values = [{}, *(_feeder_node(path, number, node) for number, node in enumerate(graph))]
    messages = []
    for number, value in enumerate(values):
        kind = classes.Node if number else classes.GlobalMetadata
        try:
            messages.append(parse_json_message(kind, value))
        except ValueError as error:
            raise InputError(f"{path}: object {number}: {error}") from error
    if not messages:
        raise InputError(f"{path}: it is empty")
    return messages[0], messages[1:]


def _json_values(path: Path, data: bytes) -> list[Any]:
    values, at = [], 0
    decoder = json.JSONDecoder()
    try:
        text = data.decode().strip()
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            values.append(value)
            space = _SPACE.match(text, end)
            at = space.end() if space else end
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    return values


def _feeder_node(path: Path, number: int, value: object) -> object:
    """A node of `workload_graph` as the JSON of its message. Raises InputError for one without what
    Chakra's feeder reads of every node."""
    if not isinstance(value, dict):
        raise InputError(f"{path}: node {number} of its workload_graph is not an object")
    missing = [name for name in _REQUIRED if name not in value]
    if missing:
        raise InputError(
            f"{path}: node {number} of its workload_graph has no {' and no '.join(missing)}"
        )
    names = {"Id": "id", "Name": "name", "NodeType": "type", "runtime": "durationMicros"}
    lists = {"data_deps": "dataDeps", "ctrl_deps": "ctrlDeps", "ctrlDeps": "ctrlDeps"}
    known = {**names, **lists}
    message: dict[str, Any] = {known[key]: value[key] for key in value if key in known}
    message["attr"] = [
        {"name": key, _feeder_field(each): each}
        for key, each in value.items()
        if key not in known and isinstance(each, (bool, int, float, str))
    ]
    return message


def _feeder_field(value: float | str) -> str:
    fields: Mapping[type, str] = {bool: "boolVal", int: "int64Val", str: "stringVal"}
    return fields.get(type(value), "doubleVal")


def _stated_groups(text: str, path: Path) -> dict[str, Ranks]:
    """Groups that the metadata node of a trace of PyTorch states; one without ranks has all."""
    match = re.search(r"\[\s*\{.*\}\s*\]", text, re.DOTALL)
    if match is None:
        return {}
    try:
        entries = json.loads(match[0])
        stated = {str(entry["pg_name"]): entry["ranks"] for entry in entries}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: its groups of ranks are not JSON: {error}") from error
    where = f"{path}, group"
    return {name: _ranks(ranks, f"{where} {name}") for name, ranks in stated.items() if ranks}


__all__ = ["MOST_NODES", "read"]
