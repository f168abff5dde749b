"""Facts of devices: a list, side by side, their sources, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from wavecast.arch import STATUSES, Alternative, Device, Quantity, Resolution, citations
from wavecast.arch.fields import fields
from wavecast.documents.arch import AlternativeFactJson, ArchDocument, DeviceJson, FactJson
from wavecast.json_objects import values

MARKS: Final = {"conflict": "≠", "derived": "=", "guessed": "?", "secondary": "°", "override": "!"}
"""The mark of a value that is neither published nor measured, by status."""

MISSING: Final = "—"
_LEAST_WIDTH: Final = 100
"""Columns where no terminal shows the facts; many devices have more."""


def overview(devices: Sequence[Device], console: Console) -> None:
    """Print a row per device."""
    _widen(console, 0)
    console.print(_overview(devices))


def render(
    devices: Sequence[Device], names: Sequence[str], console: Console, *, sources: bool = False
) -> None:
    """Print facts side by side, and the meaning of marks; with `sources` also origins."""
    _widen(console, len(devices))
    console.print(_comparison(devices, names))
    _print_legend(console, devices, names)
    if sources:
        _print_sources(console, devices, names)


def _widen(console: Console, columns: int) -> None:
    """Where no terminal shows the facts: as wide as `columns` devices need."""
    if not console.is_terminal:
        console.width = max(console.width, _LEAST_WIDTH, 44 + 16 * columns)


def _fact(device: Device, name: str) -> Quantity | None:
    return device.quantity(name) if name in device.fields() else None


def _number(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}" if value < 1e6 else f"{value:.0f}"
    return str(value)


def _cell(fact: Quantity | None, unit: str) -> str:
    """A value with its unit where that is not the row's, and the mark of its status."""
    if fact is None:
        return ""
    if fact.value is None:
        return MISSING
    own_unit = f" {fact.unit}" if fact.unit != unit else ""
    mark = MARKS.get(fact.status, "")
    return f"{_number(fact.value)}{own_unit}{' ' + mark if mark else ''}"


def _row_unit(facts: Iterable[Quantity | None]) -> str:
    return next((fact.unit for fact in facts if fact is not None), "")


def _table(**options: Any) -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, **options)


def _overview(devices: Sequence[Device]) -> Table:
    """One row per device: what one compares first."""
    table = _table()
    table.add_column("id", style="bold", no_wrap=True)
    table.add_column("name", overflow="fold")
    table.add_column("target", no_wrap=True)
    for heading in ("CUs", "MHz", "GB/s", "bf16 TF", "fp8 TF"):
        table.add_column(heading, justify="right", no_wrap=True)
    for device in devices:
        bandwidth = device.peak_bandwidth()
        table.add_row(
            device.id,
            device.name,
            device.target,
            _cell(_fact(device, "cu"), "CU").removesuffix(" WGP").removesuffix(" SM"),
            _cell(_fact(device, "peak_clock"), "MHz"),
            MISSING if bandwidth is None else _cell(bandwidth.to("GB/s"), "GB/s"),
            *(_rate(device, dtype) for dtype in ("bf16", "fp8")),
        )
    marks = ", ".join(f"{mark} {status}" for status, mark in MARKS.items())
    table.caption = f"{marks}, {MISSING} not known; CUs are WGPs on gfx1250 and SMs on NVIDIA"
    table.caption_justify = "left"
    return table


def _rate(device: Device, dtype: str) -> str:
    rate = device.peak_flops(dtype)
    if rate is not None:
        return _cell(rate.to("TFLOPS"), "TFLOPS")
    return MISSING if f"ops_clk_cu_mat_{dtype}" in device.fields() else ""


def _comparison(devices: Sequence[Device], names: Sequence[str]) -> Table:
    """One row per field, one column per device; the meaning of a field where there is room."""
    table = _table()
    table.add_column("", style="bold", no_wrap=True)
    table.add_column("unit", style="dim", no_wrap=True)
    for device in devices:
        table.add_column(device.id, justify="right", overflow="fold")
    described = len(devices) == 1
    if described:
        table.add_column("", style="dim")
    for key in ("name", "target", "generation"):
        meaning = ("",) if described else ()
        table.add_row(key, "", *(getattr(device, key) for device in devices), *meaning)
    group = ""
    for name in names:
        field = fields()[name]
        if field.group != group:
            group = field.group
            table.add_section()
        facts = [_fact(device, name) for device in devices]
        unit = _row_unit(facts)
        meaning = (field.meaning,) if described else ()
        table.add_row(name, unit, *(_cell(fact, unit) for fact in facts), *meaning)
    return table


def _facts(devices: Iterable[Device], name: str) -> list[tuple[Device, Quantity]]:
    found = ((device, _fact(device, name)) for device in devices)
    return [(device, fact) for device, fact in found if fact is not None]


def _print_legend(console: Console, devices: Sequence[Device], names: Sequence[str]) -> None:
    """The marks that occur, and what they mean."""
    present = {fact.status for name in names for _, fact in _facts(devices, name)}
    for status, meaning in STATUSES.items():
        mark = MISSING if status == "missing" else MARKS.get(status)
        if mark and status in present:
            more = " by --sources" if status == "conflict" else ""
            console.print(f"{mark} {status}: {meaning}{more}", style="dim")


def _other(other: Alternative, unit: str) -> str:
    details = ", ".join(filter(None, (*other.source, other.note)))
    return f"{_number(other.value)} {unit} ({details})"


def _origin(fact: Quantity) -> str:
    """Status, citation keys, note, and the other published values of a fact, in one line."""
    text = f"{fact.status}, {fact.source}"
    if fact.note:
        text += f": {fact.note}"
    if fact.alternatives:
        text += "; also " + ", ".join(_other(other, fact.unit) for other in fact.alternatives)
    return text


def _print_sources(console: Console, devices: Sequence[Device], names: Sequence[str]) -> None:
    """Origin of every value, devices that agree together, then the citations in full."""
    cited: set[str] = set()
    for name in names:
        console.print(f"\n{name}", style="bold")
        by_origin: dict[str, list[str]] = {}
        for device, fact in _facts(devices, name):
            by_origin.setdefault(_origin(fact), []).append(device.id)
            cited.update(fact.sources, *(other.source for other in fact.alternatives))
        for origin, ids in by_origin.items():
            who = f"{', '.join(ids)}: " if len(devices) > 1 else ""
            console.print(Padding(escape(who + origin), (0, 0, 0, 2)))
    console.print("\nsources", style="bold")
    known = citations()
    for key in sorted(cited & known.keys()):
        console.print(Padding(escape(f"{key}: {known[key]}"), (0, 0, 0, 2)))


def document(chosen: Sequence[Resolution], names: Sequence[str]) -> dict[str, Any]:
    """The same as JSON: identities, facts with origin, and the citations they use."""
    devices = [_device_document(item, names) for item in chosen]
    facts = [fact for device in devices for fact in device.fields.values()]
    used = {key for fact in facts for key in fact.sources}
    used |= {key for fact in facts for other in fact.alternatives for key in other.sources}
    known = citations()
    sources = {key: known[key] for key in sorted(used & known.keys())}
    return values(ArchDocument(devices=devices, sources=sources))


def _device_document(item: Resolution, names: Sequence[str]) -> DeviceJson:
    facts = {name: fact for name in names if (fact := _fact(item.device, name)) is not None}
    return DeviceJson.of(
        item.device,
        note=item.note,
        fields={
            name: FactJson.of(
                fact,
                alternatives=[
                    AlternativeFactJson.of(other, sources=list(other.source))
                    for other in fact.alternatives
                ],
            )
            for name, fact in facts.items()
        },
    )


__all__ = ["MARKS", "MISSING", "document", "overview", "render"]
