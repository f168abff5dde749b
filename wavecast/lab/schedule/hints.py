"""Hints about the instructions behind them, for orders of a block whose code has such hints.

They change no result. `s_clause` says that loads or stores in a row are issued together, and
`s_delay_alu` which earlier results the next instructions need. Source: LLVM SIInsertHardClauses.cpp
and AMDGPUInsertDelayAlu.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import VECTOR_FORMS, MemoryKind, OpcodeFlag, Space
from wavecast.isa.program import Block, Program

LONGEST_CLAUSE: Final = 63
"""Instructions of a clause (LLVM GCNSubtarget.h, MaxHardClauseLength)."""
_CLOCKS: Final = {"vector": 5, "trans": 10, "scalar": 2}
"""Clocks until a result is there (LLVM SISchedule.td, GFX11SpeedModel: Write32Bit, WriteTrans32,
WriteSALU)."""
_VECTOR_REACH: Final = 4
_TRANS_REACH: Final = 3
_SCALAR_REACH: Final = 3
"""The farthest earlier instruction of its sort that the hint can name, or the most clocks."""
_SKIPS: Final = ("SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")


def has_flag(program: Program, block: Block, flag: OpcodeFlag) -> bool:
    """Whether an instruction of a block has a flag."""
    instructions = program.instructions[block.start : block.stop]
    return any(flag in item.decoded.opcode.flags for item in instructions)


def clauses(items: Sequence[Decoded | str]) -> list[str]:
    """The hint before each item, "" for none. Text items (waits, no-ops) end a clause."""
    hints = [""] * len(items)
    start, kind = 0, ""
    for at in range(len(items) + 1):
        item = items[at] if at < len(items) else ""
        here = _clause_kind(item) if isinstance(item, Decoded) else ""
        if here and here == kind and at - start < LONGEST_CLAUSE:
            continue
        if kind and at - start > 1:
            hints[start] = f"s_clause {at - start - 1:#x}"
        start, kind = at, here
    return hints


def _clause_kind(decoded: Decoded) -> str:
    memory = decoded.memory
    if memory is None or memory.space is Space.LDS:
        return ""
    if memory.kind not in (MemoryKind.LOAD, MemoryKind.STORE):
        return ""
    space = "scalar" if memory.space is Space.SCALAR else "vector"
    flat = "flat" if memory.space is Space.FLAT else ""
    return f"{space} {flat} {memory.kind.value}"


@dataclass(slots=True)
class _Result:
    """What produced a register: clocks until it is there, and vector and transcendental
    instructions since, itself included."""

    kind: str
    clocks: int
    vectors: int = 0
    transcendentals: int = 0


@dataclass(slots=True)
class _Open:
    """A hint that may still name a second instruction: its item, its text, and how many
    instructions have come since."""

    item: int
    text: str
    passed: int = 0


@dataclass(slots=True)
class _Delays:
    found: list[str]
    results: dict[int, _Result] = field(default_factory=dict)
    open: _Open | None = None

    def name(self, at: int, what: str) -> None:
        """Let the instruction at `at` wait for `what`."""
        if self.open is not None and self.open.passed < len(_SKIPS):
            skip = _SKIPS[self.open.passed]
            self.found[self.open.item] = f"{self.open.text} | instskip({skip}) | instid1({what})"
            self.open = None
            return
        text = f"s_delay_alu instid0({what})"
        self.found[at] = text
        self.open = _Open(at, text)


def delays(items: Sequence[Decoded | str]) -> list[str]:
    """The hint before each item, "" for none. Nothing is known about what precedes the items."""
    state = _Delays([""] * len(items))
    for at, item in enumerate(items):
        if isinstance(item, Decoded):
            kind = _kind(item)
            if kind:
                what = _late(item, state.results)
                if what:
                    state.name(at, what)
                clocks = _CLOCKS[kind]
                for bit in bits_of(item.writes):
                    state.results[bit] = _Result(kind, clocks)
            if item.memory is not None:  # it waits for all results itself
                state.results.clear()
            _pass(state, kind)
        else:
            _pass(state, "")
    return state.found


def _pass(state: _Delays, kind: str) -> None:
    """One more instruction of a kind has been issued."""
    for bit, result in list(state.results.items()):
        result.clocks -= 1
        result.vectors += kind == "vector"
        result.transcendentals += kind == "trans"
        if result.clocks <= 0:
            del state.results[bit]
    if state.open is not None:
        state.open.passed += 1


def _kind(decoded: Decoded) -> str:
    row = decoded.opcode
    if row.form in VECTOR_FORMS:
        return "trans" if row.cost_class.startswith("trans") else "vector"
    return "scalar" if row.cost_class.startswith("salu") else ""


def _late(decoded: Decoded, results: dict[int, _Result]) -> str:
    """The latest result that an instruction needs and that is not there yet, "" for none."""
    sources = [results[bit] for bit in bits_of(decoded.reads) if bit in results]
    best = max(sources, key=_clocks, default=None)
    if best is None:
        return ""
    if best.kind == "trans" and best.transcendentals <= _TRANS_REACH:
        return f"TRANS32_DEP_{best.transcendentals}"
    if best.kind == "vector" and best.vectors <= _VECTOR_REACH:
        return f"VALU_DEP_{best.vectors}"
    if best.kind == "scalar" and best.clocks <= _SCALAR_REACH:
        return f"SALU_CYCLE_{best.clocks}"
    return ""


def _clocks(result: _Result) -> int:
    return result.clocks


__all__ = ["clauses", "delays", "has_flag"]
