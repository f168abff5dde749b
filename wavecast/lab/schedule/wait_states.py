"""The wait states that an order needs on targets that leave them to software (CDNA).

The rules are those of `analyze.sync.hazards`: every pair of instructions of a block that share a
register is checked as a program of two. Rules about three instructions, and what precedes the
block, are left to the check of the whole program (`repair`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from wavecast.analyze.sync import hazards
from wavecast.arch import capabilities
from wavecast.isa import parse
from wavecast.isa.cfg import build_program
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.opcode import Control
from wavecast.isa.program import Program
from wavecast.isa.targets import isa_target
from wavecast.lab.schedule.dependences import BlockGraph

MOST: Final = 8
"""Wait states of one no-op: what all targets here allow (`s_nop 7`)."""


class WaitStates:
    """Computes the no-ops of orders of one block."""

    def __init__(self, program: Program, graph: BlockGraph) -> None:
        self._needed: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
        self._iterations = 1 + (graph.block.index in graph.block.successors)
        if "wait_states" not in capabilities(isa_target(program.target)).hazards:
            return
        decoded = [program.instructions[index].decoded for index in graph.nodes]
        pairs = list(_pairs(decoded, repeats=self._iterations > 1))
        for (first, second), states in _states(program.target, decoded, pairs).items():
            self._needed[second].append((first, states))

    def of(self, order: Sequence[int], waits: Sequence[int]) -> list[int]:
        """The wait states missing right before each node of an order; `waits` are the instructions
        put before it already. The end of the order precedes its start too."""
        issued: dict[int, int] = {}
        missing = [0] * len(order)
        clock = 0
        for _ in range(self._iterations):
            for at, node in enumerate(order):
                clock += waits[at] + missing[at]
                for first, states in self._needed[node]:
                    if first in issued:
                        lacking = states - (clock - issued[first] - 1)
                        if lacking > 0:
                            missing[at] += lacking
                            clock += lacking
                issued[node] = clock
                clock += 1
        return missing


def _pairs(decoded: Sequence[Decoded], *, repeats: bool) -> Iterable[tuple[int, int]]:
    """Pairs (first, second) that may need wait states: those that share a register and may follow
    each other in some order."""
    users: dict[int, list[int]] = {}
    for number, item in enumerate(decoded):
        if item.opcode.control is not Control.NONE:
            continue  # its label is not in the program of pairs
        for bit in bits_of(item.reads | item.writes):
            users.setdefault(bit, []).append(number)
    pairs: set[tuple[int, int]] = set()
    for first, item in enumerate(decoded):
        if not item.opcode.is_vector and not item.writes:
            continue
        for bit in bits_of(item.writes | (item.reads if item.opcode.is_vector else 0)):
            for second in users.get(bit, ()):
                written = (item.writes | decoded[second].writes) >> bit & 1
                if written and (second > first or repeats):
                    pairs.add((first, second))
    return sorted(pairs)


def _states(
    target: str, decoded: Sequence[Decoded], pairs: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], int]:
    """Wait states that must lie between the instructions of each pair; pairs without are left out.

    Equal texts are checked once. Every pair of the program ends with s_endpgm, so that no other one
    precedes it.
    """
    texts: dict[tuple[Decoded, Decoded], int] = {}
    instructions: list[Instruction] = []
    end = _decode("s_endpgm", target)
    for first, second in pairs:
        key = decoded[first], decoded[second]
        if key not in texts:
            texts[key] = len(instructions) + 1
            for item in (*key, end):
                instructions.append(Instruction(item, len(instructions), 0, None))
    if not instructions:
        return {}
    program = build_program("pairs", target, instructions, {})
    missing: dict[int, int] = {}
    for violation in hazards(program):
        at = violation.instruction
        missing[at] = max(missing.get(at, 0), violation.value)
    return {
        (first, second): missing[at]
        for first, second in pairs
        if (at := texts[decoded[first], decoded[second]]) in missing
    }


def _decode(text: str, target: str) -> Decoded:
    program = parse(f".type f,@function\nf:\n\t{text}\n", target).functions["f"]
    return program.instructions[0].decoded


def nop_texts(states: int) -> list[str]:
    """No-ops of so many wait states."""
    texts = []
    while states > 0:
        texts.append(f"s_nop {min(states, MOST) - 1}")
        states -= MOST
    return texts


__all__ = ["WaitStates", "nop_texts"]
