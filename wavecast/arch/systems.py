"""Machines with several GPUs, by name or as `8xMI300X`, `4x8xMI300X`, `2xdgx-h100`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from wavecast.arch import partitions
from wavecast.arch.device import Device
from wavecast.arch.links import Fabric, GpuGroup, Network
from wavecast.arch.quantity import Quantity
from wavecast.arch.select import load
from wavecast.arch.system_files import SystemTable, read
from wavecast.errors import MissingFact, UnknownName, UsageError

_COUNTED: Final = re.compile(r"(\d{1,6})\s*[x×*]\s*(.+)", re.IGNORECASE)
_MOST: Final = 1 << 20
"""Most GPUs of a system."""

Files = Sequence[str | Path]


@dataclass(frozen=True, slots=True)
class System:
    """`gpus` equal GPUs on `nodes` nodes, numbered node by node.

    `fabric` links those of a node, `network` the nodes; None where there is one GPU or one node, or
    where the links are not known.
    """

    name: str
    device: Device
    gpus: int
    nodes: int = 1
    fabric: Fabric | None = None
    network: Network | None = None

    @property
    def node_gpus(self) -> int:
        """GPUs of a node."""
        return self.gpus // self.nodes

    def group(self, ranks: int, stride: int = 1) -> GpuGroup:
        """A group of `ranks` GPUs whose numbers are `stride` apart.

        With `stride` 1 a node is filled before the next: tensor parallelism. Replicas of 8 GPUs
        reduce their gradients in groups of stride 8. Raises UsageError for more GPUs than there
        are, for groups that end in the middle of a node, and where the links are not known.
        """
        if ranks < 1 or stride < 1 or ranks * stride > self.gpus:
            raise UsageError(
                f"{self}: a group of {ranks} GPUs, {stride} apart, in {self.gpus} GPUs"
            )
        local = min(ranks, max(1, self.node_gpus // stride))
        if ranks % local or (local < ranks and local * stride < self.node_gpus):
            raise UsageError(
                f"{self}: groups of {ranks} GPUs, {stride} apart, do not divide nodes of "
                f"{self.node_gpus}"
            )
        return GpuGroup(self.fabric, self.network, local, ranks // local)

    def __str__(self) -> str:
        return self.name


def system(selector: str, files: Files = (), system_files: Files = ()) -> System:
    """The machine that a selector means.

    It is a name of `systems.toml` or of `system_files`, a device (one GPU), `8xMI300X` (GPUs of one
    node), `4x8xMI300X` (nodes of GPUs), or `2xdgx-h100` (nodes of a named machine). `files` overlay
    device facts.

    Raises UnknownName, UsageError for more GPUs than a node of the device links and for a file that
    is wrong, MissingFact that names a figure of the links which nobody gave.
    """
    tables = _tables(system_files)
    text = selector.strip()
    if text.lower() in tables:
        return _of_table(tables[text.lower()], files)
    match = _COUNTED.fullmatch(text)
    if match is None:
        return of_device(load(_require_device(text, tables, files), files), 1)
    count, rest = int(match[1]), match[2].strip()
    if rest.lower() in tables:
        table = tables[rest.lower()]
        return _of_table(table, files, nodes=count * table.nodes)
    inner = _COUNTED.fullmatch(rest)
    if inner is not None and not _is_device(rest, files):
        device = load(_require_device(inner[2].strip(), tables, files), files)
        return of_device(device, int(inner[1]), count)
    return of_device(load(_require_device(rest, tables, files), files), count)


def node_size(device: Device) -> int:
    """Most GPUs that are linked directly (`node_fabric`), 1 where no link is known."""
    fabric = node_fabric(device)
    return fabric.gpus if fabric else 1


def node_fabric(device: Device) -> Fabric | None:
    """The links of the usual node of a device: of the first machine of `systems.toml` with it, else
    a mesh with one more GPU than a GPU has links. None where no link is known."""
    if (part := device.identity.partition) is not None:
        return partitions.fabric(part, device, node_fabric(load(part.gpu)))
    table = _usual(device)
    if table is not None:
        return table.fabric(device)
    links, per_link = device.facts.find("xgmi_links"), device.facts.find("xgmi_per_link_dir")
    if links is None or per_link is None:
        return None
    return Fabric("mesh", int(links.number) + 1, per_link.to("B/s").number)


def figures(selector: str, files: Files = ()) -> Mapping[str, Quantity]:
    """What is known of a machine of `systems.toml`: `gpus`, `fabric.bandwidth`, `network.nics` …
    with source and status. Raises UnknownName."""
    if selector not in _packaged_systems():
        raise UnknownName("system", selector, _packaged_systems())
    table, bandwidths = _packaged_systems()[selector], {}
    device = load(table.device, files)
    for field in ("fabric.bandwidth", "fabric.inner"):
        if field == "fabric.bandwidth" or table.topology == "packages":
            bandwidths[field] = table.link(field, device)
    return {**table.figures, **bandwidths}


def names() -> Mapping[str, SystemTable]:
    """The machines of `systems.toml` by name."""
    return _packaged_systems()


def _of_table(table: SystemTable, files: Files, nodes: int = 0) -> System:
    nodes = nodes or table.nodes
    device = load(table.device, files)
    network = table.network()
    if nodes > 1 and network is None:
        raise MissingFact(f"{table.key}: network is missing: {nodes} nodes need links")
    name = table.name if nodes == table.nodes else f"{nodes // table.nodes}x {table.name}"
    return _check_size(
        System(name, device, table.gpus * nodes, nodes, table.fabric(device), network)
    )


def of_device(device: Device, gpus: int, nodes: int = 1) -> System:
    """The machine of `nodes` nodes of `gpus` GPUs. Raises as `system`."""
    most = node_size(device)
    if not 1 <= gpus <= most:
        count = f"{nodes}x{gpus}" if nodes > 1 else f"{gpus}"
        hint = f"several nodes: {-(-gpus // most)}x{most}x{device.id}"
        if most == 1:
            hint = f"the links between {device.id} are not known: name them in a --system-file"
        raise UsageError(f"{count}x{device.id}: a node has 1 to {most} GPUs, not {gpus}", hint=hint)
    network = _network(device)
    if nodes > 1 and network is None:
        raise MissingFact(
            f"{nodes}x{gpus}x{device.id}: no network between nodes of {device.id} is known",
            hint="a --system-file with network.nics and network.bandwidth",
        )
    name = f"{nodes}x {gpus}x {device.name}" if nodes > 1 else f"{gpus}x {device.name}"
    return _check_size(System(name, device, gpus * nodes, nodes, node_fabric(device), network))


def _network(device: Device) -> Network | None:
    part = device.identity.partition
    table = _usual(load(part.gpu) if part else device)
    network = table.network() if table else None
    return partitions.network(part, network) if part else network


def _check_size(machine: System) -> System:
    if machine.nodes < 1 or not 1 <= machine.gpus <= _MOST:
        raise UsageError(f"{machine.name}: {machine.gpus:,} GPUs, not 1 to {_MOST:,}")
    return machine


def _usual(device: Device) -> SystemTable | None:
    """The first machine of `systems.toml` with a device: its usual node."""
    return next(
        (table for table in _packaged_systems().values() if table.device == device.id), None
    )


def _is_device(name: str, files: Files) -> bool:
    try:
        load(name, files)
    except UnknownName:
        return False
    return True


def _require_device(name: str, tables: Mapping[str, SystemTable], files: Files) -> str:
    """`name` if it is a device. Raises UnknownName with the nearest devices and systems."""
    if _is_device(name, files):
        return name
    from wavecast.arch.reader import catalog

    raise UnknownName("system or device", name, (*tables, *catalog()))


@cache
def _packaged_systems() -> Mapping[str, SystemTable]:
    return read(Path(__file__).with_name("systems.toml"), packaged=True)


def _tables(system_files: Files) -> Mapping[str, SystemTable]:
    tables = dict(_packaged_systems())
    for path in system_files:
        tables |= read(Path(path))
    return tables


__all__ = ["System", "figures", "names", "node_fabric", "node_size", "of_device", "system"]
