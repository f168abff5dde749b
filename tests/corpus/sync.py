"""Waits and hazards of compiled kernels: none is missing, and every one taken out is missed.

    python -m tests.corpus.sync FOLDER [PATTERN …] [--mutate N] [--processes N]

FOLDER holds NAME.TARGET.amdgcn, as the shared corpus builds them. Without `--mutate` every kernel
must be free of violations. With it, up to N waits and N no-ops of each kernel (0: all) are deleted
one by one, and each counter of those waits is weakened by one; the table counts what became of it.
A mutant nobody reports is put under the reason why no register can change by it:

    redundant       the wait covers nothing that earlier ones do not cover
    barrier         it orders memory before a barrier: `outstanding_at` shows what is open there now
    memory          it orders stores, atomics without result or cache control; no register waits
    later           another wait covers the loads before their registers are used
    loaded          DPP after a load: LLVM leaves the room for every writer, the ISA for VALU only
    packed          LLVM takes op_sel_hi of packed math for the selector of a result
    spill           LLVM marks lane writes of spilled SGPRs as writing the SGPRs
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from wavecast import isa
from wavecast.analyze import sync
from wavecast.analyze.sync.outstanding import Flow, State
from wavecast.isa.opcode import Role
from wavecast.isa.program import Program
from wavecast.isa.waits import wait_counters

REASONS = ("redundant", "barrier", "memory", "later", "loaded", "packed", "spill")
_ALU_WAIT = re.compile(r"s_waitcnt_depctr|s_wait_alu")
_NOPS = re.compile(r"[sv]_nop\b")
_SYMBOLIC = re.compile(r"(\w+cnt)\((\d+)\)")
_IMMEDIATE = re.compile(r"(0x[0-9a-fA-F]+|\d+)$")
_COMBINED = re.compile(r"s_wait_\w+cnt_dscnt")


@dataclass(frozen=True)
class Mutant:
    """A kernel with one line changed. `kind`: `delete`, `weaken` or `no-op`; `line` from 1."""

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
        yield Mutant("no-op", line, lines[line - 1].split(";")[0].strip(), "")


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


def mutate(text: str, mutant: Mutant) -> str:
    """The text with the mutant's line in it."""
    lines = text.split("\n")
    lines[mutant.line - 1] = f"\t{mutant.after}"
    return "\n".join(lines)


def violations(program: Program) -> tuple[sync.Violation, ...]:
    """Everything both checks find."""
    return sync.missing_waits(program) + sync.hazards(program)


def verdict(text: str, program: Program, mutant: Mutant) -> str:
    """`reported`, one of REASONS, or `unexplained`."""
    changed = isa.parse(mutate(text, mutant), program.target, kernel=program.name)
    after = (changed.kernels[program.name].program if changed.kernels
             else changed.functions[program.name])  # fmt: skip
    if mutant.kind == "no-op":
        return "reported" if sync.hazards(after) else _why_no_hazard(program, mutant.line)
    if sync.missing_waits(after):
        return "reported"
    open_ = _uncovered(program, after, mutant)
    if not open_:
        return "redundant"
    if _open_at_barriers(after) != _open_at_barriers(program):
        return "barrier"
    return "later" if any(program.instructions[op].writes for op in open_) else "memory"


def _uncovered(program: Program, after: Program, mutant: Mutant) -> set[int]:
    """The operations the original wait covers and the mutant does not (original indices)."""
    return _open_after(program, mutant.line, after) - _open_after(program, mutant.line, None)


def _open_after(program: Program, line: int, other: Program | None) -> set[int]:
    """What is outstanding behind the wait at `line`; with `other`, its form of the wait counts."""
    flow = Flow(program)
    index = next(i.index for i in program.instructions if i.line == line)
    counters = wait_counters(program.instructions[index], program.target)
    if other is not None:
        changed = next((i for i in other.instructions if i.line == line), None)
        counters = wait_counters(changed, other.target) if changed is not None else {}
    block = next(b for b in program.blocks if b.start <= index < b.stop)
    entry = flow.entries[block.index]
    if entry is None:
        return set()
    state = State(entry)
    for step in flow.steps[block.index]:
        if step.index < index:
            flow.apply(state, step)
    for number, queue in enumerate(flow.queues):
        if queue.counter in counters:
            state.wait(number, counters[queue.counter], unordered=queue.unordered)
    return {operation for scores in state.scores for operation in scores}


def _open_at_barriers(program: Program) -> dict[int, set[int]]:
    """Lines instead of indices, which a deletion shifts."""
    lines = {i.index: i.line for i in program.instructions}
    return {
        lines[barrier]: {lines[operation] for operation in open_}
        for barrier, open_ in sync.outstanding_at(program).items()
    }


def _why_no_hazard(program: Program, line: int) -> str:
    index = next(i.index for i in program.instructions if i.line == line)
    near = program.instructions[max(0, index - 2) : index + 3]
    follower = program.instructions[index + 1].decoded
    if "dpp" in follower.encoding:
        return "loaded"
    if any(item.opcode.form == "VOP3P" for item in near[:2]):
        return "packed"
    if any(item.opcode.name == "v_writelane_b32" for item in near):
        return "spill"
    return "unexplained"


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
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
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
