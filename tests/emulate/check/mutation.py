"""Barriers and waits deleted from the shared corpus, one at a time, under check mode.

`python -m tests.emulate.check.mutation [--target T]… [--waits] [NAME…]` runs every case as it is
(it must be clean), then once per barrier of its kernels with that barrier replaced by a no-op, and
compares. With `--waits` also once per wait whose deletion the static check does not report. Prints
a line per kernel; exit code 1 when a deletion that changes a result is not reported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.emulate.corpus import arguments, chosen, executed, load_kernels
from wavecast import arch
from wavecast.analyze.sync import missing_waits
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.launch import Emulator
from wavecast.isa.opcode import Role
from wavecast.runtimes.torch_cpu import emulated_cuda
from wavecast.runtimes.triton.execute import ExecutingHooks
from wavecast.runtimes.triton.session import device_facts

Site = tuple[str, int]
"""Digest of a kernel and the line (from 0) of an instruction in its assembly."""


class Mutating(Emulator):
    """An emulator that deletes one instruction of one kernel before it translates it."""

    def __init__(self, mode: CheckMode, deleted: Site | None = None) -> None:
        super().__init__(1, mode)
        self.deleted = deleted
        self.codes: dict[str, CodeObject] = {}

    def translate(self, code: CodeObject) -> NativeKernel:
        self.codes[code.digest] = code
        if self.deleted is not None and self.deleted[0] == code.digest:
            code = without(code, self.deleted[1])
        return super().translate(code)


def without(code: CodeObject, line: int) -> CodeObject:
    """The code with one line of its assembly replaced by a no-op."""
    lines = code.assembly.split("\n")
    lines[line] = "\ts_nop 0"
    stages = {**code.stages, "amdgcn": "\n".join(lines)}
    return replace(code, stages=stages, digest=f"{code.digest}-{line}")


def sites(code: CodeObject, *, waits: bool) -> Iterator[tuple[int, str]]:
    """Lines (from 0) of barriers, or of waits whose deletion no static check reports."""
    program = parse_kernel(code).program
    for instruction in program.instructions:
        role = instruction.opcode.role
        if role is not (Role.WAIT if waits else Role.BARRIER):
            continue
        line = instruction.line - 1
        if waits and missing_waits(parse_kernel(without(code, line)).program):
            continue
        yield line, instruction.decoded.text


@dataclass(frozen=True)
class Outcome:
    """One run of a case: how it ended (`corpus.executed`), its reports, the kernels launched."""

    state: str
    reports: Reports
    codes: dict[str, CodeObject]


@contextmanager
def _executing(target: str, emulator: Emulator, reports: Reports) -> Iterator[None]:
    """`wavecast.device` with an emulator of one's own."""
    facts = device_facts(target)
    hooks = ExecutingHooks(facts, arch.load(target), emulator, reports)
    hooks.install()
    try:
        with emulated_cuda(facts, lambda _: None, executing=True):
            yield
    finally:
        hooks.remove()


def run(kernels: Any, name: str, target: str, deleted: Site | None = None) -> Outcome:
    """Run a case under check mode."""
    reports = Reports()
    emulator = Mutating(CheckMode(reports.add), deleted)
    state, _ = executed(kernels, name, _executing(target, emulator, reports))
    return Outcome(state, reports, emulator.codes)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--waits", action="store_true")
    given = parser.parse_args()
    kernels, failed = None, False
    for name, target in chosen(given):
        kernels = kernels or load_kernels()
        failed |= not _case(kernels, name, target, given.waits)
    return int(failed)


def _case(kernels: Any, name: str, target: str, waits: bool) -> bool:
    """Print what came of the deletions of one case; False when one was missed."""
    started = time.perf_counter()
    first = run(kernels, name, target)
    if first.state in ("unsupported", "refused"):
        print(f"{target} {name}: {first.state}", flush=True)
        return True
    errors = first.reports.errors
    clean = first.state == "right" and not errors
    deleted = reported = harmless = 0
    missed: list[str] = []
    for digest, code in first.codes.items():
        for line, text in sites(code, waits=waits):
            outcome = run(kernels, name, target, (digest, line))
            deleted += 1
            if outcome.state == "broken" or len(outcome.reports.errors) > len(errors):
                reported += 1
            elif outcome.state == "right":
                harmless += 1
            else:
                missed.append(f"{code.kernel}:{line + 1} {text}")
    seconds = time.perf_counter() - started
    print(
        f"{target} {name}: {'clean' if clean else 'NOT CLEAN'}, "
        f"{deleted} deleted, {reported} reported, {harmless} changed nothing, "
        f"{len(missed)} missed ({seconds:.0f} s) {'; '.join(missed)}",
        flush=True,
    )
    return clean and not missed


if __name__ == "__main__":
    sys.exit(main())
