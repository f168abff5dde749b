"""An order of a block's instructions as code: with its waits, no-ops and hints."""

from __future__ import annotations

from collections.abc import Sequence

from wavecast.analyze.sync.outstanding import OutstandingFlow
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import Program
from wavecast.lab.schedule import hints
from wavecast.lab.schedule.dependences import BlockGraph
from wavecast.lab.schedule.layout import Item
from wavecast.lab.schedule.replay import keeps_rows_apart, rows_apart
from wavecast.lab.schedule.wait_states import WaitStates, nop_texts
from wavecast.lab.schedule.waiting import BlockWaits, wait_texts


class BlockArranger:
    """Makes code of orders of one block."""

    def __init__(self, program: Program, graph: BlockGraph, flow: OutstandingFlow) -> None:
        self.graph = graph
        self._program = program
        self._waits = BlockWaits(graph, flow)
        self._states = WaitStates(program, graph)
        self._replayed = keeps_rows_apart(program)
        self._clauses = hints.has_flag(program, graph.block, OpcodeFlag.CLAUSE)
        self._delays = hints.has_flag(program, graph.block, OpcodeFlag.DELAY)

    def items(self, order: Sequence[int]) -> list[Item]:
        """The code of an order of node numbers."""
        target = self._program.target
        waits = [wait_texts(target, counts) if counts else [] for counts in self._waits.of(order)]
        states = self._states.of(order, [len(texts) for texts in waits])
        items: list[Item] = []
        for node, texts, missing in zip(order, waits, states, strict=True):
            items += texts
            if missing:
                items += nop_texts(missing)
            items.append(self.graph.nodes[node])
        if self._replayed:
            items = _insert_texts(items, rows_apart(self._read(items)))
        return self._insert_hints(items)

    def _insert_hints(self, items: list[Item]) -> list[Item]:
        if self._clauses:
            items = _insert_texts(items, hints.clauses(self._read(items)))
        if self._delays:
            items = _insert_texts(items, hints.delays(self._read(items)))
        return items

    def _read(self, items: Sequence[Item]) -> list[Decoded | str]:
        instructions = self._program.instructions
        return [item if isinstance(item, str) else instructions[item].decoded for item in items]


def _insert_texts(items: Sequence[Item], texts: Sequence[str]) -> list[Item]:
    result: list[Item] = []
    for item, text in zip(items, texts, strict=True):
        if text:
            result.append(text)
        result.append(item)
    return result


__all__ = ["BlockArranger"]
