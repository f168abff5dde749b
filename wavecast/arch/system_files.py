"""Systems as TOML tables: those of the package (`systems.toml`) and of a user (`--system-file`).

    [my-cluster]
    device = "mi300x"          # of the package or of --arch-file
    gpus = 8                   # of a node
    nodes = 4                  # 1 where missing

    [my-cluster.fabric]        # needed for two GPUs of a node or more
    topology = "mesh"          # a key of links.TOPOLOGIES
    bandwidth = 64             # GB/s in one direction; where missing, the fact of the device

    [my-cluster.network]       # needed for two nodes or more
    nics = 8                   # of a node
    bandwidth = { value = 50, unit = "GB/s", source = "data sheet" }   # of a NIC, one direction

Figures are numbers in the unit of the field, or tables of `value`, `unit`, `status`, `source` and
`note`. A figure that is neither here nor a fact of the device is an error that names it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wavecast import files
from wavecast.arch.device import Device
from wavecast.arch.links import TOPOLOGIES, Fabric, Network, pcie_bandwidth
from wavecast.arch.quantity import STATUSES, Quantity
from wavecast.arch.units import alternatives, convert, dimension
from wavecast.errors import MissingFact, UnknownName, UsageError

_SYSTEM: Final = ("name", "device", "gpus", "nodes", "fabric", "network")
_FABRIC: Final = ("topology", "bandwidth", "inner", "dies", "reduces")
_NETWORK: Final = ("nics", "bandwidth", "rails")
_FIGURE: Final = ("value", "unit", "status", "source", "note")
_MOST: Final = 1 << 20
_LARGEST: Final = 1e30
_FASTEST: Final = 1e6
"""GB/s of the fastest link that is accepted."""


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table of a file: `device` by name, and its figures by field (`network.nics`).

    A figure that the file gives without a status is `override` with the file as source.
    """

    key: str
    name: str
    device: str
    topology: str
    reduces: bool
    rails: bool
    figures: Mapping[str, Quantity]

    @property
    def gpus(self) -> int:
        """GPUs of a node."""
        return int(self.figures["gpus"].number)

    @property
    def nodes(self) -> int:
        """Nodes of the system."""
        return int(self.figures["nodes"].number) if "nodes" in self.figures else 1

    def fabric(self, device: Device) -> Fabric | None:
        """The links of a node of `device`, None for a single GPU.

        Raises MissingFact that names a figure which neither the file nor the device has.
        """
        if not self.topology:
            return None
        inner, dies = 0.0, 1
        if self.topology == "packages":
            inner = self.link("fabric.inner", device).number
            dies = int(self.link("fabric.dies", device).number)
        bandwidth = self.link("fabric.bandwidth", device).number
        return Fabric(self.topology, self.gpus, bandwidth, inner, dies, self.reduces)

    def network(self) -> Network | None:
        """The links between nodes, None where the file has none."""
        nics = self.figures.get("network.nics")
        if nics is None:
            return None
        bandwidth = self.figures["network.bandwidth"].to("B/s").number
        return Network(int(nics.number), bandwidth, self.gpus, self.rails)

    def link(self, field: str, device: Device) -> Quantity:
        """A figure of the fabric in SI units, from the file or the device. Raises MissingFact."""
        quantity = self.figures.get(field) or _of_device(self.topology, field, device)
        if quantity is None:
            raise MissingFact(
                f"{self.key}: {field} is missing, and {device.id} has no such fact",
                hint="a --system-file with it",
            )
        return quantity.to("B/s") if dimension(quantity.unit) == "bandwidth" else quantity


def _of_device(topology: str, field: str, device: Device) -> Quantity | None:
    """What a device says about a link, as a fact in one direction."""
    match topology, field:
        case "mesh", "fabric.bandwidth":
            return device.facts.find("xgmi_per_link_dir")
        case "packages", "fabric.inner":
            return device.facts.find("gcd_to_gcd_dir")
        case "switch", "fabric.bandwidth":
            both = device.facts.find("nvlink_total_bidir")
            return both and Quantity(
                both.number / 2, both.unit, "derived", both.sources, "half of both directions"
            )
        case "pcie", "fabric.bandwidth":
            return _slot(device)
        case _:
            return None


def _slot(device: Device) -> Quantity | None:
    fact = device.facts.find("pcie")
    if fact is None or not isinstance(fact.value, str):
        return None
    try:
        bandwidth = pcie_bandwidth(fact.value)
    except ValueError:
        return None
    return Quantity(bandwidth / 1e9, "GB/s", "derived", fact.sources, f"PCIe {fact.value}")


def read(path: Path, *, packaged: bool = False) -> dict[str, SystemTable]:
    """The systems of a file by name in lower case.

    Raises InputError for a file that cannot be read, UsageError that names the first field that is
    wrong, unknown or missing.
    """
    try:
        data = files.parse_toml(files.read_text(path))
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    if not data:
        raise UsageError(f"{path} has no system", hint="a table such as [my-cluster]")
    systems: dict[str, SystemTable] = {}
    for key, table in data.items():
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {key} is not a table", hint="start with [my-cluster]")
        systems[key.lower()] = _Reader(path, key, packaged).system(table)
    return systems


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks one table of a file; every error names the file and the field."""

    path: Path
    key: str
    packaged: bool

    def system(self, table: Mapping[str, Any]) -> SystemTable:
        self._check_names(table, _SYSTEM, "")
        device = self._text(table, "device")
        figures = {"gpus": self._count(table, "gpus")}
        if "nodes" in table:
            figures["nodes"] = self._count(table, "nodes")
        gpus, nodes = figures["gpus"].number, figures["nodes"].number if "nodes" in table else 1
        topology, reduces, rails = "", False, True
        if "fabric" in table:
            topology, links = self._fabric(self._table(table, "fabric"), gpus)
            reduces = self._flag(table["fabric"], "reduces", "fabric.", default=False)
            figures |= links
        elif gpus > 1:
            raise self._wrong("fabric", f"is missing: {gpus:g} GPUs of a node need links")
        if "network" in table:
            rails, links = self._network(self._table(table, "network"))
            figures |= links
        elif nodes > 1:
            raise self._wrong("network", f"is missing: {nodes:g} nodes need links")
        name = self._text(table, "name") if "name" in table else self.key
        return SystemTable(self.key, name, device, topology, reduces, rails, figures)

    def _fabric(self, table: Mapping[str, Any], gpus: float) -> tuple[str, dict[str, Quantity]]:
        self._check_names(table, _FABRIC, "fabric.")
        topology = self._text(table, "topology", "fabric.")
        if topology not in TOPOLOGIES:
            raise UnknownName(f"{self.path}: {self.key}: fabric.topology", topology, TOPOLOGIES)
        figures = {
            f"fabric.{name}": self._bandwidth(table, name, "fabric.")
            for name in ("bandwidth", "inner")
            if name in table
        }
        if topology == "packages":
            figures["fabric.dies"] = self._count(table, "dies", "fabric.")
            if gpus % figures["fabric.dies"].number:
                raise self._wrong("fabric.dies", f"does not divide {gpus:g} GPUs")
        for name in ("inner", "dies"):
            if name in table and topology != "packages":
                raise self._wrong(f"fabric.{name}", "is for topology 'packages' only")
        return topology, figures

    def _network(self, table: Mapping[str, Any]) -> tuple[bool, dict[str, Quantity]]:
        self._check_names(table, _NETWORK, "network.")
        return self._flag(table, "rails", "network.", default=True), {
            "network.nics": self._count(table, "nics", "network."),
            "network.bandwidth": self._bandwidth(table, "bandwidth", "network."),
        }

    # --- values --------------------------------------------------------------------------------

    def _count(self, table: Mapping[str, Any], name: str, prefix: str = "") -> Quantity:
        quantity = self._figure(table, name, prefix, name)
        value = quantity.value
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
            raise self._wrong(prefix + name, f"must be 1 to {_MOST:,}, not {value!r}")
        return quantity

    def _bandwidth(self, table: Mapping[str, Any], name: str, prefix: str) -> Quantity:
        quantity = self._figure(table, name, prefix, "GB/s")
        if dimension(quantity.unit) != "bandwidth":
            hint = "one of " + ", ".join(alternatives("GB/s"))
            raise self._wrong(prefix + name, f"has unit {quantity.unit!r}", hint)
        value = quantity.value
        number = math.nan
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            # An integer can be larger than any float.
            number = convert(float(min(value, _LARGEST)), quantity.unit, "GB/s")
        if not 0 < number <= _FASTEST:
            raise self._wrong(prefix + name, f"must be a positive number of GB/s, not {value!r}")
        return quantity

    def _figure(self, table: Mapping[str, Any], name: str, prefix: str, unit: str) -> Quantity:
        if name not in table:
            raise self._wrong(prefix + name, "is missing")
        raw = table[name]
        entry = raw if isinstance(raw, dict) else {"value": raw}
        self._check_names(entry, _FIGURE, f"{prefix}{name}.")
        if "value" not in entry:
            raise self._wrong(f"{prefix}{name}.value", "is missing")
        texts = {
            key: self._text(entry, key, f"{prefix}{name}.")
            for key in ("unit", "status", "note")
            if key in entry
        }
        status = texts.get("status", "override")
        if status not in STATUSES:
            raise UnknownName(f"{self.path}: {prefix}{name}.status", status, STATUSES)
        source = entry.get("source", [])
        source = [source] if isinstance(source, str) else source
        if not isinstance(source, list) or not all(isinstance(key, str) for key in source):
            raise self._wrong(f"{prefix}{name}.source", f"must be text, not {source!r}")
        sources = tuple(source)
        if not self.packaged:
            sources = (self.path.name, *sources)
        note = texts.get("note", "")
        return Quantity(entry["value"], texts.get("unit", unit), status, sources, note)

    def _text(self, table: Mapping[str, Any], name: str, prefix: str = "") -> str:
        if name not in table:
            raise self._wrong(prefix + name, "is missing")
        value = table[name]
        if not isinstance(value, str) or not value:
            raise self._wrong(prefix + name, f"must be text, not {value!r}")
        return value

    def _flag(self, table: Mapping[str, Any], name: str, prefix: str, *, default: bool) -> bool:
        value = table.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(prefix + name, f"must be true or false, not {value!r}")
        return value

    def _table(self, table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        value = table[name]
        if not isinstance(value, dict):
            raise self._wrong(name, f"must be a table, not {value!r}")
        return value

    def _check_names(self, table: Mapping[str, Any], names: tuple[str, ...], prefix: str) -> None:
        for name in table:
            if name not in names:
                where = f"field in {self.path}: {self.key}:"
                fields = [prefix + field for field in names]
                raise UnknownName(where, prefix + name, fields)

    def _wrong(self, field: str, why: str, hint: str = "") -> UsageError:
        return UsageError(f"{self.path}: {self.key}: {field} {why}", hint=hint)


__all__ = ["SystemTable", "read"]
