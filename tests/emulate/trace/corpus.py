"""The shared corpus traced: `python -m tests.emulate.trace.corpus [--target T]… [NAME…]`.

Every launch is traced and read: executions per block against the static analysis where that knows
them of every sampled wave alike, bank conflicts and cache lines against its first sighting of each
instruction. Prints per kernel how many were compared and what differs. Where waves differ from each
other the static figures are those of samples, so differences are listed, not failures; a result
that is wrong under trace is one (exit code 1).
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from tests.emulate.corpus import KERNELS, TARGETS, load_kernels
from tests.emulate.corpus_cases import CASES, wrong
from wavecast.analyze import values
from wavecast.arch import resolve
from wavecast.compile.codeobject import Launch
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.trace.mode import TraceMode
from wavecast.emulate.trace.result import Trace
from wavecast.errors import WavecastError
from wavecast.isa.opcode import Space


class Kept(TraceMode):
    """Keeps the launches beside their traces."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.launches: list[Launch] = []

    def watch(self, native: Any, launch: Launch, ranges: Any) -> Any:
        self.launches.append(launch)
        return super().watch(native, launch, ranges)


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


def verdict(kernels: Any, name: str, target: str) -> tuple[str, str]:
    """(`equal`, `differs`, `wrong`, `unsupported` or `refused`, what about it)."""
    import torch

    import wavecast

    torch.manual_seed(len(name))
    mode = Kept()
    try:
        with wavecast.device(target, trace=mode):
            triples = CASES[name](kernels, torch)
    except Unsupported as error:
        return "unsupported", error.message
    except WavecastError as error:
        return "wrong", error.message
    except Exception as error:
        return "refused", f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    problems = list(wrong(torch, triples))
    if problems:
        return "wrong", "; ".join(problems)
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append")
    given = parser.parse_args()
    if not KERNELS.exists():
        print(f"no corpus at {KERNELS}")
        return 0
    kernels = load_kernels()
    totals: dict[str, int] = {}
    for target in given.target or TARGETS:
        for name in given.names or CASES:
            started = time.perf_counter()
            state, text = verdict(kernels, name, target)
            totals[state] = totals.get(state, 0) + 1
            seconds = time.perf_counter() - started
            print(f"{target} {name:14} {state:11} {seconds:6.2f} s  {text}", flush=True)
    print(", ".join(f"{number} {state}" for state, number in totals.items()))
    return int("wrong" in totals)


if __name__ == "__main__":
    sys.exit(main())
