"""What reading the code of one kernel for one device yields.

Every value is static: it follows from the machine code, its descriptor, and the device's facts.
Loop trip counts are the exception: they come from the launch's scalar arguments (`trip_count`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wavecast.isa.instruction import SourceLocation


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers per lane (VGPR, AGPR) or per wave (SGPR), and what was spilled.

    `spilled_*` count registers; `scratch_bytes` is private memory per lane, which also holds
    arrays the compiler could not keep in registers. NVIDIA kernels have only `vgpr` (registers
    per thread) and `scratch_bytes` (local memory per thread).
    """

    vgpr: int
    agpr: int
    sgpr: int
    spilled_vgpr: int
    spilled_sgpr: int
    scratch_bytes: int

    @property
    def spilled(self) -> int:
        """Vector registers spilled per lane: the figure of every report, and Triton's `n_spills`.
        SGPRs spill to lanes of VGPRs, which costs instructions but no memory."""
        return self.spilled_vgpr


@dataclass(frozen=True, slots=True)
class NextStep:
    """The smallest change of the limiting resource that raises occupancy.

    `delta` is how much less of `resource` is needed (`14` VGPRs, `8192` bytes), `target` the value
    to reach, `waves_per_simd` what it gives. Where VGPRs and AGPRs share one file, `vgpr` counts
    both. `also` holds what else must shrink when several resources bind at once.
    """

    resource: str
    delta: int
    target: int
    waves_per_simd: int
    also: tuple[NextStep, ...] = ()

    def __str__(self) -> str:
        needs = " and ".join(step._need() for step in (self, *self.also))
        return f"{needs} → {self.waves_per_simd} waves/SIMD"

    def _need(self) -> str:
        singular, many = {
            "lds": ("byte of LDS", "bytes of LDS"),
            "vgpr": ("VGPR", "VGPRs"),
            "sgpr": ("SGPR", "SGPRs"),
        }[self.resource]
        return f"{self.delta} {singular if self.delta == 1 else many} fewer"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Waves resident per SIMD (warps per sub-partition on NVIDIA), rounded as LLVM reports them.

    `limits` is what each resource alone would allow, in the same unit; `limiter` the names of the
    binding ones, the most telling first. `workgroups` is how many workgroups fit a compute unit
    (a WGP on RDNA, an SM on NVIDIA). `fits` is False when one workgroup does not fit at all; then
    no wave is resident. `resident_waves` counts only whole workgroups, which the compiler's
    figure does not: waves of all workgroups that fit, per SIMD, possibly fractional. `unit` is what
    a workgroup runs on: `CU`, `WGP` or `SM`; RDNA kernels are compiled for one of the first two.
    """

    waves_per_simd: int
    max_waves_per_simd: int
    waves_per_workgroup: int
    workgroups: int
    limiter: str
    limits: Mapping[str, int]
    next: NextStep | None
    fits: bool = True
    resident_waves: float = 0.0
    unit: str = ""


@dataclass(frozen=True, slots=True)
class MemoryInstruction:
    """One memory instruction: how wide it is and what its lanes touch.

    `bytes_per_lane` is per wave for scalar loads. `argument` names the kernel parameter its
    address comes from, "" when unknown. `pattern` is `contiguous`, `strided`, `broadcast`, `rows`
    (of equal length), `irregular` (known, none of these) or `unknown`; `stride` is bytes between
    neighbouring lanes where there is one. `lines` is how many cache lines a full wave touches,
    `transactions_ideal` how many it would need; for LDS `conflict_ways` is the bank-conflict
    factor (1 = none). None where the address could not be derived.
    """

    index: int
    mnemonic: str
    space: str
    kind: str
    bytes_per_lane: int
    argument: str
    pattern: str
    stride: int | None
    lines: int | None
    transactions_ideal: int | None
    conflict_ways: float | None
    location: SourceLocation | None
    loop: int | None
    lanes: int | None = None
    """Lanes of a wave that take part; None where that is not known."""
    row_bytes: int | None = None
    """Contiguous bytes before the addresses jump; None where it is not always as many or
    not known."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One wait instruction: counters and the value each waits for.

    `full` is True when some counter is waited down to zero: every operation it counts must be done.
    `loop` is the innermost loop around it.
    """

    index: int
    counters: Mapping[str, int]
    full: bool
    location: SourceLocation | None
    loop: int | None


@dataclass(frozen=True, slots=True)
class LoopAnalysis:
    """One loop: what an iteration costs on every pipe, for the waves that fit.

    `cycles` maps a pipe to clock cycles per iteration of *one SIMD with all resident waves*, so
    pipes compare directly and the largest is the floor of the loop (`limiter`). Inner loops are
    not included unless their trip count is known (`includes_inner`). `critical_path` is the
    loop-carried dependency chain in cycles of one wave. `trip_count` is None when it depends on
    data or could not be derived; `trip_note` says why.
    """

    index: int
    location: SourceLocation | None
    depth: int
    blocks: int
    instructions: Mapping[str, int]
    cycles: Mapping[str, float]
    limiter: str
    waves_per_simd: int
    critical_path: float
    trip_count: float | None
    trip_note: str
    flops: Mapping[str, float]
    matrix_density: float
    """Matrix instructions as a share of all instructions of an iteration."""
    bytes_global: int
    """Bytes one wave moves to or from global memory per iteration, all lanes active."""
    bytes_lds: int
    waits_full: int
    barriers: int
    includes_inner: bool = False
    parent: int | None = None
    """The loop around it, by index."""
    without_inner: LoopAnalysis | None = None
    """The loop without its inner loops; None where that is the loop itself."""

    @property
    def body(self) -> LoopAnalysis:
        """The loop without its inner loops."""
        return self if self.without_inner is None else self.without_inner


@dataclass(frozen=True, slots=True)
class Pressure:
    """Live registers before each instruction, and the most at once."""

    vgpr: tuple[int, ...]
    agpr: tuple[int, ...]
    sgpr: tuple[int, ...]
    peak_index: int
    peak_vgpr: int
    peak_location: SourceLocation | None


@dataclass(frozen=True, slots=True)
class LineCost:
    """What one source line became: instruction counts by class and static cycles by pipe."""

    file: str
    line: int
    instructions: Mapping[str, int]
    cycles: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CodeAnalysis:
    """Everything read off one kernel. `instructions` counts by class over the whole kernel.

    `executed` is, per block, how often one wave executes it for this launch (None where unknown,
    for which `unknown_counts` has the reason); `executed_of_waves` the same of each wave of a
    workgroup, empty where they are alike; `longest` is the number of instructions of the longest
    wave followed over that of the average one;
    `executed_flops` sums matrix operations by input dtype over the whole launch, None when a loop's
    trip count is not known. `matrix_flops_static` is the same of one wave, each instruction once.
    `not_modelled` lists what was left out and why; `extra` holds short texts worth showing.
    """

    kernel: str
    target: str
    registers: Registers
    lds_bytes: int
    occupancy: Occupancy
    instructions: Mapping[str, int]
    blocks: int
    loops: tuple[LoopAnalysis, ...]
    memory: tuple[MemoryInstruction, ...]
    waits: tuple[Wait, ...]
    pressure: Pressure | None
    lines: tuple[LineCost, ...]
    matrix_kinds: Mapping[str, int]
    """Matrix or tensor-core instructions by mnemonic (NVIDIA: `HMMA`, `HGMMA` …)."""
    matrix_flops_static: Mapping[str, float]
    executed: tuple[float | None, ...] = ()
    executed_of_waves: tuple[tuple[float | None, ...], ...] = ()
    longest: float = 1.0
    unknown_counts: Mapping[int, str] = field(default_factory=dict)
    executed_flops: Mapping[str, float] | None = None
    not_modelled: tuple[str, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    inlined_lines: tuple[LineCost, ...] = ()
    """Costs of inlined functions by their own lines; `lines` counts them at their call sites."""
    vector_flops_static: Mapping[str, float] = field(default_factory=dict)
    """Useful vector operations of one wave by dtype, each instruction once, all lanes active."""
    executed_vector_flops: Mapping[str, float] | None = None
    """Vector operations over the whole launch; None where a block's executions are unknown."""
    tensor_core: Mapping[str, int] = field(default_factory=dict)
    """NVIDIA: matrix instructions by PTX family: `mma.sync`, `wgmma`, `tcgen05`."""
    async_copies: Mapping[str, int] = field(default_factory=dict)
    """NVIDIA: copies to or from shared memory past the registers: `cp.async`, `tma`."""
    straight: Mapping[str, float] = field(default_factory=dict)
    """Cycles per pipe of code that is in no loop, of one SIMD with all resident waves."""
    arguments_read: frozenset[str] = frozenset()
    """Kernel parameters whose memory the code reads; empty where addresses are not traced."""
    arguments_written: frozenset[str] = frozenset()
    arguments_updated: frozenset[str] = frozenset()
    """Parameters whose memory atomics update."""
    arguments_complete: bool = False
    """Every access to global memory was traced to a parameter."""
    requested_bytes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Bytes the whole launch asks for per argument (loaded, stored), all lanes active: no tensor
    can be touched in more places than that. Arguments accessed an unknown number of times are
    missing."""
    lacks_lds: bool = False
    """The code accesses LDS and has none: the launch must add it (Triton's shared memory, HIP's
    `extern __shared__`), and adds none."""
    instruction_cycles: tuple[float, ...] = ()
    """Per instruction, the clock cycles one execution by one wave takes its pipe; () if unknown."""
