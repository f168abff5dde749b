"""Other decisions for code that no compiler is asked for: assembly, and kernels of code objects.

Its order, its waits and the priorities of its waves are changed, as `axes.toml` says; registers
stay as they are allocated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from wavecast.analyze.sync.outstanding import OutstandingFlow
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.emulate.launch import AddressRange
from wavecast.isa.liveness import liveness
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import Kernel, Program
from wavecast.lab.schedule.arranging import BlockArranger
from wavecast.lab.schedule.dependences import graph_of
from wavecast.lab.schedule.hints import has_flag
from wavecast.lab.schedule.kernel import (
    faster_orders,
    rearrange,
    refuse_data_of_objects,
    refuse_unknown_hazards,
)
from wavecast.lab.schedule.layout import Item, Layout
from wavecast.lab.schedule.priorities import with_priorities, without_priorities
from wavecast.pipeline.explain.reading import read_launch

ORDER: Final = "order"
WAITS: Final = "waits"
PRIORITY: Final = "setprio"
NOWHERE: Final = "none"
"""The value of `PRIORITY` that removes all."""

Blocks = Mapping[int, Sequence[Item]]


@dataclass(slots=True)
class CodeChanger:
    """Changes the code of a launch for a device; an order is searched once for each code."""

    launch: Launch
    ranges: Sequence[AddressRange]
    device: Device
    _orders: dict[str, Blocks] = field(default_factory=dict)

    def changed(self, values: Mapping[str, Any]) -> Launch:
        """The launch with values of the axes. Raises MissingFact for a target whose hazards are not
        known, CompileError where the checks or the assembler refuse the code or it has no loop that
        waves execute, Unpredictable and ExecutionError where an order needs a profile that there is
        not."""
        launch = self.launch
        program = self._program(launch)
        layout = Layout.of(program)
        if PRIORITY in values:
            plain = without_priorities(layout)
            if plain.blocks != layout.blocks:
                launch = rearrange(launch, plain, self.device)
                program = self._program(launch)
                layout = Layout.of(program)
        for block, items in self._blocks(launch, program, values).items():
            layout = layout.with_block(block, items)
        where = values.get(PRIORITY, NOWHERE)
        if where != NOWHERE:
            layout = with_priorities(layout, where)
        if layout.blocks == Layout.of(program).blocks:
            return launch
        return rearrange(launch, layout, self.device)

    def _program(self, launch: Launch) -> Program:
        kernel = read_launch(launch, self.device).kernel
        assert isinstance(kernel, Kernel)
        refuse_unknown_hazards(kernel)
        refuse_data_of_objects(launch.code)
        return kernel.program

    def _blocks(self, launch: Launch, program: Program, values: Mapping[str, Any]) -> Blocks:
        """The blocks of a program with another order, or with new waits."""
        blocks: dict[int, Sequence[Item]] = {}
        if WAITS in values:
            blocks |= with_new_waits(program)
        if ORDER in values:
            name = launch.code.digest
            if name not in self._orders:
                self._orders[name] = faster_orders(launch, self.ranges, self.device)
            blocks |= self._orders[name]
        return blocks


def with_new_waits(program: Program) -> Blocks:
    """Every block in its order with waits, no-ops and hints as late and as few as is correct."""
    live, flow = liveness(program), OutstandingFlow(program)
    blocks = {}
    for block in program.blocks:
        if flow.entries[block.index] is None or has_flag(program, block, OpcodeFlag.GETPC):
            continue
        graph = graph_of(program, block, live)
        if graph.nodes:
            arranger = BlockArranger(program, graph, flow)
            blocks[block.index] = arranger.items(range(len(graph.nodes)))
    return blocks


__all__ = ["CodeChanger", "with_new_waits"]
