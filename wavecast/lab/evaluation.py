"""One setting of one launch: compiled, and its figures; or executed next to the original."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.emulate.launch import AddressRange
from wavecast.errors import WavecastError
from wavecast.lab.comparing import ExecutionResult, compared
from wavecast.lab.figures import CodeFigures, figures_of
from wavecast.lab.journal import LabResult
from wavecast.lab.setting import Setting, compiled
from wavecast.model.prediction import Prediction
from wavecast.predict.estimate import simulate


@dataclass(frozen=True, slots=True)
class LabTask:
    """A setting to evaluate. `verify` executes it next to the original; `sample` takes its time
    from an executed sample of its workgroups."""

    setting: Setting
    stage: str
    verify: bool = False
    sample: bool = False


@dataclass(frozen=True, slots=True)
class LabSubject:
    """A captured launch on devices of one target, and the host memory it may touch. `known` are the
    static faults of the original."""

    launch: Launch
    ranges: tuple[AddressRange, ...]
    devices: tuple[Device, ...]


def evaluate(subject: LabSubject, task: LabTask) -> tuple[LabResult, ...]:
    """The result per device. Nothing is raised: a setting that cannot be compiled or read is
    refused with the reason."""
    try:
        launch = changed(subject, task.setting)
    except WavecastError as error:
        return tuple(
            LabResult(task.setting, task.stage, refused=error.message) for _ in subject.devices
        )
    options = task.setting.options(subject.launch.code)
    llir = str(launch.code.stages.get("llir", "")) if task.setting.edits else ""
    execution = _executed(subject, launch, task.setting) if task.verify else None
    found = []
    for device in subject.devices:
        try:
            figures = figures_of(launch, device)
            if task.sample or figures.seconds is None:
                figures = _sampled(figures, launch, subject, device)
        except WavecastError as error:
            found.append(LabResult(task.setting, task.stage, refused=error.message))
            continue
        found.append(LabResult(task.setting, task.stage, figures, "", execution, options, llir))
    return tuple(found)


def changed(subject: LabSubject, setting: Setting) -> Launch:
    """The launch with its kernel compiled with a setting. Raises CompileError."""
    if not setting.items:
        return subject.launch
    code = compiled(subject.launch.code, setting, subject.devices[0])
    block = (code.workgroup_size, 1, 1)
    return replace(subject.launch, code=code, block=block, dynamic_lds=code.dynamic_lds)


def _executed(subject: LabSubject, launch: Launch, setting: Setting) -> ExecutionResult:
    try:
        return compared(subject.launch, launch, subject.ranges, rounding=setting.rounding)
    except WavecastError as error:
        return ExecutionResult((), f"not executed: {error.message}")


def _sampled(
    figures: CodeFigures, launch: Launch, subject: LabSubject, device: Device
) -> CodeFigures:
    found = simulate(launch, subject.ranges, device)
    if isinstance(found, Prediction):
        return figures.timed(found)
    return replace(figures, reason=found)


__all__ = ["LabSubject", "LabTask", "changed", "evaluate"]
