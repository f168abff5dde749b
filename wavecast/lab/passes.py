"""What each pass of Triton and LLVM did to a kernel: the text after it, and what changed by source
line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Final

from wavecast import files
from wavecast.compile import ttgir
from wavecast.compile.codeobject import CodeObject
from wavecast.errors import WavecastError
from wavecast.json_objects import Count, JsonObject, doc
from wavecast.lab.figures import CodeFigures, figures_of
from wavecast.lab.mir import MachineFunction, MachineLine, functions
from wavecast.lab.pass_sources import PassSource
from wavecast.tuning.pool import Pool

_MLIR_HEADER: Final = re.compile(r"^// -----// IR Dump Before (?P<title>\w+): (?P<name>[\w-]+)")
_FILE: Final = Path(__file__).with_name("switches.toml")
LIMIT: Final = 120.0
"""Seconds of one compilation, or of reading its code."""


class LineChange(JsonObject):
    """What a pass changed in the operations of a source line."""

    line: Annotated[str, doc("file:line, empty for operations without one")]
    added: Annotated[Mapping[str, Count], doc("operations by name")]
    removed: Annotated[Mapping[str, Count], doc("operations by name")]


@dataclass(frozen=True, slots=True)
class PassStep:
    """The kernel after a pass.

    `stage` is `ttgir`, `mir` or `assembly`; `name` is the compiler's name of the pass. `figures`
    are counts by name: operations, groups of instructions, `peak vector` and `peak scalar` (32-bit
    registers live at once). `earlier` and `later` count memory reads that now have fewer or more
    matrix instructions of their block before them.
    """

    stage: str
    name: str
    title: str
    text: str
    lines: tuple[str, ...]
    """The source line of each line of the text, "" where there is none."""
    figures: Mapping[str, int]
    changes: tuple[LineChange, ...] = ()
    earlier: int = 0
    later: int = 0


@dataclass(frozen=True, slots=True)
class WithoutPass:
    """The figures of the code that is compiled without a pass."""

    name: str
    what: str
    figures: CodeFigures


@dataclass(frozen=True, slots=True)
class PassReport:
    """The passes of one kernel on a device. `unchanged` counts passes that changed nothing, which
    are not among `steps`. `shown` are the figures of the code whose machine IR is shown, `final`
    those of the program's code, which another LLVM may have generated. `without` are compiled
    without one pass each."""

    kernel: str
    device: str
    target: str
    compiler: str
    steps: tuple[PassStep, ...]
    unchanged: int
    shown: CodeFigures
    final: CodeFigures
    without: tuple[WithoutPass, ...]
    source: Mapping[str, str]
    """The text of the source lines that steps name, by `file:line`."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A pass of the code generator: what it does, and the option that switches it off, "" for
    none."""

    what: str
    without: str
    source: str


@cache
def switches() -> Mapping[str, Switch]:
    """The passes of `switches.toml`, by name."""
    rows = files.parse_toml(files.read_text(_FILE)).items()
    return {name: Switch(**row) for name, row in rows}


def passes_of(source: PassSource, *, without: bool = True) -> PassReport:
    """The passes of a kernel; with `without` also what it is without some of them.

    Raises CompileError where a compiler refuses.
    """
    launch, device = source.launch, source.device
    code = launch.code
    steps = [*_mlir_steps(source.mlir())]
    dump, assembly = source.machine(_printing(code.kernel))
    steps += _machine_steps(list(functions(dump)))
    steps.append(_assembly_step(assembly))
    changed = list(_changed_steps(steps))
    removed = _without(source, assembly) if without else ()
    return PassReport(
        code.kernel,
        device.id,
        code.target,
        code.compiler,
        tuple(changed),
        len(steps) - len(changed),
        figures_of(source.launch_of(assembly), device),
        figures_of(launch, device),
        tuple(removed),
        _source(code, changed),
    )


def _printing(kernel: str) -> list[str]:
    names = ",".join(switches())
    return [f"-print-after={names}", f"-filter-print-funcs={kernel}"]


def _without(source: PassSource, listing: str) -> Iterator[WithoutPass]:
    """The code without each pass that can be switched off, where LLVM compiles it. `listing` is the
    assembly with all passes; equal assembly is read once."""
    from wavecast.limits import available_processors

    options = {name: switch.without for name, switch in switches().items() if switch.without}
    with Pool(available_processors(), partial(_compile_without, source), limit=LIMIT) as pool:
        texts = {name: text for name, text in pool.map(iter(options)) if isinstance(text, str)}
    distinct = dict.fromkeys([listing, *texts.values()])
    with Pool(available_processors(), partial(_figures, source), limit=LIMIT) as pool:
        figures = dict(pool.map(iter(distinct)))
    for name in options:
        pass_figures = figures.get(texts.get(name, ""))
        if isinstance(pass_figures, CodeFigures):
            yield WithoutPass(name, switches()[name].what, pass_figures)


def _compile_without(source: PassSource, name: str) -> str | None:
    """The assembly without a pass, None where LLVM refuses."""
    try:
        return source.machine([switches()[name].without])[1]
    except WavecastError:
        return None


def _figures(source: PassSource, assembly: str) -> CodeFigures | None:
    """The figures of other assembly of a kernel, None where it cannot be read."""
    try:
        return figures_of(source.launch_of(assembly), source.device)
    except WavecastError:
        return None


# --- MLIR ----------------------------------------------------------------------------------------


def _mlir_steps(dump: str) -> Iterator[_Counted]:
    """The module after every pass but the last one, whose result starts the next stage."""
    headers: list[tuple[str, str]] = []
    texts: list[list[str]] = []
    for line in dump.split("\n"):
        header = _MLIR_HEADER.match(line)
        if header is not None:
            headers.append((header["title"], header["name"]))
            texts.append([])
        elif texts:
            texts[-1].append(line)
    for (title, name), lines in zip(headers, texts[1:], strict=False):
        yield _mlir_step(name, title, "\n".join(lines).strip("\n"))


def _mlir_step(name: str, title: str, text: str) -> _Counted:
    parsed = ttgir.parse(text)
    by_number: dict[int, str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    figures: Counter[str] = Counter()
    for operation in parsed.operations:
        where = ""
        if operation.location is not None:
            outer = operation.location.outermost
            where = f"{outer.file.rsplit('/', 1)[-1]}:{outer.line}"
        by_number[operation.line] = where
        counts[where, operation.name] += 1
        figures["operations"] += 1
        short = operation.name.rsplit(".", 1)[-1]
        if short in ("load", "dot", "convert_layout", "local_load", "local_store", "buffer_load"):
            figures[short] += 1
    lines_of_module = [line for line in text.split("\n") if not line.startswith("#loc")]
    offset = _first_line(text, lines_of_module)
    lines = tuple(
        by_number.get(number + offset, "") for number in range(1, len(lines_of_module) + 1)
    )
    step = PassStep("ttgir", name, title, "\n".join(lines_of_module), lines, dict(figures))
    return _Counted(step, counts)


def _first_line(text: str, lines: Sequence[str]) -> int:
    """Lines of location aliases before the module."""
    return (
        next((n for n, line in enumerate(text.split("\n")) if line == lines[0]), 0) if lines else 0
    )


# --- machine IR ----------------------------------------------------------------------------------


def _machine_steps(machine_functions: Sequence[MachineFunction]) -> Iterator[_Counted]:
    before: MachineFunction | None = None
    for function in machine_functions:
        counts = Counter((line.source, line.opcode) for line in function.lines)
        vector, scalar = function.pressure
        groups = {name or "others": number for name, number in sorted(function.groups.items())}
        figures = {
            "instructions": function.groups.total(),
            "peak vector": vector,
            "peak scalar": scalar,
            **groups,
        }
        texts, lines = _machine_text(function)
        earlier, later = _count_moved_reads(before, function) if before is not None else (0, 0)
        step = PassStep(
            "mir", function.name, function.title, "\n".join(texts), tuple(lines), figures,
            earlier=earlier, later=later,
        )  # fmt: skip
        yield _Counted(step, counts)
        before = function


def _machine_text(function: MachineFunction) -> tuple[list[str], list[str]]:
    texts, lines = [], []
    for number, block in function.blocks.items():
        texts.append(f"bb.{number}:")
        lines.append("")
        for line in block:
            texts.append(f"  {line.text}")
            lines.append(line.source)
    return texts, lines


def _count_moved_reads(before: MachineFunction, after: MachineFunction) -> tuple[int, int]:
    """Memory reads (earlier, later) by the matrix instructions of their block before them."""
    reads_before = _matrix_before(before)
    earlier = later = 0
    for key, count in _matrix_before(after).items():
        if key in reads_before:
            earlier += count < reads_before[key]
            later += count > reads_before[key]
    return earlier, later


def _matrix_before(function: MachineFunction) -> dict[tuple[str, str, int], int]:
    """Matrix instructions before each memory read of its block. A read is known by its opcode, its
    source line and its number among those."""
    positions: dict[tuple[str, str, int], int] = {}
    for block in function.blocks.values():
        if not any(line.group == "matrix" for line in block):
            continue
        occurrences: Counter[tuple[str, str]] = Counter()
        matrix = 0
        for line in block:
            matrix += line.group == "matrix"
            if _reads(line):
                key = line.opcode, line.source
                positions[*key, occurrences[key]] = matrix
                occurrences[key] += 1
    return positions


def _reads(line: MachineLine) -> bool:
    return line.group == "load" or line.opcode.startswith(("DS_READ", "DS_LOAD"))


def _assembly_step(text: str) -> _Counted:
    body = [line for line in text.split("\n") if _is_code(line)]
    figures = {"instructions": sum(not line.rstrip().endswith(":") for line in body)}
    lines = ("",) * len(body)
    step = PassStep("assembly", "assembly", "Assembly", "\n".join(body), lines, figures)
    return _Counted(step, Counter())


def _is_code(line: str) -> bool:
    words = line.split(";", 1)[0].strip()
    return bool(words) and (not words.startswith(".") or words.startswith(".LBB"))


# --- changes -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Counted:
    """A step whose changes are not known yet, and its operations by (source line, name)."""

    step: PassStep
    counts: Counter[tuple[str, str]]


def _changed_steps(steps: Sequence[_Counted]) -> Iterator[PassStep]:
    """The steps that changed their text, with the changes by source line."""
    before: _Counted | None = None
    for current in steps:
        step = current.step
        if before is not None and before.step.stage == step.stage:
            if step.text == before.step.text:
                continue
            step = replace(step, changes=tuple(_differences(before.counts, current.counts)))
        yield step
        before = current


def _differences(
    before: Counter[tuple[str, str]], after: Counter[tuple[str, str]]
) -> Iterator[LineChange]:
    by_line: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for number, counts in enumerate((after - before, before - after)):
        for (line, name), count in counts.items():
            by_line.setdefault(line, ({}, {}))[number][name] = count
    for line, (additions, removed) in sorted(by_line.items(), key=_amount):
        yield LineChange(line, additions, removed)


def _amount(item: tuple[str, tuple[dict[str, int], dict[str, int]]]) -> tuple[int, str]:
    line, (additions, removed) = item
    return -sum(additions.values()) - sum(removed.values()), line


def _source(code: CodeObject, steps: Sequence[PassStep]) -> dict[str, str]:
    """The text of the source lines of the kernel's own file that steps name."""
    name = code.source.rsplit("/", 1)[-1]
    texts = {}
    for number, text in enumerate(code.source_text.split("\n"), code.source_line):
        texts[f"{name}:{number}"] = text
    line_names = {line for step in steps for line in step.lines if line}
    return {line: text for line, text in texts.items() if line in line_names or text.strip()}


__all__ = ["LineChange", "PassReport", "PassStep", "WithoutPass", "passes_of", "switches"]
