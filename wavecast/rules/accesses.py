"""Memory instructions grouped the way a reader of the source thinks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from wavecast.analyze.result import MemoryInstruction
from wavecast.isa.instruction import SourceLocation


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
    def mnemonics(self) -> str:
        """`12 global_load_ushort`, the most frequent first."""
        names: dict[str, int] = {}
        for item in self.instructions:
            names[item.mnemonic] = names.get(item.mnemonic, 0) + 1
        ranked = sorted(names.items(), key=lambda entry: -entry[1])
        return ", ".join(f"{number} {name}" for name, number in ranked)


def group(
    instructions: Iterable[MemoryInstruction], wanted: Callable[[MemoryInstruction], bool]
) -> list[AccessGroup]:
    """The wanted instructions by source line, kind, argument and loop, in program order."""
    groups: dict[object, list[MemoryInstruction]] = {}
    for item in instructions:
        if not wanted(item):
            continue
        location = item.location
        line = (location.file, location.line) if location is not None else None
        groups.setdefault((line, item.kind, item.argument, item.loop), []).append(item)
    return [AccessGroup(tuple(items)) for items in groups.values()]
