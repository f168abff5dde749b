"""Which private array an access of scratch is made for, from LLVM IR and the frame."""

from __future__ import annotations

import pytest

from wavecast.compile.array_accesses import UNLIMITED, ArrayBytes
from wavecast.compile.assembly import load
from wavecast.compile.parsing import parse_kernel
from wavecast.compile.private_arrays import PrivateAccesses, frame_remarks

MODULE = """
%pair = type { i32, i32 }
define amdgpu_kernel void @k(i32 %n) !dbg !3 {
  %1 = alloca [4 x %pair], align 16, addrspace(5)
  %2 = alloca [8 x float], align 16, addrspace(5)
  %3 = getelementptr %pair, ptr addrspace(5) %1, i32 %n, !dbg !5
  %4 = getelementptr float, ptr addrspace(5) %2, i32 %n, !dbg !6
  call void @llvm.lifetime.start.p5(ptr addrspace(5) %1), !dbg !6
  %5 = load i32, ptr addrspace(5) %3, align 4, !dbg !5
  store float 0.0, ptr addrspace(5) %4, align 4, !dbg !6
  ret void
}
!3 = distinct !DISubprogram(name: "k", file: !4, line: 1)
!4 = !DIFile(filename: "k.hip", directory: "/")
!5 = !DILocation(line: 5, column: 9, scope: !3)
!6 = !DILocation(line: 6, column: 9, scope: !3)
"""
LOG = """k.hip:1:1: remark:
Function: other
Offset: [SP+0], Type: Variable, Align: 16, Size: 32
Function: k
Offset: [SP+88], Type: Spill, Align: 4, Size: 8
Offset: [SP+80], Type: Variable, Align: 4, Size: 4
Offset: [SP+48], Type: Variable, Align: 16, Size: 32
Offset: [SP+16], Type: Variable, Align: 16, Size: 32 [-Rpass-analysis=stack-frame-layout]
    1 | __global__ void k(int n) {
"""
ASSEMBLY = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
k:
.file 1 "/folder" "k.hip"
.loc 1 5 9 ; k.hip:5:9
scratch_load_dword v1, v0, off
scratch_load_dword v1, off, off offset:88
scratch_load_dword v1, off, s4
.loc 1 6 9 ; k.hip:6:9
scratch_store_dword v0, v1, off
scratch_load_dword v1, v0, off
s_endpgm
.amdhsa_kernel k
.amdhsa_next_free_vgpr 4
.amdhsa_next_free_sgpr 8
.amdhsa_accum_offset 4
.end_amdhsa_kernel
"""
FIRST, SECOND = ArrayBytes(16, 48), ArrayBytes(48, 80)
NO_ARRAY = ArrayBytes(0, 16), ArrayBytes(80, UNLIMITED)


def found(log: str) -> list[tuple[ArrayBytes, ...]]:
    accesses = PrivateAccesses(MODULE, frame_remarks(log), "k")
    program = parse_kernel(load(ASSEMBLY)[0]).program
    return [accesses.of(instruction) for instruction in program.instructions]


def test_an_indexed_access_has_its_array_and_a_constant_one_may_be_a_spill() -> None:
    constant = (NO_ARRAY[0], FIRST, NO_ARRAY[1])
    assert found(LOG) == [(FIRST,), constant, (FIRST,), (SECOND,), (), ()]


def test_a_scalar_register_may_be_a_constant_of_a_large_frame() -> None:
    large = LOG.replace("[SP+80]", "[SP+4096]")
    assert found(large)[2] == (NO_ARRAY[0], FIRST, NO_ARRAY[1])


@pytest.mark.parametrize(
    "log",
    [
        LOG.replace("Size: 32", "Size: 36"),
        LOG.replace("[SP+80], Type: Variable, Align: 4, Size: 4", "[SP+80], Type: Variable, "
        "Align: 16, Size: 32"),
        LOG.replace("Function: k", "Function: kk"),
        "",
    ],
    ids=["sizes", "several", "function", "nothing"],
)  # fmt: skip
def test_a_frame_whose_arrays_cannot_be_told_apart_gives_no_bounds(log: str) -> None:
    assert set(found(log)) == {()}
