"""A report such as a run over two kernels and four targets gives, with every kind of gap.

The figures are plausible, not computed: views are tested on what they show, not on what is true.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from tests.report import sample_code
from wavecast import arch
from wavecast.analyze.result import (
    CodeAnalysis,
    LineCost,
    LoopAnalysis,
    MemoryInstruction,
    NextStep,
    Occupancy,
    Pressure,
    Registers,
    Wait,
)
from wavecast.perfmodel.bounds import Ceiling, Roofline, Work
from wavecast.pipeline.explain.result import ExplainReport, Explanation, Failure
from wavecast.rules.finding import Finding

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.isa.program import Program


@dataclass(frozen=True, slots=True)
class SampleDevice:
    """A device of the sample and the rates its made-up rooflines use."""

    id: str
    name: str
    target: str
    vendor: str
    tflops: float
    terabytes: float


MI300X = SampleDevice("mi300x", "AMD Instinct MI300X", "gfx942", "amd", 1307.4, 5.3)
MI355X = SampleDevice("mi355x", "AMD Instinct MI355X", "gfx950", "amd", 2516.6, 8.0)
RX7900 = SampleDevice("rx7900xtx", "AMD Radeon RX 7900 XTX", "gfx1100", "amd", 122.8, 0.96)
H100 = SampleDevice("h100_sxm", "NVIDIA H100 SXM5 80GB", "sm_90", "nvidia", 989.4, 3.35)
DEVICES = (MI300X, MI355X, RX7900, H100)

_LIMITS = {"vgpr": 2, "sgpr": 8, "lds": 4, "waves": 8}


def report() -> ExplainReport:
    """Two kernels, four targets, two failures, two notes."""
    matmul = [_matmul(device, index) for index, device in enumerate(DEVICES)]
    softmax = [_softmax(device) for device in DEVICES]
    return ExplainReport(
        explanations=(*matmul, *softmax),
        failures=(
            Failure("fp8_kernel", "gfx1100", "compile", "fp8 dot is not supported", "use bf16"),
            Failure("", "gfx906", "capture", "unsupported target gfx906"),
        ),
        notes=(
            "gfx942 is several devices; took AMD Instinct MI300X",
            "launches were captured, not executed: outputs hold no results",
        ),
        inputs=("matmul.py",),
    )


def hostile_report(name: str = "<script>document.title='owned'</script>") -> ExplainReport:
    """One explanation whose kernel name, source and findings try to break out of HTML."""
    explanation = _matmul(MI300X, 0)
    program = sample_code.matmul_program("gfx942", name)
    code = replace(
        explanation.code,
        kernel=name,
        source_text=f"{sample_code.MATMUL_SOURCE}# </script>{name}\n",
        source=f"/home/{name}.py",
    )
    findings = (replace(explanation.findings[0], message=name, rule="a'\"><img src=x>"),)
    hostile = replace(explanation, code=code, program=program, findings=findings, launch=None)
    return ExplainReport((hostile,), (), (name,), (f"{name}.py",))


def empty_report() -> ExplainReport:
    """Nothing was explained."""
    return ExplainReport((), (Failure("k", "gfx942", "parse", "unknown opcode"),), (), ("k.s",))


def long_report(instructions: int) -> ExplainReport:
    """One explanation whose program repeats its loop body up to `instructions` instructions."""
    explanation = _matmul(MI300X, 0)
    assert explanation.program is not None
    program = explanation.program
    body = program.instructions[8:29]
    rows = []
    for index in range(instructions):
        model = body[index % len(body)]
        rows.append(type(model)(model.decoded, index, index + 1, model.location))
    blocks = (replace(program.blocks[0], stop=instructions, successors=()),)
    longer = replace(
        program, instructions=tuple(rows), blocks=blocks, loops=(), innermost_loop=(None,)
    )
    analysis = replace(
        explanation.analysis,
        executed=(),
        pressure=_pressure(instructions),
        instruction_cycles=(4.0,) * instructions,
    )
    return ExplainReport(
        (replace(explanation, program=longer, analysis=analysis),), (), (), ("long.py",)
    )


def _device(device: SampleDevice) -> Device:
    return arch.load(device.id)


def _matmul(device: SampleDevice, index: int) -> Explanation:
    amd = device.vendor == "amd"
    program = sample_code.matmul_program(device.target) if amd else None
    code = sample_code.code("matmul_kernel", device.target, program)
    return Explanation(
        code=code,
        device=_device(device),
        launch=sample_code.launch(code),
        analysis=_matmul_analysis(device, index, program),
        roofline=_roofline(device, {"bf16": 137.4e9}, 100.7e6),
        findings=_findings(amd),
        program=program,
    )


def _softmax(device: SampleDevice) -> Explanation:
    amd = device.vendor == "amd"
    program = sample_code.softmax_program(device.target) if amd else None
    code = sample_code.code("softmax_kernel", device.target, program)
    analysis = CodeAnalysis(
        kernel="softmax_kernel",
        target=device.target,
        registers=Registers(24, 0, 18, 0, 0, 0),
        lds_bytes=0,
        occupancy=Occupancy(8, 8, 4, 8, "waves", {"vgpr": 16, "waves": 8}, None),
        instructions={"valu": 3, "trans": 2, "vmem_load": 1, "vmem_store": 1, "wait": 1},
        blocks=1,
        loops=(),
        memory=(),
        waits=(),
        pressure=None,
        lines=(),
        matrix_kinds={},
        matrix_flops_static={},
    )
    roofline = _unknown_roofline() if device is RX7900 else _roofline(device, {}, 6.4e6)
    launch = sample_code.launch(code)
    return Explanation(code, _device(device), launch, analysis, roofline, (), program)


def _matmul_analysis(device: SampleDevice, index: int, program: Program | None) -> CodeAnalysis:
    amd = program is not None
    total = len(program.instructions) if program else 0
    return CodeAnalysis(
        kernel="matmul_kernel",
        target=device.target,
        registers=Registers(182 - 30 * index, 128 if index < 2 else 0, 40, 6 * (index == 2), 0, 0),
        lds_bytes=32768,
        occupancy=Occupancy(
            waves_per_simd=2 + index,
            max_waves_per_simd=8 if amd else 16,
            waves_per_workgroup=4,
            workgroups=2,
            limiter="vgpr" if index != 1 else "lds,vgpr",
            limits=MappingProxyType(dict(_LIMITS)),
            next=_next_step(index),
            fits=index != 2,
        ),
        instructions={"matrix": 4, "valu": 14, "salu": 3, "vmem_load": 4, "lds_load": 2, "wait": 4},
        blocks=3,
        loops=(_loop(index),),
        memory=_memory() if amd else (),
        waits=(
            Wait(12, {"vmcnt": 0}, True, sample_code.at(23), 0),
            Wait(6, {"lgkmcnt": 2}, False, None, None),
        ),
        pressure=_pressure(total) if amd else None,
        lines=_lines(),
        matrix_kinds={"v_mfma_f32_32x32x8_bf16_1k": 4} if amd else {"HGMMA": 1},
        matrix_flops_static={"bf16": 65536.0},
        executed=(1.0, 64.0, None) if amd else (),
        executed_flops={"bf16": 137.4e9} if index == 0 else None,
        instruction_cycles=tuple(4.0 + 28.0 * (19 < i < 24) for i in range(total)),
        not_modelled=("L2 and MALL hit rates", "clock changes under load"),
        extra={"tensor_core": "wgmma", "odd": float("nan"), "list": (1, 2)},
    )


def _next_step(index: int) -> NextStep | None:
    steps = (NextStep("vgpr", 14, 168, 3), NextStep("lds", 8192, 24576, 4), None, None)
    return steps[index]


def _loop(index: int) -> LoopAnalysis:
    return LoopAnalysis(
        index=0,
        location=sample_code.at(22) if index != 3 else None,
        depth=1,
        blocks=1,
        instructions={"matrix": 4, "valu": 2, "vmem_load": 4, "lds_load": 2},
        cycles={
            "matrix": 512.0,
            "issue": 380.0 - 40 * index,
            "lds": 256.0,
            "vmem": 64.5,
            "valu": 16.0,
            "salu": 12.0,
            "branch": 4.0,
            "trans": 0.0,
            "smem": 0.0,
        },
        limiter="matrix",
        waves_per_simd=2 + index,
        critical_path=780.0 if index == 1 else 128.0,
        trip_count=64.0 if index < 2 else None,
        trip_note="K / BLOCK_K" if index < 2 else "bound is loaded from memory",
        flops={"bf16": 65536.0},
        matrix_density=0.19,
        bytes_global=2304,
        bytes_lds=6144,
        waits_full=2,
        barriers=1,
    )


def _memory() -> tuple[MemoryInstruction, ...]:
    wide = MemoryInstruction(
        8,
        "buffer_load_dwordx4",
        "buffer",
        "load",
        16,
        "a",
        "contiguous",
        16,
        8,
        8,
        None,
        sample_code.at(23),
        0,
    )
    narrow = MemoryInstruction(
        10,
        "buffer_load_ushort",
        "buffer",
        "load",
        2,
        "b",
        "strided",
        8192,
        64,
        1,
        None,
        sample_code.at(24),
        0,
    )
    shared = MemoryInstruction(
        13,
        "ds_write_b128",
        "lds",
        "store",
        16,
        "",
        "contiguous",
        16,
        None,
        None,
        2.0,
        sample_code.at(23),
        0,
    )
    store = MemoryInstruction(
        34,
        "buffer_store_dwordx4",
        "buffer",
        "store",
        16,
        "c",
        "unknown",
        None,
        None,
        None,
        None,
        None,
        None,
    )
    return (wide, replace(wide, index=9), narrow, replace(narrow, index=11), shared, store)


def _pressure(total: int) -> Pressure:
    vgpr = tuple(20 + (i * 37) % 90 + (i > total // 3) * 40 for i in range(total))
    peak = max(range(total), key=vgpr.__getitem__)
    return Pressure(
        vgpr=vgpr,
        agpr=tuple(32 * (i > 7) for i in range(total)),
        sgpr=tuple(12 + i % 9 for i in range(total)),
        peak_index=peak,
        peak_vgpr=vgpr[peak],
        peak_location=sample_code.at(25),
    )


def _lines() -> tuple[LineCost, ...]:
    file = sample_code.SOURCE_FILE
    return (
        LineCost(file, 23, {"vmem_load": 2, "lds_store": 1}, {"vmem": 32.0, "lds": 64.0}),
        LineCost(file, 24, {"vmem_load": 2}, {"vmem": 32.5}),
        LineCost(file, 25, {"matrix": 4, "lds_load": 2}, {"matrix": 256.0, "lds": 128.0}),
        LineCost(file, 29, {"vmem_store": 1, "valu": 3}, {"valu": 12.0, "vmem": 16.0}),
    )


def _findings(amd: bool) -> tuple[Finding, ...]:
    narrow = Finding(
        "scalar-width-access",
        "warning",
        "loads of b move 2 bytes per lane",
        "2 buffer_load_ushort in the loop at line 22, stride 8192 bytes between lanes",
        "transpose b, or load it with its contiguous dimension along the lanes",
        sample_code.at(24),
        10,
    )
    occupancy = Finding(
        "occupancy-one-step-away", "note", "14 VGPRs fewer give a third wave", "182 VGPRs", "", None
    )
    spills = Finding(
        "spills", "error", "6 VGPRs are spilled inside the loop", "scratch 24 bytes per lane",
        "lower BLOCK_N or num_warps=8", sample_code.at(25), 20,
    )  # fmt: skip
    return (occupancy, narrow, spills) if amd else (occupancy,)


def _roofline(device: SampleDevice, flops: dict[str, float], moved: float) -> Roofline:
    compute, memory = device.tflops * 1e12, device.terabytes * 1e12
    total = sum(flops.values())
    compute_seconds, memory_seconds = total / compute, moved / memory
    slow = device is MI300X
    floor = max(compute_seconds, memory_seconds)
    return Roofline(
        work=Work(flops, moved * 2 / 3, moved / 3, "derived from the loop", "derived from tensors"),
        dtype="bf16",
        compute=Ceiling("bf16 matrix", compute, "spec", "vendor datasheet"),
        memory=Ceiling("HBM", memory, "spec", "vendor datasheet"),
        compute_sustained=Ceiling("bf16 matrix", 708e12, "measured", "GEMM") if slow else None,
        memory_sustained=Ceiling("HBM", 4.3e12, "measured", "copy") if slow else None,
        intensity=total / moved,
        ridge=compute / memory,
        ridge_sustained=708 / 4.3 if slow else None,
        compute_seconds=compute_seconds,
        memory_seconds=memory_seconds,
        floor_seconds=floor,
        sustained_seconds=max(total / 708e12, moved / 4.3e12) if slow else None,
        bound="compute" if compute_seconds > memory_seconds else "memory",
    )


def _unknown_roofline() -> Roofline:
    work = Work(None, None, None, "unknown", "unknown")
    return Roofline(
        work=work, dtype="", compute=None, memory=None, compute_sustained=None,
        memory_sustained=None, intensity=None, ridge=None, ridge_sustained=None,
        compute_seconds=None, memory_seconds=None, floor_seconds=None, sustained_seconds=None,
        bound="unknown", note="argument sizes are not known",
    )  # fmt: skip
