"""The table of decisions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.conftest import Captured
from wavecast.lab.axes import AxisKind, applicable, axes, read
from wavecast.lab.edits import EDITS
from wavecast.lab.setting import Setting, compile_with_setting


def test_every_axis_has_a_source_and_ir_axes_have_their_change() -> None:
    for axis in axes().values():
        assert axis.source, axis.name
        assert axis.what, axis.name
        assert (axis.kind is AxisKind.IR) == (axis.name in EDITS)


@pytest.mark.parametrize(
    "text",
    [
        '[a]\nkind = "option"\nvalues = []\nwhat = ""\nsource = ""',
        '[a]\nkind = "other"\nvalues = [1]\nwhat = ""\nsource = ""',
        '[a]\nkind = "option"\nvalues = [1]\nwhat = ""',
        '[a]\nkind = "option"\nvalues = [1]\nwhat = ""\nsource = ""\nneeds = { speed = [1] }',
    ],
)
def test_a_broken_row_is_an_error(text: str, tmp_path) -> None:
    path = tmp_path / "axes.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"axes.toml|AxisKind"):
        read(path)


def test_applicable_follows_the_target_and_the_code(captured: Captured) -> None:
    code = captured.launch.code
    names = {axis.name for axis, _ in applicable(code)}
    assert {"num_stages", "amdgpu-sched-strategy", "disable-post-ra"} <= names
    assert "iglp_opt" not in names, "the kernel has no matrix instructions"
    assert "wgp_cu_mode" not in names, "gfx942 has no WGP mode"
    values = [value for axis, value in applicable(code) if axis.name == "num_stages"]
    assert code.options["num_stages"] not in values
    older = replace(code, options={k: v for k, v in code.options.items() if k != "llvm_fn_attrs"})
    assert not [a for a, _ in applicable(older) if a.kind is AxisKind.ATTRIBUTE]


def test_a_setting_names_options_and_environment(captured: Captured) -> None:
    setting = Setting.of({"disable-lsr": True, "amdgpu-sched-strategy": "max-ilp", "num_stages": 1})
    assert [name for name, _ in setting.items] == [
        "num_stages", "amdgpu-sched-strategy", "disable-lsr",
    ]  # fmt: skip
    assert setting.options(captured.launch.code) == {
        "num_stages": 1, "llvm_fn_attrs": "amdgpu-sched-strategy=max-ilp",
    }  # fmt: skip
    assert setting.environment == {"DISABLE_LLVM_OPT": "disable-lsr"}
    assert setting.without("num_stages").options(captured.launch.code).keys() == {"llvm_fn_attrs"}


def test_the_program_s_own_setting_gives_its_own_code(captured: Captured) -> None:
    """The figures of alternatives are compared with the code that was captured."""
    device = captured.subject.devices[0]
    same = compile_with_setting(captured.launch.code, Setting(), device)
    assert same.assembly == captured.launch.code.assembly
    other = compile_with_setting(
        captured.launch.code, Setting.of({"AMDGCN_USE_BUFFER_OPS": "0"}), device
    )
    assert "buffer_load" in same.assembly
    assert "buffer_load" not in other.assembly
