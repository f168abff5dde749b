"""Device files: TOML text to facts.

A device file has the identity of the device at its head (`id`, `name`, `vendor`, `target`,
`generation`, and optionally `family`, `chip_of`, `aliases`, `default_for_target`, `stands_in_for`)
and one
table per group of fields. A fact is a table of `value`, `unit`, `status`, `source` (one citation
key or a list), and optionally `note` and `alternatives`; one of status `missing` has no `value`.
Facts that all devices of a family share are in `families/<family>.toml`. A device with the chip of
another one says so (`chip_of`) and has that one's facts of the chip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wavecast.arch.quantity import Alternative, Quantity

ROOT = Path(__file__).parent
_OF_A_BOARD = ("memory", "power", "peaks", "measured")
"""Tables of facts that depend on the board, its clocks and its memory."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One of `count` devices of the GPU `gpu` in `mode`, whose memory is in `domains`
    (`wavecast.arch.partitions`)."""

    gpu: str
    mode: str
    domains: int
    count: int


@dataclass(frozen=True, slots=True)
class Identity:
    """Which device a file is about, and the names that select it.

    `target` is what LLVM calls the processor (`gfx942`), or `sm_90` on NVIDIA. `stands_in_for`
    names targets without a device file that have the same instructions and registers. `chip_of` is
    a device with the same chip on another board, `partition` says which part of a GPU a device is
    (None: all).
    """

    id: str
    name: str
    vendor: str
    target: str
    generation: str
    family: str = ""
    chip_of: str = ""
    aliases: tuple[str, ...] = ()
    default_for_target: bool = False
    stands_in_for: tuple[str, ...] = ()
    partition: Partition | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that selects this very device."""
        return (self.id, self.name, *self.aliases)


def _read(path: Path, *, head_only: bool = False) -> dict[str, Any]:
    import tomllib

    text = path.read_text(encoding="utf-8")
    if head_only:
        text = text.split("\n[", 1)[0]
    return tomllib.loads(text)


def _strings(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _identity(data: Mapping[str, Any]) -> Identity:
    fields = {key: data[key] for key in Identity.__dataclass_fields__ if key in data}
    for key in ("aliases", "stands_in_for"):
        fields[key] = tuple(fields.get(key, ()))
    return Identity(**fields)


def quantity(data: Mapping[str, Any]) -> Quantity:
    """One fact from its table."""
    return Quantity(
        value=data.get("value"),
        unit=data["unit"],
        status=data["status"],
        sources=_strings(data["source"]),
        note=data.get("note", ""),
        alternatives=tuple(
            Alternative(item["value"], _strings(item["source"]), item.get("note", ""))
            for item in data.get("alternatives", ())
        ),
    )


def _facts(data: Mapping[str, Any]) -> dict[str, Quantity]:
    return {
        name: quantity(fact)
        for table in data.values()
        if isinstance(table, dict)
        for name, fact in table.items()
    }


@cache
def _family(name: str) -> dict[str, Quantity]:
    return _facts(_read(ROOT / "families" / f"{name}.toml"))


@cache
def catalog() -> dict[str, Identity]:
    """The identity of every device by id. Reads the heads of the files only."""
    paths = sorted((ROOT / "devices").glob("*.toml"))
    return {path.stem: _identity(_read(path, head_only=True)) for path in paths}


@cache
def read_device(device_id: str) -> tuple[Identity, dict[str, Quantity]]:
    """Identity and facts of one device of the package, its family's and its chip's included."""
    data = _read(ROOT / "devices" / f"{device_id}.toml")
    identity = _identity(data)
    shared = _family(identity.family) if identity.family else {}
    chip = _chip(identity.chip_of) if identity.chip_of else {}
    return identity, {**shared, **chip, **_facts(data)}


@cache
def _chip(device_id: str) -> dict[str, Quantity]:
    """What two boards with one chip have in common: all but `_OF_A_BOARD`."""
    data = _read(ROOT / "devices" / f"{device_id}.toml")
    return _facts({name: table for name, table in data.items() if name not in _OF_A_BOARD})


@cache
def citations() -> dict[str, str]:
    """Citation key -> what it is, for every source of the package."""
    return _read(ROOT / "sources.toml")
