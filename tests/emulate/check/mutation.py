"""Barriers and waits deleted from the shared corpus, one at a time, under check mode.

`python -m tests.emulate.check.mutation [--target T]… [--waits] [NAME…]` runs every case as it is
(it must be clean), then once per barrier of its kernels with that barrier replaced by a no-op, and
compares. With `--waits` also once per wait whose deletion the static check does not report. Prints
a line per kernel; exit code 1 when a deletion that changes a result is not reported.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.emulate.corpus import load_kernels
from tests.emulate.corpus_cases import CASES, wrong
from wavecast.analyze.sync import missing_waits
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.launch import Emulator
from wavecast.emulate.native import NativeKernel
from wavecast.errors import WavecastError
from wavecast.integrations.torch_cpu import emulated_cuda
from wavecast.integrations.triton.execute import ExecutingHooks
from wavecast.integrations.triton.session import device_facts
from wavecast.isa.opcode import Role

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


@dataclass
class Outcome:
    """One run of a case: its reports, whether its results are right, whether a launch ended with an
    error, the kernels launched."""

    reports: Reports
    right: bool
    broken: bool
    codes: dict[str, CodeObject] = field(default_factory=dict)


def run(kernels: Any, name: str, target: str, deleted: Site | None = None) -> Outcome:
    """Run a case under check mode."""
    import torch

    torch.manual_seed(len(name))
    reports = Reports()
    emulator = Mutating(CheckMode(reports.add), deleted)
    facts = device_facts(target)
    hooks = ExecutingHooks(facts, emulator, reports)
    hooks.install()
    right, broken = True, False
    try:
        with emulated_cuda(facts, lambda _: None, executing=True):
            triples = CASES[name](kernels, torch)
    except WavecastError:
        right, broken = False, True
    else:
        right = not list(wrong(torch, triples))
    finally:
        hooks.remove()
    return Outcome(reports, right, broken, emulator.codes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append")
    parser.add_argument("--waits", action="store_true")
    given = parser.parse_args()
    kernels = load_kernels()
    failed = False
    for target in given.target or ["gfx942"]:
        for name in given.names or list(CASES):
            failed |= not _case(kernels, name, target, given.waits)
    return int(failed)


def _case(kernels: Any, name: str, target: str, waits: bool) -> bool:
    """Print what came of the deletions of one case; False when one was missed."""
    from triton.errors import TritonError

    started = time.perf_counter()
    try:
        clean = run(kernels, name, target)
    except TritonError as error:
        print(f"{target} {name}: not compiled ({type(error).__name__})", flush=True)
        return True
    errors = clean.reports.errors
    deleted = reported = harmless = 0
    missed: list[str] = []
    for digest, code in clean.codes.items():
        for line, text in sites(code, waits=waits):
            outcome = run(kernels, name, target, (digest, line))
            deleted += 1
            if outcome.broken or len(outcome.reports.errors) > len(errors):
                reported += 1
            elif outcome.right:
                harmless += 1
            else:
                missed.append(f"{code.kernel}:{line + 1} {text}")
    seconds = time.perf_counter() - started
    print(
        f"{target} {name}: {'clean' if clean.right and not errors else 'NOT CLEAN'}, "
        f"{deleted} deleted, {reported} reported, {harmless} changed nothing, "
        f"{len(missed)} missed ({seconds:.0f} s) {'; '.join(missed)}",
        flush=True,
    )
    return clean.right and not errors and not missed


if __name__ == "__main__":
    sys.exit(main())
