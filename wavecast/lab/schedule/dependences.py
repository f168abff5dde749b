"""What may change places in a basic block: a graph of its instructions.

Registers stay as they are allocated, so reads after writes, writes after reads and writes after
writes all keep their order, but for two writes whose values nothing reads (LLVM ScheduleDAGInstrs
builds the same edges after register allocation). Waits, no-ops and hints for the issue of later
instructions are not nodes: they are regenerated for every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded
from wavecast.isa.liveness import Liveness
from wavecast.isa.opcode import Control, OpcodeFlag, Role
from wavecast.isa.program import Block, Program
from wavecast.lab.schedule.memory_order import accesses

_REMADE_HINTS: Final = frozenset({OpcodeFlag.CLAUSE, OpcodeFlag.DELAY})
_PINNED: Final = frozenset(
    {
        OpcodeFlag.PRIORITY,
        OpcodeFlag.SLEEP,
        OpcodeFlag.TRAP,
        OpcodeFlag.TRAP_RETURN,
        OpcodeFlag.CLOCK,
        OpcodeFlag.GETREG,
        OpcodeFlag.SETREG,
        OpcodeFlag.ROUND_MODE,
        OpcodeFlag.DENORM_MODE,
        OpcodeFlag.VGPR_MSB,
        OpcodeFlag.INDEX_ON,
        OpcodeFlag.INDEX_OFF,
        OpcodeFlag.INDEX_MODE,
        OpcodeFlag.INDEX_VALUE,
        OpcodeFlag.M0_SOURCE,
        OpcodeFlag.M0_DEST,
        OpcodeFlag.M0_DEST_HIGH,
    }
)
"""Instructions that act on later ones otherwise than by registers, or that name registers
indirectly: nothing passes them."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockGraph:
    """The instructions of a block that an order is about, and which must come before which.

    `nodes` are instruction indices in the compiler's order; `before[n]` and `after[n]` are the
    numbers of the nodes that must come before and after node n. `reads[n]` are those of
    `before[n]` whose results node n reads.
    """

    block: Block
    nodes: tuple[int, ...]
    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    reads: tuple[frozenset[int], ...]

    def allows(self, order: Sequence[int]) -> bool:
        """Whether an order of node numbers keeps what must be kept."""
        position = {node: at for at, node in enumerate(order)}
        return len(position) == len(self.nodes) and all(
            position[first] < position[node]
            for node, earlier in enumerate(self.before)
            for first in earlier
        )


def is_remade(decoded: Decoded) -> bool:
    """Whether an instruction is regenerated for every order: waits for counters and for arithmetic,
    no-ops, and hints about the instructions behind them."""
    row = decoded.opcode
    if row.role is Role.WAIT:
        return bool(row.waits or row.waits_for_all) or OpcodeFlag.WAIT_ALU in row.flags
    return row.role is Role.NOP or bool(row.flags & _REMADE_HINTS)


def is_pinned(decoded: Decoded) -> bool:
    """Whether nothing may pass an instruction."""
    row = decoded.opcode
    return (
        row.control is not Control.NONE
        or bool(row.flags & _PINNED)
        or row.role in (Role.WAIT, Role.HINT)
    )


def graph_of(program: Program, block: Block, live: Liveness) -> BlockGraph:
    """The graph of a block."""
    instructions = program.instructions
    nodes = tuple(
        index
        for index in range(block.start, block.stop)
        if not is_remade(instructions[index].decoded)
    )
    builder = _Builder(len(nodes))
    for number, index in enumerate(nodes):
        decoded = instructions[index].decoded
        builder.pin(number, pinned=is_pinned(decoded))
        builder.registers(
            number, decoded.reads, decoded.writes, decoded.writes & ~live.after[index]
        )
        builder.memory(number, *accesses(decoded))
    after: list[list[int]] = [[] for _ in nodes]
    for number, earlier in enumerate(builder.before):
        for first in earlier:
            after[first].append(number)
    return BlockGraph(
        block,
        nodes,
        tuple(tuple(sorted(earlier)) for earlier in builder.before),
        tuple(tuple(later) for later in after),
        tuple(frozenset(reads) for reads in builder.reads),
    )


@dataclass(slots=True)
class _Register:
    """The last write of a register whose value is read, and since then its reads, and the writes
    whose values nothing reads."""

    write: int | None
    reads: list[int]
    unread: list[int]


class _Builder:
    """Adds nodes in the compiler's order."""

    def __init__(self, count: int) -> None:
        self.before: list[set[int]] = [set() for _ in range(count)]
        self.reads: list[set[int]] = [set() for _ in range(count)]
        self._registers: dict[int, _Register] = {}
        self._stores: dict[int, int] = {}
        self._loads: dict[int, list[int]] = {}
        self._pin: int | None = None

    def pin(self, node: int, *, pinned: bool) -> None:
        """Order a node behind the last pinned one, or behind everything where it is pinned."""
        if pinned:
            first = 0 if self._pin is None else self._pin
            self.before[node].update(range(first, node))
            self._pin = node
        elif self._pin is not None:
            self.before[node].add(self._pin)

    def registers(self, node: int, reads: int, writes: int, unread: int) -> None:
        """Order a node by its registers; `unread` are those written whose value nothing reads."""
        before = self.before[node]
        for bit in bits_of(reads):
            register = self._register(bit)
            if register.write is not None:
                before.add(register.write)
                self.reads[node].add(register.write)
            before.update(register.unread)
        for bit in bits_of(writes):
            register = self._register(bit)
            if register.write is not None:
                before.add(register.write)
            before.update(register.reads)
            if unread >> bit & 1:
                register.unread.append(node)
            else:
                before.update(register.unread)
                self._registers[bit] = _Register(node, [], [])
        for bit in bits_of(reads & ~(writes & ~unread)):
            self._registers[bit].reads.append(node)
        before.discard(node)

    def _register(self, bit: int) -> _Register:
        return self._registers.setdefault(bit, _Register(None, [], []))

    def memory(self, node: int, reads: int, writes: int) -> None:
        """Order a node by the memories it accesses."""
        before = self.before[node]
        for memory in bits_of(reads | writes):
            if memory in self._stores:
                before.add(self._stores[memory])
            if writes >> memory & 1:
                before.update(self._loads.pop(memory, ()))
                self._stores[memory] = node
            else:
                self._loads.setdefault(memory, []).append(node)


__all__ = ["BlockGraph", "graph_of", "is_pinned", "is_remade"]
