"""Asks the compiler for an order that was found, and measures how far it follows.

Groups of `sched_group_barrier` go to the end of the loop: of HIP source, which is compiled again,
or of the block of Triton's LLVM IR. The fastest groups, and none, are also compiled with options of
LLVM's schedulers. The fastest variant is executed next to the compiler's code.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from msgspec import structs

from wavecast.arch import Device
from wavecast.compile import hip
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.emulate.launch import AddressRange
from wavecast.errors import CompileError, WavecastError
from wavecast.isa.program import Program
from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.lab.comparing import compare_launches
from wavecast.lab.edits import with_group_calls
from wavecast.lab.reduce import with_attribute
from wavecast.lab.schedule.groups import (
    Group,
    group_variants,
    intrinsic_groups,
    kind_of,
    source_with_groups,
)
from wavecast.lab.schedule.layout import Item

LEAST: Final = 0.001
"""The part of the time that a variant saves at least."""
_BLOCK_NAME: Final = re.compile(r";\s*%(?P<name>[\w.$-]+|\"[^\"]+\")\s*$")

_STRATEGIES: Final = ("max-ilp", "iterative-ilp", "iterative-minreg")
_OPTIONS: Final = {
    "source": (
        "-mllvm -disable-post-ra",
        *(f"-mllvm -amdgpu-sched-strategy={name}" for name in _STRATEGIES),
    ),
    "llir": tuple(f"amdgpu-sched-strategy={name}" for name in _STRATEGIES),
}
"""Options that orders are tried with: no scheduler after register allocation, and other ones before
it. Source: LLVM TargetPassConfig.cpp, AMDGPUTargetMachine.cpp."""

Timed = Callable[[Launch], float | None]


class AskedOrder(JsonObject):
    """What the compiler makes of an order that it is asked for by `sched_group_barrier`."""

    groups: Annotated[Count, doc("calls of the fastest variant")]
    variants: Annotated[Count, doc("variants that were compiled")]
    seconds: Annotated[NonNegative | None, doc("predicted, of the fastest variant")]
    reached: Annotated[NonNegative, doc("part of what the order saves that the compiler reaches")]
    where: Annotated[str, doc("source: a patch of the source; llir: LLVM IR of Triton's stage")]
    text: Annotated[str, doc("the patch, or the LLVM IR; empty where no variant is faster")]
    why_not: Annotated[str, doc("why there is none")]
    options: Annotated[
        str, doc("options of the compiler of HIP, or attributes in the LLVM IR, that it is with")
    ] = ""


@dataclass(frozen=True, slots=True)
class FoundBlock:
    """A block of a loop in the order that was found."""

    block: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class _Variant:
    """Code with groups: what a user applies, and its size."""

    text: str
    groups: tuple[Group, ...]
    launch: Launch
    seconds: float
    option: str = ""


def ask(
    launch: Launch,
    program: Program,
    blocks: Sequence[FoundBlock],
    ranges: Sequence[AddressRange],
    device: Device,
    timed: Timed,
    before: float,
    after: float,
) -> AskedOrder:
    """Compile a kernel with groups of the orders of its blocks. `timed` predicts a launch, `before`
    and `after` are the predicted times of the compiler's order and of the one that was found."""
    code = launch.code
    where = {"hip": "source", "triton": "llir"}.get(code.origin, "")
    result = AskedOrder(0, 0, None, 0.0, where, "", "")
    if not where:
        return structs.replace(result, why_not="it has no source: apply the order itself (--patch)")
    largest = max(blocks, key=lambda found: len(found.items))
    instructions = program.instructions
    order = [instructions[item] for item in largest.items if isinstance(item, int)]
    variants: list[_Variant] = []
    refusals: list[str] = []

    def compile_variant(groups: tuple[Group, ...], option: str = "") -> None:
        try:
            text, changed = (
                hip_variant(code, program, largest.block, groups, option)
                if where == "source"
                else _triton(code, program, largest.block, groups, option, device)
            )
            candidate = replace(launch, code=replace(changed, workgroup_size=code.workgroup_size))
            seconds = timed(candidate)
        except WavecastError as error:
            refusals.append(error.message)
            return
        if seconds is not None:
            variants.append(_Variant(text, groups, candidate, seconds, option))

    for groups in group_variants([instruction.decoded for instruction in order]):
        compile_variant(groups)
    fastest = [min(variants, key=_rank).groups] if variants else []
    for option in _OPTIONS[where]:
        for groups in (*fastest, ()):
            compile_variant(groups, option)
    if not variants:
        why = refusals[0] if refusals else "its loop has no groups of instructions to order"
        return structs.replace(result, why_not=why)
    best = min(variants, key=_rank)
    saved = max(0.0, before - best.seconds)
    result = structs.replace(
        result,
        groups=len(best.groups),
        variants=len(variants),
        seconds=best.seconds,
        reached=saved / (before - after) if before > after else 0.0,
        options=best.option,
    )
    if saved < LEAST * before:
        return structs.replace(result, reached=0.0, options="", why_not="no variant saves time")
    execution = compare_launches(launch, best.launch, ranges, rounding=False)
    if not execution.same:
        why = execution.difference or "; ".join(execution.reports)
        return structs.replace(result, reached=0.0, why_not=f"other results: {why}")
    return structs.replace(result, text=best.text)


def _rank(variant: _Variant) -> tuple[float, int, int]:
    """The fastest first; of equal ones, what asks for least."""
    return variant.seconds, len(variant.option), len(variant.groups)


def hip_variant(
    code: CodeObject, program: Program, block: int, groups: Sequence[Group], option: str
) -> tuple[str, CodeObject]:
    """A patch of the source of a HIP file, and its kernel compiled with it and an option, which is
    the first line of the patch."""
    name = Path(code.source).name
    changed = code.source_text
    if groups:
        changed = source_with_groups(changed, [*_lines(program, block, name)], groups)
    new_code = hip.recompile_text(code, changed, option.split())
    patch = difflib.unified_diff(
        code.source_text.splitlines(keepends=True),
        changed.splitlines(keepends=True),
        f"a/{name}",
        f"b/{name}",
    )
    head = f"Compile {name} with {option}\n" if option else ""
    return head + "".join(patch), new_code


def _lines(program: Program, block: int, name: str) -> Iterator[int]:
    """Lines of the file `name` that the instructions of a block with a kind come from."""
    bounds = program.blocks[block]
    for instruction in program.instructions[bounds.start : bounds.stop]:
        location = instruction.location
        while location is not None and Path(location.file).name != name:
            location = location.inlined_at
        if location is not None and location.line and kind_of(instruction.decoded):
            yield location.line


def _triton(
    code: CodeObject,
    program: Program,
    block: int,
    groups: Sequence[Group],
    option: str,
    device: Device,
) -> tuple[str, CodeObject]:
    """The LLVM IR of a Triton kernel with groups in the block of a loop and with an attribute, and
    its code."""
    from wavecast.runtimes.triton.generate import compile_llir

    llir = code.stages.get("llir")
    if not isinstance(llir, str):
        raise CompileError(f"{code.kernel}: it has no LLVM IR")
    if option:
        attribute, _, value = option.partition("=")
        llir = with_attribute(llir, attribute, value)
    if not groups:
        return llir, compile_llir(code, llir, device)
    bounds = program.blocks[block]
    lines = code.assembly.split("\n")
    label = lines[: program.instructions[bounds.start].line - 1]
    name = next((found["name"] for found in map(_BLOCK_NAME.search, _last(label)) if found), "")
    kinds = [kind_of(each.decoded) for each in program.instructions[bounds.start : bounds.stop]]
    text = with_group_calls(llir, intrinsic_groups(groups), name, kinds.count("matrix"))
    return text, compile_llir(code, text, device)


def _last(lines: Sequence[str]) -> Iterator[str]:
    """The labels and comments right before an instruction, last first."""
    for line in reversed(lines):
        text = line.strip()
        if text.startswith((";", ".L")) or (text and text.split(";")[0].rstrip().endswith(":")):
            yield line
        elif text and not text.startswith("."):
            return


__all__ = ["AskedOrder", "FoundBlock", "ask", "hip_variant"]
