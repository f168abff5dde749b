"""The effect of every instruction of a kernel on the registers of its waves."""

from __future__ import annotations

from wavecast.analyze.values.execute import Step, compile_step
from wavecast.analyze.values.inputs import Inputs
from wavecast.analyze.values.memory_step import Seen, scalar_load_step, spill_step, vector_step
from wavecast.analyze.values.slices import Slices
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Program


class Steps:
    """Compiled when first needed; addresses are taken down in `seen`."""

    def __init__(self, program: Program, parts: Slices, inputs: Inputs, sightings: Seen) -> None:
        self._program = program
        self._spills = parts.spills
        self._inputs = inputs
        self._seen = sightings
        self._by_text: dict[int, Step] = {}

    def __call__(self, index: int) -> Step:
        slots = self._spills.get(index)
        if slots is not None:
            return spill_step(slots)
        decoded = self._program.instructions[index].decoded
        step = self._by_text.get(id(decoded))
        if step is None:
            if decoded.memory is None or decoded.memory.kind is MemoryKind.PERMUTE:
                step = compile_step(decoded, self._inputs.lanes)
            elif decoded.memory.space is Space.SCALAR:
                step = scalar_load_step(decoded, self._inputs)
            else:
                step = vector_step(decoded, self._inputs.lanes, self._seen)
            self._by_text[id(decoded)] = step
        return step


__all__ = ["Steps"]
