"""Source and assembly laid side by side: which instructions a source line became.

Source lines of a launch are numbered over all its devices; an instruction names its
own line and, for inlined code, the lines of the calls around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.analyze.weights import UNKNOWN_TRIPS
from wavecast.errors import WavecastError
from wavecast.report.explain import source, words
from wavecast.report.kit import units

if TYPE_CHECKING:
    from wavecast.isa.instruction import Instruction, SourceLocation
    from wavecast.isa.program import Program
    from wavecast.pipeline.explain.result import Explanation

HEAT_STEPS = 9
"""Shades of the cycle gutter, 0 for none."""
_LONGEST_SPAN = 2000
"""Most lines of a file shown whole when the compiler kept no text of it."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line of the source panel. `index` is its number within the launch."""

    index: int
    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Lines of one file; `own` is the kernel's, others show only the lines code came from."""

    name: str
    own: bool
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """What the source panel and the assembly panels of one launch show."""

    files: tuple[SourceFile, ...]
    targets: tuple[dict[str, Any], ...]

    def index_of(self, location: SourceLocation | None) -> int | None:
        """The panel's line for a location in the kernel's own body, None when it shows none."""
        if location is None:
            return None
        outer = location.outermost
        for file in self.files:
            for line in file.lines:
                if line.line == outer.line and source.same_file(line.file, outer.file):
                    return line.index
        return None


def build(explanations: Sequence[Explanation]) -> Listing:
    """The listing of one launch, given its explanations on every device."""
    programs = [program_of(explanation) for explanation in explanations]
    files = _files(explanations[0], programs, _code_lines(explanations, programs))
    index = {(line.file, line.line): line.index for file in files for line in file.lines}
    main_source = explanations[0].code.source
    lookup = _Lookup(index, main_source)
    targets = tuple(
        _target(explanation, program, lookup)
        for explanation, program in zip(explanations, programs, strict=True)
    )
    return Listing(files, targets)


def program_of(explanation: Explanation) -> Program | None:
    """The program, parsed from SASS for NVIDIA; None when there is no readable assembly."""
    if explanation.program is not None:
        return explanation.program
    code = explanation.code
    if code.is_amd or not code.assembly:
        return None
    from wavecast.analyze.sass import parser

    try:
        return parser.parse(code.assembly, code.kernel, code.target, code.moved_files)
    except WavecastError:
        return None


class _Lookup:
    """Source line indices of locations; a path that means the kernel's file counts as that file."""

    def __init__(self, index: Mapping[tuple[str, int], int], main_source: str) -> None:
        self._index = index
        self._own = main_source

    def line(self, file: str, line: int) -> int | None:
        if source.same_file(file, self._own):
            file = self._own
        return self._index.get((file, line))

    def chain(self, location: SourceLocation | None) -> tuple[int, ...]:
        """Innermost first."""
        indices = []
        while location is not None:
            index = self.line(location.file, location.line)
            if index is not None and index not in indices:
                indices.append(index)
            location = location.inlined_at
        return tuple(indices)


def _locations(program: Program) -> Iterator[SourceLocation]:
    distinct = {id(i.location): i.location for i in program.instructions if i.location is not None}
    for innermost in distinct.values():
        location: SourceLocation | None = innermost
        while location is not None:
            yield location
            location = location.inlined_at


def _code_lines(
    explanations: Sequence[Explanation], programs: Sequence[Program | None]
) -> set[tuple[str, int]]:
    """Every file and line with code of the launch."""
    main_source = explanations[0].code.source
    lines = set()
    for explanation, program in zip(explanations, programs, strict=True):
        pairs = [(cost.file, cost.line) for cost in explanation.analysis.lines]
        if program is not None:
            pairs += [(location.file, location.line) for location in _locations(program)]
        lines.update(
            (main_source if source.same_file(file, main_source) else file, line)
            for file, line in pairs
            if line > 0
        )
    return lines


def _body(programs: Sequence[Program | None]) -> Counter[str]:
    """Files by number of instructions, call sites for inlined code."""
    counts: Counter[str] = Counter()
    for program in programs:
        for instruction in program.instructions if program is not None else ():
            if instruction.location is not None:
                counts[instruction.location.outermost.file] += 1
    return counts


def _files(
    explanation: Explanation, programs: Sequence[Program | None], lines: set[tuple[str, int]]
) -> tuple[SourceFile, ...]:
    """The kernel's file first, whole where its text is known, then the lines of others.

    Assembly read from a file names the source it was compiled from: that is the kernel's file
    then, and the part from its first to its last line is shown.
    """
    code = explanation.code
    main = code.source
    kernel_lines = source.kernel_lines(code)
    if code.origin in ("assembly", "elf") and not any(file == main for file, _ in lines):
        kernel_lines = {}
        body = _body(programs)
        main = max(sorted(body), key=body.__getitem__) if body else ""
    names = [main, *sorted({file for file, _ in lines} - {main})]
    files, number = [], 0
    for name in names:
        is_main = name == main
        numbers = {line for file, line in lines if file == name}
        if is_main:
            numbers |= set(kernel_lines) or set(_span(numbers))
        rows = []
        for line in sorted(numbers):
            text = kernel_lines.get(line) if is_main else None
            if text is None:
                text = source.line_text(code, name, line)
            rows.append(SourceLine(number, name, line, text.expandtabs(4).rstrip()))
            number += 1
        if rows:
            files.append(SourceFile(name, is_main, tuple(rows)))
    return tuple(files)


def _span(lines: set[int]) -> range:
    if not lines or max(lines) - min(lines) > _LONGEST_SPAN:
        return range(0)
    return range(min(lines), max(lines) + 1)


# --- one device --------------------------------------------------------------------------------


def _target(explanation: Explanation, program: Program | None, lookup: _Lookup) -> dict[str, Any]:
    """The assembly of one device in columns, as the page's script reads it."""
    if program is None:
        return {"text": [], "chain": [], "chains": [], "class": [], "classes": [], "heat": [],
                "labels": [], "line_heat": {}, "line_note": {}}  # fmt: skip
    chains: dict[tuple[int, ...], int] = {}
    classes: dict[str, int] = {}
    by_location: dict[int, int] = {}
    text, chain, klass = [], [], []
    for instruction in program.instructions:
        text.append(instruction.decoded.text)
        key = id(instruction.location)
        if key not in by_location:
            call_chain = lookup.chain(instruction.location)
            by_location[key] = chains.setdefault(call_chain, len(chains))
        chain.append(by_location[key])
        klass.append(classes.setdefault(_class(instruction), len(classes)))
    weights = _weights(explanation, program)
    return {
        "text": text,
        "chain": chain,
        "chains": [list(call_chain) for call_chain in chains],
        "class": klass,
        "classes": list(classes),
        "heat": shades(weights),
        "labels": _labels(explanation, program),
        "line_heat": _line_heat(weights, chain, list(chains)),
        "line_note": _line_notes(explanation, lookup),
    }


def _class(instruction: Instruction) -> str:
    """The pipe an instruction is coloured by: the first word of its cost class."""
    opcode = instruction.opcode
    return (opcode.cost_class or opcode.form).split("_", 1)[0]


def _labels(explanation: Explanation, program: Program) -> list[list[Any]]:
    """`[first instruction, label, loop depth, note]` per block."""
    executed = explanation.analysis.executed
    rows = []
    for block in program.blocks:
        loop = program.innermost_loop[block.index]
        depth = 0 if loop is None else program.loops[loop].depth
        times = executed[block.index] if block.index < len(executed) else None
        note = f"loop depth {depth}" if depth else ""
        if times is not None and times != 1:
            note += f"{' · ' if note else ''}executed {units.count(times)}× per wave"
        rows.append([block.start, block.label, depth, note])
    return rows


def _weights(explanation: Explanation, program: Program) -> list[float]:
    """Cycles per instruction times how often its block runs, [] where cycles are not known.

    A block whose count is not known counts by its loop depth, every level the same.
    """
    cycles = explanation.analysis.instruction_cycles
    if len(cycles) != len(program.instructions):
        return []
    weights = [0.0] * len(cycles)
    for block in program.blocks:
        times = _times(explanation, program, block.index)
        for index in range(block.start, block.stop):
            weights[index] = cycles[index] * times
    return weights


def _times(explanation: Explanation, program: Program, block: int) -> float:
    executed = explanation.analysis.executed
    if block < len(executed):
        count = executed[block]
        if count is not None:
            return count
    loop = program.innermost_loop[block]
    return 1.0 if loop is None else float(UNKNOWN_TRIPS) ** min(program.loops[loop].depth, 100)


def shades(weights: Sequence[float]) -> list[int]:
    """Weights as shades 0 to `HEAT_STEPS`, linear up to the largest."""
    top = max(weights, default=0.0)
    if top <= 0:
        return [0] * len(weights)
    return [min(HEAT_STEPS, -int(-HEAT_STEPS * weight // top)) if weight > 0 else 0
            for weight in weights]  # fmt: skip


def _line_heat(
    weights: Sequence[float], chain: Sequence[int], chains: Sequence[tuple[int, ...]]
) -> dict[str, int]:
    """Shade per source line: what its instructions and those inlined into it weigh together."""
    by_chain: dict[int, float] = {}
    for weight, chain_index in zip(weights, chain, strict=False):
        by_chain[chain_index] = by_chain.get(chain_index, 0.0) + weight
    totals: dict[int, float] = {}
    for chain_index, weight in by_chain.items():
        for line in chains[chain_index]:
            totals[line] = totals.get(line, 0.0) + weight
    return dict(zip(map(str, totals), shades(list(totals.values())), strict=True))


def _line_notes(explanation: Explanation, lookup: _Lookup) -> dict[str, str]:
    """Tooltip per source line: its instructions and static cycles by pipe."""
    notes: dict[str, str] = {}
    say = words.of(explanation.device)
    for cost in explanation.analysis.lines:
        index = lookup.line(cost.file, cost.line)
        if index is None:
            continue
        pipes = sorted(cost.cycles.items(), key=lambda item: -item[1])
        per_pipe = ", ".join(
            f"{say.pipe(pipe)} {units.cycles(value)}" for pipe, value in pipes if value
        )
        count = units.plural(sum(cost.instructions.values()), "instruction")
        notes[str(index)] = f"{count}; static cycles: {per_pipe or 'none'}"
    return notes
