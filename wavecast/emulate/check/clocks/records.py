"""Records of global memory: for every dword the last store and the last load, two words each.

The first word says who, which bytes, how atomic, whether volatile, whether the program branches on
what an atomic operation returned, and by which instruction. The second has the number of the access
in its stream (`counters.py`), and the site (`shadow.py`) by which its workgroup has last loaded the
dword. Where several workgroups have read the same bytes the group is `MANY`.

The last store and the last load may both be atomic. So that they hide no plain access, and no
atomic one of others, dwords that atomic operations reach have `ASIDE_RECORDS` more.

Where launches of several GPUs run at once, records stay when a launch has ended: `GROUP` counts the
workgroups of all launches, and the second word has the number of the launch. Every GPU has its own
records of loads; a store is compared with those of all (`PEERS`).
"""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.emulate.check.clocks.atomicity import Atomicity
from wavecast.emulate.check.counters import NUMBER_BITS
from wavecast.emulate.check.shadow import ShadowField

GROUP, WAVE = ShadowField(0, 27), ShadowField(27, 6)
"""Workgroup + 1 and wave + 1."""
BYTES, ATOMICITY, STREAM = ShadowField(33, 4), ShadowField(37, 3), ShadowField(40, 2)
HIDES = ShadowField(45, 1)
"""Whether a store hides others of bytes of the dword that it has not stored (`PARTS`)."""
VOLATILE, DECIDES = ShadowField(42, 1), ShadowField(43, 1)
SYSTEM = ShadowField(44, 1)
"""Whether an access is of system scope."""
INSTRUCTION = ShadowField(48, 16)
NUMBER, LOADER = ShadowField(0, NUMBER_BITS), ShadowField(32, 16)
LAUNCH = ShadowField(48, 16)
MANY = GROUP.mask
MOST_GROUPS = MANY - 1
"""Workgroups of a launch, or of all launches, that records can name."""
MOST_LAUNCHES = 1 << LAUNCH.bits
TABLE_WORDS = 8
"""64-bit words of a range in the table of shadows: the arrays below, by index."""
WRITES, WRITE_NUMBERS, READS, READ_NUMBERS, RELEASES = range(5)
"""Arrays of one word per dword: 64 bits, in `RELEASES` 32 (`clocks.py`). 0 for none."""
PEERS = RELEASES + 1
"""A pointer to pointers: `READS` and `READ_NUMBERS` of each other GPU."""
ASIDE = PEERS + 1
"""An array of `ASIDE_RECORDS` records per dword, both words of each. 0 for none."""
PLAIN_WRITE, PLAIN_READ, OTHER_GROUP, OTHER_WAVE = range(4)
"""The last store before atomic ones; the last load before atomic ones; the last atomic store of
another workgroup than that of the last store; of another wave of its workgroup."""
ASIDE_RECORDS = 4
PARTS = ASIDE + 1
"""An array of `PART_WORDS` words per dword: of the bytes that its last store has not stored, the
last stores. 0 for none."""
PART_WORDS = 8
assert PARTS < TABLE_WORDS


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A record outside native code. `group` is None for several; `wave` counts from 0. `launch` is
    0 where launches are not compared."""

    group: int | None
    wave: int
    atomicity: Atomicity
    stream: int
    instruction: int
    number: int
    launch: int = 0
    system: bool = False

    @classmethod
    def of(cls, who: int, number: int) -> MemoryRecord:
        """The record of two words."""

        def field(layout: ShadowField, word: int) -> int:
            return word >> layout.first & layout.mask

        group = field(GROUP, who)
        return cls(
            group=None if group == MANY else group - 1,
            wave=field(WAVE, who) - 1,
            atomicity=Atomicity(field(ATOMICITY, who)),
            stream=field(STREAM, who),
            instruction=field(INSTRUCTION, who),
            number=field(NUMBER, number),
            launch=field(LAUNCH, number),
            system=bool(field(SYSTEM, who)),
        )


__all__ = [
    "ASIDE",
    "ASIDE_RECORDS",
    "ATOMICITY",
    "BYTES",
    "DECIDES",
    "GROUP",
    "HIDES",
    "INSTRUCTION",
    "LAUNCH",
    "LOADER",
    "MANY",
    "MOST_GROUPS",
    "MOST_LAUNCHES",
    "NUMBER",
    "OTHER_GROUP",
    "OTHER_WAVE",
    "PARTS",
    "PART_WORDS",
    "PEERS",
    "PLAIN_READ",
    "PLAIN_WRITE",
    "READS",
    "READ_NUMBERS",
    "RELEASES",
    "STREAM",
    "SYSTEM",
    "TABLE_WORDS",
    "VOLATILE",
    "WAVE",
    "WRITES",
    "WRITE_NUMBERS",
    "MemoryRecord",
]
