"""Intrinsics of LLVM 23 and 24 in the forms that older LLVM has.

Code generators say which intrinsics they refuse; those are rewritten, and the text is compiled
again. An LLVM that does not know an intrinsic at all makes a call of it, which nothing links: that
is a refusal, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from wavecast.compile.ir_blocks import IrBlock, blocks_of, split_operands
from wavecast.isa.table import by_mnemonic

Attempt = TypeVar("Attempt")

_REFUSED: Final = re.compile(
    r"Intrinsic has incorrect (?:argument|return) type!\s+ptr @(llvm\.[\w.]+)"
    r"|immarg operand has non-immediate parameter\n[^\n]*\n[^\n@]*@(llvm\.[\w.]+)"
)
_SYNTAX: Final = "error: expected"
"""What LLVM prints of text that it cannot read."""
_NEW_WORDS: Final = re.compile(
    r"\bcaptures\([^)]*\) ?|(?<=getelementptr)(?: nusw)?(?: nuw)?(?= )"
    r"|(?<=getelementptr inbounds) nuw(?= )|(?<=icmp) samesign"
)
_CALLED: Final = re.compile(r"\b(llvm\.[\w.]+?)@(?:gotpc)?rel32")
_CALL: Final = re.compile(r"@(?P<name>llvm\.[\w.]+)\(")
_FLOATS: Final = re.compile(r"^<\d+ x (?:half|bfloat|float)>")
_SIZE: Final = re.compile(r"^i64 (?P<bytes>\d+)$")
_DEFINED: Final = re.compile(r"^define [^\n@]*@(?P<name>[\w.$-]+)\(", re.MULTILINE)


def unknown_intrinsics(output: str) -> tuple[str, ...]:
    """The intrinsics that a code generator refuses in its messages, or calls in its assembly."""
    refused = [first or second for first, second in _REFUSED.findall(output)]
    return tuple(dict.fromkeys([*refused, *_CALLED.findall(output)]))


def no_form(generator: str, names: Iterable[str]) -> str:
    """Why a code generator compiles nothing."""
    return f"{generator}: its LLVM has no form of {' and '.join(names)}"


def compile_in_older_form(
    text: str, target: str, attempt: Callable[[str], tuple[Attempt, str]]
) -> tuple[Attempt, tuple[str, ...]]:
    """The result of `attempt` on LLVM IR for a target, with the intrinsics that it refuses in an
    older form; and those that have none. An attempt also returns what the code generator printed,
    its assembly included."""
    used: set[str] = set()
    while True:
        result, output = attempt(text)
        names = unknown_intrinsics(output)
        if not names and _SYNTAX in output and _SYNTAX not in used:
            used.add(_SYNTAX)
            text = with_older_words(text)
            continue
        forms = {
            form
            for form in _FORMS
            if form not in used and any(name.startswith(form) for name in names)
        }
        rewritten = text
        for form in sorted(forms):
            rewritten = _FORMS[form](rewritten, target)
        if rewritten == text:
            return result, names
        used |= forms
        text = rewritten


def with_older_words(text: str) -> str:
    """Without the words that LLVM 19 does not read: what a pointer's callee may keep, except
    nothing, and promises of addresses and comparisons."""
    text = text.replace("captures(none)", "nocapture")
    return _NEW_WORDS.sub("", text)


def with_narrow_buffers(text: str, target: str) -> str:
    """Buffers with sizes of 32 bits, as LLVM 21 and older take them; sizes that are not constants
    stay."""
    del target

    def narrow(operands: list[str]) -> list[str]:
        first, stride, size, flags = operands
        if size == "i64":
            return [first, stride, "i32", flags]
        match = _SIZE.match(size)
        if match is None:
            return operands
        word = min(int(match["bytes"]), (1 << 32) - 1)
        return [first, stride, f"i32 {word - (1 << 32) if word >> 31 else word}", flags]

    return _with_operands(text, _BUFFERS, narrow)


def with_negations(text: str, target: str) -> str:
    """Matrix products of floats with a bit before A and before B that negates it, as LLVM 22 and
    older take them on gfx1250. Source: LLVM IntrinsicsAMDGPU.td, AMDGPUWmmaIntrinsicModsAllReuse.
    """
    del target

    def with_bits(operands: list[str]) -> list[str]:
        a, b, *rest = operands
        if not (_FLOATS.match(a) and _FLOATS.match(b) and rest[0].startswith("i16")):
            return operands
        bit = "i1 immarg" if rest[0] == "i16 immarg" else "i1 false"
        return [bit, a, bit, b, *rest]

    return _with_operands(text, _PRODUCTS, with_bits)


def with_counted_loads(text: str, target: str) -> str:
    """Asynchronous loads of buffers to LDS as those that a wave counts, and waits for their marks
    as waits for their number, on targets that count them with other loads (`vmcnt`).

    A wait for all but n marks leaves what was loaded after the mark before these: where paths
    differ, the least number of any.
    """
    immediate = _wait_immediate(target)
    if immediate is None:
        return text
    lines = text.split("\n")
    for name in _DEFINED.findall(text):
        counts = iter(_allowed(blocks_of(lines, name)))
        in_body = False
        for number, line in enumerate(lines):
            in_body = f"@{name}(" in line if line.startswith("define ") else in_body and line != "}"
            if in_body and f"@{_WAIT}(" in line:
                lines[number] = _counted_wait(line, immediate(next(counts)))
    if any(f"@{_WAIT}(" in line and not line.startswith("declare ") for line in lines):
        return text  # in a function whose name is not plain
    kept = [line for line in lines if f"@{_MARK}(" not in line and f"@{_WAIT}(" not in line]
    rewritten = "\n".join(kept).replace(f"@{_ASYNC}(", f"@{_COUNTED}(")
    return f"{rewritten}\ndeclare void @{_WAITCNT}(i32 immarg)\n"


_BUFFERS: Final = "llvm.amdgcn.make.buffer.rsrc."
_PRODUCTS: Final = "llvm.amdgcn.wmma."
_ASYNC: Final = "llvm.amdgcn.raw.ptr.buffer.load.async.lds"
_COUNTED: Final = "llvm.amdgcn.raw.ptr.buffer.load.lds"
_MARK: Final = "llvm.amdgcn.asyncmark"
_WAIT: Final = "llvm.amdgcn.wait.asyncmark"
_WAITCNT: Final = "llvm.amdgcn.s.waitcnt"

_FORMS: Final[Mapping[str, Callable[[str, str], str]]] = {
    _BUFFERS: with_narrow_buffers,
    _PRODUCTS: with_negations,
    _ASYNC: with_counted_loads,
}
"""By the start of the names of intrinsics, what rewrites them in LLVM IR for a target."""


def _with_operands(text: str, start: str, change: Callable[[list[str]], list[str]]) -> str:
    """The text with other operands of the intrinsics whose names begin so, where they are called
    and declared."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        match = _CALL.search(line) if f"@{start}" in line else None
        if match is not None and match["name"].startswith(start):
            end = _closing(line, match.end())
            operands = change(split_operands(line[match.end() : end]))
            lines[number] = f"{line[: match.end()]}{', '.join(operands)}{line[end:]}"
    return "\n".join(lines)


def _closing(line: str, start: int) -> int:
    """Where the bracket closes that is open at `start`."""
    depth = 1
    for position in range(start, len(line)):
        depth += {"(": 1, ")": -1}.get(line[position], 0)
        if not depth:
            return position
    return len(line)


def _wait_immediate(target: str) -> Callable[[int], int] | None:
    """The immediate of `s_waitcnt` that waits until at most so many loads are outstanding; None on
    a target that does not have it."""
    rows = by_mnemonic(target).get("s_waitcnt", ())
    if not rows:
        return None
    fields = rows[0].waits

    def immediate(count: int) -> int:
        return sum(
            field.immediate(min(count, field.ones) if field.counter == "vmcnt" else field.ones)
            for field in fields
        )

    return immediate


def _counted_wait(line: str, immediate: int) -> str:
    before, _, rest = line.partition(f"@{_WAIT}(")
    return f"{before}@{_WAITCNT}(i32 {immediate}{rest[rest.index(')') :]}"


def _allowed(blocks: Mapping[str, IrBlock]) -> list[int]:
    """How many loads each wait for marks leaves, in the order of the text."""
    waits = [
        int(instruction.operands[0])
        for block in blocks.values()
        for instruction in block.instructions
        if instruction.detail == _WAIT
    ]
    groups = max(waits, default=0) + 1
    at_start: dict[str, Groups] = {next(iter(blocks)): (0,) * groups}
    waiting = list(at_start)
    while waiting:
        label = waiting.pop()
        after = _after(blocks[label], at_start[label])[0]
        for target in blocks[label].targets:
            before = at_start.get(target)
            least = after if before is None else tuple(map(min, before, after))
            if least != before:
                at_start[target] = least
                waiting.append(target)
    reached = [(block, at_start.get(label)) for label, block in blocks.items()]
    return [
        count
        for block, start in reached
        for count in _after(block, start if start is not None else (0,) * groups)[1]
    ]


Groups = tuple[int, ...]
"""Loads since the last mark, then between it and the one before, and so on."""


def _after(block: IrBlock, groups: Groups) -> tuple[Groups, list[int]]:
    """The groups behind a block, and how many loads each of its waits leaves."""
    counts = []
    for instruction in block.instructions:
        if instruction.detail == _ASYNC:
            groups = (groups[0] + 1, *groups[1:])
        elif instruction.detail == _MARK:
            groups = (0, *groups[:-1])
        elif instruction.detail == _WAIT:
            counts.append(sum(groups[: int(instruction.operands[0]) + 1]))
    return groups, counts


__all__ = [
    "compile_in_older_form",
    "no_form",
    "unknown_intrinsics",
    "with_counted_loads",
    "with_narrow_buffers",
    "with_negations",
    "with_older_words",
]
