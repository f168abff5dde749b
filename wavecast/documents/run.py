"""`wavecast.run/1`: what `wavecast run --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.documents.check import CheckDocument
from wavecast.documents.fidelity import KernelFidelityJson
from wavecast.documents.trace import TraceDocument
from wavecast.json_objects import Count, JsonObject, NonNegative, Size3, doc


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


class ProgramKernelJson(JsonObject):
    """Launches of a kernel of a HIP program with one grid and block, or calls of a library."""

    kernel: str
    grid: Annotated[list[Count], doc("empty for a function of a library")]
    block: list[Count]
    launches: Count
    predicted_seconds: Annotated[
        NonNegative | None,
        doc("of all launches; null without `--predict` or a prediction"),
    ]
    why_not: Annotated[str, doc("why there is no prediction")]


class RunDocument(JsonObject, tag_field="schema", tag="wavecast.run/1"):
    """What `wavecast run --format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    path: str
    complete: Annotated[bool, doc("false for a run that broke off: standard error says why")]
    exit_code: Annotated[int | None, doc("null for a run that broke off")]
    traceback: Annotated[str, doc("of a script that raised, else empty")]
    notes: list[str]
    launch: Annotated[KernelLaunchJson | None, doc("of a kernel in a file; null for others")]
    kernels: Annotated[list[ProgramKernelJson], doc("of a HIP program")]
    checks: Annotated[CheckDocument | None, doc("null without `--check`")]
    traces: Annotated[TraceDocument | None, doc("null without `--trace` and `--fidelity`")]
    fidelity: Annotated[
        list[KernelFidelityJson] | None,
        doc("executed instructions without a documented result; null without `--fidelity`"),
    ]


__all__ = [
    "ArrayResultJson",
    "ComparisonJson",
    "KernelLaunchJson",
    "ProgramKernelJson",
    "RunDocument",
]
