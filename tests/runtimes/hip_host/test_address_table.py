"""Code of other compilers that names its data by the distance from the program counter: of the
data, or of its address in the global offset table."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

import wavecast
from wavecast.compile import toolchain

pytestmark = pytest.mark.hip

# `table` is of default visibility: another file may define it, so that its address is in the table.
SOURCE = """
target triple = "amdgcn-amd-amdhsa"
@table = addrspace(4) constant [4 x i32] [i32 11, i32 22, i32 33, i32 44]
@hidden = hidden addrspace(4) constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
@rows = addrspace(4) constant [2 x ptr addrspace(4)]
    [ptr addrspace(4) @table, ptr addrspace(4) @hidden]
declare i32 @llvm.amdgcn.workitem.id.x()

define amdgpu_kernel void @sums(ptr addrspace(1) %out, i32 %row) {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %column = and i32 %lane, 3
  %p = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %column
  %x = load i32, ptr addrspace(4) %p
  %index = and i32 %row, 1
  %where = getelementptr [2 x ptr addrspace(4)], ptr addrspace(4) @rows, i32 0, i32 %index
  %base = load ptr addrspace(4), ptr addrspace(4) %where
  %q = getelementptr i32, ptr addrspace(4) %base, i32 %column
  %y = load i32, ptr addrspace(4) %q
  %sum = add i32 %x, %y
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %lane
  store i32 %sum, ptr addrspace(1) %o
  ret void
}
"""
ROWS = np.array([[11, 22, 33, 44], [1, 2, 3, 4]])


CASES = [
    *((target, "", SOURCE) for target in ("gfx942", "gfx1100", "gfx1201", "gfx1250")),
    ("gfx942", "-Bsymbolic", SOURCE),
    ("gfx1201", "", SOURCE.replace("= addrspace", "= hidden addrspace")),
    ("gfx1250", "", SOURCE.replace("= addrspace", "= hidden addrspace")),
]


@pytest.fixture(params=CASES)
def linked(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A target, and the code for it: with `-Bsymbolic` without symbols in relocations, and hidden
    data without the table."""
    target, option, source = request.param
    tools = toolchain.find(target)
    if not tools.linker:
        pytest.skip("the HIP compiler here has no linker")
    (tmp_path / "sums.ll").write_text(source)
    compiler = [*tools.compiler, "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", "-nogpulib"]
    code = [*compiler, "-O2", "-fPIC", "-c", "-x", "ir", "sums.ll", "-o", "sums.o"]
    link = [*tools.linker, "-shared", *filter(None, [option]), "sums.o", "-o", "sums.co"]
    for command in (code, link):
        subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    return target, tmp_path / "sums.co"


@pytest.mark.parametrize("row", [0, 1])
def test_addresses_in_the_table_are_those_of_data(linked: tuple[str, Path], row: int) -> None:
    target, path = linked
    out = np.zeros(32, np.int32)
    wavecast.load(path, arch=target)["sums"]((1, 1, 1), (32, 1, 1), out, row)
    np.testing.assert_array_equal(out, np.tile(ROWS[0] + ROWS[row], 8))


def test_modules_of_hip_have_it(linked: tuple[str, Path]) -> None:
    target, path = linked
    with wavecast.device(target):
        library = ctypes.CDLL("libamdhip64.so.7")
        module, function, out = (ctypes.c_void_p() for _ in range(3))
        assert library.hipModuleLoad(ctypes.byref(module), str(path).encode()) == 0
        assert library.hipModuleGetFunction(ctypes.byref(function), module, b"sums") == 0
        assert library.hipMalloc(ctypes.byref(out), ctypes.c_size_t(128)) == 0
        row = ctypes.c_int(1)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(row))
        grid = 1, 1, 1, 32, 1, 1
        status = library.hipModuleLaunchKernel(function, *grid, 0, None, values, None)
        result = np.zeros(32, np.int32)
        room, size = result.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(128)
        assert library.hipMemcpyDtoH(room, out, size) == status == 0
    np.testing.assert_array_equal(result, np.tile(ROWS.sum(axis=0), 8))
