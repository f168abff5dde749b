"""Numbers and places as the findings print them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from wavecast.isa.instruction import SourceLocation
from wavecast.wording import count


def at_line(location: SourceLocation | None) -> str:
    """` at line 12` of the kernel's own source, "" where the line is not known."""
    return f" at line {location.outermost.line}" if location is not None else ""


def shared_memory(is_amd: bool) -> str:
    """What the vendor calls the memory of a workgroup."""
    return "LDS" if is_amd else "shared memory"


def join_names(names: Iterable[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    items: Sequence[str] = list(names)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}"


def lines(locations: Iterable[SourceLocation | None], most: int = 6) -> str:
    """`line 12`, `lines 12, 14 and 20`; "" when none is known."""
    numbers = sorted({location.outermost.line for location in locations if location is not None})
    if not numbers:
        return ""
    if len(numbers) > most:
        return f"lines {', '.join(map(str, numbers[:most]))} …"
    return f"line{'' if len(numbers) == 1 else 's'} {join_names(map(str, numbers))}"


def size(number: float) -> str:
    """Bytes in the largest binary unit that keeps them at least 1: `48 bytes`, `64 KiB`."""
    units = ("KiB", "MiB", "GiB", "TiB")
    if number < 1024:
        return count(int(number), "byte")
    power = min(int(math.log2(number) // 10), len(units))
    return f"{number / 1024**power:.4g} {units[power - 1]}"
