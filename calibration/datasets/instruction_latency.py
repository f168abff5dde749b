"""Thread traces of rocprofv3 (ATT): instructions with how often they ran and the cycles they took.

The cycles of a hit are those from the issue of an instruction to the next of its wave: what the
instruction takes of its pipe, and any stall before it. They are compared with the issue cycles of
the cost tables, per cost class. Instructions that wait (`s_waitcnt`, barriers, no-ops) have no cost
of their own, and a matrix instruction occupies its pipe longer than its wave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast import arch
from wavecast.benchmarking.accuracy.cases import Case, MeasuredFigure, device_of
from wavecast.benchmarking.accuracy.importers.base import Importer, each
from wavecast.isa.decode import DecodeError, Decoder, wave_lanes_of

if TYPE_CHECKING:
    import pandas as pd

_WAITING = frozenset({"wait", "barrier", "nop", "hint", "message", "end"})


class InstructionLatency(Importer):
    """One figure per instruction of a trace."""

    name: ClassVar[str] = "instruction_latency"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"arch", "instruction", "hitcount", "latency_cycles_total"}),
    )

    def cases(self, frame: pd.DataFrame) -> Iterator[Case | MeasuredFigure]:
        """One figure per row; labels and comments among the rows have no expected cycles."""
        yield from each(frame.to_dict("records"), _figure)


def _figure(row: Mapping[str, Any]) -> MeasuredFigure:
    text, hits, cycles = str(row["instruction"]), row["hitcount"], row["latency_cycles_total"]
    device, _ = device_of(str(row["arch"]))
    kind, expected, reason = _expected(device, text.strip())
    if expected is not None and not hits:
        kind, expected, reason = "issue", None, "the instruction was never executed"
    return MeasuredFigure(
        kind=kind,
        name=text,
        device=device,
        measured=cycles / hits if hits else 0.0,
        expected=expected,
        unit="cycles",
        source=str(row.get("source_path", "")),
        reason=reason,
    )


@cache
def _expected(device: str, text: str) -> tuple[str, float | None, str]:
    """Kind of figure, issue cycles, and why there are none."""
    found = arch.load(device)
    try:
        cost_class = _decoder(found.target).decode(text).opcode.cost_class
    except DecodeError:
        return "issue", None, "the row is not an instruction"
    if cost_class in _WAITING:
        return "issue", None, "instructions that wait have no separate cost"
    if cost_class == "matrix":
        return "issue", None, "a matrix instruction occupies its pipe longer than its wave"
    return f"issue {cost_class}", found.cost(cost_class).issue_cycles, ""


@cache
def _decoder(target: str) -> Decoder:
    return Decoder(target, wave_lanes_of(target))
