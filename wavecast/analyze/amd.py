"""One AMD kernel on one device: every analysis of this floor, put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wavecast.analyze import values
from wavecast.analyze.charges import Charge, Charges
from wavecast.analyze.launch import threads_of, waves_of
from wavecast.analyze.lines import line_costs
from wavecast.analyze.loops import loops, straight_cycles
from wavecast.analyze.memory import charge_patterns, memory_instructions
from wavecast.analyze.occupancy import kernel_occupancy
from wavecast.analyze.pipes import Tally, residency, tally
from wavecast.analyze.pressure import pressure
from wavecast.analyze.result import CodeAnalysis, Registers
from wavecast.analyze.waits import waits
from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.isa.collector import no_collections
from wavecast.isa.program import KernelDescriptor, Program

_ALWAYS_LEFT_OUT = (
    "branches inside a loop are taken as executed every iteration",
    "cycles per iteration: memory beyond the vector cache (bounds and predicted time have it)",
    "dependencies through memory in the critical path",
)

_NO_LDS = "the LDS that the code accesses and does not declare, which a launch adds (--lds)"
_NO_SIZE = "workgroup size: neither launch nor kernel fixes it; the largest that can run"
_WITH_RESULT = frozenset(
    {"matrix", "valu", "trans", "salu", "smem", "lds", "vmem_load", "vmem_atomic", "scratch"}
)
"""Classes whose instructions write registers, so that their latency matters to a chain."""


@no_collections()
def analyze(
    code: CodeObject,
    device: Device,
    program: Program,
    descriptor: KernelDescriptor,
    launch: Launch | None = None,
) -> CodeAnalysis:
    """Read one AMD kernel for one device.

    Without a launch the workgroup is the kernel's own or, failing that, the largest that it and the
    device's registers and LDS allow;
    trip counts and addresses that depend on arguments stay unknown. Raises UsageError when the
    device does not run the kernel's wave size.
    """
    lds_bytes = descriptor.lds_bytes + (launch.dynamic_lds if launch else code.dynamic_lds)
    stated = threads_of(code, launch)
    threads = stated or _largest_workgroup(device, descriptor, lds_bytes)
    assumed = () if stated else (f"{_NO_SIZE}, {threads}, is assumed",)
    occupied = kernel_occupancy(device, descriptor, lds_bytes, threads)
    rates = Charges(device, descriptor.wave_size)
    charges = [rates.of(instruction.decoded) for instruction in program.instructions]
    evaluation = values.evaluate(program, descriptor, code, launch)
    memory = memory_instructions(program, rates, evaluation)
    blocks = [tally(charges[b.start : b.stop]) for b in program.blocks]
    whole = _sum(blocks)
    charge_patterns(program, memory, charges, rates, blocks)
    resident = residency(device, occupied)
    waited = waits(program)
    executed = evaluation.block_counts
    waves = waves_of(launch, occupied.waves_per_workgroup)
    alone = {charge: _alone(charge) for charge in set(charges)}
    lacks_lds = not lds_bytes and any(charge.bytes_lds for charge in alone)
    if lacks_lds:
        assumed = (*assumed, _NO_LDS)
    body, inlined = line_costs(program.instructions, charges, resident)
    return CodeAnalysis(
        kernel=code.kernel,
        target=code.target,
        registers=_registers(descriptor),
        lds_bytes=lds_bytes,
        occupancy=occupied,
        instructions=whole.classes(),
        blocks=len(program.blocks),
        loops=loops(program, blocks, charges, resident, waited, evaluation.trip_count),
        straight=straight_cycles(program, blocks, resident),
        memory=memory,
        waits=waited,
        pressure=pressure(program),
        lines=body,
        matrix_kinds=whole.matrix_kinds(),
        matrix_flops_static=whole.matrix_flops(),
        executed=executed,
        executed_of_waves=evaluation.counts_of_waves,
        longest=evaluation.longest,
        unknown_counts=evaluation.unknown_blocks,
        executed_flops=_executed_work([b.matrix_flops() for b in blocks], executed, waves),
        not_modelled=(*assumed, *evaluation.notes, *_not_modelled(rates, charges)),
        arguments_read=evaluation.arguments_read,
        arguments_written=evaluation.arguments_written,
        arguments_updated=evaluation.arguments_updated,
        arguments_complete=evaluation.complete,
        requested_bytes=_of_all_waves(evaluation.requested, waves),
        inlined_lines=inlined,
        vector_flops_static=whole.vector_flops(),
        executed_vector_flops=_executed_work([b.vector_flops() for b in blocks], executed, waves),
        lacks_lds=lacks_lds,
        instruction_cycles=tuple([alone[charge] for charge in charges]),
    )


def _largest_workgroup(device: Device, descriptor: KernelDescriptor, lds_bytes: int) -> int:
    """Threads of the largest workgroup that the kernel allows and that fits a compute unit; the
    largest it allows where none fits."""
    threads = descriptor.max_workgroup_size
    while threads >= descriptor.wave_size:
        if kernel_occupancy(device, descriptor, lds_bytes, threads).fits:
            return threads
        threads //= 2
    return descriptor.max_workgroup_size


def _of_all_waves(
    requested: Mapping[str, tuple[float, float]], waves: int | None
) -> dict[str, tuple[float, float]]:
    if waves is None:
        return {}
    return {name: (loaded * waves, stored * waves) for name, (loaded, stored) in requested.items()}


def _registers(descriptor: KernelDescriptor) -> Registers:
    return Registers(
        vgpr=descriptor.vgprs,
        agpr=descriptor.agprs,
        sgpr=descriptor.sgprs,
        spilled_vgpr=descriptor.vgpr_spills,
        spilled_sgpr=descriptor.sgpr_spills,
        scratch_bytes=descriptor.scratch_bytes,
    )


def _sum(blocks: Iterable[Tally]) -> Tally:
    total = Tally()
    for block in blocks:
        total.add(block)
    return total


def _executed_work(
    work: Sequence[dict[str, float]], executed: Sequence[float | None], waves: int | None
) -> dict[str, float] | None:
    """Work of all waves of the launch; None when a block with work runs an unknown number of
    times."""
    if waves is None:
        return None
    totals: dict[str, float] = {}
    for index, by_dtype in enumerate(work):
        if not by_dtype:
            continue
        times = executed[index] if index < len(executed) else None
        if times is None:
            return None
        for dtype, flops in by_dtype.items():
            totals[dtype] = totals.get(dtype, 0.0) + flops * times * waves
    return totals


def _alone(charge: Charge) -> float:
    """Cycles one execution by one wave takes its pipe."""
    return max(charge.cycles, charge.shared_cycles or 0.0)


def _not_modelled(rates: Charges, charges: list[Charge]) -> tuple[str, ...]:
    notes: list[str] = list(_ALWAYS_LEFT_OUT)
    kinds = set(charges)
    if rates.lds_rate is None and any(charge.bytes_lds for charge in kinds):
        notes.append(f"LDS data cycles: no bytes per clock known for {rates.device.name}")
    if rates.cache_rate is None and any(charge.pipe == "vmem" for charge in kinds):
        notes.append(f"vector cache data cycles: no bytes per clock known for {rates.device.name}")
    unknown = sorted({c.klass for c in kinds if c.latency is None and c.klass in _WITH_RESULT})
    if unknown:
        notes.append(f"result latency of {', '.join(unknown)}: not published; issue time is used")
    return tuple(notes)
