"""Neighbouring elements of one lane loaded one by one."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.result import MemoryInstruction
from wavecast.compile.ttgir import IrModule, Operation
from wavecast.rules.accesses import AccessGroup, group
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.loops import GLOBAL_SPACES, matters
from wavecast.rules.triton_slice import FunctionArgument, access
from wavecast.rules.triton_stages import module, module_slices
from wavecast.rules.wording import count, listed

NAME = "narrow-global-access"

NARROW_BYTES = 4
"""An access of at most this many bytes per lane is narrow; 16 is the widest."""

SHARE = 0.1
"""Least share of the bytes its loop moves."""

ROWS = 4
"""Cache lines per ideal one up to which an irregular access is rows of a tile, not a gather."""

REPEATS = 4
"""Narrow instructions of one source line from which on the rule speaks."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    for found in group(subject.analysis.memory, _is_narrow):
        if found.count < REPEATS or not matters(subject, found.first):
            continue
        if _share(subject, found) < SHARE:
            continue
        if not _could_be_wide(found) or _is_synthetic(subject, found):
            continue
        if found.first.pattern == "irregular" and _is_gather(subject, found):
            continue
        yield _finding(subject, found)


def _share(subject: RuleInput, found: AccessGroup) -> float:
    """Bytes of the group as a share of all global traffic of its loop (or outside of loops)."""
    total = sum(
        item.bytes_per_lane
        for item in subject.analysis.memory
        if item.space in GLOBAL_SPACES and item.loop == found.first.loop
    )
    return found.bytes_per_lane / total


def _is_narrow(item: MemoryInstruction) -> bool:
    return (
        item.space in GLOBAL_SPACES
        and item.kind in ("load", "store")
        and item.bytes_per_lane <= NARROW_BYTES
    )


def _could_be_wide(found: AccessGroup) -> bool:
    """Whether the instructions together cover neighbouring bytes.

    Either one lane's pieces lie side by side (lanes are as far apart as the pieces together), or
    the lanes' do (each instruction is contiguous over the wave), so that a lane could take a
    longer piece. A gather or a broadcast could not.
    """
    side_by_side = {found.bytes_per_lane, *(2**power for power in range(1, 5))}
    return all(
        item.pattern == "contiguous" or item.stride in side_by_side or _fills_lines(item)
        for item in found.instructions
    )


def _fills_lines(item: MemoryInstruction) -> bool:
    """Whether the lanes lie in a few rows (of a tile narrower than the wave), each contiguous."""
    if item.pattern != "irregular" or item.lines is None or not item.transactions_ideal:
        return False
    return item.lines <= ROWS * item.transactions_ideal


def _is_synthetic(subject: RuleInput, found: AccessGroup) -> bool:
    """Whether the source has no such access here: the loads of an atomic's retry loop, say."""
    parsed, location = module(subject, "ttir"), found.location
    return parsed is not None and location is not None and not _candidates(parsed, found)


def _is_gather(subject: RuleInput, found: AccessGroup) -> bool:
    """Whether the address comes from another load."""
    operation, sliced = _operation(subject, found), module_slices(subject, "ttir")
    if operation is None or sliced is None:
        return False
    address = access(operation).address
    return any(item.name == "tt.load" for item in sliced.operations(address))


def _candidates(parsed: IrModule, found: AccessGroup) -> list[Operation]:
    """The loads or stores of TTIR on the line of a group."""
    location = found.location
    return [
        operation
        for operation in parsed.named(f"tt.{found.first.kind}")
        if location is not None
        and operation.location is not None
        and (operation.location.file, operation.location.line) == (location.file, location.line)
    ]


def _finding(subject: RuleInput, found: AccessGroup) -> Finding:
    verb = found.first.kind
    what = f" of {found.first.argument}" if found.first.argument else ""
    reason, advice = _cause(subject, found)
    return Finding(
        rule=NAME,
        severity="warning",
        message=f"{verb}s{what} move {count(found.widest, 'byte')} per lane where 16 are possible",
        evidence=f"{found.mnemonics} for {count(found.bytes_per_lane, 'byte')} per lane; "
        f"{count(-(-found.bytes_per_lane // 16), '16-byte instruction')} would do{reason}",
        advice=advice,
        location=found.location,
        instruction=found.first.index,
    )


def _cause(subject: RuleInput, found: AccessGroup) -> tuple[str, str]:
    """What keeps the compiler from widening (appended to the evidence), and what to change."""
    operation = _operation(subject, found)
    sliced = module_slices(subject, "ttir")
    if operation is None or sliced is None:
        return "", (
            "Let each thread handle 16 neighbouring bytes through one vector type (float4, "
            "an ext_vector_type) and align the pointer and the row stride to 16 bytes."
        )
    used = access(operation)
    unknown = list(sliced.unproven(used.address))
    masked = [arg for arg in sliced.of(used.mask) if not arg.has("tt.divisibility")]
    suspects = unknown or [arg for arg in masked if not arg.is_pointer]
    if not suspects:
        return "; every argument in its address is a known multiple of 16", (
            "Give each lane neighbouring elements: a larger block or fewer warps, and "
            "tl.max_contiguous(tl.multiple_of(offsets, 16), 16) where offsets went through a "
            "modulo or a table."
        )
    role = "address" if unknown else "mask"
    reason = (
        f"; its {role} depends on {_values(subject, suspects)}, not known to be "
        f"{'a multiple' if len(suspects) == 1 else 'multiples'} of 16"
    )
    return reason, _divisibility_advice(suspects, role)


def _operation(subject: RuleInput, found: AccessGroup) -> Operation | None:
    """The TTIR operation on the group's line (and of its argument) that the instructions are of."""
    parsed, sliced = module(subject, "ttir"), module_slices(subject, "ttir")
    if parsed is None or sliced is None:
        return None
    candidates = _candidates(parsed, found)
    for operation in candidates:
        names = {arg.name for arg in sliced.of(access(operation).address) if arg.is_pointer}
        if found.first.argument in names:
            return operation
    return candidates[0] if len(candidates) == 1 else None


def _values(subject: RuleInput, arguments: list[FunctionArgument]) -> str:
    """Names, with their values where the launch knows them: `K = 1000`."""
    scalars = subject.launch.scalars if subject.launch is not None else {}
    return listed(
        f"{arg.name} = {scalars[arg.name]}" if arg.name in scalars else arg.name
        for arg in arguments
    )


def _divisibility_advice(arguments: list[FunctionArgument], role: str) -> str:
    pointers = [arg.name for arg in arguments if arg.is_pointer]
    numbers = [arg.name for arg in arguments if not arg.is_pointer]
    parts = []
    if pointers:
        parts.append(f"align the data of {listed(pointers)} to 16 bytes")
    if numbers and role == "address":
        parts.append(
            f"pad the tensor so that {listed(numbers)} is a multiple of 16 (or pass it as a "
            "tl.constexpr): Triton then adds tt.divisibility"
        )
    elif numbers:
        parts.append(
            f"make {listed(numbers)} a multiple of 16, or peel the masked tail off so that the "
            "main part has no mask"
        )
    text = ", and ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Narrow access to global memory",
    explanation=f"""\
A lane can move 16 bytes with one instruction. Moving the same bytes in pieces of 2 or 4
multiplies the instructions, the address arithmetic and the work of the address unit. In Triton
the usual cause is something the compiler cannot prove: a pointer that is not 16-byte aligned, a
stride or a bound that is not a multiple of 16 and so gets no `tt.divisibility`.

Fires when one source line became at least {REPEATS} loads or stores of at most {NARROW_BYTES}
bytes per lane whose lanes touch neighbouring bytes, in the kernel's loops (anywhere when it
has none), and they are at least {SHARE:.0%} of the bytes moved there. Names the arguments
whose specialisation is missing.""",
    check=_check,
)
