"""Every device file: complete facts, known fields, units, statuses, and sources."""

from __future__ import annotations

import tomllib

import pytest

from wavecast import arch
from wavecast.arch.fields import fields
from wavecast.arch.reader import ROOT, catalog, read_device
from wavecast.arch.units import convert, dimension
from wavecast.errors import MissingFact, UnknownName

IDS = sorted(catalog())


def test_the_devices() -> None:
    cdna = {"mi100", "mi210", "mi250x_gcd", "mi300a", "mi300x", "mi308x", "mi325x", "mi350x"}
    others = {"mi355x", "mi455x", "rx6800xt", "rx7900xtx", "strixhalo", "rx9070xt"}
    others |= {"w7900", "r9700", "rx7800xt", "rx7600", "rx9060xt"}
    others |= {"radeon780m", "radeon860m", "radeon890m"}
    nvidia = {"a100_80g_sxm", "h100_sxm", "h200", "b200", "gb200", "b300", "gb300"}
    assert set(IDS) == cdna | others | nvidia


@pytest.mark.parametrize("device_id", IDS)
def test_facts_are_within_the_bounds_of_their_fields(device_id: str) -> None:
    _, facts = read_device(device_id)
    for name, fact in facts.items():
        field = fields()[name]
        if fact.unit == "text" or fact.value is None or isinstance(fact.value, bool):
            continue
        same = dimension(fact.unit) == dimension(field.unit)
        value = convert(fact.number, fact.unit, field.unit) if same else fact.number
        assert field.why_refused(value) == "", (name, value)


def test_fields_of_numbers_have_bounds() -> None:
    for name, field in fields().items():
        if field.unit in ("text", "flag"):
            assert field.least is None
            assert field.why_refused(1.0).startswith("must be")
        else:
            assert field.least is not None
            assert field.most is not None
            assert 0 <= field.least < field.most, name
            assert not (field.whole and field.why_refused(field.least))


@pytest.mark.parametrize("device_id", IDS)
def test_facts_are_complete(device_id: str) -> None:
    _, facts = read_device(device_id)
    cited = arch.citations()
    for name, fact in facts.items():
        assert fields()[name].accepts(fact.unit), (name, fact.unit)
        assert fact.status in arch.STATUSES
        assert fact.status != "override"
        assert fact.sources, name
        assert set(fact.sources) <= cited.keys(), (name, fact.sources)
        assert (fact.value is None) == (fact.status == "missing"), name
        for other in fact.alternatives:
            assert set(other.source) <= cited.keys()
            assert other.value != fact.value


@pytest.mark.parametrize("device_id", IDS)
def test_conflicts_keep_both_values_and_the_reason(device_id: str) -> None:
    for name, fact in read_device(device_id)[1].items():
        if fact.status == "conflict":
            assert fact.alternatives, name
        if fact.alternatives:
            assert fact.note or all(other.note for other in fact.alternatives), name


@pytest.mark.parametrize("folder", ["devices", "families"])
def test_facts_stand_in_the_table_of_their_group(folder: str) -> None:
    tables = [tomllib.loads(path.read_text()) for path in (ROOT / folder).glob("*.toml")]
    assert tables
    for group, table in (item for data in tables for item in data.items()):
        if isinstance(table, dict):
            assert {fields()[name].group for name in table} == {group}


@pytest.mark.parametrize("device_id", IDS)
def test_the_head_read_alone_is_the_head(device_id: str) -> None:
    """`catalog` reads the text before the first table only."""
    data = tomllib.loads((ROOT / "devices" / f"{device_id}.toml").read_text(encoding="utf-8"))
    head = {key for key, value in data.items() if not isinstance(value, dict)}
    identity = catalog()[device_id]
    assert identity == read_device(device_id)[0]
    assert identity.id == device_id
    assert head <= set(identity.__dataclass_fields__)


OF_OVERLAYS = {"meas_launch"}
"""Fields that only overlays have: those that `wavecast profile --calibrate` writes."""


def test_every_field_and_source_is_used() -> None:
    facts = [read_device(device_id)[1] for device_id in IDS]
    assert {name for device in facts for name in device} == fields().keys() - OF_OVERLAYS
    by_target = (ROOT / "capabilities.toml", ROOT / "lds_phases.toml", ROOT / "systems.toml")
    derived = (ROOT / "partitions.py",)
    libraries = ROOT.parent.glob("perfmodel/ops/*/*.toml")
    tables = (*(ROOT / "costs").glob("*.toml"), *by_target, *derived, *libraries)
    costs = "".join(path.read_text() for path in tables)
    used = {
        key
        for device in (*facts, arch.load("mi300x-cpx").facts.mapping)
        for fact in device.values()
        for key in (*fact.sources, *(key for other in fact.alternatives for key in other.source))
    }
    unused = {key for key in arch.citations().keys() - used if f'"{key}"' not in costs}
    assert not unused


def test_missing_facts_are_errors_not_values() -> None:
    device = arch.load("mi308x")
    assert device.quantity("peak_clock").value is None
    assert device.get("peak_clock") is None
    assert device.get("peak_clock", 7) == 7
    with pytest.raises(MissingFact, match="no value of peak_clock is known for mi308x"):
        device.value("peak_clock")
    with pytest.raises(MissingFact):
        _ = device.clock_hz
    with pytest.raises(MissingFact, match="mi300x has no field tmem"):
        arch.load("mi300x").quantity("tmem")


def test_unknown_field_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="peak_clock"):
        arch.load("mi300x").get("peak_clok")


def test_basic_properties() -> None:
    device = arch.load("mi300x")
    assert (device.wave_lanes, device.compute_units, device.simds_per_cu) == (64, 304, 4)
    assert device.clock_hz.value == 2.1e9
    assert device.clock_hz.unit == "Hz"
    assert (device.vendor, device.target, device.generation) == ("amd", "gfx942", "cdna3")
    assert "mem_bw" in device.fields()
