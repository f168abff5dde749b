"""Definitions deleted from the shared corpus: `python -m tests.emulate.check.deletions
[--target T]… [--most N] [NAME…]`.

Of every kernel a case launches, instructions are deleted one at a time that are the first to write
a vector register and the only ones to write what is read of it. A deletion that makes the results
wrong, or breaks the kernel off, must be reported as the use of a register nothing has written; one
that does not may be. Exit code 1 when one is missed. `most` bounds the deletions of one kernel,
spread evenly (default 12).
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from tests.emulate.check.mutation import Outcome, run
from tests.emulate.corpus import arguments, chosen, load_kernels
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.reports import Kind
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


def _bad(outcome: Outcome) -> bool:
    return outcome.state in ("wrong", "broken")


def _found(outcome: Outcome) -> bool:
    return any(report.kind is Kind.UNINITIALISED_REGISTER for report in outcome.reports)


def _case(kernels: Any, name: str, target: str, most: int) -> Counter[str]:
    """How often deletions in the kernels of a case were reported, missed, harmless."""
    first = run(kernels, name, target)
    counts = Counter({"false alarms": int(_found(first))})
    for digest, code in first.codes.items():
        program = parse_kernel(code).program
        places = deletable(program)
        for index in places[:: -(-len(places) // most) or 1]:
            instruction = program.instructions[index]
            outcome = run(kernels, name, target, (digest, instruction.line - 1))
            state = "reported" if _found(outcome) else "missed" if _bad(outcome) else "harmless"
            counts[state] += 1
            if state != "reported":
                text = instruction.decoded.text
                print(f"  {state}: {code.kernel} {index}: {text}", flush=True)
    return counts


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--most", type=int, default=12)
    given = parser.parse_args()
    kernels, missed = None, 0
    for name, target in chosen(given):
        kernels = kernels or load_kernels()
        counts = _case(kernels, name, target, given.most)
        missed += counts["missed"] + counts["false alarms"]
        print(target, name, dict(counts), flush=True)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
