"""NVIDIA kernels: resources, mix, tensor-core kind, loops, and what is listed as unknown."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from wavecast import arch
from wavecast.analyze import CodeAnalysis, analyze_nvidia
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.errors import InputError

USAGE = {"registers": 128, "static_shared": 1024, "local_bytes": 0, "stack_bytes": 0}


def listing(*lines: str) -> str:
    rows = ['\t.section\t.text.k,"ax",@progbits', ".text.k:"]
    address = 0
    for line in lines:
        if line.endswith(":"):
            rows.append(line)
        else:
            rows.append(f"        /*{address:04x}*/                   {line} ;")
            address += 16
    return "\n".join([*rows, f"        /*{address:04x}*/                   EXIT ;"])


def code(
    *lines: str,
    target: str = "sm_90",
    options: Mapping[str, object] = USAGE,
    dynamic_lds: int = 0,
) -> CodeObject:
    return CodeObject(
        kernel="k",
        target=target,
        origin="elf",
        stages={"sass": listing(*lines)},
        parameters=(),
        options=options,
        workgroup_size=128,
        dynamic_lds=dynamic_lds,
        source="",
        source_line=0,
        source_text="",
        compiler="",
        digest="",
    )


def read(*lines: str, target: str = "sm_90", launch: Launch | None = None) -> CodeAnalysis:
    return analyze_nvidia(code(*lines, target=target), arch.load(target), launch)


def test_instructions_are_counted_by_class() -> None:
    found = read(
        "LDC R1, c[0x0][0x28]",
        "LDG.E.128 R4, desc[UR4][R2.64]",
        "LDGSTS.E.BYPASS.128 [R7], desc[UR4][R2.64]",
        "LDGDEPBAR",
        "DEPBAR.LE SB0, 0x0",
        "BAR.SYNC.DEFER_BLOCKING 0x0",
        "LDSM.16.M88.4 R8, [R7]",
        "HMMA.16816.F32.BF16 R12, R8, R10, R12",
        "FFMA R0, R1, R2, R0",
        "MUFU.EX2 R0, R0",
        "UIADD3 UR4, UR4, 0x1, URZ",
        "STL [R1], R0",
        "STG.E desc[UR4][R2.64], R0",
    )
    assert found.instructions == {
        "matrix": 1,
        "valu": 1,
        "trans": 1,
        "salu": 1,
        "smem": 1,
        "lds": 1,
        "vmem_load": 2,
        "vmem_store": 1,
        "scratch": 1,
        "branch": 1,
        "wait": 1,
        "barrier": 1,
        "other": 1,
    }
    assert found.async_copies == {"cp.async": 1}
    assert [wait.full for wait in found.waits] == [True]
    widths = {m.mnemonic: m.bytes_per_lane for m in found.memory}
    assert widths["LDG.E.128"] == 16
    assert widths["STG.E"] == 4


@pytest.mark.parametrize(
    ("line", "target", "kind"),
    [
        ("HMMA.16816.F32.BF16 R12, R8, R10, R12", "sm_90", "mma.sync"),
        ("HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24", "sm_90", "wgmma"),
        ("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR9], idesc[UR17], UPT", "sm_100", "tcgen05"),
    ],
)
def test_tensor_core_kind(line: str, target: str, kind: str) -> None:
    found = read(line, target=target)
    assert found.tensor_core == {kind: 1}
    assert found.matrix_kinds == {line.split(".")[0].split()[0]: 1}


def test_a_warpgroup_instruction_is_shared_by_four_warps() -> None:
    found = read("HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24")
    assert found.matrix_flops_static == {"bf16": 2 * 64 * 128 * 16 / 4}


def test_cycles_of_a_loop() -> None:
    found = read(
        ".L_x_0:",
        "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24",
        "FFMA R0, R1, R2, R0",
        "IADD3 R0, R1, R2, R0",
        "LDS.128 R4, [R0]",
        "@P0 BRA `(.L_x_0)",
    )
    assert found.occupancy.waves_per_simd == 4
    cycles = found.loops[0].cycles
    # 65,536 operations of one warp at 1,024 per clock and sub-partition, four warps.
    assert cycles["matrix"] == 64 * 4
    # FMA and ALU work beside each other: 1 clock of the one, 2 of the other per warp.
    assert cycles["valu"] == 2 * 4
    # 512 bytes of each of 16 warps at 128 per clock.
    assert cycles["lds"] == 4 * 16
    assert cycles["issue"] == 5 * 4
    assert found.loops[0].limiter == "matrix"


def test_a_loop_that_only_polls_a_barrier_is_none_of_the_kernel() -> None:
    found = read(".L_x_0:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1], R2", "@!P0 BRA `(.L_x_0)")
    assert found.loops == ()
    assert found.waits[0].counters == {"mbarrier": 1}


def test_shared_memory_reserved_by_the_system_counts_once() -> None:
    device = arch.load("sm_90")
    found = analyze_nvidia(code("NOP", dynamic_lds=56 * 1024 - 1024), device)
    assert found.lds_bytes == 56 * 1024 - 1024
    assert found.occupancy.workgroups == 4


def test_spills_are_counted_by_local_address() -> None:
    lines = ["STL [R1], R0", "STL.64 [R1+0x8], R2", "STL [R1], R5", "LDL R0, [R1]"]
    found = read(*lines)
    assert (found.registers.vgpr, found.registers.spilled) == (128, 3)
    assert found.registers.scratch_bytes == 12


def test_registers_are_counted_where_the_code_object_does_not_say() -> None:
    found = analyze_nvidia(code("FADD R9, R1, R2", options={}), arch.load("sm_90"))
    assert found.registers.vgpr == 10
    assert any("registers per thread" in note for note in found.not_modelled)


def test_an_unknown_opcode_is_listed_by_name() -> None:
    found = read("QUUX.F32 R1, R2")
    assert found.instructions["other"] == 1
    assert any("QUUX" in note for note in found.not_modelled)


def test_an_unknown_target_has_no_cycles_and_says_so() -> None:
    found = analyze_nvidia(code("FFMA R0, R1, R2, R0", target="sm_75"), arch.load("sm_80"))
    assert any("sm_75" in note for note in found.not_modelled)


def test_executed_work_of_straight_line_code() -> None:
    launch = Launch(code("NOP"), (10, 1, 1), (128, 1, 1))
    found = read("HMMA.16816.F32.BF16 R12, R8, R10, R12", launch=launch)
    assert found.executed_flops == {"bf16": 4096 * 4 * 10}


def test_executed_work_of_a_loop_is_unknown() -> None:
    launch = Launch(code("NOP"), (10, 1, 1), (128, 1, 1))
    lines = [".L_x_0:", "HMMA.16816.F32.BF16 R12, R8, R10, R12", "@P0 BRA `(.L_x_0)"]
    assert read(*lines, launch=launch).executed_flops is None


def test_a_kernel_without_sass() -> None:
    bare = CodeObject("k", "sm_90", "elf", {}, (), {}, 0, 0, "", 0, "", "", "")
    with pytest.raises(InputError, match="no SASS"):
        analyze_nvidia(bare, arch.load("sm_90"))
