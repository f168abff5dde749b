"""`wavecast.explain/1`: what `wavecast explain --format json` writes."""

from __future__ import annotations

from typing import Annotated, Literal

from wavecast.documents.kernel import KernelJson, KernelLine, LdsBytes
from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.pipeline.explain.result import ConfigurationChoice


class FailureJson(JsonObject):
    """A kernel or target that could not be explained."""

    kernel: Annotated[str, doc("kernel name; empty when no kernel was reached")]
    arch: Annotated[str, doc("target; empty when no target was reached")]
    stage: Annotated[str, doc("step that failed: capture, compile, parse, analyze")]
    message: str
    hint: Annotated[str, doc("what to do about it; may be empty")]


class MainLoopJson(JsonObject):
    """The loop that takes most of the time."""

    line: KernelLine
    limiter: Annotated[str, doc("limiting pipe")]
    cycles: Annotated[
        NonNegative | None,
        doc("clock cycles per iteration of one SIMD with all resident waves, on the busiest pipe"),
    ]


class SeverityCountsJson(JsonObject):
    """Number of findings by severity."""

    error: Count
    warning: Count
    note: Count


class DeviceFiguresJson(JsonObject):
    """The figures of a launch on one device."""

    arch: Annotated[str, doc("target, such as gfx942 or sm_90")]
    device: Annotated[str, doc("marketing name")]
    vgpr: Annotated[Count, doc("VGPRs per lane (NVIDIA: registers per thread)")]
    agpr: Annotated[Count, doc("accumulation VGPRs per lane")]
    sgpr: Annotated[Count, doc("SGPRs per wave")]
    spilled: Annotated[Count, doc("VGPRs spilled per lane")]
    lds_bytes: LdsBytes
    waves_per_simd: Annotated[Count, doc("waves resident per SIMD")]
    occupancy_limiter: Annotated[
        str, doc("limiting resources, comma separated, most telling first")
    ]
    main_loop: Annotated[
        MainLoopJson | None, doc("the loop that takes most of the time; null without loops")
    ]
    bound: Literal["memory", "compute", "unknown"]
    floor_seconds: Annotated[NonNegative | None, doc("least time in seconds at datasheet peaks")]
    sustained_seconds: Annotated[
        NonNegative | None, doc("least time in seconds at sustained rates")
    ]
    predicted_seconds: Annotated[
        NonNegative | None, doc("predicted time in seconds; null where there is none")
    ]
    predicted_low: Annotated[
        NonNegative | None, doc("lower end of the 80 % interval of measurements")
    ]
    predicted_high: Annotated[NonNegative | None, doc("upper end of the interval")]
    limiter: Annotated[str, doc("what limits the predicted time; empty without a prediction")]
    findings: Annotated[SeverityCountsJson, doc("number of findings by severity")]


class LaunchRowJson(JsonObject):
    """One launch on all devices."""

    label: Annotated[str, doc("unique name of the launch")]
    kernel: Annotated[str, doc("symbol")]
    entries: Annotated[list[DeviceFiguresJson], doc("one per device")]


class ModelLineTimeJson(JsonObject):
    """Lines of a model that `torch.compile` compiled."""

    arch: Annotated[str, doc("target")]
    device: Annotated[str, doc("name of the GPU")]
    lines: Annotated[
        list[str], doc("`path:line`; several for a fused kernel, none for what is of no line")
    ]
    kernels: Annotated[
        list[str], doc("generated kernels, operators of the library, and calls of other libraries")
    ]
    predicted_seconds: Annotated[
        NonNegative | None, doc("of all launches; null where one has no prediction")
    ]


class ModelLineChangeJson(JsonObject):
    """What operators of the library change in a model that `torch.compile` compiled."""

    arch: Annotated[str, doc("target")]
    device: Annotated[str, doc("name of the GPU")]
    lines: Annotated[list[str], doc("`path:line`, all that are changed together")]
    kernels: Annotated[list[str], doc("what runs now")]
    predicted_seconds: Annotated[NonNegative | None, doc("of what runs now")]
    replaced_kernels: Annotated[list[str], doc("what runs with the library")]
    replaced_seconds: Annotated[NonNegative | None, doc("of what runs with the library")]


class ExplainDocument(JsonObject, tag_field="schema", tag="wavecast.explain/1"):
    """What `wavecast explain --format json` writes. Unknown figures are null."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    inputs: Annotated[list[str], doc("what was explained")]
    notes: Annotated[list[str], doc("what a user must know about the run")]
    failures: Annotated[list[FailureJson], doc("kernels or targets that could not be explained")]
    choices: Annotated[
        list[ConfigurationChoice],
        doc("configurations of autotuned kernels that were compared, the best of a call first"),
    ]
    lines: Annotated[
        list[ModelLineTimeJson], doc("time by line of models under torch.compile, by device")
    ]
    changes: Annotated[
        list[ModelLineChangeJson], doc("with --replace: the most seconds saved first, by device")
    ]
    comparison: Annotated[list[LaunchRowJson], doc("one row per launch")]
    kernels: Annotated[list[KernelJson], doc("one per launch and device")]
