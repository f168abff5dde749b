"""Chakra execution traces of a few nodes, written field by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wavecast.systems.chakra import schema

METADATA = {"schema": "test"}


def node(number: int, kind: str, *, after=(), control=(), micros: int = 0, **about: Any) -> Any:
    """A node named `nN` with attributes."""
    about = {"is_cpu_op": False, **about}
    return schema.messages().Node(
        id=number,
        name=str(about.pop("name", f"n{number}")),
        type=schema.NODE_TYPES[kind],
        data_deps=after,
        ctrl_deps=control,
        duration_micros=micros,
        attr=schema.attributes(about),
    )


def compute(number: int, micros: int, *after: int, **about: Any) -> Any:
    return node(number, "COMP_NODE", after=after, micros=micros, **about)


def collective(number: int, kind: str, size: int, *after: int, **about: Any) -> Any:
    values = {"comm_type": schema.COLLECTIVES[kind], "comm_size": size, **about}
    return node(number, "COMM_COLL_NODE", after=after, **values)


def send(number: int, to: int, size: int, *after: int, tag: int = 0) -> Any:
    about = {"comm_dst": to, "comm_size": size, "comm_tag": tag}
    return node(number, "COMM_SEND_NODE", after=after, **about)


def receive(number: int, source: int, size: int, *after: int, tag: int = 0) -> Any:
    about = {"comm_src": source, "comm_size": size, "comm_tag": tag}
    return node(number, "COMM_RECV_NODE", after=after, **about)


def encoded(nodes: list[Any], **metadata: Any) -> bytes:
    head = schema.messages().GlobalMetadata(
        version="0.0.4", attr=schema.attributes({**METADATA, **metadata})
    )
    return b"".join(map(schema.encode_delimited, (head, *nodes)))


def write(folder: Path, *ranks: list[Any], groups: dict[str, list[int]] | None = None) -> Path:
    """The files of a run `run` and the ranks of its groups."""
    for number, nodes in enumerate(ranks):
        (folder / f"run.{number}.et").write_bytes(encoded(nodes))
    if groups is not None:
        (folder / "comm_groups.json").write_text(json.dumps(groups))
    return folder
