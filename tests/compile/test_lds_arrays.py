"""Which array of LDS an access is made for, from LLVM IR."""

from __future__ import annotations

import pytest

from wavecast.compile.array_accesses import ArrayBytes
from wavecast.compile.assembly import load
from wavecast.compile.irtypes import TypeTable
from wavecast.compile.lds_arrays import LdsAccesses, extract_module
from wavecast.compile.parsing import parse_kernel
from wavecast.errors import ParseError

MODULE = """
%both = type { [4 x float], [8 x i8], [2 x %pair] }
%pair = type { i32, <2 x half> }
@llvm.amdgcn.kernel.k.lds = internal addrspace(3) global %both poison, !absolute_symbol !0
@rest = external addrspace(3) global [0 x float], align 4
define amdgpu_kernel void @k(i32 %n) !dbg !3 {
  %1 = getelementptr float, ptr addrspace(3) @llvm.amdgcn.kernel.k.lds, i32 %n, !dbg !5
  %2 = getelementptr %pair, ptr addrspace(3) getelementptr inbounds (%both, ptr addrspace(3) \
@llvm.amdgcn.kernel.k.lds, i32 0, i32 2), i32 %n, !dbg !5
  %3 = select i1 %c, ptr addrspace(3) %1, ptr addrspace(3) %2, !dbg !5
  br label %loop
loop:
  %4 = phi ptr addrspace(3) [ %1, %0 ], [ %5, %loop ]
  %5 = getelementptr i8, ptr addrspace(3) %4, i32 4, !dbg !5
  %6 = load float, ptr addrspace(3) %5, align 4, !dbg !5
  store float %6, ptr addrspace(3) %3, align 4, !dbg !6
  %7 = atomicrmw add ptr addrspace(3) @rest, i32 1 syncscope("agent") monotonic, align 4, !dbg !7
  %8 = inttoptr i32 %n to ptr addrspace(3)
  %9 = load float, ptr addrspace(3) %8, align 4, !dbg !7
  ret void
}
!0 = !{i32 16, i32 17}
!3 = distinct !DISubprogram(name: "k", file: !4, line: 1)
!4 = !DIFile(filename: "folder/k.hip", directory: "/")
!5 = !DILocation(line: 5, column: 9, scope: !3)
!6 = !DILocation(line: 6, column: 9, scope: !3, inlinedAt: !5)
!7 = !DILocation(line: 7, column: 2, scope: !3)
"""
ASSEMBLY = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
k:
.file 1 "/folder" "k.hip"
.loc 1 5 9 ; k.hip:5:9
ds_read_b32 v1, v0
.loc 1 5 0 ; k.hip:5:0
ds_read_b32 v1, v0
.loc 1 6 9 ; k.hip:6:9 @[ k.hip:5:9 ]
ds_write_b32 v0, v1
.loc 1 7 2 ; k.hip:7:2
ds_add_u32 v0, v1
ds_read_b32 v1, v0
.loc 1 6 9 ; k.hip:6:9
ds_write_b32 v0, v1
s_endpgm
.amdhsa_kernel k
.amdhsa_next_free_vgpr 4
.amdhsa_next_free_sgpr 4
.amdhsa_accum_offset 4
.end_amdhsa_kernel
"""
FIRST, LAST, REST = ArrayBytes(16, 32), ArrayBytes(40, 56), ArrayBytes(56, 1 << 31)


def test_accesses_have_the_arrays_of_their_location() -> None:
    (code,) = load(ASSEMBLY)
    program = parse_kernel(code).program
    accesses = LdsAccesses(MODULE, "k")
    found = [accesses.of(instruction) for instruction in program.instructions]
    inlined_elsewhere, unknown, end = (), (), ()
    assert found == [
        *((FIRST,), (FIRST,), (FIRST, LAST), (REST,)),
        *(unknown, inlined_elsewhere, end),
    ]


def test_another_kernel_of_the_module_is_not_known() -> None:
    program = parse_kernel(load(ASSEMBLY)[0]).program
    accesses = LdsAccesses(MODULE, "other")
    assert not any(accesses.of(instruction) for instruction in program.instructions)


def test_types_of_unknown_size_give_no_arrays() -> None:
    program = parse_kernel(load(ASSEMBLY)[0]).program
    accesses = LdsAccesses(MODULE.replace("[8 x i8]", 'target("amdgcn.named.barrier", 0)'), "k")
    assert not any(accesses.of(instruction) for instruction in program.instructions)


def test_the_module_is_found_in_what_the_compiler_prints() -> None:
    banner = "*** IR Dump After Lower uses of LDS (amdgpu-lower-module-lds) ***\n"
    assert extract_module(f"a.hip:1: warning: w\n{banner}{MODULE}") == MODULE
    assert extract_module("a.hip:1: warning: w\n") == ""


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("i1", (1, 1)),
        ("i64", (8, 8)),
        ("[3 x i16]", (6, 2)),
        ("<3 x float>", (16, 16)),
        ("<8 x float>", (32, 32)),
        ("{ i8, double, i8 }", (24, 8)),
        ("<{ i8, double }>", (9, 1)),
        ("ptr addrspace(3)", (4, 4)),
        ("ptr", (8, 8)),
        ("%pair", (8, 4)),
    ],
)
def test_layouts(text: str, layout: tuple[int, int]) -> None:
    assert TypeTable(MODULE.split("\n")).layout(text) == layout


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(ParseError, match="x86_fp80"):
        TypeTable(()).layout("x86_fp80")
