"""A profile with its chips, its summary and its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from wavecast.arch.device import Device
from wavecast.arch.select import load
from wavecast.errors import MissingTool, NothingAnalysed, UsageError
from wavecast.pipeline.plan import Plan
from wavecast.profiles.activity import ProfileActivity, activity
from wavecast.profiles.calibration import overlaid
from wavecast.profiles.captured import size_products
from wavecast.profiles.changes import UNCHANGED, parse
from wavecast.profiles.chips import chips
from wavecast.profiles.code import NO_PLAN, ExplainedCode, explain_kernels
from wavecast.profiles.elsewhere import MovedProfile, elsewhere
from wavecast.profiles.findings import ProfileFinding, findings
from wavecast.profiles.kernel_forms import target as kernel_target
from wavecast.profiles.nesting import adopt
from wavecast.profiles.predicted import PredictedProfile, predict
from wavecast.profiles.profile import Profile, ProfiledDevice
from wavecast.profiles.reading import read_ranks
from wavecast.profiles.replay import ProfileTimeline, measured_timeline
from wavecast.profiles.summary import ProfileSummary, summarise
from wavecast.profiles.thread_trace import TracedKernel, with_simulated

NOT_EXPLAINED: Final = ExplainedCode()


@dataclass(frozen=True)
class ProfileAnswer:
    """A file and what the run in it did. `devices` has the id of the chip of each device, where it
    is known. `predicted` has its operators with predicted times, `moved` the run on other chips;
    both are absent where the chip or the operators are not known. `code` has the kernels that are
    explained from their code, `traces` the thread traces."""

    path: Path
    profile: Profile
    summary: ProfileSummary
    devices: dict[int, str]
    notes: tuple[str, ...]
    predicted: PredictedProfile | None = None
    moved: tuple[MovedProfile, ...] = ()
    code: ExplainedCode = NOT_EXPLAINED
    traces: tuple[TracedKernel, ...] = ()

    def chip(self, device: int) -> str:
        """Id of the chip of a device; empty where it is not known."""
        return self.devices.get(device, "")

    @property
    def timeline(self) -> ProfileTimeline:
        """The starts and ends in the file."""
        return measured_timeline(self.profile)

    @property
    def origin(self) -> int:
        """The first start of anything, in nanoseconds."""
        profile = self.profile
        tables = (profile.launches, profile.copies, profile.ops, profile.calls)
        return min(min(table.start) for table in tables if len(table))

    @cached_property
    def activity(self) -> ProfileActivity:
        """Copies, collectives, ranges, queues …, analysed when they are first used."""
        return activity(self.profile, self.summary)

    @cached_property
    def findings(self) -> list[ProfileFinding]:
        """What could make the run faster."""
        return findings(self.profile, self.summary, self.predicted)


def profiles(
    path: Path,
    device: str = "",
    on: Sequence[str] = (),
    what_if: str = "",
    arch_files: Sequence[Path] = (),
    code: Sequence[Path] = (),
    model: str = "",
    plan: Plan = NO_PLAN,
) -> list[ProfileAnswer]:
    """The profile of a file, or those of the ranks in a folder.

    `device` names the chip where the file does not; `on` are chips to predict the run on, with the
    changes `what_if` (`changes.parse`); without `on` the changes are those of the run on its chip.
    `arch_files` change facts of chips. `code` are scripts and code files that have kernels of the
    profile; `model` is the configuration of the model that ran, for sizes of products in replayed
    graphs; `plan` has the arguments of the kernels in code files, and grid and block where the
    profile has none.
    Raises InputError for a file that cannot be read, UnknownName for a chip, NothingAnalysed where
    no file has a kernel, MissingTool for `on` or `what_if` without PyTorch, UsageError for them
    and for `code` where the chip of a profile is not known.
    """
    chip = load(device, arch_files).id if device else ""
    others = [load(name, arch_files) for name in on]
    answers = []
    notes: list[str] = []
    for file, profile in read_ranks(path):
        if len(profile.launches):
            answer = _answer(file, profile, chip, others, what_if, arch_files, model)
            answers.append(_with_explanation(answer, code, plan, arch_files))
        else:
            notes += profile.notes
    if not answers:
        raise NothingAnalysed(f"{path} has no kernel", hint="; ".join(dict.fromkeys(notes)))
    return answers


def _with_explanation(
    answer: ProfileAnswer,
    code: Sequence[Path],
    plan: Plan,
    arch_files: Sequence[Path],
) -> ProfileAnswer:
    code_explanation = NOT_EXPLAINED
    if code:
        if len(set(answer.devices.values())) != 1:
            raise UsageError(
                f"{answer.path}: the chip is not known", hint="--device names the chip"
            )
        device = load(next(iter(answer.devices.values())), arch_files)
        code_explanation = explain_kernels(answer.profile, answer.summary, device, code, plan)
    explanations = {kernel.number: kernel.explanation for kernel in code_explanation.kernels}
    return replace(
        answer,
        code=code_explanation,
        traces=tuple(
            with_simulated(trace, explanations.get(number))
            for number, trace in answer.profile.traces.items()
        ),
        notes=(*answer.notes, *code_explanation.notes),
    )


def _answer(
    path: Path,
    profile: Profile,
    chip: str,
    others: Sequence[Device],
    what_if: str,
    arch_files: Sequence[Path],
    model: str,
) -> ProfileAnswer:
    chip_ids, unknown = _chips(profile, chip)
    chips_used = set(chip_ids.values())
    device = load(chips_used.pop(), arch_files) if len(chips_used) == 1 else None
    if model and device is not None:
        size_products(profile, model, device)
    adopt(profile)
    notes = (*profile.notes, *unknown)
    answer = ProfileAnswer(path, profile, summarise(profile), chip_ids, notes)
    if device is not None:
        return _with_prediction(answer, device, others, what_if)
    if others or what_if or model:
        raise UsageError(
            f"{path}: the chip is not known" if not chip_ids else f"{path}: devices are not alike",
            hint="--device names the chip",
        )
    return answer


def _chips(profile: Profile, chip: str) -> tuple[dict[int, str], list[str]]:
    """(id of the chip of every device that is known, what is not known)."""
    chip_ids: dict[int, str] = {}
    notes = []
    target = next(filter(None, (kernel_target(k.name) for k in profile.kernels.values)), "")
    for device in sorted({*profile.launches.device, *profile.copies.device}):
        device_info = profile.devices.get(device)
        candidates = (
            [] if chip or device_info is None else [c.id for c in chips(device_info, target)]
        )
        if chip or len(candidates) == 1:
            chip_ids[device] = chip or candidates[0]
        elif candidates:
            names = ", ".join(candidates)
            notes.append(f"device {device} is one of {names}: --device names it")
        else:
            notes.append(_unknown_chip(device, device_info))
    return chip_ids, notes


def _unknown_chip(device: int, device_info: ProfiledDevice | None) -> str:
    """What the file says of a device that is none of the chips."""
    about = (
        [f"{device_info.units:,} compute units or SMs"] if device_info and device_info.units else []
    )
    if device_info and device_info.memory_bytes:
        about.append(f"{device_info.memory_bytes / 1e9:.0f} GB")
    name = (device_info.name or device_info.target) if device_info else ""
    if not name and not about:
        return f"the file does not name the chip of device {device}: use --device"
    description = " with ".join(filter(None, (name, " and ".join(about))))
    return (
        f"device {device}, {description}, is none of the chips that Wavecast has facts of: "
        "no predictions; --device names the closest"
    )


def _with_prediction(
    answer: ProfileAnswer, chip: Device, others: Sequence[Device], what_if: str
) -> ProfileAnswer:
    operators = frozenset(info.name for info in answer.profile.op_infos.values)
    changes = parse(what_if, operators) if what_if else UNCHANGED
    if what_if:
        others = others or [chip]
    try:
        predicted = predict(answer.profile, chip)
    except MissingTool as error:
        if others:
            raise
        return replace(answer, notes=(*answer.notes, f"{error.message}: {error.hint}"))
    return replace(
        answer,
        predicted=predicted,
        moved=tuple(elsewhere(answer.profile, predicted, other, changes) for other in others),
        notes=(*answer.notes, *predicted.notes, *overlaid(chip)),
    )


__all__ = ["ProfileAnswer", "profiles"]
