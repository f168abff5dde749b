"""Another order for the loops of one launch's kernel: searched, assembled and verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from msgspec import structs

from wavecast.analyze.sync.outstanding import OutstandingFlow
from wavecast.arch import Device, capabilities
from wavecast.compile import hip
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.launch import AddressRange
from wavecast.errors import CompileError, MissingFact, WavecastError
from wavecast.isa import parse
from wavecast.isa.linking import names_data
from wavecast.isa.liveness import liveness
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import Kernel, Program
from wavecast.isa.targets import isa_target
from wavecast.json_objects import checked_object
from wavecast.lab.comparing import ExecutionResult, compare_launches
from wavecast.lab.figures import CodeFigures, figures_of_code
from wavecast.lab.schedule.arranging import BlockArranger
from wavecast.lab.schedule.asking import AskedOrder, FoundBlock, ask
from wavecast.lab.schedule.dependences import graph_of
from wavecast.lab.schedule.hints import has_flag
from wavecast.lab.schedule.layout import Item, Layout
from wavecast.lab.schedule.repair import insert_waits
from wavecast.lab.schedule.search import WORK, LoopOrder, LoopSearch
from wavecast.lab.schedule.steady import LoopPath, SteadyLoop, paths
from wavecast.perfmodel.predict import predict
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.pipeline.explain.prediction import predict_launch
from wavecast.pipeline.explain.reading import ReadLaunch, read_launch
from wavecast.sampling.executed import profile_of_sample

SHARE: Final = 0.02
"""The least part of the instructions that waves execute, for a loop to be searched."""


@dataclass(frozen=True, slots=True)
class LoopSchedule:
    """One innermost loop. `line` is its source line, `instructions` those of an iteration in the
    compiler's order. `before`, `remade`, `after` and `orders` as in `LoopOrder`."""

    line: str
    instructions: int
    before: float
    remade: float
    after: float
    orders: int

    @property
    def saved(self) -> float:
        """The part of the clocks of the compiler's order that the best order saves."""
        return max(0.0, 1 - self.after / self.before)


@dataclass(frozen=True, slots=True)
class KernelSchedule:
    """The schedule found for a launch on a device.

    `before` are the figures of the compiler's code, `after` those of the new one; None where no
    order is faster. `wrong` says why an order that was found is discarded: results that differ,
    a check that it fails, or an assembler that refuses it. `assembly` is the new code, and
    `original` the compiler's, "" where no order is faster. `asked` is what the compiler makes
    of the order where it is asked for it.
    """

    loops: tuple[LoopSchedule, ...]
    before: CodeFigures
    after: CodeFigures | None = None
    execution: ExecutionResult | None = None
    wrong: str = ""
    assembly: str = ""
    original: str = ""
    asked: AskedOrder | None = None

    @property
    def saved(self) -> float:
        """The part of the launch's predicted time that the new order saves."""
        if self.after is None or self.wrong or not self.before.seconds or not self.after.seconds:
            return 0.0
        return max(0.0, 1 - self.after.seconds / self.before.seconds)

    def to_json(self) -> dict[str, Any]:
        """The schedule as JSON values."""
        after = self.after.to_json() if self.after else None
        asked = structs.asdict(self.asked) if self.asked else None
        changed = {"before": self.before.to_json(), "after": after, "asked": asked}
        return {**asdict(self), **changed}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> KernelSchedule:
        """The schedule that `to_json` was called on. Raises KeyError, TypeError, ValueError."""
        execution, after = document["execution"], document["after"]
        asked = document.get("asked")
        parts = {
            "loops": tuple(checked_object(LoopSchedule, loop) for loop in document["loops"]),
            "before": CodeFigures.from_json(document["before"]),
            "after": CodeFigures.from_json(after) if after else None,
            "execution": ExecutionResult.from_json(execution) if execution else None,
            "asked": checked_object(AskedOrder, asked) if asked else None,
        }
        return checked_object(KernelSchedule, {**document, **parts})


def schedule(
    launch: Launch,
    ranges: Sequence[AddressRange],
    device: Device,
    *,
    seed: int = 0,
    work: int = WORK,
    asks: bool = False,
) -> KernelSchedule:
    """Search another order for the innermost loops of a launch's kernel.

    `ranges` are the host addresses the launch may touch; memory stays as it is. `work` is about how
    many instructions the search simulates. With `asks`, the compiler is asked for an order that is
    faster. Raises Unpredictable and ExecutionError where the launch
    has no profile, MissingFact for a target whose hazards are not known, CompileError for a kernel
    without a loop that waves execute.
    """
    read = read_launch(launch, device)
    assert isinstance(read.kernel, Kernel)
    refuse_unknown_hazards(read.kernel)
    refuse_data_of_objects(launch.code)
    profile, figures = _profile(read, ranges, device)
    loop_orders = _search_loops(profile, device, seed, work)
    loops = tuple(_loop(profile.program, path, order) for path, order in loop_orders)
    new_blocks = _faster_blocks(loop_orders)
    if not new_blocks:
        return KernelSchedule(loops, figures)
    layout = Layout.of(profile.program)
    for block, items in new_blocks.items():
        layout = layout.with_block(block, items)
    result = _verify(KernelSchedule(loops, figures), launch, ranges, device, layout)
    if not asks or not result.saved:
        return result
    blocks = [FoundBlock(block, tuple(items)) for block, items in new_blocks.items()]

    def timed(candidate: Launch) -> float | None:
        return _profile(read_launch(candidate, device), ranges, device)[1].seconds

    assert figures.seconds is not None
    after = figures.seconds * (1 - result.saved)
    times = figures.seconds, after
    return replace(
        result, asked=ask(launch, profile.program, blocks, ranges, device, timed, *times)
    )


def faster_orders(
    launch: Launch,
    ranges: Sequence[AddressRange],
    device: Device,
    *,
    seed: int = 0,
    work: int = WORK,
) -> dict[int, tuple[Item, ...]]:
    """The blocks of the innermost loops of a launch's kernel whose best order is faster, in that
    order. Raises as `schedule`."""
    profile, _ = _profile(read_launch(launch, device), ranges, device)
    return _faster_blocks(_search_loops(profile, device, seed, work))


def _faster_blocks(
    loop_orders: Sequence[tuple[LoopPath, LoopOrder]],
) -> dict[int, tuple[Item, ...]]:
    return {
        block: items
        for _, order in loop_orders
        if order.after < order.before
        for block, items in order.blocks.items()
    }


def refuse_unknown_hazards(kernel: Kernel) -> None:
    """Raise MissingFact where the hazards of the code are not known."""
    target = isa_target(kernel.program.target)
    hazards = capabilities(target).hazards
    if not hazards or ("wait_states" not in hazards and kernel.descriptor.wave_size == _WIDE_WAVE):
        lanes = kernel.descriptor.wave_size
        raise MissingFact(f"the hazards of {target} with waves of {lanes} lanes are not known")


def refuse_data_of_objects(code: CodeObject) -> None:
    """Raise CompileError for a kernel of a code object that uses data of the object: its
    disassembly does not have them, so nothing links it again."""
    if code.origin != "elf":
        return
    program = parse_kernel(code, link=True).program
    if names_data(program.instructions, program.entries):
        raise CompileError("it uses data of its object, which its disassembly does not have")


_WIDE_WAVE: Final = 64
"""RDNA 3 has hazards of waves of 64 lanes only (LLVM GCNHazardRecognizer.cpp,
fixVALUPartialForwardingHazard, fixVALUMaskWriteHazard), which `analyze.sync` does not check."""


def _profile(
    read: ReadLaunch, ranges: Sequence[AddressRange], device: Device
) -> tuple[LaunchProfile, CodeFigures]:
    """The profile from code where that says enough, else of an executed sample; and the figures."""
    figures = figures_of_code(read)
    answer = predict_launch(read.launch, read.analysis, read.kernel, device)
    if answer.prediction is not None and answer.profile is not None:
        return answer.profile, figures.with_time(answer.prediction)
    profile = profile_of_sample(read.launch, ranges, device)
    return profile, figures.with_time(predict(profile, device))


def _search_loops(
    profile: LaunchProfile, device: Device, seed: int, work: int
) -> list[tuple[LoopPath, LoopOrder]]:
    """The loops that matter, and the best order of each."""
    program = profile.program
    live, flow = liveness(program), OutstandingFlow(program)
    loop_paths = paths(profile)
    length = {
        index: path.executions * sum(_length(program, block) for block in path.blocks)
        for index, path in loop_paths.items()
    }
    total = float(profile.streams.weights.sum())
    worth = {index: cycles for index, cycles in length.items() if cycles >= SHARE * total}
    if not worth:
        raise CompileError(f"{program.name}: waves execute no loop that matters")
    orders = []
    for index in worth:
        path = loop_paths[index]
        arrangers = {
            block: BlockArranger(program, graph_of(program, program.blocks[block], live), flow)
            for block in path.blocks
            if not has_flag(program, program.blocks[block], OpcodeFlag.GETPC)
        }
        share = round(work * worth[index] / sum(worth.values()))
        loop = SteadyLoop(profile, device, path)
        orders.append((path, LoopSearch(loop, arrangers, seed, share).run()))
    return orders


def _length(program: Program, block: int) -> int:
    return program.blocks[block].stop - program.blocks[block].start


def _loop(program: Program, path: LoopPath, order: LoopOrder) -> LoopSchedule:
    loop = program.innermost_loop[path.blocks[0]]
    location = program.loops[loop].location if loop is not None else None
    return LoopSchedule(
        str(location) if location is not None else "",
        sum(_length(program, block) for block in path.blocks),
        order.before,
        order.remade,
        order.after,
        order.orders,
    )


def _verify(
    candidate: KernelSchedule,
    launch: Launch,
    ranges: Sequence[AddressRange],
    device: Device,
    layout: Layout,
) -> KernelSchedule:
    """The schedule with the code of a layout, executed next to the original."""
    try:
        changed = rearrange(launch, layout, device)
        read = read_launch(changed, device)
        _, figures = _profile(read, ranges, device)
    except WavecastError as error:
        return replace(candidate, wrong=error.message)
    execution = compare_launches(launch, changed, ranges, rounding=False)
    result = replace(
        candidate,
        after=figures,
        execution=execution,
        assembly=changed.code.assembly,
        original=launch.code.assembly,
    )
    faults = [fault for fault in figures.faults if fault not in candidate.before.faults]
    if faults:
        return replace(result, wrong=faults[0])
    if not execution.same:
        return replace(result, wrong=execution.difference or "; ".join(execution.reports))
    return result


def rearrange(launch: Launch, layout: Layout, device: Device) -> Launch:
    """A launch with the code of a layout of its program, with the waits and wait states that lack.
    Raises CompileError where the checks or the assembler refuse it."""
    code = launch.code

    def program_of(text: str) -> Program:
        return parse(text, code.target, kernel=code.kernel).kernels[code.kernel].program

    new_layout = insert_waits(layout, code.assembly, program_of)
    return replace(launch, code=_assemble(code, new_layout.text(code.assembly), device))


def _assemble(code: CodeObject, text: str, device: Device) -> CodeObject:
    """The kernel with other assembly: Triton assembles its kernels, and the compiler of HIP files
    the others. Raises CompileError, MissingTool."""
    from wavecast.runtimes.triton.generate import assemble, with_machine_code

    if code.origin == "triton":
        return assemble(code, text, device)
    return with_machine_code(code, text, hip.assemble_program(text, code.target))


__all__ = [
    "KernelSchedule",
    "LoopSchedule",
    "faster_orders",
    "rearrange",
    "refuse_data_of_objects",
    "refuse_unknown_hazards",
    "schedule",
]
