"""`wavecast.profile/1`: what `wavecast profile --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.documents.base import Count, High, JsonObject, Low, NonNegative, Numbers, Share, doc
from wavecast.documents.kernel import KernelJson


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


class OperatorTimeJson(JsonObject):
    """All calls of an operator with the same sizes."""

    name: Annotated[str, doc("the operator, such as aten::mm")]
    sizes: Annotated[str, doc("sizes of its arguments, as JSON")]
    count: Annotated[Count, doc("calls")]
    measured: Annotated[NonNegative, doc("seconds of their kernels")]
    category: Annotated[str, doc("what the kernels compute, by their names")]
    predicted: Annotated[NonNegative, doc("predicted seconds; 0 without a prediction")]
    low: Low
    high: High
    kernel: Annotated[str, doc("the library or kernel that is assumed")]
    limiter: Annotated[str, doc("the resource that decides its time")]
    flops: Annotated[NonNegative, doc("useful FLOPs of all calls")]
    bytes: Annotated[NonNegative, doc("least bytes of all calls")]
    why_not: Annotated[str, doc("why there is no prediction; else empty")]
    form: Annotated[str, doc("tile, dtype and layout by the name of the longest kernel")]
    by_name: Annotated[bool, doc("the sizes are those of names and grids, not of an operator")]


class PredictedProfileJson(JsonObject):
    """Measured and predicted times of the operators."""

    chip: Annotated[str, doc("the chip that is predicted")]
    covered: Annotated[Share, doc("share of the kernels' time that is predicted")]
    median_error: Annotated[NonNegative | None, doc("median |predicted / measured - 1|")]
    operators: Annotated[list[OperatorTimeJson], doc("operators, longest first")]


class MovedOperatorJson(JsonObject):
    """All calls of an operator here and there."""

    name: Annotated[str, doc("the operator, or a kernel without one")]
    sizes: Annotated[str, doc("sizes of its arguments here, as JSON; or the grid")]
    count: Annotated[Count, doc("calls")]
    measured: Annotated[NonNegative, doc("seconds of their kernels here")]
    seconds: Annotated[NonNegative, doc("predicted seconds there")]
    basis: Annotated[str, doc("what the ratio of the times is from")]


class ClassResidualJson(JsonObject):
    """Measured over predicted time of the operators of a category here."""

    category: Annotated[str, doc("what the kernels compute")]
    operators: Annotated[Count, doc("operators with sizes")]
    ratio: Annotated[NonNegative, doc("measured over predicted time, of their sums")]
    deviation: Annotated[NonNegative, doc("standard deviation of its logarithm over operators")]


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
    residuals: Annotated[list[ClassResidualJson], doc("what the predictions here leave")]


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


class LaunchCostsJson(JsonObject):
    """Launches of kernels by one call each; those of graphs are launched together."""

    launches: Annotated[Count, doc("kernels that one call each launched")]
    call: Annotated[NonNegative, doc("median seconds in the launching call")]
    delay: Annotated[float, doc("median seconds from the start of the call to that of the kernel")]
    short: Annotated[Count, doc("kernels that take no longer than the call that launched them")]


class QueueLengthJson(JsonObject):
    """Launches of a stream whose call has begun and whose kernel has not started."""

    stream: Annotated[int, doc("number of the stream")]
    launches: Annotated[Count, doc("launches; a graph is one")]
    mean: Annotated[NonNegative, doc("mean number over time")]
    longest: Annotated[Count, doc("the most at a time")]
    empty: Annotated[Share, doc("share of the time in which there are none")]


class MemoryUseJson(JsonObject):
    """Memory of a device that PyTorch's allocator manages (`profile_memory=True`)."""

    device: Annotated[int, doc("number of the device in PyTorch")]
    changes: Annotated[Count, doc("allocations and releases in the file")]
    first: Annotated[Count, doc("bytes that tensors have at the first change")]
    last: Annotated[Count, doc("bytes that tensors have at the last change")]
    peak: Annotated[Count, doc("the most bytes that tensors have")]
    reserved: Annotated[Count, doc("the most bytes that the allocator has from the driver")]
    time: Annotated[float, doc("seconds from the first change to when tensors have the most")]
    operator: Annotated[str, doc("the operator then; empty: not known")]
    module: Annotated[str, doc("the module then; empty: not known")]
    allocations: Annotated[Count, doc("allocations")]
    allocated: Annotated[Count, doc("bytes of all allocations together")]


class CopyTrafficJson(JsonObject):
    """Copies and fills of one name."""

    name: Annotated[str, doc("name in the file")]
    count: Annotated[Count, doc("copies")]
    seconds: Annotated[NonNegative, doc("time of all copies")]
    bytes: Annotated[Count, doc("bytes of the copies that have them in the file")]
    bandwidth: Annotated[float | None, doc("bytes per second; null: no bytes in the file")]


class CollectiveTrafficJson(JsonObject):
    """Launches of collectives with one message; times include the wait for other ranks."""

    operation: Annotated[str, doc("name of the operation in the file")]
    ranks: Annotated[Count, doc("ranks of the group; 0: not in the file")]
    input_bytes: Annotated[Count, doc("bytes of the input on one rank")]
    output_bytes: Annotated[Count, doc("bytes of the output on one rank")]
    count: Annotated[Count, doc("launches")]
    seconds: Annotated[NonNegative, doc("time of all launches")]
    algorithm_bandwidth: Annotated[
        float | None, doc("larger of input and output over the mean time, bytes per second")
    ]
    bus_bandwidth: Annotated[
        float | None, doc("over the links of a rank, as nccl-tests defines it; null: not known")
    ]
    best_bus_bandwidth: Annotated[float | None, doc("that of the shortest launch")]


class AnnotatedTimeJson(JsonObject):
    """Ranges that the program named; those within them are included."""

    path: Annotated[list[str], doc("names of the ranges around it and its own")]
    count: Annotated[Count, doc("ranges")]
    host: Annotated[NonNegative, doc("seconds of the ranges on the host")]
    shortest: Annotated[NonNegative, doc("seconds of the shortest range on the host")]
    longest: Annotated[NonNegative, doc("seconds of the longest range on the host")]
    launches: Annotated[Count, doc("kernels launched in the ranges")]
    device: Annotated[NonNegative, doc("seconds of these kernels")]


class KernelSequenceJson(JsonObject):
    """Memory-bound kernels that follow each other on a stream, with the same kernels each time."""

    kernels: Annotated[list[Count], doc("numbers in the order of the file's first launches")]
    text: Annotated[str, doc("short names of the kernels, with the number of those that repeat")]
    count: Annotated[Count, doc("how often they occur")]
    seconds: Annotated[NonNegative, doc("time of the kernels, of all occurrences")]
    gaps: Annotated[NonNegative, doc("seconds between them, of all occurrences")]


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
    launching: Annotated[LaunchCostsJson | None, doc("null: the launching calls are not known")]
    queues: Annotated[list[QueueLengthJson], doc("of streams whose calls are in the file")]


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


class ProfileFindingJson(JsonObject):
    """What could make the run faster."""

    what: Annotated[str, doc("operator, kernels or device")]
    evidence: Annotated[str, doc("the figures")]
    advice: Annotated[str, doc("what to do")]
    seconds: Annotated[NonNegative, doc("time that it could save")]


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
    copies: Annotated[list[CopyTrafficJson], doc("copies and fills, longest first")]
    memory: Annotated[list[MemoryUseJson], doc("of devices whose allocations are in the file")]
    collectives: Annotated[list[CollectiveTrafficJson], doc("by message, longest first")]
    annotations: Annotated[list[AnnotatedTimeJson], doc("ranges, most time of the device first")]
    sequences: Annotated[list[KernelSequenceJson], doc("what could be fused, longest first")]
    predicted: Annotated[PredictedProfileJson | None, doc("null: chip or sizes not known")]
    code: Annotated[list[ExplainedKernelJson], doc("kernels explained with --code, longest first")]
    traces: Annotated[list[ThreadTraceJson], doc("thread traces of kernels")]
    findings: Annotated[list[ProfileFindingJson], doc("what could be faster; savings overlap")]
    elsewhere: Annotated[list[MovedProfileJson], doc("the run on --on, with --what-if")]
    notes: Annotated[list[str], doc("what the file lacks, or what could not be read")]


class ProfileDocument(JsonObject, tag_field="schema", tag="wavecast.profile/1"):
    """Profiles of other tools: what ran, and when devices were idle."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    ranks: Annotated[list[ProfileRankJson], doc("files in the order of their names")]
    comparison: Annotated[ComparedProfilesJson | None, doc("with --against, else null")]
    skew: Annotated[RankSkewJson | None, doc("of ranks with collectives; else null")]
