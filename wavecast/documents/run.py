"""`wavecast.run/1`: what `wavecast run --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.documents.check import CheckDocument
from wavecast.documents.fidelity import KernelFidelityJson
from wavecast.documents.trace import TraceDocument
from wavecast.json_objects import Count, JsonObject, NonNegative, Size3, doc
from wavecast.pipeline.execute.outcome import RunStatus


class ComparisonJson(JsonObject):
    """An array against what was expected in it."""

    different: Annotated[Count, doc("elements that differ by more than the tolerances allow")]
    largest: Annotated[NonNegative, doc("largest finite difference")]
    first: Annotated[list[Count], doc("index of the first element that differs")]
    actual: Annotated[float | None, doc("that element; null where it is not finite")]
    expected: Annotated[float | None, doc("what it should be; null where that is not finite")]
    rtol: NonNegative
    atol: NonNegative


class ArrayResultJson(JsonObject):
    """An array argument after a launch."""

    name: str
    dtype: str
    shape: list[Count]
    changed: Annotated[Count, doc("elements that are not what they were")]
    stated: Annotated[bool, doc("false for an array of zeros whose contents nobody stated")]
    comparison: Annotated[ComparisonJson | None, doc("null where nothing is expected")]
    file: Annotated[str, doc('where it was written, "" for nowhere')]


class KernelLaunchJson(JsonObject):
    """The launch of a kernel in a file."""

    kernel: str
    target: str
    grid: Annotated[Size3, doc("workgroups")]
    block: Annotated[Size3, doc("threads of a workgroup")]
    seconds: Annotated[NonNegative, doc("of this machine, translation included")]
    arrays: list[ArrayResultJson]


class ExecutedKernelJson(JsonObject):
    """Launches of a kernel with one grid and block, or calls of a library by a HIP program."""

    kernel: Annotated[str, doc("name; instances of a template have a part of the symbol in it")]
    symbol: Annotated[str, doc('in the code; "" for a function of a library')]
    target: Annotated[str, doc('of the code, such as gfx942; "" for a function of a library')]
    grid: Annotated[list[Count], doc("empty for a function of a library")]
    block: list[Count]
    launches: Annotated[Count, doc("one that broke off is among them")]
    predicted_seconds: Annotated[
        NonNegative | None,
        doc("of all launches; null without `--predict` or a prediction"),
    ]
    why_not: Annotated[str, doc("why there is no prediction")]


class RunDocument(JsonObject, tag_field="schema", tag="wavecast.run/1"):
    """What `wavecast run --format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    path: str
    complete: Annotated[bool, doc("false for a run that broke off")]
    status: Annotated[
        RunStatus,
        doc(
            "passed; failed: a check or an expected array; exited: with another exit code; raised: "
            "the script; stopped: a launch broke off, or what is not supported; signal: ended by "
            "one; interrupted: Ctrl-C"
        ),
    ]
    exit_code: Annotated[int, doc("of the command; 128 and the number for a signal")]
    reason: Annotated[str, doc("why it did not pass, in a line; empty where it passed")]
    traceback: Annotated[
        str, doc("of a script that raised, or what `sys.exit` printed, else empty")
    ]
    notes: list[str]
    launch: Annotated[KernelLaunchJson | None, doc("of a kernel in a file; null for others")]
    kernels: Annotated[
        list[ExecutedKernelJson] | None,
        doc(
            "what was launched; null where it is not known: after a signal or `os._exit`, and in "
            "processes that a script starts. Of ranks that are processes, those that have ended"
        ),
    ]
    checks: Annotated[
        CheckDocument | None,
        doc("null without `--check`, and where the run broke off before anything was found"),
    ]
    traces: Annotated[TraceDocument | None, doc("null without `--trace` and `--perfetto`")]
    fidelity: Annotated[
        list[KernelFidelityJson] | None,
        doc("executed instructions without a documented result; null without `--fidelity`"),
    ]


__all__ = [
    "ArrayResultJson",
    "ComparisonJson",
    "ExecutedKernelJson",
    "KernelLaunchJson",
    "RunDocument",
]
