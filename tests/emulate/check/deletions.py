"""Definitions deleted from the shared corpus: `python -m tests.emulate.check.deletions
[--target T]… [--most N] [NAME…]`.

Of every kernel a case launches, instructions are deleted one at a time that are the first to write
a vector register and the only ones to write what is read of it. A deletion that makes the results
wrong, or breaks the kernel off, must be reported as the use of a register nothing has written; one
that does not may be. Exit code 1 when one is missed. `most` bounds the deletions of one kernel,
spread evenly (default 12).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.emulate.corpus import KERNELS, TARGETS, load_kernels
from tests.emulate.corpus_cases import CASES, wrong
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.check.report import Kind, Report
from wavecast.emulate.launch import Emulator
from wavecast.errors import WavecastError
from wavecast.isa.defuse import ENTRY, DefUse, bits_of
from wavecast.isa.program import Program
from wavecast.isa.registers import AGPRS, VGPRS


def deletable(program: Program) -> list[int]:
    """Instructions that write vector registers whole, some of which are read and nothing writes
    earlier or instead: left out, these hold nothing."""
    chains = DefUse(program)
    found = []
    for instruction in program.instructions:
        decoded = instruction.decoded
        written = decoded.kills & (VGPRS | AGPRS) & ~1  # v0 comes with a value
        fresh = [
            bit for bit in bits_of(written) if chains.definitions(instruction.index, bit) == {ENTRY}
        ]
        if not fresh or decoded.writes != decoded.kills or decoded.reads & written:
            continue
        for use in chains.uses(instruction.index):
            reads = program.instructions[use].decoded.reads
            read = [bit for bit in fresh if reads >> bit & 1]
            if any(chains.definitions(use, bit) == {instruction.index} for bit in read):
                found.append(instruction.index)
                break
    return found


@contextmanager
def _executing(mode: CheckMode, changed: dict[str, CodeObject], seen: list[CodeObject]) -> Iterator:
    """Launches run in `mode`, code of a digest in `changed` as that says; `seen` gets all code."""
    begin, translate = Emulator.__init__, Emulator.translate

    def made(self: Emulator, *_: Any, **__: Any) -> None:
        begin(self, 1, mode)

    def other(self: Emulator, code: CodeObject) -> Any:
        if all(code.digest != known.digest for known in seen):
            seen.append(code)
        return translate(self, changed.get(code.digest, code))

    Emulator.__init__, Emulator.translate = made, other
    try:
        yield
    finally:
        Emulator.__init__, Emulator.translate = begin, translate


def _run(kernels: Any, name: str, target: str, changed: dict[str, CodeObject]) -> tuple:
    """(whether the results are wrong, whether an undefined register was reported, code run)."""
    import torch

    import wavecast

    torch.manual_seed(len(name))
    reports: list[Report] = []
    seen: list[CodeObject] = []
    bad = False
    with _executing(CheckMode(reports.extend), changed, seen), wavecast.device(target):
        try:
            bad = bool(list(wrong(torch, CASES[name](kernels, torch))))
        except WavecastError:
            bad = True
    found = any(report.kind is Kind.UNINITIALISED_REGISTER for report in reports)
    return bad, found, seen


def without(code: CodeObject, index: int) -> tuple[CodeObject, str]:
    """The code without one instruction, and that instruction's text."""
    instruction = parse_kernel(code).program.instructions[index]
    lines = code.assembly.split("\n")
    assert instruction.decoded.mnemonic in lines[instruction.line - 1]
    lines[instruction.line - 1] = ""
    stages = {**code.stages, "amdgcn": "\n".join(lines)}
    return replace(code, stages=stages, digest=f"{code.digest}-{index}"), instruction.decoded.text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append")
    parser.add_argument("--most", type=int, default=12)
    given = parser.parse_args()
    if not KERNELS.exists():
        print(f"no corpus at {KERNELS}")
        return 0
    kernels, missed = load_kernels(), 0
    for target in given.target or TARGETS:
        for name in given.names or CASES:
            _, alarm, seen = _run(kernels, name, target, {})
            counts = Counter({"false alarms": int(alarm)})
            for code in seen:
                places = deletable(parse_kernel(code).program)
                for index in places[:: -(-len(places) // given.most) or 1]:
                    changed, text = without(code, index)
                    bad, found, _ = _run(kernels, name, target, {code.digest: changed})
                    state = "reported" if found else "missed" if bad else "harmless"
                    counts[state] += 1
                    if state != "reported":
                        print(f"  {state}: {code.kernel} {index}: {text}", flush=True)
            missed += counts["missed"] + counts["false alarms"]
            print(target, name, dict(counts), flush=True)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
