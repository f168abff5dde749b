"""Derived work of a real compiler's matrix product, on every target."""

from __future__ import annotations

from typing import Any

import pytest

from wavecast import isa
from wavecast.analyze import values
from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter

triton = pytest.importorskip("triton", reason="needs Triton")

pytestmark = pytest.mark.filterwarnings("ignore")

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        inside = start + depth < K
        x = tl.load(a + rows[:, None] * K + (start + depth)[None, :],
                    mask=(rows[:, None] < M) & inside[None, :], other=0.0)
        y = tl.load(b + (start + depth)[:, None] * N + columns[None, :],
                    mask=inside[:, None] & (columns[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total,
             mask=(rows[:, None] < M) & (columns[None, :] < N))
"""
TILE = {"BM": 64, "BN": 64, "BK": 32}


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


def evaluated(kernel: Any, target: str, lanes: int, sizes: tuple[int, int, int]) -> tuple:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = dict.fromkeys(("a", "b"), "*bf16") | {"c": "*fp32"}
    signature |= dict.fromkeys("MNK", "i32") | dict.fromkeys(TILE, "constexpr")
    found: Any = triton.compile(
        ASTSource(kernel, signature, dict(TILE)), target=GPUTarget("hip", target, lanes)
    )
    names = [*"abc", *"MNK"]
    widths = [8, 8, 8, 4, 4, 4]
    offsets = [sum(widths[:n]) for n in range(6)]
    code = CodeObject(
        "product", target, "triton", {"amdgcn": found.asm["amdgcn"]},
        tuple(Parameter(n, signature[n], o, w)
              for n, o, w in zip(names, offsets, widths, strict=True)),
        {}, found.metadata.num_warps * lanes, 0, "", 0, "", "", "",
    )  # fmt: skip
    data = b"".join((n << 32).to_bytes(8, "little") for n in (1, 2, 3))
    data += b"".join(size.to_bytes(4, "little") for size in sizes)
    grid = (-(-sizes[0] // TILE["BM"]), -(-sizes[1] // TILE["BN"]), 1)
    arguments = tuple(
        Argument(name, "tensor", bytes=1, storage=(n + 1) << 32) for n, name in enumerate("abc")
    )
    launch = Launch(code, grid, (code.workgroup_size, 1, 1), arguments, data)
    parsed = isa.parse(code.assembly, target).kernels["product"]
    result = values.evaluate(parsed.program, parsed.descriptor, code, launch)
    waves = grid[0] * grid[1] * found.metadata.num_warps
    return parsed.program, result, waves


@pytest.mark.parametrize("sizes", [(256, 192, 512), (100, 130, 70), (64, 64, 16)])
@pytest.mark.parametrize(
    ("target", "lanes"),
    [("gfx90a", 64), ("gfx942", 64), ("gfx950", 64), ("gfx1100", 32), ("gfx1201", 32)],
)
def test_flops_are_those_of_the_padded_product(
    kernel: Any, target: str, lanes: int, sizes: tuple[int, int, int]
) -> None:
    program, found, waves = evaluated(kernel, target, lanes, sizes)
    total = 0.0
    for block, count in zip(program.blocks, found.block_counts, strict=True):
        for instruction in program.instructions[block.start : block.stop]:
            if instruction.opcode.matrix is not None:
                assert count is not None
                total += instruction.opcode.matrix.flops * count * waves
    padded = [-(-size // tile) * tile for size, tile in zip(sizes, TILE.values(), strict=True)]
    assert total == 2 * padded[0] * padded[1] * padded[2]
    assert found.complete
    assert (found.arguments_read, found.arguments_written) == ({"a", "b"}, {"c"})
