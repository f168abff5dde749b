"""PTX, cubin and SASS, with the tools of Triton's wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.compile import cubin, elf, load, nvidia, nvidia_tools
from wavecast.compile.cache import DiskCache
from wavecast.errors import CompileError, InputError, MissingTool
from wavecast.isa import elf as image

DATA = Path(__file__).parent / "data"

pytestmark = pytest.mark.usefixtures("ptxas")


@pytest.fixture(scope="module")
def ptx() -> str:
    return (DATA / "saxpy.ptx").read_text()


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_ptx_runs_on_its_target_and_later_ones(ptx: str, target: str) -> None:
    (code,) = nvidia.load_ptx(ptx, target)
    assert (code.kernel, code.target, code.is_amd) == ("saxpy", target, False)
    assert list(code.stages) == ["ptx", "cubin", "sass"]
    assert "FFMA" in code.assembly
    assert [(p.offset, p.size) for p in code.parameters] == [(0, 4), (8, 8), (16, 8), (24, 4)]
    assert code.workgroup_size == 256


def test_resources(ptx: str) -> None:
    (code,) = nvidia.load_ptx(ptx)
    options = code.options
    assert 8 <= options["registers"] <= 32  # type: ignore[operator]
    assert options["static_shared"] == 1024
    assert options["barriers"] == 1
    assert options["max_threads"] == 256
    assert options["stack_bytes"] == options["local_bytes"] == 0
    assert options["spill_store_bytes"] == options["spill_load_bytes"] == 0


def test_a_cubin_and_its_listing_give_the_same_code(ptx: str, tmp_path: Path) -> None:
    (code,) = nvidia.load_ptx(ptx)
    path = tmp_path / "kernel.cubin"
    cubin = code.stages["cubin"]
    assert isinstance(cubin, bytes)
    path.write_bytes(cubin)
    (loaded,) = load(path, "sm_80")
    assert (loaded.assembly, loaded.digest, loaded.origin) == (code.assembly, code.digest, "elf")
    listing = tmp_path / "kernel.sass"
    listing.write_text('\t.headerflags\t@"EF_CUDA_SM80"\n' + code.assembly)
    (listed,) = load(listing)
    assert (listed.kernel, listed.target) == ("saxpy", "sm_80")
    assert listed.options["registers"] == code.options["registers"]


def test_parameters_larger_than_four_kibibytes() -> None:
    for size in (64, 5000):  # ptxas describes them otherwise
        table = f".param .align 64 .b8 table[{size}]"
        head = ".version 8.1\n.target sm_90\n.address_size 64\n"
        text = f"{head}.visible .entry k(.param .u64 x, {table}) {{ ret; }}"
        data, _ = nvidia_tools.assemble(text, "sm_90", DiskCache(), "")
        (info,) = cubin.kernels(image.read(data))
        assert info.parameters == ((0, 8), (48, size))  # aligned with the bank, from 0x210


def test_the_gpu_name_for_ptxas() -> None:
    plain, special = ".target sm_80\n", ".target sm_90a, debug\n"
    assert nvidia.ptx_gpu(plain, "") == "sm_80"
    assert nvidia.ptx_gpu(plain, "sm_100") == "sm_100"
    assert nvidia.ptx_gpu(special, "sm_90") == "sm_90a"
    for text, target in ((special, "sm_100"), (special, "sm_80"), (".target sm_90\n", "sm_80")):
        with pytest.raises(InputError, match="does not run on"):
            nvidia.ptx_gpu(text, target)
    with pytest.raises(InputError, match="not for gfx942"):
        nvidia.ptx_gpu(plain, "gfx942")


def test_malformed_ptx_names_its_line(ptx: str) -> None:
    with pytest.raises(CompileError, match=r"ptxas.*k\.ptx, line \d+") as caught:
        nvidia.load_ptx(ptx.replace("fma.rn.f32", "fma.xx.f32"), file="k.ptx")
    assert "\n" not in str(caught.value)


def test_a_cubin_is_no_amd_code(ptx: str) -> None:
    cubin = nvidia.load_ptx(ptx)[0].stages["cubin"]
    assert isinstance(cubin, bytes)
    with pytest.raises(InputError, match="NVIDIA cubin"):
        elf.load(cubin, "gfx942")
    with pytest.raises(InputError, match="for sm_80, not for sm_90"):
        nvidia.load_cubin(cubin, "sm_90")


def test_truncated_cubins(ptx: str, tmp_path: Path) -> None:
    cubin = nvidia.load_ptx(ptx)[0].stages["cubin"]
    assert isinstance(cubin, bytes)
    path = tmp_path / "cut.cubin"
    for length in (20, 64, 300, len(cubin) // 2, len(cubin) - 8):
        path.write_bytes(cubin[:length])
        with pytest.raises(InputError) as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_no_tools_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nvidia_tools, "_folders", list)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="Triton's wheel has it"):
        nvidia_tools.tool("nvdisasm")
