"""Thread traces of rocprofv3 (ATT): instructions with how often they ran and the cycles they took.

The cycles of a hit are those from the issue of an instruction to the next of its wave: what the
instruction takes of its pipe, and any stall before it. They stand beside the issue cycles of the
cost tables, per cost class. What waits (`s_waitcnt`, barriers, no-ops) has no cost of its own, and
a matrix instruction occupies its pipe longer than its wave.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from wavecast import arch
from wavecast.bench.accuracy.datasets.base import Dataset, Figure, Given, device_of
from wavecast.isa.decode import DecodeError, Decoder, wave_lanes_of

if TYPE_CHECKING:
    import pandas as pd

_WAITING = frozenset({"wait", "barrier", "nop", "hint", "message", "end"})


class InstructionLatency(Dataset):
    """One figure per instruction of a trace."""

    name: ClassVar[str] = "instruction_latency"
    columns: ClassVar[frozenset[str]] = frozenset(
        {"arch", "instruction", "hitcount", "latency_cycles_total"}
    )

    def cases(self, frame: pd.DataFrame, given: Given) -> Iterator[Figure]:
        """One figure per row; labels and comments among the rows have no expected cycles."""
        del given
        columns = ["arch", "instruction", "hitcount", "latency_cycles_total"]
        rows = frame[columns].itertuples(index=False, name=None)
        known = "source_path" in frame.columns
        sources = frame["source_path"] if known else [""] * len(frame)
        for (target, text, hits, cycles), source in zip(rows, sources, strict=True):
            device, _ = device_of(str(target))
            kind, expected, reason = _expected(device, str(text).strip())
            if expected is not None and not hits:
                kind, expected, reason = "issue", None, "the instruction was never executed"
            yield Figure(
                kind=kind,
                name=str(text),
                device=device,
                measured=cycles / hits if hits else 0.0,
                expected=expected,
                unit="cycles",
                source=str(source),
                reason=reason,
            )


@cache
def _expected(device: str, text: str) -> tuple[str, float | None, str]:
    """Kind of figure, issue cycles, and why there are none."""
    found = arch.load(device)
    try:
        cost_class = _decoder(found.target).decode(text).opcode.cost_class
    except DecodeError:
        return "issue", None, "the row is no instruction"
    if cost_class in _WAITING:
        return "issue", None, "what waits has no cost of its own"
    if cost_class == "matrix":
        return "issue", None, "a matrix instruction occupies its pipe longer than its wave"
    return f"issue {cost_class}", found.cost(cost_class).issue_cycles, ""


@cache
def _decoder(target: str) -> Decoder:
    return Decoder(target, wave_lanes_of(target))
