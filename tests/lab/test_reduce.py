"""Reduction of LLVM IR."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wavecast import arch
from wavecast.api.lab_reduce import reduce
from wavecast.cli.lab import command
from wavecast.compile import process
from wavecast.errors import CompileError, MissingTool, UsageError
from wavecast.lab import reduce as module
from wavecast.lab.codegen import Llc, TritonGenerator, portable
from wavecast.lab.llvm_reduce import programs_of, reduced_by_llvm
from wavecast.lab.reduce import Condition, complaint, reduce_text, with_attribute

IR = """target triple = "amdgcn-amd-amdhsa"

declare void @unused()
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %n) #0 {
entry:
  %a = add i32 %n, 1
  %b = mul i32 %a, %n
  %c = icmp sgt i32 %n, 0
  br i1 %c, label %then, label %end

then:
  %d = xor i32 %b, 5
  br label %end

end:
  %e = phi i32 [ %b, %entry ], [ %d, %then ]
  store i32 %e, ptr addrspace(1) %p
  ret void
}
attributes #0 = { nounwind }
attributes #1 = { nounwind }
"""


def test_deletes_what_the_condition_does_not_need() -> None:
    """Only the store is wanted: all values go, and the branches."""
    small = reduce_text(IR, lambda text: "store i32" in text and text.count("ret void") == 1)
    assert "store i32 poison, ptr addrspace(1) %p" in small
    for gone in (" add ", " mul ", "icmp", "xor", "phi", "br i1", "unused", "#1"):
        assert gone not in small, gone
    assert "attributes #0" in small


def test_debug_information_goes_and_module_flags_stay() -> None:
    text = """  ret void, !dbg !4
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(file: !1)
!1 = !DIFile(filename: "k.py")
!2 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!4 = !DILocation(line: 1, scope: !0)"""
    assert module._without_debug(text).splitlines() == [
        "  ret void",
        "!llvm.module.flags = !{!2}",
        '!2 = !{i32 1, !"amdhsa_code_object_version", i32 500}',
    ]


def test_an_edge_takes_the_values_of_phis() -> None:
    lines = ["end:", "  %e = phi i32 [ %b, %entry ], [ %d, %then ]"]
    assert module._without_edge(lines, "entry", "end")[1] == "  %e = phi i32 [ %d, %then ]"
    assert module._without_edge(lines, "then", "end")[1] == "  %e = phi i32 [ %b, %entry ]"
    assert module._without_edge(lines, "then", "other") == lines


def test_a_condition_that_does_not_hold_is_an_error() -> None:
    with pytest.raises(UsageError, match="does not hold"):
        reduce_text(IR, lambda _: False)
    with pytest.raises(UsageError, match="unknown condition"):
        Condition("speed>3")


class _Refusing:
    """A compiler that refuses IR with a word, and gives what has no kernels otherwise."""

    name = "strict"
    command = "strict"

    def assembly(self, text: str) -> str:
        if "bad" in text:
            raise CompileError(
                "strict: a warning", log="a warning\nstrict: error: /a/b.ll: bad op\n"
            )
        return ""


@pytest.mark.parametrize(
    ("text", "condition", "why"),
    [
        ("bad", "vgprs>1", "strict refuses it: bad op"),
        ("bad", "crash", "strict refuses it: bad op"),
        ("good", "crash", "strict compiles it"),
        ("good", "vgprs>1", "it has no kernels"),
        (IR + "\n  call void @llvm.amdgcn.s.barrier()\n;", "lost-wait", "not between a release"),
    ],
)
def test_why_a_condition_does_not_hold(text: str, condition: str, why: str) -> None:
    said = Condition(condition).why_not(text, _Refusing(), "gfx942")
    assert why in said
    assert "\n" not in said


def test_figures_that_are_not_more_are_stated(tmp_path: Path) -> None:
    """And what is compared with: the command is a user's mistake, in one line."""
    path = tmp_path / "k.ll"
    path.write_text(IR)
    for condition, why in (
        ("instructions>9000", r"k.ll: instructions: \d+$"),
        ("vgprs>amdgpu-waves-per-eu=1,1+900", r"vgprs: \d+, with amdgpu-waves-per-eu=1,1 \d+$"),
    ):
        with pytest.raises(UsageError, match=why):
            reduce(path, arch="gfx942", condition=condition)
    path.write_text("nothing")
    with pytest.raises(UsageError, match=r"triton refuses it: .* one amdgpu_kernel, this has 0"):
        reduce(path, arch="gfx942", condition="vgprs>3")


def test_complaints_are_equal_without_their_numbers() -> None:
    one = complaint("prog: a.cpp:10: Assertion `x == 3' failed.")
    assert one == complaint("prog: a.cpp:12: Assertion `x == 4' failed.")
    assert one != complaint("prog: a.cpp:10: Assertion `y' failed.")


def test_newer_literals_are_portable() -> None:
    text = portable('target triple = "amdgpu9.42-amd-amdhsa"\n%a = fmul float %b, f0x3FC00000')
    assert text == 'target triple = "amdgcn-amd-amdhsa"\n%a = fmul float %b, 0x3FF8000000000000'


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("bfloat +nan(0x3F)", "bfloat 0xR7FFF"),
        ("half -inf", "half 0xHFC00"),
        ("half f0x3C00", "half 0xH3C00"),
        ("float +inf", "float 0x7FF0000000000000"),
        ("float -qnan", "float 0xFFF8000000000000"),
        ("double +snan(0x1)", "double 0x7FF0000000000001"),
    ],
)
def test_infinities_and_nans_are_their_bits(newer: str, older: str) -> None:
    assert portable(newer) == older


def test_a_wait_is_lost_only_between_fences() -> None:
    """A barrier without fences waits for nothing."""
    barrier = "  tail call void @llvm.amdgcn.s.barrier()"
    release = '  fence syncscope("workgroup") release, !mmra !5'
    acquire = '  fence syncscope("workgroup") acquire'
    assert module.has_fences("\n".join([release, barrier, acquire]))
    assert not module.has_fences("\n".join([barrier, acquire]))
    assert not module.has_fences("\n".join([release, barrier, "  ret void"]))
    assert module.has_fences("define void @f() {\n  ret void\n}")


needs_llc = pytest.mark.skipif(not shutil.which("llc-22"), reason="there is no llc-22")


@needs_llc
def test_conditions_of_compiled_code() -> None:
    compiler = Llc("llc-22", "gfx942")
    assert Condition("instructions>3").holds(IR, compiler, "gfx942")
    assert not Condition("spills>0").holds(IR, compiler, "gfx942")
    assert not Condition("lost-wait").holds(IR, compiler, "gfx942")
    assert not Condition("crash").holds("not IR", compiler, "gfx942")


@needs_llc
def test_the_command_writes_a_report(tmp_path: Path) -> None:
    source, output = tmp_path / "k.ll", tmp_path / "report.md"
    source.write_text(IR)
    arguments = ["reduce", str(source), "--arch", "gfx942", "--if", "instructions>3"]
    arguments += ["--compiler", "llc-22", "--reducer", "own"]
    done = CliRunner().invoke(command, [*arguments, "-o", str(output)])
    assert done.exit_code == 0, done.output
    report = output.read_text()
    assert "# instructions>3 on gfx942" in report
    assert "llc-22 -mcpu=gfx942 -O3 reduced.ll" in report
    assert "define amdgpu_kernel void @k" in report
    same = reduce(
        source, arch="gfx942", condition="instructions>3", compiler="llc-22", reducer="own"
    )
    assert same.markdown() == report


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--if", "crash"], "--arch is missing (GPU)"),
        (["--arch", "gfx942"], "--if is missing (CONDITION)"),
        (["--arch", "gfx942", "--if", "crash", "--edit", "x=1"], "unknown axis 'x'"),
        (["--arch", "gfx942", "--if", "crash", "--option=-O1"], "--option is for llc"),
        (["--arch", "h100", "--if", "vgprs>1"], "only code of AMD GPUs is reduced"),
    ],
)
def test_what_is_refused(tmp_path: Path, arguments: list[str], says: str) -> None:
    source = tmp_path / "k.ll"
    source.write_text(IR)
    done = CliRunner().invoke(command, ["reduce", str(source), *arguments])
    assert isinstance(done.exception, UsageError)
    assert says in str(done.exception)


needs_llvm_reduce = pytest.mark.skipif(
    not shutil.which("llvm-reduce-22") or not shutil.which("llc-22"),
    reason="there is no llvm-reduce-22 or llc-22",
)


@needs_llvm_reduce
def test_llvm_reduce_asks_the_condition() -> None:
    """The result holds, and is smaller; a condition that never holds is an error."""
    asked: list[str] = []

    def holds(text: str) -> bool:
        asked.append(text)
        return "store i32" in text

    found = reduced_by_llvm(IR, holds, "llvm-reduce-22")
    assert "store i32" in found
    assert "mul i32" not in found
    assert len(asked) > 3
    with pytest.raises(UsageError, match="does not hold"):
        reduced_by_llvm(IR, lambda _: False, "llvm-reduce-22")
    with pytest.raises(CompileError):
        reduced_by_llvm("not IR", lambda _: True, "llvm-reduce-22")


@needs_llvm_reduce
def test_machine_ir_is_reduced(tmp_path: Path) -> None:
    source, output = tmp_path / "k.mir", tmp_path / "report.md"
    source.write_text(MIR)
    arguments = ["reduce", str(source), "--arch", "gfx942", "--if", "instructions>1"]
    arguments += ["--compiler", "llc-22", "--option=-start-before=postmisched"]
    done = CliRunner().invoke(command, [*arguments, "-o", str(output)])
    assert done.exit_code == 0, done.output
    report = output.read_text()
    assert "MIR, reduced from" in report
    assert "-x mir -mtriple=amdgcn-amd-amdhsa" in report
    assert report.count("V_MOV_B32") < MIR.count("V_MOV_B32")


def test_who_reduces(monkeypatch: pytest.MonkeyPatch) -> None:
    llc = Llc("llc", "gfx942")
    triton = TritonGenerator(arch.load("gfx942"))
    monkeypatch.setattr(process, "newest", lambda _: "llvm-reduce")
    assert programs_of(IR, "auto", llc) == ["llvm-reduce", ""]
    assert programs_of(IR, "auto", triton) == [""]
    assert programs_of(IR, "own", llc) == [""]
    assert programs_of(MIR, "auto", llc) == ["llvm-reduce"]
    with pytest.raises(UsageError, match="MIR is reduced by llvm-reduce"):
        programs_of(MIR, "own", llc)
    monkeypatch.setattr(process, "newest", lambda _: "")
    assert programs_of(IR, "auto", llc) == [""]
    with pytest.raises(MissingTool):
        programs_of(MIR, "auto", llc)


MIR = """--- |
  target triple = "amdgcn-amd-amdhsa"
  define amdgpu_kernel void @k() { ret void }
...
---
name: k
tracksRegLiveness: true
machineFunctionInfo:
  isEntryFunction: true
body: |
  bb.0:
    $vgpr0 = V_MOV_B32_e32 0, implicit $exec
    $vgpr1 = V_MOV_B32_e32 1, implicit $exec
    $vgpr2 = V_MOV_B32_e32 2, implicit $exec
    $vgpr3 = V_MOV_B32_e32 3, implicit $exec
    S_ENDPGM 0
...
"""


class FakeCompiler:
    """Spills as many VGPRs as the IR has stores, with an attribute none."""

    name = command = "fake"

    def __init__(self, least: int = 0) -> None:
        self.least = least

    def assembly(self, text: str) -> str:
        spills = text.count("store")
        if '"amdgpu-sched-strategy"="max-ilp"' in text:
            spills = 0
        return ASSEMBLY.format(spills=max(self.least, spills))


ASSEMBLY = """
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
\t.text
\t.globl k
\t.type k,@function
k:
\ts_endpgm
.Lfunc_end0:
\t.size k, .Lfunc_end0-k
\t.amdhsa_kernel k
\t\t.amdhsa_next_free_vgpr 4
\t\t.amdhsa_next_free_sgpr 4
\t.end_amdhsa_kernel
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .vgpr_spill_count: {spills}
    .kernarg_segment_size: 0
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 4
    .vgpr_count: 4
    .max_flat_workgroup_size: 256
...
\t.end_amdgpu_metadata
"""
KERNEL = """\
define amdgpu_kernel void @k(ptr %0) #0 !dbg !3 {
  store i32 1, ptr %0
  store i32 2, ptr %0
  store i32 3, ptr %0
  ret void
}
attributes #0 = { "amdgpu-sched-strategy"="iterative-ilp" nounwind }
"""


def test_a_figure_is_compared_with_another_compiler_or_attribute() -> None:
    compiler: Any = FakeCompiler()
    attribute = Condition("spills>amdgpu-sched-strategy=max-ilp+1")
    assert attribute.attribute == ("amdgpu-sched-strategy", "max-ilp")
    assert attribute.holds(KERNEL, compiler, "gfx942")
    assert not Condition("spills>amdgpu-sched-strategy=max-ilp+3").holds(KERNEL, compiler, "gfx942")
    text = reduce_text(KERNEL, lambda text: attribute.holds(text, compiler, "gfx942"))
    assert text.count("store") == 2
    other: Any = FakeCompiler(least=2)
    against = Condition("spills>llc-22+0", other=other)
    assert (against.compared, against.attribute) == ("llc-22", None)
    assert not against.holds(text, compiler, "gfx942")
    assert Condition("spills>llc-22+0", other=compiler).holds(KERNEL, FakeCompiler(4), "gfx942")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown condition"):
        Condition("colour>llc-22+1")


def test_an_attribute_replaces_that_of_the_kernels() -> None:
    changed = with_attribute(KERNEL, "amdgpu-sched-strategy", "max-ilp")
    first, *_, last = changed.strip().split("\n")
    head = "define amdgpu_kernel void @k(ptr %0) #0"
    assert first == f'{head} "amdgpu-sched-strategy"="max-ilp" !dbg !3 {{'
    assert "iterative-ilp" not in last
