"""One launch on one device: parse, analyse, bound, find. Pure: nothing is compiled or run here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from wavecast import analyze, model, rules
from wavecast.arch import Device
from wavecast.compile import nvidia
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.errors import InputError
from wavecast.pipeline.result import Explanation
from wavecast.rules.finding import Subject


@dataclass(frozen=True, slots=True)
class Given:
    """What the user states instead of letting it be derived. Bytes and FLOPs per launch."""

    flops: float | None = None
    bytes: float | None = None
    dtype: str = ""
    disabled_rules: tuple[str, ...] = ()
    flops_hint: Mapping[str, float] = field(default_factory=dict)


def with_sass(code: CodeObject) -> CodeObject:
    """An NVIDIA code object with its disassembly and resource usage, from its cubin.

    Raises MissingTool without nvdisasm, InputError for code with neither SASS nor cubin.
    """
    if "sass" in code.stages:
        return code
    cubin = code.stages.get("cubin")
    if not isinstance(cubin, bytes):
        raise InputError(f"{code.kernel}: no machine code for {code.target}")
    for loaded in nvidia.load_cubin(cubin, code.target, code.source):
        if loaded.kernel == code.kernel:
            stages = {**code.stages, "sass": loaded.stages["sass"]}
            return replace(code, stages=stages, options={**loaded.options, **code.options})
    raise InputError(f"{code.kernel}: not in its own cubin")


def explain_launch(launch: Launch, device: Device, given: Given) -> Explanation:
    """Everything wavecast can say about one launch on one device.

    Raises WavecastError when the code cannot be read; the caller keeps other launches going.
    """
    code = launch.code
    if not code.is_amd:
        code = with_sass(code)
        launch = replace(launch, code=code)
    kernel = parse_kernel(code) if code.is_amd else None
    if kernel is not None:
        analysis = analyze.analyze(code, device, kernel.program, kernel.descriptor, launch)
    else:
        analysis = analyze.analyze_nvidia(code, device, launch)
    work = model.work(
        launch,
        analysis,
        given_flops=given.flops,
        given_bytes=given.bytes,
        given_dtype=given.dtype,
        flops_hint=given.flops_hint or None,
    )
    roofline = model.roofline(work, device)
    stated = launch if all(launch.grid) else None
    subject = Subject(code, device, analysis, roofline, kernel.program if kernel else None, stated)
    findings = rules.check(subject, disabled=given.disabled_rules)
    return Explanation(code, device, launch, analysis, roofline, findings, subject.program)


def with_hint(given: Given, explanations: Iterable[Explanation], launch: Launch) -> Given:
    """`given` with the FLOPs another target's code derived for the same launch.

    NVIDIA code is not walked, so its FLOPs come from an AMD target explained beside it.
    """
    for explanation in explanations:
        other = explanation.launch
        if other is None or explanation.roofline.work.flops is None:
            continue
        same = other.grid == launch.grid and other.code.kernel == launch.code.kernel
        if same and other.arguments == launch.arguments:
            return replace(given, flops_hint=dict(explanation.roofline.work.flops))
    return given
