"""`wavecast.lab.tune/1`: alternatives of a kernel, and `wavecast.lab.settings/1`: the best ones."""

from __future__ import annotations

from typing import Annotated, Any

from wavecast.json_objects import Count, JsonObject, NonNegative, Size3, doc
from wavecast.lab.bisect import BisectedPass
from wavecast.lab.compiler_ranks import CompilerRank
from wavecast.lab.compilers import CompilerRow
from wavecast.lab.figures import CodeFigures
from wavecast.lab.passes import LineChange
from wavecast.lab.schedule.asking import AskedOrder


class LabRowJson(JsonObject):
    """A setting of the compiler and what it gives."""

    setting: Annotated[dict[str, Any], doc("values by axis")]
    stage: Annotated[str, doc("base, alone, together, or without (the best with a value less)")]
    status: Annotated[
        str, doc("same: executed with equal results; differs, faulty, refused: why; empty: not run")
    ]
    figures: CodeFigures | None
    sampled_seconds: Annotated[NonNegative | None, doc("predicted from an executed sample")]
    saved: Annotated[float | None, doc("part of the original's time that it saves")]
    sampled_saved: Annotated[float | None, doc("the same by executed samples")]
    cases: Annotated[list[str], doc("inputs with which it was executed next to the original")]


class LabEntryJson(JsonObject):
    """One launch on one device."""

    kernel: Annotated[str, doc("symbol")]
    target: Annotated[str, doc("gfx942 …")]
    device: Annotated[str, doc("id of the device in `wavecast arch`")]
    compiler: Annotated[str, doc("such as triton 3.9.0")]
    grid: Annotated[Size3, doc("workgroups")]
    arguments: str
    configuration: Annotated[str, doc("the autotuner's, empty without one")]
    original: LabRowJson
    best: Annotated[dict[str, Any] | None, doc("the fastest setting with equal results")]
    rows: Annotated[list[LabRowJson], doc("the fastest first")]


class LabTuneDocument(JsonObject, tag_field="schema", tag="wavecast.lab.tune/1"):
    """What `wavecast lab tune --format json` prints."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    notes: list[str]
    failures: list[str]
    entries: list[LabEntryJson]


class PassStepJson(JsonObject):
    """The kernel after a pass that changed it."""

    stage: Annotated[str, doc("ttgir, mir or assembly")]
    name: Annotated[str, doc("the compiler's name of the pass")]
    title: str
    figures: Annotated[dict[str, Count], doc("operations, instructions by group, live registers")]
    changes: Annotated[list[LineChange], doc("the most changed line first")]
    earlier: Annotated[Count, doc("memory reads with fewer matrix instructions before them")]
    later: Annotated[Count, doc("memory reads with more matrix instructions before them")]
    text: Annotated[str, doc("the IR after the pass")]


class WithoutPassJson(JsonObject):
    """The code that is compiled without a pass."""

    name: Annotated[str, doc("the compiler's name of the pass")]
    what: str
    brings: Annotated[
        float | None, doc("part of the time that the pass saves; negative: faster without it")
    ]
    figures: CodeFigures


class LabPassesJson(JsonObject):
    """The passes of one kernel on a device."""

    kernel: Annotated[str, doc("symbol")]
    device: Annotated[str, doc("id of the device in `wavecast arch`")]
    target: Annotated[str, doc("gfx942 …")]
    compiler: Annotated[str, doc("such as triton 3.9.0")]
    unchanged: Annotated[Count, doc("passes that changed nothing, not among the steps")]
    steps: list[PassStepJson]
    shown: Annotated[CodeFigures, doc("of the code whose machine IR is shown")]
    final: Annotated[CodeFigures, doc("of the program's code")]
    without: list[WithoutPassJson]


class LabPassesDocument(JsonObject, tag_field="schema", tag="wavecast.lab.passes/1"):
    """What `wavecast lab passes --format json` prints."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    notes: list[str]
    kernels: list[LabPassesJson]


class BisectionJson(JsonObject):
    """The passes that make a figure differ between two code generators."""

    figure: str
    first: Annotated[str, doc("a code generator")]
    second: str
    values: Annotated[list[float | None], doc("the figure of both, with all passes")]
    most: Annotated[str, doc("the pass that makes most of the difference, empty for none")]
    passes: Annotated[list[BisectedPass], doc("the passes that always run, then in order")]


class CompilerComparisonJson(JsonObject):
    """The code generators for one kernel on a device, the program's code first."""

    kernel: Annotated[str, doc("symbol")]
    device: Annotated[str, doc("id of the device in `wavecast arch`")]
    target: Annotated[str, doc("gfx942 …")]
    rows: list[CompilerRow]
    bisections: Annotated[list[BisectionJson], doc("with --bisect")]


class LabCompilersDocument(JsonObject, tag_field="schema", tag="wavecast.lab.compilers/1"):
    """What `wavecast lab compilers --format json` prints."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    notes: list[str]
    kernels: list[CompilerComparisonJson]
    ranking: Annotated[
        list[CompilerRank], doc("code generators of every target, by their mean time")
    ]


class LoopScheduleJson(JsonObject):
    """An innermost loop in the compiler's order and in the best one. Clocks are per iteration in
    the simulator's steady state."""

    line: Annotated[str, doc("file:line")]
    instructions: Annotated[Count, doc("of an iteration, in the compiler's order")]
    before: Annotated[NonNegative, doc("clocks in the compiler's order")]
    remade: Annotated[NonNegative, doc("clocks in that order with new waits and no-ops")]
    after: Annotated[NonNegative, doc("clocks in the best order")]
    saved: Annotated[NonNegative, doc("part of the compiler's clocks that the best order saves")]
    orders: Annotated[Count, doc("orders that were simulated")]


class KernelScheduleJson(JsonObject):
    """The loops of one launch on a device in another order."""

    kernel: Annotated[str, doc("symbol")]
    target: Annotated[str, doc("gfx942 …")]
    device: Annotated[str, doc("id of the device in `wavecast arch`")]
    compiler: Annotated[str, doc("such as triton 3.9.0")]
    grid: Annotated[Size3, doc("workgroups")]
    arguments: str
    loops: list[LoopScheduleJson]
    before: Annotated[CodeFigures, doc("the compiler's code")]
    after: Annotated[CodeFigures | None, doc("the new code; null where no order is faster")]
    saved: Annotated[NonNegative, doc("part of the predicted time of the launch")]
    cases: Annotated[list[str], doc("inputs with which both were executed")]
    wrong: Annotated[str, doc("why the order that was found is discarded; empty: results agree")]
    assembly: Annotated[str, doc("the new code")]
    asked: Annotated[AskedOrder | None, doc("with --groups: what the compiler makes of the order")]


class LabScheduleDocument(JsonObject, tag_field="schema", tag="wavecast.lab.schedule/1"):
    """What `wavecast lab schedule --format json` prints."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    notes: list[str]
    failures: list[str]
    kernels: list[KernelScheduleJson]
