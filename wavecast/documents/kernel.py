"""`kernels[]` of `wavecast.explain/1`: one kernel on one device."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from wavecast.documents.prediction import PredictionJson
from wavecast.json_objects import (
    Count,
    JsonObject,
    NonNegative,
    Numbers,
    Positive,
    Share,
    Size3,
    doc,
)
from wavecast.rules.fix import Outcome

PRESSURE_POINTS = 512
"""Most points of a pressure curve."""

KernelLine = Annotated[
    Positive | None,
    doc(
        "1-based source line in the kernel's own body (call site of inlined code); null when "
        "unknown"
    ),
]
LdsBytes = Annotated[
    Count, doc("bytes of LDS (shared memory) per workgroup, with the dynamic part")
]


class LocationJson(JsonObject):
    """A location in source code."""

    file: Annotated[str, doc("path as the compiler recorded it")]
    line: Annotated[Count, doc("1-based; 0 for code the compiler made")]
    column: Annotated[Count, doc("1-based; 0 when unknown")]
    inlined_at: Annotated[LocationJson | None, doc("call site, for inlined code")]


class CallSiteJson(JsonObject):
    """A location in the kernel's own body."""

    file: str
    line: Count
    column: Count


class ParameterJson(JsonObject):
    """A parameter of the compiled kernel."""

    name: str
    type: Annotated[str, doc("the compiler's type name; empty when it was not kept")]
    offset: Annotated[
        Count | None,
        doc("bytes into the kernel argument segment; null for constants folded into the code"),
    ]
    size: Annotated[Count | None, doc("bytes; null for constants")]
    constant: Annotated[Any, doc("value of a folded constant, null otherwise")]
    attributes: Annotated[list[str], doc("specialisations of the launch, such as divisibility=16")]


class CodeJson(JsonObject):
    """What was compiled."""

    origin: Literal["triton", "hip", "assembly", "elf"]
    source: Annotated[str, doc("source file of the kernel")]
    source_line: Annotated[Count, doc("first line of the kernel in that file; 0 when unknown")]
    compiler: Annotated[str, doc("name and version")]
    digest: Annotated[str, doc("equal digest, equal machine code and metadata")]
    workgroup_size: Annotated[Count, doc("threads; 0 when only the launch knows")]
    options: Annotated[dict[str, Any], doc("compiler options")]
    parameters: list[ParameterJson]


class ArgumentJson(JsonObject):
    """An argument of the launch."""

    name: str
    kind: Literal["tensor", "pointer", "scalar", "constant", "descriptor"]
    dtype: str
    shape: Annotated[list[Count], doc("elements")]
    strides: Annotated[list[int], doc("elements")]
    bytes: Annotated[Count, doc("bytes spanned in the argument's storage")]
    value: Annotated[Any, doc("value of a scalar or constant, null for tensors")]


class LaunchJson(JsonObject):
    """How the kernel was launched."""

    grid: Annotated[Size3, doc("workgroups")]
    block: Annotated[Size3, doc("threads")]
    dynamic_lds: Annotated[Count, doc("bytes the launch adds")]
    count: Annotated[Positive, doc("number of equal launches")]
    configuration: Annotated[str, doc("autotuner configuration; empty without one")]
    model_lines: Annotated[
        list[str], doc("lines (path:line) of a model that torch.compile made the launch of")
    ]
    arguments: list[ArgumentJson]


class RegistersJson(JsonObject):
    """Registers the code allocates and spills."""

    vgpr: Annotated[Count, doc("per lane (NVIDIA: registers per thread)")]
    agpr: Annotated[Count, doc("accumulation registers per lane")]
    sgpr: Annotated[Count, doc("per wave")]
    spilled: Annotated[Count, doc("VGPRs spilled per lane")]
    spilled_vgpr: Count
    spilled_sgpr: Annotated[Count, doc("SGPRs spilled to lanes of VGPRs")]
    scratch_bytes: Annotated[Count, doc("private memory per lane, bytes")]


class StepJson(JsonObject):
    """How much less of one resource is needed."""

    resource: Annotated[str, doc("limiting resource")]
    delta: Annotated[int, doc("how much less of it is needed (registers or bytes)")]
    target: Annotated[int, doc("value to reach (registers or bytes)")]
    waves_per_simd: Annotated[Count, doc("the occupancy at that value")]


class NextStepJson(StepJson):
    """The smallest change of the limiting resource that raises occupancy."""

    also: Annotated[list[StepJson], doc("what else must shrink when several resources limit")]


class OccupancyJson(JsonObject):
    """Waves that fit, and what limits them."""

    waves_per_simd: Annotated[
        Count, doc("waves resident per SIMD (warps per sub-partition on NVIDIA)")
    ]
    max_waves_per_simd: Count
    resident_waves: Annotated[
        NonNegative | None,
        doc("waves per SIMD of whole workgroups only; 0 when not computed"),
    ]
    waves_per_workgroup: Count
    workgroups: Annotated[
        Count, doc("workgroups resident per compute unit (WGP on RDNA, SM on NVIDIA)")
    ]
    limiter: Annotated[str, doc("limiting resources, comma separated, most telling first")]
    limits: Annotated[Numbers, doc("waves per SIMD each resource alone would allow")]
    next: Annotated[NextStepJson | None, doc("null at full occupancy")]
    fits: Annotated[bool, doc("false when one workgroup does not fit a compute unit")]


class MatrixJson(JsonObject):
    """Matrix instructions and their FLOPs."""

    kinds: Annotated[Numbers, doc("matrix instructions by mnemonic")]
    flops_static: Annotated[
        Numbers, doc("floating-point operations of one pass over the code, by input dtype")
    ]
    flops_executed: Annotated[
        Numbers | None,
        doc(
            "floating-point operations of the launch, by input dtype; null when a trip count is "
            "unknown"
        ),
    ]


class LoopJson(JsonObject):
    """A loop: what an iteration costs."""

    index: Count
    line: KernelLine
    location: LocationJson | None
    depth: Annotated[Positive, doc("1 for an outermost loop")]
    blocks: Annotated[Positive, doc("basic blocks")]
    instructions: Annotated[Numbers, doc("instructions per iteration by class")]
    cycles: Annotated[
        Numbers,
        doc("clock cycles per iteration by pipe, of one SIMD with all resident waves"),
    ]
    limiter: Annotated[str, doc("pipe with the most cycles")]
    waves_per_simd: Annotated[Count, doc("waves the cycles are for")]
    critical_path: Annotated[
        NonNegative | None,
        doc("loop-carried dependency chain of one wave, clock cycles"),
    ]
    trip_count: Annotated[NonNegative | None, doc("iterations per entry; null when unknown")]
    trip_note: Annotated[str, doc("source of the trip count, or why it is unknown")]
    flops: Annotated[Numbers, doc("floating-point operations of one wave per iteration by dtype")]
    matrix_density: Annotated[
        NonNegative | None,
        doc("matrix instructions as a share of all of an iteration, 0 to 1"),
    ]
    bytes_global: Annotated[
        Count,
        doc("bytes one wave moves to or from global memory per iteration, all lanes active"),
    ]
    bytes_lds: Annotated[Count, doc("bytes one wave moves to or from LDS per iteration")]
    waits_full: Annotated[Count, doc("waits per iteration that drain a counter to zero")]
    barriers: Annotated[Count, doc("per iteration")]
    includes_inner: Annotated[
        bool, doc("whether cycles contain inner loops times their trip counts")
    ]


class MemoryInstructionJson(JsonObject):
    """A memory instruction."""

    index: Annotated[Count, doc("index of the instruction in the program")]
    line: KernelLine
    mnemonic: str
    space: Annotated[str, doc("global, buffer, flat, scratch, lds, scalar")]
    kind: Annotated[str, doc("load, store, atomic, load_to_lds, store_from_lds, permute")]
    bytes_per_lane: Annotated[Count, doc("bytes per lane; per wave for scalar loads")]
    argument: Annotated[str, doc("kernel parameter of the address; empty when unknown")]
    pattern: Annotated[str, doc("contiguous, strided, broadcast, rows, irregular or unknown")]
    stride: Annotated[int | None, doc("bytes between neighbouring lanes")]
    lines: Annotated[Count | None, doc("cache lines a full wave touches")]
    transactions_ideal: Annotated[Count | None, doc("cache lines it would need")]
    conflict_ways: Annotated[NonNegative | None, doc("LDS bank-conflict factor, 1 for none")]
    loop: Annotated[Count | None, doc("index of the innermost loop")]


class WaitJson(JsonObject):
    """A wait instruction."""

    index: Count
    line: KernelLine
    counters: Annotated[Numbers, doc("value waited for by counter")]
    full: Annotated[bool, doc("whether it drains a counter to zero")]
    loop: Annotated[Count | None, doc("index of the innermost loop")]


class PressurePeakJson(JsonObject):
    """The instruction with the most live registers."""

    index: Count
    vgpr: Annotated[Count, doc("live VGPRs")]
    location: LocationJson | None


class PressureJson(JsonObject):
    """Live registers along the program."""

    instructions: Annotated[Count, doc("instructions of the program")]
    points: Annotated[
        list[Annotated[list[Count], Meta(min_length=4, max_length=4)]],
        Meta(max_length=PRESSURE_POINTS),
        doc(
            "[instruction index, live VGPRs, live AGPRs, live SGPRs], thinned to at most "
            f"{PRESSURE_POINTS} with peaks kept"
        ),
    ]
    peak: PressurePeakJson


class LineCostJson(JsonObject):
    """What a source line compiles to."""

    file: str
    line: Count
    instructions: Annotated[Numbers, doc("instructions by class")]
    cycles: Annotated[Numbers, doc("static clock cycles by pipe")]


class CeilingJson(JsonObject):
    """A rate of the device."""

    name: str
    rate: Annotated[NonNegative | None, doc("FLOP/s or byte/s")]
    status: Annotated[str, doc("spec, measured, derived …")]
    source: str


class CeilingsJson(JsonObject):
    """Rates of the device."""

    compute: CeilingJson | None
    memory: CeilingJson | None
    compute_sustained: CeilingJson | None
    memory_sustained: CeilingJson | None


class RooflineJson(JsonObject):
    """What the launch needs at the device's rates."""

    flops: Annotated[NonNegative | None, doc("useful floating-point operations of the launch")]
    bytes: Annotated[NonNegative | None, doc("least bytes read and written")]
    intensity: Annotated[NonNegative | None, doc("FLOP per byte")]
    floor_seconds: Annotated[NonNegative | None, doc("least time in seconds at datasheet peaks")]
    bound: Literal["memory", "compute", "unknown"]
    dtype: Annotated[str, doc("dtype whose compute peak applies")]
    flops_by_dtype: Annotated[Numbers | None, doc("floating-point operations by input dtype")]
    flops_source: str
    bytes_read: Annotated[NonNegative | None, doc("bytes")]
    bytes_written: Annotated[NonNegative | None, doc("bytes")]
    bytes_source: str
    ridge: Annotated[NonNegative | None, doc("FLOP per byte where the datasheet roofs meet")]
    ridge_sustained: Annotated[
        NonNegative | None, doc("FLOP per byte where the sustained roofs meet")
    ]
    compute_seconds: Annotated[NonNegative | None, doc("seconds")]
    memory_seconds: Annotated[NonNegative | None, doc("seconds")]
    sustained_seconds: Annotated[
        NonNegative | None, doc("least time in seconds at sustained rates")
    ]
    ceilings: Annotated[CeilingsJson, doc("rates of the device")]
    note: Annotated[str, doc("why something is unknown")]


class FindingJson(JsonObject):
    """What a rule found."""

    rule: str
    severity: Literal["error", "warning", "note"]
    message: str
    evidence: Annotated[str, doc("the facts behind it")]
    advice: Annotated[str, doc("what to change")]
    time_saved: Annotated[
        Share | None,
        doc("part of the predicted time that the advice saves; null where it is not predicted"),
    ] = field(name="gain")
    outcome: Annotated[
        Outcome | None, doc("predicted effect of the advice; null where it is not predicted")
    ]
    line: KernelLine
    lines: Annotated[list[int], doc("all lines of the kernel that it is about, in order")]
    location: LocationJson | None
    instruction: Annotated[Count | None, doc("index of the instruction in the program")]


class KernelJson(JsonObject):
    """One kernel on one device."""

    kernel: Annotated[str, doc("symbol")]
    label: Annotated[str, doc("unique name of the launch within the document")]
    arch: Annotated[str, doc("target, such as gfx942 or sm_90")]
    device: Annotated[str, doc("marketing name")]
    device_id: Annotated[str, doc("id of the device in `wavecast arch`")]
    vendor: Literal["amd", "nvidia"]
    headline: Annotated[str, doc("the most important things in one line")]
    code: CodeJson
    launch: Annotated[LaunchJson | None, doc("null when the launch is unknown")]
    registers: RegistersJson
    lds_bytes: LdsBytes
    occupancy: OccupancyJson
    instructions: Annotated[Numbers, doc("instructions of the whole kernel by class")]
    blocks: Annotated[Count, doc("basic blocks")]
    matrix: MatrixJson
    loops: Annotated[list[LoopJson], doc("outer before inner")]
    memory: Annotated[list[MemoryInstructionJson], doc("memory instructions in program order")]
    waits: list[WaitJson]
    pressure: PressureJson | None
    lines: Annotated[list[LineCostJson], doc("what each source line compiles to")]
    roofline: RooflineJson
    prediction: Annotated[
        PredictionJson | None, doc("predicted time of the launch and where it goes")
    ]
    prediction_why_not: Annotated[str, doc("why there is no prediction; empty where there is one")]
    findings: Annotated[list[FindingJson], doc("most severe first")]
    not_modelled: Annotated[list[str], doc("what the figures leave out, and why")]
    extra: Annotated[dict[str, Any], doc("figures of one vendor or target")]
