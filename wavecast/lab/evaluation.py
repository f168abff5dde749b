"""One setting of one launch: compiled, and its figures; or executed next to the original."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from msgspec import structs

from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.emulate.launch import AddressRange
from wavecast.errors import UsageError, WavecastError
from wavecast.lab.axes import MACHINE_CODE
from wavecast.lab.comparing import ExecutionResult, compare_launches
from wavecast.lab.figures import CodeFigures, figures_of_code, with_predicted_time
from wavecast.lab.journal import LabResult
from wavecast.lab.machine_code import CodeChanger
from wavecast.lab.setting import Setting, compile_with_setting
from wavecast.perfmodel.prediction import Prediction
from wavecast.pipeline.explain.reading import read_launch
from wavecast.sampling.estimate import simulate


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


def check_lds(launch: Launch, device: Device) -> None:
    """Raises UsageError for code whose LDS the launch must add, and adds none: its results would be
    zeros in every version."""
    if read_launch(launch, device).analysis.lacks_lds:
        raise UsageError(
            "its code accesses LDS and declares none, which a launch must add (--lds BYTES)"
        )


class SubjectSearch(Protocol):
    """A search of launches, one after the other; results go to a journal."""

    def search(self, subject: LabSubject) -> None:
        """Search one launch. Raises WavecastError for one that cannot be searched."""
        ...


@dataclass(slots=True)
class LabEvaluator:
    """Evaluates settings of a subject. Half of all settings give code that another one gives, too:
    each code is timed once per device."""

    subject: LabSubject
    _timed: dict[tuple[object, ...], CodeFigures] = field(default_factory=dict)
    _changer: CodeChanger | None = None

    def evaluate(self, task: LabTask) -> tuple[LabResult, ...]:
        """The result per device. Nothing is raised: a setting that cannot be compiled or read is
        refused with the reason."""
        subject, setting = self.subject, task.setting
        try:
            launch = self._apply(setting)
        except WavecastError as error:
            return tuple(
                LabResult(setting, task.stage, refused=error.message) for _ in subject.devices
            )
        options = setting.options(subject.launch.code)
        changed = subject.launch.code.origin in MACHINE_CODE and setting.items
        assembly = launch.code.assembly if changed else ""
        words = setting.words if subject.launch.code.origin == "hip" else ()
        llir = str(launch.code.stages.get("llir", "")) if setting.edits else ""
        execution = _execute(subject, launch, setting) if task.verify else None
        results = []
        for device in subject.devices:
            try:
                figures = self._figures(launch, device, sample=task.sample)
            except WavecastError as error:
                results.append(LabResult(setting, task.stage, refused=error.message))
                continue
            results.append(
                LabResult(
                    setting, task.stage, figures, "", execution, options, llir, words, assembly
                )
            )
        return tuple(results)

    def _apply(self, setting: Setting) -> Launch:
        """The launch with its kernel changed by a setting. Raises WavecastError."""
        subject = self.subject
        if subject.launch.code.origin not in MACHINE_CODE or not setting.items:
            return apply_setting(subject, setting)
        if self._changer is None:
            self._changer = CodeChanger(subject.launch, subject.ranges, subject.devices[0])
        return self._changer.changed(dict(setting.items))

    def _figures(self, launch: Launch, device: Device, *, sample: bool) -> CodeFigures:
        read = read_launch(launch, device)
        untimed = figures_of_code(read)
        key = device.id, launch.block, launch.dynamic_lds, untimed, sample
        figures = self._timed.get(key)
        if figures is None:
            figures = with_predicted_time(untimed, read, device)
            if sample or figures.seconds is None:
                figures = _sample_figures(figures, launch, self.subject, device)
            self._timed[key] = figures
        return figures


def apply_setting(subject: LabSubject, setting: Setting) -> Launch:
    """The launch with its kernel compiled with a setting. Raises CompileError."""
    if not setting.items:
        return subject.launch
    launch = subject.launch
    code = compile_with_setting(launch.code, setting, subject.devices[0])
    if code.origin == "hip":  # the launch has its block and its LDS
        return replace(launch, code=replace(code, workgroup_size=launch.code.workgroup_size))
    block = (code.workgroup_size, 1, 1)
    return replace(launch, code=code, block=block, dynamic_lds=code.dynamic_lds)


def _execute(subject: LabSubject, launch: Launch, setting: Setting) -> ExecutionResult:
    try:
        return compare_launches(subject.launch, launch, subject.ranges, rounding=setting.rounding)
    except WavecastError as error:
        return ExecutionResult((), f"not executed: {error.message}")


def _sample_figures(
    figures: CodeFigures, launch: Launch, subject: LabSubject, device: Device
) -> CodeFigures:
    simulation = simulate(launch, subject.ranges, device)
    if isinstance(simulation, Prediction):
        return figures.with_time(simulation)
    return structs.replace(figures, reason=simulation)


__all__ = ["LabEvaluator", "LabSubject", "LabTask", "SubjectSearch", "apply_setting"]
