"""Capabilities of targets: the table is complete, and patterns name what they should."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.arch import capability as module
from wavecast.arch import pattern_table
from wavecast.errors import UnknownName


def test_every_target_of_a_device_has_typed_capabilities() -> None:
    for device in arch.devices():
        found = device.capabilities
        assert found == arch.capabilities(device.target)
        assert found.matrix_unit in ("mfma", "wmma", "mma", "none")
        assert isinstance(found.matrix_fp8, tuple)
        assert found.registers_per_lane >= 255


def test_the_most_specific_pattern_holds() -> None:
    row = {"default": 0, "values": {"gfx9*": 1, "gfx950": 2, "gfx95*": 3}}
    names = ("gfx950", "gfx951", "gfx90a", "sm_90")
    assert [pattern_table.value(row, name) for name in names] == [2, 3, 1, 0]


@pytest.mark.parametrize(
    ("target", "formats"),
    [
        ("gfx90a", ()),
        ("gfx942", ("float8_e4m3fnuz", "float8_e5m2fnuz")),
        ("gfx950", ("float8_e4m3fn", "float8_e5m2")),
        ("gfx1100", ()),
        ("gfx1201", ("float8_e4m3fn", "float8_e5m2")),
        ("sm_80", ()),
        ("sm_90", ("float8_e4m3fn", "float8_e5m2")),
    ],
)
def test_fp8_formats_of_the_matrix_unit(target: str, formats: tuple[str, ...]) -> None:
    assert arch.capabilities(target).matrix_fp8 == formats


def test_an_incomplete_table_is_refused(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    text = module._FILE.read_text(encoding="utf-8")
    for wrong in (
        text.replace('status = "compiler"', 'status = "heard"', 1),
        text.replace('source = "llvm"', 'source = "nobody"', 1),
        text.replace("[direct_to_lds]", "[direct_to_mars]").replace(
            "[direct_to_lds.values]", "[direct_to_mars.values]"
        ),
    ):
        path = folder / "capabilities.toml"
        path.write_text(wrong, encoding="utf-8")
        monkeypatch.setattr(module, "_FILE", path)
        with pytest.raises(ValueError, match=r"capabilities\.toml"):
            module.table.__wrapped__()


@pytest.mark.parametrize(
    ("target", "version"), [("sm_80", 2), ("sm_90", 3), ("sm_100", 5), ("sm_120", 2), ("gfx942", 0)]
)
def test_generation_of_the_tensor_cores(target: str, version: int) -> None:
    assert arch.capabilities(target).mma_version == version


def test_the_vendor_of_a_target() -> None:
    assert [arch.vendor(target) for target in ("gfx942", "sm_90")] == ["amd", "nvidia"]
    with pytest.raises(UnknownName, match="target"):
        arch.vendor("x86_64")
