"""Analyses of what Triton's compiler makes of real kernels."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from wavecast import arch, isa
from wavecast.analyze import CodeAnalysis, analyze, analyze_nvidia
from wavecast.compile.codeobject import CodeObject

triton = pytest.importorskip("triton", reason="needs Triton")

pytestmark = pytest.mark.filterwarnings("ignore")

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + start + depth[None, :])
        y = tl.load(b + (start + depth)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)
"""
LOOP_LINE = SOURCE.split("\n").index("    for start in range(0, K, BK):") + 1
SIZES = {"M": 64, "N": 64, "BK": 64}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The kernel above, from a file because Triton reads its source."""
    import importlib.util

    path = tmp_path_factory.mktemp("kernels") / "product.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("product", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.product


def compiled(kernel: Any, backend: str, processor: str | int, lanes: int) -> Any:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {"a": "*bf16", "b": "*bf16", "c": "*fp32", "K": "i32"}
    signature |= dict.fromkeys(SIZES, "constexpr")
    aligned: dict[Any, Any] = {(i,): [["tt.divisibility", 16]] for i in range(4)}
    source = ASTSource(kernel, signature, dict(SIZES), aligned)
    return triton.compile(source, target=GPUTarget(backend, processor, lanes))


def object_of(found: Any, target: str, lanes: int, stages: dict[str, str | bytes]) -> CodeObject:
    return CodeObject(
        kernel="product",
        target=target,
        origin="triton",
        stages=stages,
        parameters=(),
        options={},
        workgroup_size=found.metadata.num_warps * lanes,
        dynamic_lds=found.metadata.shared,
        source="",
        source_line=0,
        source_text="",
        compiler="",
        digest="",
    )


def read_amd(kernel: Any, target: str, lanes: int) -> CodeAnalysis:
    found = compiled(kernel, "hip", target, lanes)
    text = found.asm["amdgcn"]
    parsed = isa.parse(text, target).kernels["product"]
    code = object_of(found, target, lanes, {"amdgcn": text})
    return analyze(code, arch.load(target), parsed.program, parsed.descriptor)


@pytest.mark.parametrize(("target", "lanes"), [("gfx942", 64), ("gfx950", 64), ("gfx1201", 32)])
def test_a_product_on_amd(kernel: Any, target: str, lanes: int) -> None:
    found = read_amd(kernel, target, lanes)
    assert found.occupancy.fits
    assert found.pressure is not None
    assert found.pressure.peak_vgpr <= found.registers.vgpr + found.registers.agpr
    assert found.lds_bytes > 0
    (loop,) = [loop for loop in found.loops if loop.flops]
    assert loop.location is not None
    assert loop.location.line == LOOP_LINE
    waves = found.occupancy.waves_per_workgroup
    assert loop.flops == {"bf16": 2 * 64 * 64 * 64 / waves}
    assert loop.cycles[loop.limiter] == max(loop.cycles.values()) > 0
    assert loop.critical_path > 0
    counted = sum(sum(line.instructions.values()) for line in found.lines)
    assert counted <= sum(found.instructions.values())


def test_a_product_on_nvidia(kernel: Any, tmp_path: Path) -> None:
    import triton.backends.nvidia as backend

    disassembler = Path(backend.__file__).parent / "bin" / "nvdisasm"
    if not disassembler.is_file():
        pytest.skip("this Triton has no nvdisasm")
    found = compiled(kernel, "cuda", 90, 32)
    cubin = tmp_path / "product.cubin"
    cubin.write_bytes(found.asm["cubin"])
    sass = subprocess.run(
        [disassembler, "-c", "-gi", cubin], capture_output=True, text=True, check=True
    ).stdout
    code = object_of(found, "sm_90", 32, {"sass": sass, "ptx": found.asm["ptx"]})
    analysis = analyze_nvidia(code, arch.load("sm_90"))
    assert analysis.tensor_core.keys() == {"wgmma"}
    (loop,) = [loop for loop in analysis.loops if loop.flops]
    assert loop.location is not None
    assert loop.location.line == LOOP_LINE
    assert loop.flops == {"bf16": 2 * 64 * 64 * 64 / analysis.occupancy.waves_per_workgroup}
    assert not [note for note in analysis.not_modelled if "opcode" in note]
