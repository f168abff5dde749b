"""The shared corpus traced: `python -m tests.emulate.trace.corpus [--target T]… [NAME…]`.

Every launch is traced and read: executions per block against the static analysis where that knows
them of every sampled wave alike, bank conflicts and cache lines against its first sighting of each
instruction. Prints per kernel how many were compared and what differs. Where waves differ from each
other the static figures are those of samples, so differences are listed, not failures; a result
that is wrong under trace, or a launch that broke off, is one (exit code 1).
"""

from __future__ import annotations

import sys
from typing import Any

from tests.emulate.corpus import Verdict, arguments, each, executed
from wavecast.analyze import values
from wavecast.arch import resolve
from wavecast.compile.codeobject import Launch
from wavecast.emulate.trace.mode import TraceMode
from wavecast.emulate.trace.result import Trace
from wavecast.isa.opcode import Space


class Kept(TraceMode):
    """Keeps the launches beside their traces."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.launches: list[Launch] = []

    def watch(self, native: Any, launch: Launch, ranges: Any, host_calls: Any = None) -> Any:
        self.launches.append(launch)
        return super().watch(native, launch, ranges, host_calls)


def compare(trace: Trace, launch: Launch) -> tuple[int, int, list[str]]:
    """Blocks and LDS instructions compared, and what differs."""
    known = values.evaluate(trace.program, trace.kernel.descriptor, launch.code, launch)
    differs: list[str] = []
    blocks = conflicts = 0
    for block, count in enumerate(trace.block_counts.tolist()):
        each = known.block_counts[block]
        if each is None:
            continue
        blocks += 1
        if count != each * trace.waves:
            differs.append(f"block {block}: {count} executions, {each} x {trace.waves} read")
    device = resolve(trace.target).device
    for index, counts in trace.memory.items():
        access = known.accesses.get(index)
        if counts.space is not Space.LDS or access is None or not counts.requests:
            continue
        ways = access.conflict_ways(device)
        if ways is None or counts.conflict_ways is None:
            continue
        conflicts += 1
        if abs(counts.conflict_ways - ways) > 1e-9:
            text = trace.program.instructions[index].decoded.text
            differs.append(f"{text}: {counts.conflict_ways:.3f} ways, {ways:.3f} read")
    return blocks, conflicts, differs


def verdict(kernels: Any, name: str, target: str) -> Verdict:
    """`equal` or `differs` where results are right."""
    import wavecast

    mode = Kept()
    state, text = executed(kernels, name, wavecast.device(target, trace=mode))
    if state != "right":
        return state, text
    blocks = conflicts = 0
    differs: list[str] = []
    for trace, launch in zip(mode.traces, mode.launches, strict=True):
        more_blocks, more_conflicts, more = compare(trace, launch)
        blocks, conflicts, differs = (
            blocks + more_blocks,
            conflicts + more_conflicts,
            differs + more,
        )
    text = f"{blocks} blocks, {conflicts} LDS instructions"
    if differs:
        return "differs", f"{text}, {len(differs)} differ: {'; '.join(differs[:3])}"
    return "equal", text


if __name__ == "__main__":
    sys.exit(each(arguments(__doc__).parse_args(), verdict))
