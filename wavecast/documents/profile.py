"""`wavecast.profile/1`: what `wavecast profile --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.documents.kernel import KernelJson
from wavecast.json_objects import Count, High, JsonObject, Low, NonNegative, Numbers, Share, doc
from wavecast.profiles.annotations import AnnotatedTime
from wavecast.profiles.elsewhere import ClassResidual
from wavecast.profiles.findings import ProfileFinding
from wavecast.profiles.launching import LaunchCosts, QueueLength
from wavecast.profiles.memory import TensorMemory
from wavecast.profiles.predicted import OperatorTime
from wavecast.profiles.sequences import KernelSequence
from wavecast.profiles.traffic import CollectiveTraffic, CopyTraffic


class TimeShareJson(JsonObject):
    """Launches that have something in common."""

    name: Annotated[str, doc("what they have in common; empty: not known")]
    count: Annotated[Count, doc("launches")]
    seconds: Annotated[NonNegative, doc("time of these launches together")]


class ProfiledKernelJson(JsonObject):
    """A kernel with its sizes, over all its launches."""

    name: Annotated[str, doc("demangled name")]
    library: Annotated[str, doc("library by the name of the kernel; empty: not known")]
    category: Annotated[str, doc("what it computes, by its name")]
    form: Annotated[str, doc("tile, dtype and layout by its name; may be empty")]
    count: Annotated[Count, doc("launches")]
    seconds: Annotated[NonNegative, doc("time of all launches")]
    shortest: Annotated[
        float | None, doc("seconds of the shortest launch; null: the file has sums only")
    ]
    longest: Annotated[
        float | None, doc("seconds of the longest launch; null: the file has sums only")
    ]
    deviation: Annotated[
        float | None,
        doc("standard deviation of a launch, in seconds; null: the file has sums only"),
    ]
    blocks: Annotated[list[int], doc("workgroups per axis; 0: not in the file")]
    threads: Annotated[list[int], doc("work-items of a workgroup per axis; 0: not in the file")]
    registers: Annotated[Count, doc("VGPRs, or registers of a thread; 0: not in the file")]
    lds_bytes: Annotated[Count, doc("LDS or shared memory of a workgroup")]
    scratch_bytes: Annotated[Count, doc("scratch of a work-item")]
    counters: Annotated[Numbers, doc("figures of counters: shares from 0 to 1, bytes, counts")]


class PredictedProfileJson(JsonObject):
    """Measured and predicted times of the operators."""

    chip: Annotated[str, doc("the chip that is predicted")]
    covered: Annotated[Share, doc("share of the kernels' time that is predicted")]
    median_error: Annotated[NonNegative | None, doc("median |predicted / measured - 1|")]
    operators: Annotated[list[OperatorTime], doc("operators, longest first")]


class MovedOperatorJson(JsonObject):
    """All calls of an operator here and there."""

    name: Annotated[str, doc("the operator, or a kernel without one")]
    sizes: Annotated[str, doc("sizes of its arguments here, as JSON; or the grid")]
    count: Annotated[Count, doc("calls")]
    measured: Annotated[NonNegative, doc("seconds of their kernels here")]
    seconds: Annotated[NonNegative, doc("predicted seconds there")]
    basis: Annotated[str, doc("what the ratio of the times is from")]


class MovedProfileJson(JsonObject):
    """The run on another chip, or with changes."""

    chip: Annotated[str, doc("the chip")]
    changes: Annotated[str, doc("the changes of --what-if; empty: none")]
    seconds: Annotated[NonNegative, doc("predicted time of all kernels there")]
    low: Low
    high: High
    speedup: Annotated[NonNegative, doc("measured time here / time there")]
    span_here: Annotated[NonNegative, doc("seconds from the first start to the last end here")]
    span: Annotated[NonNegative, doc("the same there, with the times of this host")]
    operators: Annotated[list[MovedOperatorJson], doc("operators, longest there first")]
    residuals: Annotated[list[ClassResidual], doc("what the predictions here leave")]


class ComparedOperatorJson(JsonObject):
    """An operator of a module in two profiles."""

    name: Annotated[str, doc("the operator; empty: not known")]
    module: Annotated[str, doc("path of the module; empty: not known")]
    category: Annotated[str, doc("what its kernels compute")]
    first: Annotated[NonNegative, doc("seconds in the first profile; 0: not there")]
    second: Annotated[NonNegative, doc("seconds in the second profile; 0: not there")]
    ratio: Annotated[NonNegative | None, doc("second over first; null if one is not there")]
    first_count: Annotated[Count, doc("launches in the first profile")]
    second_count: Annotated[Count, doc("launches in the second profile")]
    first_kernel: Annotated[str, doc("the longest kernel in the first profile")]
    second_kernel: Annotated[str, doc("the longest kernel in the second profile")]


class ComparedProfilesJson(JsonObject):
    """Two profiles, matched by operator and module."""

    first: Annotated[NonNegative, doc("seconds of all kernels of the first")]
    second: Annotated[NonNegative, doc("seconds of all kernels of the second")]
    matched_first: Annotated[Share, doc("share of the first in rows that both have")]
    matched_second: Annotated[Share, doc("share of the second in rows that both have")]
    operators: Annotated[list[ComparedOperatorJson], doc("the largest difference first")]


class ProfiledDeviceJson(JsonObject):
    """What a device did from its first kernel to the end of its last."""

    number: Annotated[int, doc("number of the device in the file")]
    name: Annotated[str, doc("name in the file; it may be empty")]
    chip: Annotated[str, doc("the chip of `wavecast arch`; empty: not known")]
    span: Annotated[NonNegative, doc("seconds from the first start to the last end")]
    busy: Annotated[NonNegative, doc("seconds with a kernel or a copy")]
    kernels: Annotated[Count, doc("launches of kernels")]
    collectives: Annotated[NonNegative, doc("seconds with a collective")]
    exposed: Annotated[NonNegative, doc("seconds with a collective and nothing else")]
    idle: Annotated[Numbers, doc("seconds between kernels by their cause")]
    critical_path: Annotated[Numbers, doc("seconds of the critical path by category of kernels")]
    launching: Annotated[LaunchCosts | None, doc("null: the launching calls are not known")]
    queues: Annotated[list[QueueLength], doc("of streams whose calls are in the file")]


class CodeFigureJson(JsonObject):
    """A figure by hardware counters and as predicted from the code of the kernel."""

    name: Annotated[str, doc("what it counts")]
    unit: Annotated[str, doc("`share` (0 to 1), `bytes` of a launch, `count` or `GHz`")]
    measured: Annotated[float | None, doc("by the counters; null: not in the file")]
    predicted: Annotated[float | None, doc("from the code; null: not predicted")]
    why: Annotated[str, doc("what explains a difference; empty: there is none")]


class ExplainedKernelJson(JsonObject):
    """A kernel of the profile explained from its code (`--code`)."""

    kernel: Annotated[Count, doc("its number in the profile's order of first launches")]
    source: Annotated[str, doc("the file with its code")]
    count: Annotated[Count, doc("launches")]
    seconds: Annotated[NonNegative, doc("mean measured time of a launch; 0: not in the file")]
    figures: Annotated[list[CodeFigureJson], doc("counters next to their predictions")]
    notes: Annotated[list[str], doc("how the code differs from what ran")]
    explanation: Annotated[KernelJson, doc("as in `wavecast explain`")]


class TracedInstructionJson(JsonObject):
    """An instruction and what all traced waves together spent at it."""

    text: Annotated[str, doc("the instruction")]
    source: Annotated[str, doc("file and line; may be empty")]
    executions: Annotated[Count, doc("executions by the traced waves")]
    latency: Annotated[Count, doc("cycles that its executions take to issue")]
    stall: Annotated[Count, doc("the part of `latency` in which a pipe could not take it")]
    idle: Annotated[Count, doc("cycles since the instruction before it")]
    simulated: Annotated[
        float | None, doc("simulated cycles of one execution: of (latency + idle) / executions")
    ]


class ThreadTraceJson(JsonObject):
    """A thread trace of a launch."""

    kernel: Annotated[str, doc("symbol or name of the kernel")]
    waves: Annotated[Count, doc("traced waves")]
    wave_cycles: Annotated[NonNegative, doc("mean cycles of a wave; 0: not in the trace")]
    clock_ghz: Annotated[float | None, doc("clock of the trace; null: not in it")]
    why_not: Annotated[str, doc("why nothing is simulated; else empty")]
    instructions: Annotated[list[TracedInstructionJson], doc("in the order of the code")]


class RankSkewJson(JsonObject):
    """What ranks wait for one another in collectives that all have."""

    slowest: Annotated[int, doc("the rank that waits least")]
    collectives: Annotated[Count, doc("collectives that are matched")]
    unmatched: Annotated[Count, doc("launches of collectives that not all ranks have")]
    median_skew: Annotated[NonNegative, doc("seconds between the first and the last rank, median")]
    waited: Annotated[Numbers, doc("seconds by rank beyond the rank that came last")]
    last_in: Annotated[Numbers, doc("collectives by the rank that came last")]


class ProfileRankJson(JsonObject):
    """One file."""

    path: Annotated[str, doc("the file")]
    tool: Annotated[str, doc("the profiler that wrote it")]
    rank: Annotated[Count, doc("rank in the distributed run")]
    seconds: Annotated[NonNegative, doc("time of all kernels")]
    devices: Annotated[list[ProfiledDeviceJson], doc("devices with kernels or copies")]
    categories: Annotated[list[TimeShareJson], doc("kernels by category")]
    libraries: Annotated[list[TimeShareJson], doc("kernels by library")]
    operators: Annotated[list[TimeShareJson], doc("kernels by the operator that launched them")]
    modules: Annotated[list[TimeShareJson], doc("kernels by module; layers that are alike are one")]
    kernels: Annotated[list[ProfiledKernelJson], doc("kernels, longest first")]
    copies: Annotated[list[CopyTraffic], doc("copies and fills, longest first")]
    memory: Annotated[list[TensorMemory], doc("of devices whose allocations are in the file")]
    collectives: Annotated[list[CollectiveTraffic], doc("by message, longest first")]
    annotations: Annotated[list[AnnotatedTime], doc("ranges, most time of the device first")]
    sequences: Annotated[list[KernelSequence], doc("what could be fused, longest first")]
    predicted: Annotated[PredictedProfileJson | None, doc("null: chip or sizes not known")]
    code: Annotated[list[ExplainedKernelJson], doc("kernels explained with --code, longest first")]
    traces: Annotated[list[ThreadTraceJson], doc("thread traces of kernels")]
    findings: Annotated[list[ProfileFinding], doc("what could be faster; savings overlap")]
    elsewhere: Annotated[list[MovedProfileJson], doc("the run on --on, with --what-if")]
    notes: Annotated[list[str], doc("what the file lacks, or what could not be read")]


class ProfileDocument(JsonObject, tag_field="schema", tag="wavecast.profile/1"):
    """Profiles of other tools: what ran, and when devices were idle."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    ranks: Annotated[list[ProfileRankJson], doc("files in the order of their names")]
    comparison: Annotated[ComparedProfilesJson | None, doc("with --against, else null")]
    skew: Annotated[RankSkewJson | None, doc("of ranks with collectives; else null")]
