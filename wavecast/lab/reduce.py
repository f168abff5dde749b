"""The smallest LLVM IR for which something still holds, by deletion.

Chunks of instructions are deleted, then smaller ones, until nothing can be deleted: uses of a
deleted value become `poison`, a conditional branch becomes an unconditional one. A candidate that
the compiler refuses does not hold. Debug locations, metadata and declarations that nothing uses are
deleted first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from wavecast import isa
from wavecast.errors import CompileError, UsageError, WavecastError
from wavecast.isa.program import Kernel
from wavecast.lab.codegen import CodeGenerator, CrashedCompiler
from wavecast.lab.figures import faults
from wavecast.runtimes.triton.isolation import diagnostic

_RESULT: Final = re.compile(r"^\s+(?P<name>%[\w.$-]+|%\"[^\"]*\") = ")
_CONDITIONAL: Final = re.compile(
    r"^(?P<indent>\s+)br i1 .*, label (?P<one>%\S+), label (?P<other>%[^\s,]+)"
)
_TERMINATOR: Final = re.compile(r"^\s+(?:br|ret|switch|unreachable|indirectbr)\b")
_DEBUG: Final = re.compile(
    r", !(?:dbg|noalias|alias\.scope|tbaa|mmra|amdgpu\.[\w.]+|llvm\.[\w.]+) !\d+"
)
_DECLARED: Final = re.compile(r"^declare .*@(?P<name>[\w.$]+)\(")
_GROUP: Final = re.compile(r"^attributes (?P<name>#\d+) = ")
_NODE: Final = re.compile(r"^(?P<name>!\d+) = ")
_LABEL: Final = re.compile(r"^(?P<name>[\w.$-]+):")
_COMPARISON: Final = re.compile(r"^(?P<figure>[a-z-]+)>(?P<limit>\d+)$")
_RELATIVE: Final = re.compile(r"^(?P<figure>[a-z-]+)>(?P<other>[^+>]+)\+(?P<limit>\d+)$")
_ATTRIBUTE: Final = re.compile(r"^(?P<name>amdgpu-[\w-]+)=(?P<value>[\w,.-]*)$")
_DEFINED: Final = re.compile(
    r"^(define [^\n]*\bamdgpu_kernel\b[^\n{]*?)((?: ![^\n{]*?)?) *\{$", re.M
)
_BARRIER: Final = re.compile(r"\bcall void @llvm\.amdgcn\.s\.barrier\(\)")
_RELEASE: Final = re.compile(r"fence .*\b(?:release|acq_rel|seq_cst)\b")
_ACQUIRE: Final = re.compile(r"fence .*\b(?:acquire|acq_rel|seq_cst)\b")

_ERROR: Final = re.compile(r"\berror: (?:\S*/\S+: )*(?!linker)(.*)")

Holds = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold for the code of a module.

    `crash`: the compiler crashes. `lost-wait`: a barrier with stores to LDS under way, though every
    barrier of the IR is between a release and an acquire fence.
    `missing-wait`, `hazard`: what static checks find. `instructions>N`, `vgprs>N`, `spills>N`: a
    figure of a kernel is more than N. `vgprs>OTHER+N`: it is more than N above that of `other`,
    another compiler, or of the same one with an attribute of functions
    (`spills>amdgpu-sched-strategy=max-ilp+8`). Raises UsageError for other texts.
    """

    text: str
    crash: str = ""
    """The compiler's complaint that a crash must have, "" for any."""
    other: CodeGenerator | None = None

    def __post_init__(self) -> None:
        match = _COMPARISON.match(self.text) or _RELATIVE.match(self.text)
        if self.text not in _CONDITIONS and (match is None or match["figure"] not in _FIGURES):
            conditions = [*_CONDITIONS, *(f"{name}>N, {name}>OTHER+N" for name in _FIGURES)]
            raise UsageError(
                f"unknown condition {self.text!r}", hint=f"one of {', '.join(conditions)}"
            )

    @property
    def compared(self) -> str:
        """The other compiler, or the attribute, that a figure is compared with; else ""."""
        match = _RELATIVE.match(self.text)
        return match["other"].strip() if match is not None else ""

    @property
    def attribute(self) -> tuple[str, str] | None:
        """The attribute of functions that a figure is compared with, and its value."""
        match = _ATTRIBUTE.match(self.compared)
        return (match["name"], match["value"]) if match is not None else None

    def like(self, text: str, compiler: CodeGenerator) -> Condition:
        """The condition for crashes with the complaint that the compiler has of this text."""
        if self.text != "crash":
            return self
        try:
            compiler.assembly(text)
        except CrashedCompiler as error:
            return Condition(self.text, complaint(error.log))
        except CompileError:
            pass
        return self

    def holds(self, text: str, compiler: CodeGenerator, target: str) -> bool:
        """Whether it holds for LLVM IR compiled for a target."""
        return not self.why_not(text, compiler, target)

    def why_not(self, text: str, compiler: CodeGenerator, target: str) -> str:
        """Why it does not hold for LLVM IR compiled for a target, "" where it does: what refuses
        the IR or its assembly, or what its code has instead."""
        try:
            assembly = compiler.assembly(text)
        except CrashedCompiler as error:
            message = complaint(error.log)
            if self.text != "crash":
                return f"{compiler.name} crashes: {diagnostic(error.log) or error.message}"
            return "" if self.crash in ("", message) else f"it crashes otherwise: {message}"
        except CompileError as error:
            return f"{compiler.name} refuses it: {_refusal(error)}"
        if self.text == "crash":
            return f"{compiler.name} compiles it"
        if self.text == "lost-wait" and not has_fences(text):
            return "a barrier of the IR is not between a release and an acquire fence"
        try:
            kernels = [*isa.parse(assembly, target).kernels.values()]
        except WavecastError as error:
            return f"the assembly of {compiler.name} cannot be read: {error.message}"
        if not kernels:
            return "it has no kernels"
        if self._comparison is not None:
            return self._why_not_more(text, compiler, target, kernels)
        prefix = _CONDITIONS[self.text]
        seen = [fault for kernel in kernels for fault in faults(kernel)]
        if any(fault.startswith(prefix) for fault in seen):
            return ""
        return f"checks of its code report {'; '.join(dict.fromkeys(seen)) or 'nothing'}"

    @property
    def _comparison(self) -> re.Match[str] | None:
        return _COMPARISON.match(self.text) or _RELATIVE.match(self.text)

    def _why_not_more(
        self, text: str, compiler: CodeGenerator, target: str, kernels: Sequence[Kernel]
    ) -> str:
        """Why a figure is not so much more than the limit, or than that of what it is compared
        with; "" where it is."""
        match = self._comparison
        assert match is not None
        name, limit, least, of = match["figure"], int(match["limit"]), 0, ""
        figure = _FIGURES[name]
        if self.compared:
            other = self.other or compiler
            text = with_attribute(text, *self.attribute) if self.attribute is not None else text
            try:
                other_kernels = isa.parse(other.assembly(text), target).kernels.values()
            except WavecastError as error:
                return f"with {self.compared}, {other.name} refuses it: {_refusal(error)}"
            least = max(map(figure, other_kernels), default=0)
            of = f", with {self.compared} {least}"
        value = max(map(figure, kernels))
        return "" if value > least + limit else f"{name}: {value}{of}"


def with_attribute(text: str, name: str, value: str) -> str:
    """LLVM IR whose kernels have an attribute of functions, instead of their value of it."""
    text = re.sub(rf' "{re.escape(name)}"="[^"]*"', "", text)
    return _DEFINED.sub(rf'\1 "{name}"="{value}"\2 {{', text)


def has_fences(text: str) -> bool:
    """Whether every barrier of LLVM IR is between a release fence and an acquire fence: without
    them, barriers wait for nothing."""
    lines = [line.strip() for line in text.split("\n")]
    barriers = [n for n, line in enumerate(lines) if _BARRIER.search(line)]
    return all(
        _RELEASE.match(lines[number - 1]) and _ACQUIRE.match(lines[number + 1])
        for number in barriers
    )


def _refusal(error: WavecastError) -> str:
    """What a compiler complains of: its first error, which warnings may come before."""
    log = error.log if isinstance(error, CompileError) else ""
    return next((match[1] for match in _ERROR.finditer(log)), error.message)


def complaint(log: str) -> str:
    """The compiler's first complaint, without numbers."""
    return re.sub(r"\d+", "…", diagnostic(log))


_CONDITIONS: Final = {
    "crash": "",
    "lost-wait": "lost wait",
    "missing-wait": "missing-wait",
    "hazard": "hazard",
}
_FIGURES: Final[dict[str, Callable[[Kernel], int]]] = {
    "instructions": lambda kernel: len(kernel.program.instructions),
    "vgprs": lambda kernel: kernel.descriptor.vgprs + kernel.descriptor.agprs,
    "spills": lambda kernel: kernel.descriptor.vgpr_spills,
}


def reduce_text(text: str, holds: Holds, progress: Callable[[str], None] = lambda _: None) -> str:
    """The text with everything deleted that `holds` does not need. Raises UsageError where it does
    not hold for the text itself."""
    if not holds(text):
        raise UsageError("the condition does not hold for the input")
    for simplify in (_without_debug, _without_unused):
        smaller = simplify(text)
        if smaller != text and holds(smaller):
            text = smaller
    again = True
    while again:
        before = text
        text = _without_branches(text, holds)
        text = _without_chunks(text, holds, progress)
        smaller = _without_unused(text)
        text = smaller if holds(smaller) else text
        again = text.count("\n") < before.count("\n")
    return text


def _without_debug(text: str) -> str:
    """Without debug locations, annotations of instructions, and metadata that nothing names."""
    lines = [_DEBUG.sub("", line) for line in text.split("\n")]
    lines = [re.sub(r" !dbg !\d+", "", line) for line in lines]
    lines = [line for line in lines if not line.startswith("!llvm.dbg.")]
    while True:
        references = {name for line in lines for name in re.findall(r"!\d+(?! =)\b", line)}
        remaining_lines = [
            line
            for line in lines
            if (node := _NODE.match(line)) is None or node["name"] in references
        ]
        if len(remaining_lines) == len(lines):
            return "\n".join(remaining_lines)
        lines = remaining_lines


def _without_unused(text: str) -> str:
    """Without declarations and attribute groups that nothing names."""
    lines = []
    for line in text.split("\n"):
        declared, group = _DECLARED.match(line), _GROUP.match(line)
        if line.startswith(";"):
            continue
        if declared is not None and text.count(f"@{declared['name']}(") == 1:
            continue
        if group is not None and not re.search(rf"{group['name']}(?!\d| =)", text):
            continue
        lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _without_branches(text: str, holds: Holds) -> str:
    """With unconditional branches instead of conditional ones, and without blocks that nothing
    branches to, where it still holds."""
    number = 0
    while True:
        lines = text.split("\n")
        branches = [n for n, line in enumerate(lines) if _CONDITIONAL.match(line)]
        if number >= len(branches):
            return text
        at = branches[number]
        match = _CONDITIONAL.match(lines[at])
        assert match is not None
        labels = [m["name"] for line in lines[:at] if (m := _LABEL.match(line)) is not None]
        for target, other in (("one", "other"), ("other", "one")):
            changed = list(lines)
            changed[at] = f"{match['indent']}br label {match[target]}"
            if labels and match[target] != match[other]:
                changed = _without_edge(changed, labels[-1], match[other].removeprefix("%"))
            candidate = _without_unreachable("\n".join(changed))
            if holds(candidate):
                text = candidate
                break
        else:
            number += 1


def _without_edge(lines: list[str], source: str, block: str) -> list[str]:
    """Without the values that the PHIs of a block have for one predecessor."""
    result, label = [], ""
    for line in lines:
        match = _LABEL.match(line)
        label = match["name"] if match is not None else label
        result.append(_without_value(line, source) if label == block else line)
    return result


def _without_value(line: str, source: str) -> str:
    """A PHI without its value for a predecessor; `poison` where that was the only one."""
    if " = phi " not in line:
        return line
    name = re.escape(source)
    line = re.sub(rf",? ?\[ [^\[\]]*, %{name} \](?=,|$)", "", line, count=1)
    return re.sub(r"( = phi (?:<[^>]*>|\S+)),", r"\1", line)


def _without_unreachable(text: str) -> str:
    """Without blocks that no branch names, and the values that PHIs have for them."""
    while True:
        lines = text.split("\n")
        terminators = "\n".join(line for line in lines if _TERMINATOR.match(line))
        block = next(
            (
                (n, m["name"])
                for n, line in enumerate(lines)
                if (m := _LABEL.match(line)) is not None
                and not lines[n - 1].startswith("define ")
                and not re.search(rf"%{re.escape(m['name'])}(?![\w.$-])", terminators)
            ),
            None,
        )
        if block is None:
            return text
        start, name = block
        stop = next(
            n
            for n in range(start + 1, len(lines))
            if _LABEL.match(lines[n]) is not None or lines[n].startswith("}")
        )
        text = "\n".join(_without_value(line, name) for line in lines[:start] + lines[stop:])


def _without_chunks(text: str, holds: Holds, progress: Callable[[str], None]) -> str:
    """Without chunks of instructions, from halves of the function to single ones."""
    size = max(1, len(_deletable(text)) // 2)
    while True:
        start = 0
        while True:
            numbers = _deletable(text)
            if start >= len(numbers):
                break
            candidate = _delete_lines(text, numbers[start : start + size])
            if holds(candidate):
                text = candidate
                progress(f"{text.count(chr(10))} lines")
            else:
                start += size
        if size == 1:
            return text
        size //= 2


def _deletable(text: str) -> list[int]:
    """Lines of instructions other than terminators, the last ones first: users before values."""
    numbers, body = [], False
    for number, line in enumerate(text.split("\n")):
        if line.startswith("define "):
            body = True
        elif line.startswith("}"):
            body = False
        elif body and line.startswith(" ") and not _TERMINATOR.match(line):
            numbers.append(number)
    return numbers[::-1]


def _delete_lines(text: str, numbers: Sequence[int]) -> str:
    lines = text.split("\n")
    names = []
    for number in numbers:
        result = _RESULT.match(lines[number])
        if result is not None:
            names.append(result["name"])
    line_numbers = set(numbers)
    body = "\n".join(line for number, line in enumerate(lines) if number not in line_numbers)
    if not names:
        return body
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?:{pattern})(?![\w.$-])", "poison", body)


__all__ = ["Condition", "reduce_text", "with_attribute"]
