"""One NVIDIA kernel on one device: resources, occupancy, SASS mix, tensor-core use, loops."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wavecast.analyze.launch import threads_of, waves_of
from wavecast.analyze.lines import line_costs
from wavecast.analyze.loops import loops, straight_cycles
from wavecast.analyze.occupancy import ResourceDemand, occupancy
from wavecast.analyze.pipes import Tally, residency, tally
from wavecast.analyze.result import CodeAnalysis, MemoryInstruction, Registers, Wait
from wavecast.analyze.sass import parser, tcgen05
from wavecast.analyze.sass.executed import SassExecution, execute_launch
from wavecast.analyze.sass.rates import SassCharges
from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.errors import InputError, Unpredictable
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Control, MemoryKind, Role, Space
from wavecast.isa.program import Program

TENSOR_CORE_KINDS = {"mma_sync": "mma.sync", "wgmma": "wgmma", "tcgen05": "tcgen05"}
"""Cost class of a matrix instruction -> the PTX family it belongs to."""

_SPIN = frozenset({"branch", "wait", "other"})
"""A loop of nothing else polls a barrier; it is not a loop of the kernel's source."""
_ALWAYS_LEFT_OUT = (
    "register dependencies of SASS in the cycles of loops",
    "uniform datapath and constant cache time: no rates are published",
    "operands that wgmma and tcgen05 read from shared memory",
    "branches inside a loop are taken as executed every iteration",
)
_NO_SIZE = "block size: neither launch nor kernel fixes it; its largest, or one warp, is assumed"
_REGISTER_BYTES = 4
_DEPENDENCY_BARRIER = re.compile(r"(\w+), 0x([0-9a-f]+)")


def sass_program(code: CodeObject) -> Program:
    """The program of an NVIDIA kernel. Raises InputError when there is no SASS for it."""
    sass = code.stages.get("sass", "")
    if not isinstance(sass, str) or not sass:
        raise InputError(f"kernel {code.kernel!r} has no SASS", hint="nvdisasm prints it")
    return parser.parse(sass, code.kernel, code.target, code.moved_files)


def analyze_nvidia(
    code: CodeObject, device: Device, launch: Launch | None = None, program: Program | None = None
) -> CodeAnalysis:
    """Read one NVIDIA kernel for one device from its `program`, by default that of its SASS.

    `code.options` may hold what cuobjdump reports: `registers` per thread, `static_shared`,
    `local_bytes` and `stack_bytes`; without them registers and spills are counted in the code.
    Raises InputError when there is no SASS for the kernel.
    """
    program = program or sass_program(code)
    registers = _registers(code, program)
    shared_bytes = _static_shared(code, device) + (
        launch.dynamic_lds if launch else code.dynamic_lds
    )
    threads = threads_of(code, launch)
    assumed = () if threads else (_NO_SIZE,)
    threads = threads or _option(code.options, "max_threads") or device.limits().wave_lanes
    occupied = occupancy(
        device.limits(), ResourceDemand(registers.vgpr, 0, 0, shared_bytes, threads)
    )
    rates = SassCharges(code.target, occupied.waves_per_workgroup, tcgen05.shapes(program))
    charges = [rates.of(i.decoded, i.index) for i in program.instructions]
    reachable = _reachable(program)
    blocks = [
        tally(charges[b.start : b.stop]) if b.index in reachable else Tally()
        for b in program.blocks
    ]
    whole = Tally()
    for block in blocks:
        whole.add(block)
    resident = residency(device, occupied)
    ran = _execute(program, launch)
    waited = _waits(program, reachable)
    running = [instruction for instruction, _ in _code(program, reachable)]
    body, inlined = line_costs(running, [charges[i.index] for i in running], resident)
    flops, tensor_core = whole.matrix_flops(), _tensor_core(program, reachable)
    return CodeAnalysis(
        kernel=code.kernel,
        target=code.target,
        registers=registers,
        lds_bytes=shared_bytes,
        occupancy=occupied,
        instructions=whole.classes(),
        blocks=len(reachable),
        loops=tuple(
            loop
            for loop in loops(program, blocks, None, resident, waited, ran.trip_count)
            if not loop.instructions.keys() <= _SPIN
        ),
        straight=straight_cycles(program, blocks, resident),
        memory=_memory(program, reachable, ran.found, device),
        waits=waited,
        pressure=None,
        lines=body,
        matrix_kinds=whole.matrix_kinds(),
        matrix_flops_static=flops,
        executed=ran.found.blocks if ran.found else (),
        executed_flops=ran.flops(
            program, blocks, flops, waves_of(launch, occupied.waves_per_workgroup)
        ),
        not_modelled=(*assumed, *_not_modelled(code, program, rates, ran.why_not)),
        extra={"tensor cores": ", ".join(tensor_core)} if tensor_core else {},
        inlined_lines=inlined,
        vector_flops_static=whole.vector_flops(),
        tensor_core=tensor_core,
        async_copies=_async_copies(program, reachable),
    )


@dataclass(frozen=True, slots=True)
class _Executed:
    """What a launch executes, or why that is not known."""

    found: SassExecution | None
    why_not: str = ""

    def trip_count(self, loop: int) -> tuple[float | None, str]:
        """Iterations of a loop per entry, and why they are not known."""
        return (None, self.why_not) if self.found is None else (self.found.trips[loop], "")

    def flops(
        self,
        program: Program,
        blocks: list[Tally],
        flops: Mapping[str, float],
        waves: int | None,
    ) -> dict[str, float] | None:
        """Matrix operations of the launch; None when executions that decide it are not known."""
        if waves is None:
            return None
        if self.found is None:
            always = _always_executed(program)
            if any(
                block_tally.matrix_flops() and at not in always
                for at, block_tally in enumerate(blocks)
            ):
                return None
            return {dtype: count * waves for dtype, count in flops.items()}
        total: dict[str, float] = defaultdict(float)
        for block, block_tally, usual, most in zip(
            program.blocks, blocks, self.found.blocks, self.found.most, strict=True
        ):
            elected = any(
                i.opcode.cost_class == "tcgen05" for i in program.block_instructions(block.index)
            )  # one warp issues for all, and a charge is the share of each
            for dtype, count in block_tally.matrix_flops().items():
                total[dtype] += count * waves * (most if elected else usual)
        return dict(total)


def _execute(program: Program, launch: Launch | None) -> _Executed:
    if launch is None or not all(launch.grid):
        return _Executed(None, "the grid of the launch is not known")
    try:
        return _Executed(execute_launch(program, launch))
    except Unpredictable as error:
        return _Executed(None, error.message)


def _option(options: Mapping[str, object], name: str) -> int | None:
    value = options.get(name)
    return value if isinstance(value, int) else None


def _registers(code: CodeObject, program: Program) -> Registers:
    """Registers per thread and local memory; spilled registers are those the code stores to it.

    A store of 4 bytes to local memory spills one register; stores to one address count once.
    """
    register_count = _option(code.options, "registers")
    local = (_option(code.options, "local_bytes") or 0) + (
        _option(code.options, "stack_bytes") or 0
    )
    slots: dict[str, int] = {}
    for instruction in program.instructions:
        memory = instruction.memory
        if memory is None or memory.space is not Space.SCRATCH:
            continue
        if memory.kind is not MemoryKind.STORE:
            continue
        address = instruction.decoded.text.partition("[")[2].partition("]")[0]
        slots[address] = max(memory.bytes, slots.get(address, 0))
    spilled = sum(-(-size // _REGISTER_BYTES) for size in slots.values())
    return Registers(
        vgpr=register_count if register_count is not None else parser.highest_register(program),
        agpr=0,
        sgpr=0,
        spilled_vgpr=spilled,
        spilled_sgpr=0,
        scratch_bytes=max(local, sum(slots.values())),
    )


def _static_shared(code: CodeObject, device: Device) -> int:
    """Shared memory of the kernel itself. From sm_90 on, the figure of the code object includes
    what the system reserves, which `OccupancyLimits` adds for every block."""
    static = _option(code.options, "static_shared") or 0
    number = "".join(ch for ch in code.target if ch.isdigit())
    if number and int(number) >= 90:
        static = max(0, static - device.limits().lds_reserved_per_workgroup)
    return static


def _reachable(program: Program) -> frozenset[int]:
    """Blocks control can reach, called subroutines included; the rest is padding."""
    by_label = {block.label: block.index for block in program.blocks if block.label}
    numbers: set[int] = set()
    stack = [0]
    while stack:
        number = stack.pop()
        if number in numbers:
            continue
        numbers.add(number)
        stack.extend(program.blocks[number].successors)
        for instruction in program.block_instructions(number):
            if instruction.opcode.control is Control.CALL:
                stack.extend(by_label[o.text] for o in instruction.operands if o.text in by_label)
    return frozenset(numbers)


def _code(program: Program, reachable: frozenset[int]) -> Iterator[tuple[Instruction, int | None]]:
    """Every instruction control can reach, with the innermost loop around it."""
    for block in program.blocks:
        if block.index in reachable:
            for instruction in program.block_instructions(block.index):
                yield instruction, program.innermost_loop[block.index]


def _waits(program: Program, reachable: frozenset[int]) -> tuple[Wait, ...]:
    """Waits for asynchronous copies and matrix products, with the number that may be outstanding.

    Waits on a memory barrier (`mbarrier`) are for one phase, not a count.
    """
    code_waits = []
    for instruction, loop in _code(program, reachable):
        if instruction.opcode.role is not Role.WAIT:
            continue
        match = _DEPENDENCY_BARRIER.search(instruction.decoded.text)
        counters = {match[1]: int(match[2], 16)} if match else {"mbarrier": 1}
        full = match is not None and int(match[2], 16) == 0
        code_waits.append(Wait(instruction.index, counters, full, instruction.location, loop))
    return tuple(code_waits)


def _memory(
    program: Program, reachable: frozenset[int], ran: SassExecution | None, device: Device
) -> tuple[MemoryInstruction, ...]:
    """Memory instructions by space and width, with what their lanes touch where that is known."""
    line = device.facts.integer("l1v_line", "B")
    entries = []
    for instruction, loop in _code(program, reachable):
        memory = instruction.memory
        if memory is None:
            continue
        pattern = ran.patterns.get(instruction.index) if ran else None
        in_memory = memory.space in (Space.GLOBAL, Space.FLAT)
        entries.append(
            MemoryInstruction(
                index=instruction.index,
                mnemonic=instruction.mnemonic,
                space=memory.space.value,
                kind=memory.kind.value,
                bytes_per_lane=memory.bytes,
                argument=pattern.argument if pattern else "",
                pattern=pattern.pattern if pattern else "unknown",
                stride=pattern.stride if pattern else None,
                lines=pattern.lines(line) if pattern and in_memory else None,
                transactions_ideal=pattern.ideal_lines(line) if pattern and in_memory else None,
                conflict_ways=ran.passes.get(instruction.index) if ran else None,
                location=instruction.location,
                loop=loop,
                lanes=pattern.lanes if pattern else None,
                row_bytes=pattern.row_bytes if pattern else None,
            )
        )
    return tuple(entries)


def _tensor_core(program: Program, reachable: frozenset[int]) -> dict[str, int]:
    """Matrix instructions by PTX family: `mma.sync`, `wgmma`, `tcgen05`."""
    costs = Counter(instruction.opcode.cost_class for instruction, _ in _code(program, reachable))
    return {name: costs[cost] for cost, name in TENSOR_CORE_KINDS.items() if costs[cost]}


def _async_copies(program: Program, reachable: frozenset[int]) -> dict[str, int]:
    """Copies from global to shared memory that bypass registers: `cp.async` and TMA."""
    counts = Counter(
        "tma" if instruction.opcode.cost_class == "tma" else "cp.async"
        for instruction, _ in _code(program, reachable)
        if instruction.memory is not None
        and instruction.memory.kind in (MemoryKind.LOAD_TO_LDS, MemoryKind.STORE_FROM_LDS)
    )
    return dict(counts)


def _always_executed(program: Program) -> frozenset[int]:
    """Blocks outside loops on every path: each, entry first, with a single way on."""
    numbers = []
    number = 0
    while program.innermost_loop[number] is None:
        numbers.append(number)
        successors = program.blocks[number].successors
        if len(successors) != 1 or successors[0] in numbers:
            break
        number = successors[0]
    return frozenset(numbers)


def _not_modelled(
    code: CodeObject, program: Program, rates: SassCharges, why_not: str
) -> tuple[str, ...]:
    notes: list[str] = list(_ALWAYS_LEFT_OUT)
    if why_not:
        notes.insert(0, f"trip counts and address patterns: {why_not}")
    if not rates.rates:
        notes.append(f"cycles: no instruction rates are known for {code.target}")
    else:
        notes += [f"rate of {name} on {code.target}" for name in sorted(rates.unknown_rates)]
    notes += [f"SASS opcode {name}: counted as other" for name in sorted(rates.unknown_opcodes)]
    if any(i.opcode.control is Control.INDIRECT for i in program.instructions):
        notes.append("computed branches: their targets are not followed")
    if any(
        i.opcode.cost_class == "tcgen05" and i.index not in rates.shapes
        for i in program.instructions
    ):
        notes.append("tcgen05 instructions whose descriptor is not a constant: their shape")
    if _option(code.options, "registers") is None:
        notes.append("registers per thread: the highest one named, not the code object's figure")
    return tuple(notes)
