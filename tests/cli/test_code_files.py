"""`wavecast explain` of code files: the GPU, the launch and the kernels they name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wavecast import arch
from wavecast.cli.main import run
from wavecast.compile import stated_target

DATA = Path(__file__).parents[1] / "compile" / "data"
KERNEL = """
	.amdgcn_target "amdgcn-amd-amdhsa--{target}"
	.type	{name},@function
{name}:
	s_endpgm
	.amdhsa_kernel {name}
		.amdhsa_next_free_vgpr 4
		.amdhsa_next_free_sgpr 8
		{extra}
	.end_amdhsa_kernel
"""

Capture = pytest.CaptureFixture[str]


def assembly(folder: Path, target: str, extra: str = "") -> Path:
    path = folder / f"{target}.s"
    path.write_text(KERNEL.format(target=target, name="only_kernel", extra=extra))
    return path


def explained(capsys: Capture, *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        run(["explain", *arguments])
    assert end.value.code == 0
    return capsys.readouterr().out


def test_a_file_is_explained_for_the_target_it_names(tmp_path: Path, capsys: Capture) -> None:
    path = assembly(tmp_path, "gfx1100")
    assert stated_target(path) == "gfx1100"
    assert "gfx1100 RX 7900 XTX  only_kernel" in explained(capsys, str(path))


def test_ptx_is_explained_for_its_target(capsys: Capture) -> None:
    pytest.importorskip("triton")
    assert stated_target(DATA / "saxpy.ptx") == "sm_80"
    assert "sm_80 A100-SXM4-80GB  saxpy" in explained(capsys, str(DATA / "saxpy.ptx"))


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.hip", "__global__ void k() {}"), ("a.py", "import triton"), ("a.s", "no kernel")],
)
def test_other_files_name_none(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert stated_target(path) == ""


def test_a_launch_that_is_not_known_has_no_sizes(tmp_path: Path, capsys: Capture) -> None:
    out = explained(capsys, str(assembly(tmp_path, "gfx942")))
    assert "grid not given (--grid) · block not given (--block)" in out


def test_kernels_are_listed_where_none_matches(tmp_path: Path, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        run(["explain", str(assembly(tmp_path, "gfx942")), "-k", "nothing"])
    assert end.value.code == 3
    assert "no kernel matches 'nothing' (kernels: only_kernel)" in capsys.readouterr().err


@pytest.mark.parametrize("device", arch.devices(), ids=lambda device: device.id)
def test_code_is_explained_for_every_device(
    tmp_path: Path, capsys: Capture, device: arch.Device
) -> None:
    path = DATA / "saxpy.ptx"
    if device.vendor == "amd":
        path = assembly(tmp_path, device.target)
        path.write_text(path.read_text().replace("s_endpgm", "v_mul_f32 v1, v0, v0\n\ts_endpgm"))
    sizes = ("--grid", "64", "--block", "256")
    text = explained(capsys, str(path), "--arch", device.id, *sizes, "-f", "json")
    (found,) = json.loads(text)["kernels"]
    assert (found["device_id"], found["arch"]) == (device.id, device.target)
    if device.vendor == "amd":
        assert found["prediction"]["seconds"] > 0


@pytest.fixture
def mi60(tmp_path: Path) -> Path:
    """A device of a target without an opcode table."""
    path = tmp_path / "mi60.toml"
    path.write_text('id = "mi60"\nbase = "mi100"\nname = "MI60"\ntarget = "gfx906"\n')
    return path


@pytest.mark.parametrize("name", ["script.py", "code.s"])
def test_a_gpu_whose_code_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, capsys: Capture, mi60: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text("open('ran', 'w')\n")
    with pytest.raises(SystemExit) as end:
        run(["explain", str(path), "--arch", "mi60", "--arch-file", str(mi60)])
    out, err = capsys.readouterr()
    assert (end.value.code, out, err.count("\n")) == (2, "", 1)
    assert "its instruction set is not supported (supported: gfx908" in err
    assert not (tmp_path / "ran").exists()


def test_other_gpus_are_explained_next_to_one_that_cannot_be(
    tmp_path: Path, capsys: Capture, mi60: Path
) -> None:
    path = assembly(tmp_path, "gfx1100")
    text = explained(capsys, str(path), "--arch", "rx7900xtx,mi60", "--arch-file", str(mi60))
    assert "gfx1100 RX 7900 XTX  only_kernel" in text
    assert "for gfx906 (analyze): code for gfx906 cannot be read" in text
