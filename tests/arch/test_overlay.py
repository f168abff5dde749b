"""Files that change devices or add them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast import arch
from wavecast.errors import InputError, WavecastError


@pytest.fixture
def write(tmp_path: Path):
    def _write(text: str, name: str = "chip.toml") -> tuple[Path]:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return (path,)

    return _write


@pytest.mark.parametrize(
    "text",
    [
        'device = "mi300x"\npeak_clock = 1200\n',
        'device = "mi300x"\n[fields]\npeak_clock = 1200\n',
        'device = "AMD Instinct MI300X"\n[fields]\npeak_clock = { value = 1.2, unit = "GHz" }\n',
        'device = "mi300x"\n[compute.peak_clock]\nvalue = 1200\nunit = "MHz"\n',
        'device = "mi300x"\n[fields.peak_clock]\nvalue = 1200\nsource = "what-if"\n'
        'status = "guessed"\n',
    ],
)
def test_forms_of_an_override(write, text: str) -> None:
    device = arch.load("mi300x", write(text))
    clock = device.quantity("peak_clock")
    assert (clock.value, clock.unit, clock.status) == (pytest.approx(1200), "MHz", "override")
    assert clock.sources[0] == "chip.toml"
    assert clock.alternatives[0].value == 2100
    assert arch.load("mi300x").value("peak_clock") == 2100


def test_peaks_follow_a_clock(write) -> None:
    device = arch.load("gfx942", write('device = "mi300x"\npeak_clock = 1050\n'))
    peak = device.peak_flops("bf16")
    assert peak is not None
    assert peak.value == pytest.approx(304 * 2048 * 1050e6)
    assert peak.status == "derived"
    assert device.quantity("peak_mat_bf16").alternatives[0].value == 1307.4
    assert device.sustained_flops("bf16") is None
    assert device.sustained_bandwidth() is not None


def test_peaks_without_operations_per_clock_are_scaled(write) -> None:
    device = arch.load("h100", write('device = "h100"\npeak_clock = 990\n'))
    peak = device.peak_flops("fp64")
    assert peak is not None
    assert peak.value == pytest.approx(67e12 / 2)


def test_a_peak_that_is_published_for_a_lower_clock_follows_from_its_operations(write) -> None:
    device = arch.load("h100", write('device = "h100"\npeak_clock = 990\n'))
    peak = device.peak_flops("bf16")
    assert peak is not None
    assert peak.value == pytest.approx(132 * 4096 * 990e6)


def test_a_peak_that_is_given_stays(write) -> None:
    text = 'device = "mi300x"\npeak_clock = 1050\npeak_mat_bf16 = { value = 1, unit = "PFLOPS" }\n'
    peak = arch.load("mi300x", write(text)).peak_flops("bf16")
    assert peak is not None
    assert peak.value == pytest.approx(1e15)


def test_a_missing_fact_can_be_given(write) -> None:
    text = 'device = "mi308x"\npeak_clock = 1420\nmem_bw = { value = 4, unit = "TB/s" }\n'
    device = arch.load("mi308x", write(text))
    peak, bandwidth = device.peak_flops("fp8"), device.peak_bandwidth()
    assert peak is not None
    assert bandwidth is not None
    assert peak.value == pytest.approx(80 * 4096 * 1420e6)
    assert bandwidth.value == pytest.approx(4e12)


def test_limits_follow_a_what_if(write) -> None:
    text = 'device = "mi300x"\n[lds]\nlds_per_cu = 128\nlds_max_per_workgroup = 131072\n'
    limits = arch.load("mi300x", write(text)).limits()
    assert (limits.lds_bytes, limits.lds_max_per_workgroup) == (131072, 131072)


def test_a_new_device(write) -> None:
    text = 'id = "mi999x"\nbase = "mi355x"\nname = "AMD Instinct MI999X"\naliases = ["big one"]\n'
    files = write(text + "[fields]\ncu = 320\n")
    for selector in ("mi999x", "Big One", "AMD Instinct MI999X"):
        device = arch.load(selector, files)
        assert (device.id, device.target, device.compute_units) == ("mi999x", "gfx950", 320)
        assert device.limits().lds_bytes == 163840
        assert device.cost("trans").issue_cycles == 8
    assert len(arch.devices(files)) == len(arch.devices()) + 1
    assert arch.load("gfx950", files).id == "mi355x"


def test_files_apply_in_order(write) -> None:
    first = write('id = "mi999x"\nbase = "mi355x"\n', "a.toml")
    second = write('device = "mi999x"\npeak_clock = 3000\n', "b.toml")
    third = write('device = "mi999x"\npeak_clock = 1500\n', "c.toml")
    device = arch.load("mi999x", (*first, *second, *third))
    assert device.value("peak_clock") == 1500
    assert device.quantity("peak_clock").alternatives[0].value == 2400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('device = "mi300x"\npeak_clok = 1\n', "unknown field 'peak_clok'.*peak_clock"),
        ('device = "mi300x"\n[fields]\nlds_bank = 1\n', "unknown field 'lds_bank'.*lds_banks"),
        ('device = "mi300x"\n[feilds]\ncu = 1\n', "unknown field 'feilds'.*fields"),
        ('device = "mi300x"\npeak_clock = "fast"\n', "peak_clock must be a number, not 'fast'"),
        ('device = "mi300x"\npeak_clock = true\n', "peak_clock must be a number"),
        ('device = "mi300x"\npeak_clock = -1\n', "must be from 1 to 100,000 MHz, not -1"),
        ('device = "mi300x"\npeak_clock = nan\n', "must be from 1 to 100,000 MHz, not nan"),
        ('device = "mi300x"\nmem_type = 3\n', "mem_type must be text"),
        ('device = "mi355x"\nno_xf32 = 1\n', "no_xf32 must be true or false"),
        (
            'device = "mi300x"\npeak_clock = { value = 1, unit = "GB" }\n',
            "'GB' is not a unit of peak_clock.*MHz",
        ),
        ('device = "mi300x"\npeak_clock = { value = 1, units = "MHz" }\n', "no 'units'"),
        ('device = "mi300x"\npeak_clock = { unit = "MHz" }\n', "peak_clock has no value"),
        ('device = "mi300x"\ncu = { value = 1, status = "sure" }\n', "'sure' is not a status"),
        ('device = "mi300x"\ncu = { value = 1, status = [] }\n', "is not a status"),
        ('device = "mi300x"\ncu = { value = 1, note = 3 }\n', "note of cu must be text"),
        ('device = "mi30x"\ncu = 1\n', "unknown device 'mi30x'.*mi300"),
        ("device = 3\n", "device must be text"),
        ("cu = 3\n", "names no device"),
        ('device = "mi300x"\nid = "x"\n', "give one"),
        ('device = "mi300x"\nname = "x"\n', "name belongs to a new device"),
        ('id = "mi300x"\n', "there is a device mi300x already"),
        ('id = "x"\n', "a new device needs vendor, target, generation"),
        ('id = "x"\nbase = "mi355"\n', "base.*mi355.*mi355x"),
        ('id = "x"\nbase = "mi355x"\naliases = "y"\n', "aliases must be a list"),
        ("device = \n", "is not TOML"),
    ],
)
def test_mistakes_are_one_line_with_the_file(write, text: str, message: str) -> None:
    with pytest.raises(WavecastError, match=message) as caught:
        arch.load("mi300x", write(text))
    line = str(caught.value)
    assert "\n" not in line
    assert "chip.toml" in line
    assert caught.value.exit_code == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file: .*none\.toml"):
        arch.load("mi300x", (tmp_path / "none.toml",))
