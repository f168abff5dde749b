"""An order of instructions as groups of `sched_group_barrier`, and the source with them.

A call asks LLVM for a group of some instructions of a kind; calls in a row ask for groups in a row.
Kinds that are not asked for go where they may. Source: LLVM AMDGPUUsage,
`llvm.amdgcn.sched.group.barrier`; AMDGPUIGroupLP.cpp, SchedGroup::canAddMI.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from wavecast.errors import CompileError
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.lab.edits import MASKS

MOST: Final = 96
"""Groups of a block that LLVM is asked for: its solver takes their number squared."""
UNROLLED: Final = (1, 2, 4, 8, 16)
"""Iterations of a source loop in one of the machine's that are tried."""
_READS: Final = (MemoryKind.LOAD, MemoryKind.LOAD_TO_LDS)
_VECTOR: Final = (Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCRATCH)
_NOTHING: Final = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
_LOOP: Final = re.compile(r"\b(?:for|while)\s*\(|\bdo\s*\{")
_CALL: Final = "__builtin_amdgcn_sched_group_barrier({mask:#x}, {size}, 0);"

Group = tuple[str, int]
"""A kind of `MASKS`, and how many instructions."""


def kind_of(decoded: Decoded) -> str:
    """The kind of an instruction among `MASKS`, "" for others."""
    memory = decoded.memory
    if memory is not None and memory.space in _VECTOR:
        if memory.kind in _READS:
            return "vmem_read"
        return "vmem_write" if memory.kind is MemoryKind.STORE else ""
    if memory is not None and memory.space is Space.LDS:
        if memory.kind in (MemoryKind.LOAD, MemoryKind.PERMUTE):
            return "lds_read"
        return "lds_write" if memory.kind is MemoryKind.STORE else ""
    cost = decoded.opcode.cost_class
    return "matrix" if cost == "matrix" else "valu" if cost.startswith(("valu", "trans")) else ""


def group_variants(order: Sequence[Decoded]) -> Iterator[tuple[Group, ...]]:
    """Groups that ask for an order, each once: with and without plain vector instructions, whole or
    as the first part of a loop that is unrolled, `MOST` at most."""
    kinds = [kind_of(decoded) for decoded in order]
    seen = set()
    has_matrix = "matrix" in kinds
    for left_out in (("", "valu"), ("",)) if has_matrix else (("",),):
        asked = [kind for kind in kinds if kind not in left_out]
        common = math.gcd(*Counter(asked).values())
        for times in UNROLLED:
            groups = runs(asked[: len(asked) // times])
            if common % times == 0 and 1 < len(groups) <= MOST and groups not in seen:
                seen.add(groups)
                yield groups


def runs(kinds: Iterable[str]) -> tuple[Group, ...]:
    """Equal neighbours as groups."""
    return tuple((kind, len([*run])) for kind, run in groupby(kinds))


def intrinsic_groups(groups: Sequence[Group]) -> list[tuple[int, int]]:
    """The first two arguments of the calls."""
    return [(MASKS[kind], size) for kind, size in groups]


def source_with_groups(text: str, lines: Sequence[int], groups: Sequence[Group]) -> str:
    """HIP source with calls at the end of the innermost loop that has most of `lines`, the lines of
    its machine code. Raises CompileError where there is none with braces."""
    at = _end_of_loop(text, lines)
    start = text.rfind("\n", 0, at) + 1
    margin = re.match(r"[ \t]*", text[start:])
    space = (margin[0] if margin else "") + "  "
    calls = [space + _CALL.format(mask=mask, size=size) for mask, size in intrinsic_groups(groups)]
    if text[start:at].strip():  # the brace is behind other code of its line
        return text[:at] + "\n" + "\n".join(calls) + "\n" + text[at:]
    return text[:start] + "\n".join(calls) + "\n" + text[start:]


def _end_of_loop(text: str, lines: Sequence[int]) -> int:
    """Where the closing brace of the loop is."""
    code = _NOTHING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    best: tuple[int, int] | None = None
    for match in _LOOP.finditer(code):
        opening = match.end() - 1
        if code[opening] == "(":
            closed = _closing(code, opening)
            rest = re.match(r"\s*\{", code[closed + 1 :]) if closed is not None else None
            if closed is None or rest is None:
                continue
            opening = closed + rest.end()
        closing = _closing(code, opening)
        if closing is None:
            continue
        first = code.count("\n", 0, match.start()) + 1
        last = code.count("\n", 0, closing) + 1
        has = sum(first <= line <= last for line in lines)
        if lines and has >= 0.8 * len(lines) and (best is None or last - first < best[0]):
            best = last - first, closing
    if best is None:
        raise CompileError("no loop of the source with braces has the lines of the machine's loop")
    return best[1]


def _closing(code: str, opening: int) -> int | None:
    """Where the bracket that `opening` opens is closed."""
    pair = {"(": ")", "{": "}"}[code[opening]]
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] == code[opening]) - (code[at] == pair)
        if not depth:
            return at
    return None


__all__ = [
    "MOST",
    "Group",
    "group_variants",
    "intrinsic_groups",
    "kind_of",
    "runs",
    "source_with_groups",
]
