"""Memory instructions grouped the way a reader of the source thinks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from wavecast.analyze.result import MemoryInstruction
from wavecast.compile.ttgir import IrModule, Operation
from wavecast.isa.instruction import SourceLocation
from wavecast.rules.finding import RuleInput
from wavecast.rules.loops import GLOBAL_SPACES
from wavecast.rules.triton_slice import access
from wavecast.rules.triton_stages import module, module_slices


@dataclass(frozen=True, slots=True)
class AccessGroup:
    """The instructions one access in the source became: same line, kind, argument and loop."""

    instructions: tuple[MemoryInstruction, ...]

    @property
    def first(self) -> MemoryInstruction:
        return self.instructions[0]

    @property
    def location(self) -> SourceLocation | None:
        return self.first.location

    @property
    def count(self) -> int:
        return len(self.instructions)

    @property
    def bytes_per_lane(self) -> int:
        """Bytes of all its instructions together, per lane."""
        return sum(item.bytes_per_lane for item in self.instructions)

    @property
    def widest(self) -> int:
        return max(item.bytes_per_lane for item in self.instructions)

    @property
    def about(self) -> str:
        """`loads of x`; `loads` where the argument is not known."""
        kind = f"{self.first.kind}s"
        return f"{kind} of {self.first.argument}" if self.first.argument else kind

    @property
    def mnemonics(self) -> str:
        """`12 global_load_ushort`, the most frequent first."""
        names: dict[str, int] = {}
        for item in self.instructions:
            names[item.mnemonic] = names.get(item.mnemonic, 0) + 1
        ranked = sorted(names.items(), key=lambda entry: -entry[1])
        return ", ".join(f"{number} {name}" for name, number in ranked)


def group(
    instructions: Iterable[MemoryInstruction], predicate: Callable[[MemoryInstruction], bool]
) -> list[AccessGroup]:
    """The wanted instructions by source line, kind, argument and loop, in program order."""
    groups: dict[object, list[MemoryInstruction]] = {}
    for item in instructions:
        if not predicate(item):
            continue
        location = item.location
        line = (location.file, location.line) if location is not None else None
        groups.setdefault((line, item.kind, item.argument, item.loop), []).append(item)
    return [AccessGroup(tuple(items)) for items in groups.values()]


def at_lines(
    instructions: Iterable[MemoryInstruction], locations: Iterable[SourceLocation], kind: str
) -> list[MemoryInstruction]:
    """The accesses to device memory of a kind whose source lines are among those of `locations`."""
    positions = {(location.outermost.file, location.outermost.line) for location in locations}
    accesses = []
    for item in instructions:
        outer = item.location.outermost if item.location is not None else None
        if (
            outer is not None
            and item.space in GLOBAL_SPACES
            and item.kind.startswith(kind)
            and (outer.file, outer.line) in positions
        ):
            accesses.append(item)
    return accesses


def operations_at(parsed: IrModule, access_group: AccessGroup) -> list[Operation]:
    """The loads or stores of TTIR on the line of a group."""
    location = access_group.location
    return [
        operation
        for operation in parsed.operations_named(f"tt.{access_group.first.kind}")
        if location is not None
        and operation.location is not None
        and (operation.location.file, operation.location.line) == (location.file, location.line)
    ]


def operation_of(subject: RuleInput, access_group: AccessGroup) -> Operation | None:
    """The TTIR operation on the group's line (and of its argument) that the instructions are of."""
    parsed, sliced = module(subject, "ttir"), module_slices(subject, "ttir")
    if parsed is None or sliced is None:
        return None
    candidates = operations_at(parsed, access_group)
    for operation in candidates:
        names = {arg.name for arg in sliced.of(access(operation).address) if arg.is_pointer}
        if access_group.first.argument in names:
            return operation
    return candidates[0] if len(candidates) == 1 else None


def stride_names(subject: RuleInput, argument: str) -> frozenset[str]:
    """Names of the numbers of a launch that are strides of a tensor, by their values."""
    launch = subject.launch
    if launch is None:
        return frozenset()
    strides = {
        step for item in launch.arguments if item.name == argument for step in item.strides
    } - {0, 1}
    return frozenset(name for name, value in launch.scalars.items() if value in strides)
