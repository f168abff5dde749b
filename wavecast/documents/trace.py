"""`wavecast.trace/1`: what `wavecast run --trace` writes."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from wavecast.documents.fidelity import KernelFidelityJson
from wavecast.documents.kernel import CallSiteJson
from wavecast.json_objects import Count, JsonObject, Size3, doc


class ClassCountsJson(JsonObject):
    """Executions of one cost class."""

    executions: Annotated[Count, doc("wave-instructions")]
    active_lanes: Annotated[
        Count, doc("summed over executions; 0 for instructions that do not run per lane")
    ]


class BlockCountsJson(JsonObject):
    """A basic block."""

    index: Count
    label: str
    first: Annotated[Count, doc("index of its first instruction")]
    instructions: Annotated[Count, doc("number of instructions")]
    executions: Annotated[Count, doc("by waves")]
    taken: Annotated[Count, doc("how often the conditional branch at its end was taken")]
    successors: list[Count]


class LineCountsJson(JsonObject):
    """A source line."""

    file: Annotated[str | None, doc("null for code without a line")]
    line: Annotated[Count | None, doc("null for code without a line")]
    executions: Annotated[Count, doc("wave-instructions")]
    vector: Annotated[Count, doc("executions of instructions that run once per active lane")]
    active_lanes: Annotated[Count, doc("active lanes of these, summed")]
    partial: Annotated[Count, doc("executions with some lanes off")]
    empty: Annotated[Count, doc("executions with all lanes off")]
    conflict_ways: Annotated[
        float | None,
        doc("LDS passes over passes without conflicts; null without LDS accesses"),
    ]


class AccessCountsJson(JsonObject):
    """A memory instruction."""

    index: Annotated[Count, doc("of the instruction")]
    text: str
    location: CallSiteJson | None
    space: str
    kind: str
    width: Annotated[Count, doc("bytes per lane of one request; of the access for scalar memory")]
    executions: Annotated[Count, doc("by waves")]
    requests: Annotated[
        Count,
        doc("accesses with an active lane; two per execution of an instruction with two addresses"),
    ]
    lanes: Annotated[Count, doc("active lanes, summed over requests")]
    bytes: Annotated[Count, doc("lanes times width")]
    blocks_32: Annotated[
        Count, doc("different aligned blocks of 32 bytes touched, summed over requests")
    ]
    blocks_64: Annotated[Count, doc("of 64 bytes")]
    blocks_128: Annotated[Count, doc("of 128 bytes")]
    contiguous: Annotated[Count, doc("requests whose active lanes have consecutive addresses")]
    broadcast: Annotated[Count, doc("requests of several lanes with one address")]
    collisions: Annotated[Count, doc("lanes of atomics whose address an earlier lane has")]
    least_stride: Annotated[
        int | None, doc("least number of bytes from one active lane to the next")
    ]
    most_stride: Annotated[int | None, doc("largest number of bytes")]
    passes: Annotated[Count, doc("LDS: passes the banks need")]
    groups: Annotated[Count, doc("LDS: passes without conflicts")]
    conflicted: Annotated[Count, doc("LDS: requests with a conflict")]
    worst: Annotated[Count, doc("LDS: most passes of one group of lanes")]


class RecordedWaveJson(JsonObject):
    """A recorded wave."""

    workgroup: Annotated[Size3, doc("position in the grid")]
    wave: Annotated[Count, doc("index in the workgroup")]
    complete: Annotated[bool, doc("false when the recording was cut short")]
    accesses: Annotated[Count, doc("memory accesses recorded (Python only)")]
    blocks: Annotated[
        list[Annotated[list[Count], Meta(min_length=2, max_length=2)]],
        doc("blocks executed in order: [block, times in a row]"),
    ]


class TracedLaunchJson(JsonObject):
    """Launches of one kernel with one grid. Counts are over all counted waves."""

    kernel: Annotated[str, doc("symbol")]
    arch: Annotated[str, doc("target of the code")]
    digest: Annotated[str, doc('of the code object, "" when there is none')]
    grid: Annotated[Size3, doc("workgroups")]
    block: Annotated[Size3, doc("threads of a workgroup")]
    lanes: Annotated[Count, doc("of a wave")]
    launches: Annotated[
        Count, doc("number of launches of the same code and size, counted together")
    ]
    complete: Annotated[bool, doc("false when a launch did not finish")]
    workgroups: Annotated[Count, doc("workgroups counted")]
    waves: Annotated[Count, doc("of these workgroups")]
    instructions: Annotated[Count, doc("executed by these waves")]
    barriers: Annotated[Count, doc("waits of waves at barriers")]
    classes: Annotated[dict[str, ClassCountsJson], doc("by cost class")]
    blocks: Annotated[list[BlockCountsJson], doc("basic blocks in program order")]
    lines: Annotated[
        list[LineCountsJson],
        doc("source lines at their call site in the kernel, the most executed first"),
    ]
    memory: Annotated[
        list[AccessCountsJson],
        doc("memory instructions; empty when transactions were not counted"),
    ]
    streams: Annotated[list[RecordedWaveJson], doc("recorded waves")]


class TraceDocument(JsonObject, tag_field="schema", tag="wavecast.trace/1"):
    """What `wavecast run --trace` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    launches: list[TracedLaunchJson]
    fidelity: Annotated[
        list[KernelFidelityJson] | None,
        doc("executed instructions without a documented result; null without `--fidelity`"),
    ]
