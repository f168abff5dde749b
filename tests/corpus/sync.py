"""Waits and hazards of compiled kernels: none is missing, and every one taken out is missed.

    python -m tests.corpus.sync FOLDER [PATTERN …] [--mutate N] [--processes N]

FOLDER holds NAME.TARGET.amdgcn, as the shared corpus builds them. Without `--mutate` every kernel
must be free of violations. With it, up to N waits and N no-ops of each kernel (0: all) are deleted
one by one, each counter of those waits is weakened by one, and each `s_nop` made one wait state
shorter; the table counts what became of it.
A mutant nobody reports is put under the reason why no register can change by it:

    redundant       the wait covers nothing that earlier ones do not cover
    barrier         it orders memory before a barrier: `outstanding_at` shows what is open there now
    memory          it orders stores, atomics without result or cache control; no register waits
    later           another wait covers the loads before their registers are used
    loaded          DPP after a load: LLVM leaves the room for every writer, the ISA for VALU only
    packed          LLVM takes op_sel_hi of packed math for the selector of a result
    spill           LLVM marks lane writes of spilled SGPRs as writing the SGPRs
    ttmp            LLVM takes ttmp registers, whose number it does not look up, for s0
    clause          it ends a run of loads that a page fault would repeat as a whole (XNACK)
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from wavecast import isa
from wavecast.analyze import sync
from wavecast.analyze.sync.outstanding import OutstandingFlow, OutstandingState
from wavecast.isa.decode import Decoder, wave_lanes_of
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.opcode import VECTOR_MEMORY_FORMS, Role
from wavecast.isa.program import Program
from wavecast.isa.registers import SGPR_BASE, TTMP_BASE, TTMP_COUNT, span
from wavecast.isa.waits import wait_counters

REASONS = ("redundant", "barrier", "memory", "later", "loaded", "packed", "spill", "ttmp", "clause")
_ALU_WAIT = re.compile(r"s_waitcnt_depctr|s_wait_alu")
_FILLERS = ("no-op", "shorten")
_STATES = re.compile(r"s_nop (0x[0-9a-fA-F]+|\d+)$")
_NOPS = re.compile(r"[sv]_nop\b")
_SYMBOLIC = re.compile(r"(\w+cnt)\((\d+)\)")
_IMMEDIATE = re.compile(r"(0x[0-9a-fA-F]+|\d+)$")
_TAKEN_FOR_EACH_OTHER = span(SGPR_BASE, 0, 2) | span(TTMP_BASE, 0, TTMP_COUNT)
_HINT = "s_setprio 0"
_COMBINED = re.compile(r"s_wait_\w+cnt_dscnt")


@dataclass(frozen=True)
class Mutant:
    """A kernel with one line changed. `line` counts from 1."""

    kind: str
    line: int
    before: str
    after: str


def mutants(text: str, program: Program, most: int, seed: int = 0) -> Iterator[Mutant]:
    """Mutants of one kernel: up to `most` waits and `most` no-ops of it, all where that is 0."""
    lines = text.split("\n")
    waits, fillers = [], []
    for instruction in program.instructions:
        spelled = instruction.decoded.text
        if _NOPS.match(spelled) or _ALU_WAIT.match(spelled):
            fillers.append(instruction.line)
        elif instruction.opcode.role is Role.WAIT and wait_counters(instruction, program.target):
            waits.append(instruction.line)
    chooser = random.Random(f"{program.name} {program.target} {seed}")
    for line in _some(waits, most, chooser):
        before = lines[line - 1].split(";")[0].strip()
        yield Mutant("delete", line, before, "")
        for weaker in weakened(before):
            yield Mutant("weaken", line, before, weaker)
    for line in _some(fillers, most, chooser):
        before = lines[line - 1].split(";")[0].strip()
        yield Mutant("no-op", line, before, "")
        states = _STATES.match(before)
        if states is not None and int(states[1], 0) > 0:
            yield Mutant("shorten", line, before, f"s_nop {int(states[1], 0) - 1}")


def _some(lines: list[int], most: int, chooser: random.Random) -> list[int]:
    return sorted(chooser.sample(lines, most)) if most and len(lines) > most else lines


def weakened(wait: str) -> Iterator[str]:
    """The wait with one of its counters let stand one higher, for each of them."""
    for match in _SYMBOLIC.finditer(wait):
        more = f"{match[1]}({int(match[2]) + 1})"
        yield wait[: match.start()] + more + wait[match.end() :]
    immediate = _IMMEDIATE.search(wait)
    if immediate is not None and "(" not in wait:
        steps = (0x1, 0x100) if _COMBINED.match(wait) else (0x1,)
        for step in steps:
            yield f"{wait[: immediate.start()]}{int(immediate[1], 0) + step:#x}"


def mutate(text: str, program: Program, mutant: Mutant) -> Program:
    """The program with the mutant's line in it.

    A deleted wait becomes a hint, which no check looks at, so that indices stay; a deleted no-op,
    whose place in the count of wait states matters, is left out of the text.
    """
    lines = text.split("\n")
    if mutant.kind in _FILLERS and not _ALU_WAIT.match(mutant.before):
        lines[mutant.line - 1] = mutant.after
        module = isa.parse("\n".join(lines), program.target, kernel=program.name)
        return module.kernels[program.name].program
    index = _index_of(program, mutant.line)
    old = program.instructions[index]
    decoded = Decoder(program.target, wave_lanes_of(program.target)).decode(mutant.after or _HINT)
    changed = Instruction(decoded, index, old.line, old.location)
    instructions = (*program.instructions[:index], changed, *program.instructions[index + 1 :])
    return replace(program, instructions=instructions)


def _index_of(program: Program, line: int) -> int:
    return bisect_left(program.instructions, line, key=lambda item: item.line)


def violations(program: Program) -> tuple[sync.Violation, ...]:
    """Everything both checks find."""
    return sync.missing_waits(program) + sync.hazards(program)


def verdict(text: str, program: Program, mutant: Mutant) -> str:
    """`reported`, one of REASONS, or `unexplained`."""
    after = mutate(text, program, mutant)
    if mutant.kind in _FILLERS:
        return "reported" if sync.hazards(after) else _why_no_hazard(program, mutant.line)
    if sync.missing_waits(after):
        return "reported"
    index = _index_of(program, mutant.line)
    flow = OutstandingFlow(program)
    open_ = _open_after(flow, index, after) - _open_after(flow, index, program)
    if not open_:
        return "redundant"
    if sync.outstanding_at(after) != sync.outstanding_at(program):
        return "barrier"
    return "later" if any(program.instructions[op].writes for op in open_) else "memory"


def _open_after(flow: OutstandingFlow, index: int, form: Program) -> set[int]:
    """What is outstanding behind the wait at `index` in the form `form` has it."""
    counters = wait_counters(form.instructions[index], form.target)
    block = next(b for b in flow.program.blocks if b.start <= index < b.stop)
    entry = flow.entries[block.index]
    if entry is None:
        return set()
    state = OutstandingState(entry)
    for step in flow.steps[block.index]:
        if step.index < index:
            flow.apply(state, step)
    for number, queue in enumerate(flow.queues):
        if queue.counter in counters:
            state.wait(number, counters[queue.counter], unordered=queue.unordered)
    return {operation for scores in state.scores for operation in scores}


def _why_no_hazard(program: Program, line: int) -> str:
    index = _index_of(program, line)
    near = program.instructions[max(0, index - 2) : index + 3]
    follower = program.instructions[index + 1].decoded
    if "dpp" in follower.encoding:
        return "loaded"
    if _ALU_WAIT.match(program.instructions[index].decoded.text):
        return "ttmp" if _follower(program, index).reads & _TAKEN_FOR_EACH_OTHER else "unexplained"
    if any(item.opcode.form == "VOP3P" for item in near[:2]):
        return "packed"
    if any(item.opcode.name == "v_writelane_b32" for item in near):
        return "spill"
    before = program.instructions[index - 1].decoded
    if _in_clause(before) and _in_clause(follower):
        return "clause"
    return "unexplained"


def _follower(program: Program, index: int) -> Decoded:
    """The next instruction that is no hint."""
    later = program.instructions[index + 1 :]
    return next(item.decoded for item in later if item.opcode.role is not Role.HINT)


def _in_clause(decoded: Decoded) -> bool:
    return decoded.opcode.form in VECTOR_MEMORY_FORMS or decoded.opcode.form == "SMEM"


@dataclass(frozen=True)
class Result:
    """What one file gave: violations of the original, verdicts per kind, seconds."""

    name: str
    instructions: int
    clean: list[str]
    verdicts: Counter[tuple[str, str, str]]
    unexplained: list[str]
    waits_s: float
    hazards_s: float


def examine(path: Path, most: int | None) -> Result:
    """Check one file, and its mutants unless `most` is None."""
    text = path.read_text(encoding="utf-8")
    target = path.name.split(".")[-2]
    module = isa.parse(text, target)
    found: list[str] = []
    verdicts: Counter[tuple[str, str, str]] = Counter()
    unexplained: list[str] = []
    waits_s = hazards_s = 0.0
    count = 0
    for kernel in module.kernels.values():
        program = kernel.program
        count += len(program.instructions)
        start = time.perf_counter()
        wrong = sync.missing_waits(program)
        middle = time.perf_counter()
        wrong += sync.hazards(program)
        waits_s += middle - start
        hazards_s += time.perf_counter() - middle
        found += [item.explanation for item in wrong]
        if most is None or wrong:
            continue
        for mutant in mutants(text, program, most):
            became = verdict(text, program, mutant)
            verdicts[target, mutant.kind, became] += 1
            if became == "unexplained":
                unexplained.append(f"{path.name}:{mutant.line}: {mutant.before}")
    return Result(path.name, count, found, verdicts, unexplained, waits_s, hazards_s)


def main() -> int:
    """Run the check; the exit code is 1 where something is wrong or unexplained."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--mutate", type=int, metavar="N")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    paths = sorted({p for name in options.patterns for p in options.folder.glob(f"{name}.amdgcn")})
    start = time.perf_counter()
    verdicts: Counter[tuple[str, str, str]] = Counter()
    wrong: list[str] = []
    instructions, waits_s, hazards_s = 0, 0.0, 0.0
    with ProcessPoolExecutor(options.processes) as pool:
        for result in pool.map(examine, paths, [options.mutate] * len(paths)):
            wrong += [f"{result.name}: {line}" for line in result.clean]
            wrong += [f"unexplained: {line}" for line in result.unexplained]
            verdicts += result.verdicts
            instructions += result.instructions
            waits_s += result.waits_s
            hazards_s += result.hazards_s
    print(f"{len(paths)} kernels, {instructions} instructions, {len(wrong)} wrong or unexplained")
    print(f"missing waits {waits_s:.1f} s, hazards {hazards_s:.1f} s of processor time; wall "
          f"{time.perf_counter() - start:.0f} s")  # fmt: skip
    if verdicts:
        _print_table(verdicts)
    for line in wrong[:40]:
        print(line)
    return 1 if wrong else 0


def _print_table(verdicts: Counter[tuple[str, str, str]]) -> None:
    columns = ("reported", *REASONS, "unexplained")
    print(f"{'target':8} {'mutant':8} {'all':>7} " + " ".join(f"{c:>11}" for c in columns))
    for target, kind in sorted({key[:2] for key in verdicts}):
        row = [verdicts[target, kind, column] for column in columns]
        print(f"{target:8} {kind:8} {sum(row):7} " + " ".join(f"{n:11}" for n in row))


if __name__ == "__main__":
    sys.exit(main())
