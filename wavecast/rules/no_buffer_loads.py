"""Global accesses that could go through a buffer descriptor and do not."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.compile.ttgir import IrModule, Operation, tensors
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.table import rows
from wavecast.isa.targets import isa_target
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.triton_slice import FunctionArgument, TritonSlices, access
from wavecast.rules.triton_stages import module, module_slices
from wavecast.rules.wording import count, lines, size

NAME = "no-buffer-loads"

POINTER_RANGE = 2**31 - 1
"""Largest storage in bytes for which Triton specialises `tt.pointer_range=32`."""

_ACCESSES = ("tt.load", "tt.store")
_ASYNC_COPY = "ttg.async_copy_global_to_local"


def _check(subject: RuleInput) -> Iterator[Finding]:
    ir_module, sliced = module(subject, "ttgir"), module_slices(subject, "ttgir")
    if not subject.code.is_amd or ir_module is None or sliced is None:
        return
    by_argument: dict[str, list[Operation]] = {}
    copies = (_ASYNC_COPY,) if _copies_through_buffers(subject.code.target) else ()
    for operation in ir_module.operations_named(*_ACCESSES, *copies):
        pointers = [arg for arg in sliced.of(access(operation).address) if arg.is_pointer]
        if len(pointers) == 1 and _moves_tile(operation) and _saves_work(ir_module, operation):
            by_argument.setdefault(pointers[0].name, []).append(operation)
    for name, operations in by_argument.items():
        yield _finding(subject, ir_module, sliced, sliced.arguments[name], operations)


def _copies_through_buffers(target: str) -> bool:
    """Whether the target has buffer instructions that load to LDS (gfx1250 has global ones)."""
    name = isa_target(target)
    return any(
        row.memory is not None
        and row.memory.space is Space.BUFFER
        and row.memory.kind is MemoryKind.LOAD_TO_LDS
        and name in row.mnemonics
        for row in rows()
    )


def _moves_tile(operation: Operation) -> bool:
    return bool(tensors(operation.types))


def _saves_work(ir_module: IrModule, operation: Operation) -> bool:
    """Whether a buffer instruction would save a mask's branch or address arithmetic of a loop."""
    return bool(access(operation).mask) or ir_module.loop_of(operation) is not None


def _finding(
    subject: RuleInput,
    ir_module: IrModule,
    sliced: TritonSlices,
    argument: FunctionArgument,
    operations: list[Operation],
) -> Finding:
    in_loop = [item for item in operations if ir_module.loop_of(item) is not None]
    masked = [item for item in operations if access(item).mask]
    reason, advice = _reason(subject, sliced, argument, operations)
    return Finding(
        rule=NAME,
        severity="warning" if in_loop else "note",
        message=f"accesses to {argument.name} use 64-bit addresses, not buffer instructions",
        evidence=f"{count(len(operations), 'access', 'accesses')} at "
        f"{lines(item.location for item in operations)} ({len(in_loop)} in a loop, {len(masked)} "
        f"masked); {reason}",
        advice=advice,
        location=(in_loop or operations)[0].location,
    )


def _reason(
    subject: RuleInput,
    sliced: TritonSlices,
    argument: FunctionArgument,
    operations: list[Operation],
) -> tuple[str, str]:
    if not argument.has("tt.pointer_range"):
        return _pointer_range_reason(subject, argument)
    offsets = [
        item
        for operation in operations
        for item in sliced.operations(access(operation).address)
        if item.name == "tt.addptr"
    ]
    if any("i64" in item.types.rpartition(", ")[2] or "xi64" in item.types for item in offsets):
        return "its offsets are 64-bit integers", (
            "Compute offsets in 32 bits: the tensor is below 2 GiB. Drop .to(tl.int64) from the "
            "offsets, or add the 64-bit part to the base pointer first and keep the rest in 32."
        )
    return "the compiler could not prove that its offsets are non-negative and below 2 GiB", (
        "Add tl.assume(stride >= 0) for the strides and program ids that make up the offset."
    )


def _pointer_range_reason(subject: RuleInput, argument: FunctionArgument) -> tuple[str, str]:
    launch = subject.launch
    arguments = (
        [a for a in launch.arguments if a.name == argument.name] if launch is not None else []
    )
    if arguments and arguments[0].bytes > POINTER_RANGE:
        return (
            f"it spans {size(arguments[0].bytes)}, more than the 2 GiB a 32-bit offset reaches",
            (
                f"Split {argument.name} into parts below 2 GiB (per batch or head, as separate "
                "tensors), or accept plain global loads."
            ),
        )
    return "the launch gave it no tt.pointer_range=32", (
        f"Pass {argument.name} as a torch tensor whose storage is below 2 GiB through "
        "kernel[grid](…), not as a raw address or a view of a larger storage; a bare ASTSource "
        "needs ['tt.pointer_range', 32] among its attributes."
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Global accesses without buffer instructions",
    explanation="""\
Buffer instructions address memory through a descriptor and a 32-bit offset: half the registers
and arithmetic per address, and lanes that are masked off are given an offset out of range
instead of a branch around the load. Without them, every masked load in a loop is a change of
EXEC and a branch.

Triton uses them for tensors the launch specialises with `tt.pointer_range=32`, which it does
when the storage is below 2 GiB, and when offsets are 32-bit and provably non-negative.

Fires for AMD targets, per argument, when tile accesses to it are masked or in a loop and
stayed plain loads and stores in TTGIR. `note` when none is in a loop.""",
    check=_check,
)
