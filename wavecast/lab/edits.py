"""Changes of LLVM IR that ask AMDGPU's scheduler for an order of instructions.

Both intrinsics act on the basic block they are in; they are put before the terminator of every
block with matrix instructions. Source: LLVM AMDGPUUsage, `llvm.amdgcn.iglp.opt` and
`llvm.amdgcn.sched.group.barrier`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from wavecast.errors import CompileError

MASKS: Final = {
    "valu": 0x2,
    "matrix": 0x8,
    "vmem_read": 0x20,
    "vmem_write": 0x40,
    "lds_read": 0x100,
    "lds_write": 0x200,
}
"""Instruction groups of sched.group.barrier. Source: LLVM AMDGPUIGroupLP.cpp, SchedGroupMask."""
_MATRIX: Final = re.compile(r"@llvm\.amdgcn\.(?:mfma|wmma|swmmac|smfmac)\.")
_TERMINATOR: Final = re.compile(r"^  (?:br|ret|switch|unreachable|indirectbr) ?")
_LABEL: Final = re.compile(r"^(?P<name>[\w.$-]+|\"[^\"]+\"):")
_GROUP: Final = "  tail call void @llvm.amdgcn.sched.group.barrier(i32 {mask}, i32 {size}, i32 0)"
_GROUP_DECLARATION: Final = (
    "declare void @llvm.amdgcn.sched.group.barrier(i32 immarg, i32 immarg, i32 immarg)"
)
_IGLP: Final = "  tail call void @llvm.amdgcn.iglp.opt(i32 {strategy})"
_IGLP_DECLARATION: Final = "declare void @llvm.amdgcn.iglp.opt(i32 immarg)"


def with_iglp(text: str, strategy: int) -> str:
    """LLVM IR with `iglp_opt(strategy)` in every block with matrix instructions. Raises
    CompileError where there is no such block."""
    return _insert_lines(text, lambda _: [_IGLP.format(strategy=strategy)], _IGLP_DECLARATION)


def with_groups(text: str, pattern: str) -> str:
    """LLVM IR with a pattern of instruction groups, such as `1 lds_read 2 matrix`, repeated in
    every block until all its matrix instructions are covered. Raises CompileError where there is
    no such block, ValueError for a bad pattern."""
    words = pattern.split()
    groups = [(MASKS[name], int(size)) for size, name in zip(words[::2], words[1::2], strict=True)]
    each = sum(size for mask, size in groups if mask == MASKS["matrix"])
    if not each:
        raise ValueError(f"{pattern!r} has no group of matrix instructions")
    lines = [_GROUP.format(mask=mask, size=size) for mask, size in groups]
    return _insert_lines(text, lambda count: lines * -(-count // each), _GROUP_DECLARATION)


def with_group_calls(text: str, groups: Sequence[tuple[int, int]], block: str, matrix: int) -> str:
    """LLVM IR with instruction groups (mask, size) in the block of that name, else in every block
    with that number of `matrix` instructions. Raises CompileError where there is no such block."""
    calls = [_GROUP.format(mask=mask, size=size) for mask, size in groups]
    lines, current, count, inserted = [], "", 0, False
    counts = matrix > 0 and f"\n{block}:" not in text
    for line in text.split("\n"):
        label = _LABEL.match(line)
        if label is not None:
            current, count = label["name"], 0
        count += bool(_MATRIX.search(line))
        if _TERMINATOR.match(line) and (count == matrix if counts else current == block):
            lines += calls
            inserted = True
        lines.append(line)
    if not inserted:
        raise CompileError("no block of the LLVM IR is recognised as the loop's")
    changed = "\n".join(lines)
    name = _GROUP_DECLARATION.split("@", 1)[1].split("(", 1)[0]
    return changed if f"declare void @{name}(" in changed else f"{changed}\n{_GROUP_DECLARATION}\n"


def _insert_lines(text: str, lines_for: Callable[[int], list[str]], declaration: str) -> str:
    """The text with lines before the terminators of blocks, by their matrix instructions."""
    lines = list(_lines(text, lines_for))
    if len(lines) == text.count("\n") + 1:
        raise CompileError("the LLVM IR has no block with matrix instructions")
    declared = "\n".join(lines)
    name = declaration.split("@", 1)[1].split("(", 1)[0]
    return declared if f"declare void @{name}(" in declared else f"{declared}\n{declaration}\n"


def _lines(text: str, lines_for: Callable[[int], list[str]]) -> Iterator[str]:
    count = 0
    for line in text.split("\n"):
        if not line.startswith(" "):  # a label, a function's first or last line
            count = 0 if line.rstrip() else count
        elif _MATRIX.search(line):
            count += 1
        elif count and _TERMINATOR.match(line):
            yield from lines_for(count)
            count = 0
        yield line


EDITS: Final[dict[str, Callable[[str, object], str]]] = {
    "iglp_opt": lambda text, value: with_iglp(text, int(str(value))),
    "sched_group_barrier": lambda text, value: with_groups(text, str(value)),
}
"""The change of each axis of kind `ir`: (text, value) -> text."""


__all__ = ["EDITS", "MASKS", "with_group_calls", "with_groups", "with_iglp"]
