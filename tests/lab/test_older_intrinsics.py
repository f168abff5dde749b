"""Intrinsics of newer LLVM as older LLVM has them."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import pytest

from wavecast import arch
from wavecast.errors import CompileError
from wavecast.isa.encoding.immediates import waits
from wavecast.isa.table import by_mnemonic
from wavecast.lab.codegen import Llc
from wavecast.lab.comparing import compare_launches
from wavecast.lab.older_intrinsics import (
    compile_in_older_form,
    unknown_intrinsics,
    with_counted_loads,
    with_narrow_buffers,
    with_negations,
)
from wavecast.runtimes.triton import capture
from wavecast.runtimes.triton.generate import assemble

BUFFER = "@llvm.amdgcn.make.buffer.rsrc.p8.p1"
WMMA = "@llvm.amdgcn.wmma.f32.16x16x32.bf16.v8f32.v16bf16"
LOAD = (
    "tail call void @llvm.amdgcn.raw.ptr.buffer.load.async.lds(ptr addrspace(8) %r, "
    "ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @lds, i32 4), i32 4, i32 %o, i32 0, "
    "i32 0, i32 0), !dbg !7"
)
MARK = "tail call void @llvm.amdgcn.asyncmark(), !dbg !7"


def wait(marks: int) -> str:
    return f"tail call void @llvm.amdgcn.wait.asyncmark(i16 {marks}), !dbg !7"


PIPELINE = f"""define amdgpu_kernel void @pipeline(i1 %c, i1 %d) {{
  {LOAD}
  {LOAD}
  {MARK}
  {LOAD}
  {MARK}
  br i1 %c, label %loop, label %end

loop:
  {wait(1)}
  {LOAD}
  {LOAD}
  {LOAD}
  {MARK}
  br i1 %d, label %loop, label %end, !llvm.loop !3

end:
  {wait(1)}
  {wait(0)}
  ret void
}}

declare void @llvm.amdgcn.raw.ptr.buffer.load.async.lds(ptr addrspace(8) readonly)
declare void @llvm.amdgcn.asyncmark() #6
declare void @llvm.amdgcn.wait.asyncmark(i16 immarg) #6
"""


def test_buffers_of_32_bits() -> None:
    text = (
        f"  %1 = call ptr addrspace(8) {BUFFER}(ptr %0, i16 0, i64 4294967295, i32 7)\n"
        f"  %2 = call ptr addrspace(8) {BUFFER}(ptr %0, i16 0, i64 %n, i32 7)\n"
        f"declare ptr addrspace(8) {BUFFER}(ptr addrspace(1) readnone, i16, i64, i32) #3\n"
    )
    first, second, third, _ = with_narrow_buffers(text, "gfx942").split("\n")
    assert "i16 0, i32 -1, i32 7)" in first
    assert "i64 %n" in second
    assert third.endswith("readnone, i16, i32, i32) #3")


def test_words_of_llvm_19() -> None:
    text = (
        "define void @f(ptr captures(none) %0, ptr captures(address, read_provenance) %1) {\n"
        "  %2 = getelementptr inbounds nuw i8, ptr %0, i64 4\n"
        "  %3 = getelementptr nusw nuw i8, ptr %0, i64 4\n"
        "  %4 = icmp samesign ult i32 %2, 3\n"
        "  %5 = add nuw i32 %2, 3\n"
    )
    refusals = ["<stdin>:1:20: error: expected ')' at end of argument list", ""]
    result, unknown = compile_in_older_form(text, "gfx942", lambda text: (text, refusals.pop(0)))
    assert unknown == ()
    assert result == (
        "define void @f(ptr nocapture %0, ptr %1) {\n"
        "  %2 = getelementptr inbounds i8, ptr %0, i64 4\n"
        "  %3 = getelementptr i8, ptr %0, i64 4\n"
        "  %4 = icmp ult i32 %2, 3\n"
        "  %5 = add nuw i32 %2, 3\n"
    )


def test_products_of_floats_negate_by_bits() -> None:
    text = (
        f"  %9 = tail call <8 x float> {WMMA}(<16 x bfloat> %8, <16 x bfloat> <bfloat 1.0, bfloat "
        "0xR3F80>, i16 0, <8 x float> zeroinitializer, i1 false, i1 false), !dbg !8\n"
        f"declare <8 x float> {WMMA}(<16 x bfloat>, <16 x bfloat>, i16 immarg, <8 x float>, "
        "i1 immarg, i1 immarg) #9"
    )
    call, declaration = with_negations(text, "gfx1250").split("\n")
    assert f"{WMMA}(i1 false, <16 x bfloat> %8, i1 false, <16 x bfloat> <bfloat 1.0" in call
    assert call.endswith("i16 0, <8 x float> zeroinitializer, i1 false, i1 false), !dbg !8")
    assert f"{WMMA}(i1 immarg, <16 x bfloat>, i1 immarg, <16 x bfloat>, i16 immarg," in declaration
    integers = f"  %1 = call <8 x float> {WMMA}(<2 x i32> %a, <2 x i32> %b, <8 x float> %c)"
    assert with_negations(integers, "gfx1250") == integers


def test_marks_become_numbers_of_loads() -> None:
    """In the loop the mark before the last is that of two loads or of one, and three follow it, or
    one: one may be outstanding at least. Behind it, three of one path and one of the other."""
    text = with_counted_loads(PIPELINE, "gfx950")
    (row,) = by_mnemonic("gfx950")["s_waitcnt"]
    immediates = [int(number) for number in re.findall(r"s\.waitcnt\(i32 (\d+)\)", text)]
    assert [waits(row).text(each) for each in immediates] == ["vmcnt(1)", "vmcnt(1)", "vmcnt(0)"]
    assert "async" not in text
    assert text.count("@llvm.amdgcn.raw.ptr.buffer.load.lds(") == 7
    assert with_counted_loads(PIPELINE, "gfx1250") == PIPELINE, "it has no such counter"


def test_only_what_is_refused_is_rewritten() -> None:
    seen: list[str] = []
    refusal = "Intrinsic has incorrect argument type!\nptr @llvm.amdgcn.raw.ptr.buffer.load.async"

    def attempt(text: str) -> tuple[str, str]:
        seen.append(text)
        return text, f"{refusal}.lds\n" if "async" in text else "s_endpgm"

    result, unknown = compile_in_older_form(f"{PIPELINE}; {BUFFER}(a", "gfx950", attempt)
    assert unknown == ()
    assert result == seen[-1]
    assert f"; {BUFFER}(a" in result
    assert len(seen) == 2
    result, unknown = compile_in_older_form(PIPELINE, "gfx1250", attempt)
    assert unknown == ("llvm.amdgcn.raw.ptr.buffer.load.async.lds",)


def test_how_intrinsics_are_refused() -> None:
    """LLVM 20 takes `async.lds` for a load with another number of operands."""
    complaint = (
        f"immarg operand has non-immediate parameter\n  %o = select i1 %c, i32 1\n  {LOAD}\n"
    )
    assert unknown_intrinsics(complaint) == ("llvm.amdgcn.raw.ptr.buffer.load.async.lds",)
    complaint = f"Intrinsic has incorrect argument type!\nptr {BUFFER}\n"
    assert unknown_intrinsics(complaint) == (BUFFER.removeprefix("@"),)


def test_a_call_of_an_intrinsic_is_a_refusal() -> None:
    """LLVM 22 makes a call of `asyncmark`, which it does not know."""
    assembly = "	s_add_u32 s0, s0, llvm.amdgcn.asyncmark@gotpcrel32@lo+4\n"
    assert unknown_intrinsics(assembly) == ("llvm.amdgcn.asyncmark",)
    if not shutil.which("llc-22"):
        pytest.skip("needs llc-22")
    module = (
        'target triple = "amdgcn-amd-amdhsa"\n'
        "define amdgpu_kernel void @k() {\n  call void @llvm.amdgcn.no.such()\n  ret void\n}\n"
        "declare void @llvm.amdgcn.no.such()\n"
    )
    with pytest.raises(CompileError, match=r"^llc-22: its LLVM has no form of llvm\.amdgcn\.no"):
        Llc("llc-22", "gfx942").assembly(module)


@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_code_of_an_older_llvm_computes_the_same(target: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if not shutil.which("llc-22"):
        pytest.skip("needs llc-22")
    from tests.lab.kernels import product

    a, b = (torch.randn(128, 128, dtype=torch.bfloat16) for _ in range(2))
    c = torch.zeros(128, 128, dtype=torch.bfloat16)
    with capture(target) as captured:
        product[(2, 2)](a, b, c, 128, 128, BM=64, BN=64, BK=32)  # pyright: ignore[reportArgumentType]
    (launch,) = captured
    text = str(launch.code.stages["llir"])
    refused = {"gfx950": "raw.ptr.buffer.load.async.lds", "gfx1250": "wmma."}[target]
    assert refused in text
    device = arch.load(target)
    assembly = Llc("llc-22", target).assembly(text)
    other = replace(launch, code=assemble(launch.code, assembly, device))
    spans = [(each.data_ptr(), each.data_ptr() + each.nbytes) for each in (a, b, c)]
    assert compare_launches(launch, other, spans, rounding=True).same
