"""A profile with its chips, its summary and its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wavecast.arch.device import Device
from wavecast.arch.select import load
from wavecast.bench.profiles.chips import chips
from wavecast.bench.profiles.elsewhere import MovedProfile, elsewhere
from wavecast.bench.profiles.nesting import adopt
from wavecast.bench.profiles.predicted import PredictedProfile, predict
from wavecast.bench.profiles.profile import NONE, Profile
from wavecast.bench.profiles.reading import read_ranks
from wavecast.bench.profiles.summary import ProfileSummary, summarise
from wavecast.errors import MissingTool, NothingAnalysed, UsageError


@dataclass(frozen=True, slots=True)
class ProfileAnswer:
    """A file and what the run in it did. `devices` has the id of the chip of each device, where it
    is known. `predicted` has its operators with predicted times, `moved` the run on other chips;
    both are absent where the chip or the operators are not known."""

    path: Path
    profile: Profile
    summary: ProfileSummary
    devices: dict[int, str]
    notes: tuple[str, ...]
    predicted: PredictedProfile | None = None
    moved: tuple[MovedProfile, ...] = ()

    def chip(self, device: int) -> str:
        """Id of the chip of a device; empty where it is not known."""
        return self.devices.get(device, "")


def profiles(path: Path, device: str = "", on: Sequence[str] = ()) -> list[ProfileAnswer]:
    """The profile of a file, or those of the ranks in a folder.

    `device` names the chip where the file does not; `on` are chips to predict the run on. Raises
    InputError for a file that cannot be read, UnknownName for a chip, NothingAnalysed where no
    file has a kernel, MissingTool for `on` without PyTorch, UsageError for `on` where the chip or
    the operators of a profile are not known.
    """
    chip = load(device).id if device else ""
    others = [load(name) for name in on]
    answers = []
    notes: list[str] = []
    for file, profile in read_ranks(path):
        if len(profile.launches):
            answers.append(_answer(file, profile, chip, others))
        else:
            notes += profile.notes
    if not answers:
        raise NothingAnalysed(f"{path} has no kernel", hint="; ".join(dict.fromkeys(notes)))
    return answers


def _answer(path: Path, profile: Profile, chip: str, others: Sequence[Device]) -> ProfileAnswer:
    known: dict[int, str] = {}
    adopt(profile)
    notes = list(profile.notes)
    summary = summarise(profile)
    for device in summary.devices:
        given = profile.devices.get(device.device)
        candidates = [] if chip or given is None else [found.id for found in chips(given)]
        if chip or len(candidates) == 1:
            known[device.device] = chip or candidates[0]
        elif candidates:
            names = ", ".join(candidates)
            notes.append(f"device {device.device} is one of {names}: --device names it")
        else:
            notes.append(f"the file does not name the chip of device {device.device}: use --device")
    chips_used = set(known.values())
    if len(chips_used) == 1 and _has_sizes(profile):
        return _predicted(
            ProfileAnswer(path, profile, summary, known, tuple(notes)),
            load(chips_used.pop()),
            others,
        )
    if others:
        raise UsageError(
            f"{path}: the chip is not known" if not known else f"{path}: no operators with sizes",
            hint="--device names the chip; record_shapes=True records sizes of operators",
        )
    return ProfileAnswer(path, profile, summary, known, tuple(notes))


def _has_sizes(profile: Profile) -> bool:
    return any(
        op != NONE and profile.op_infos[profile.ops.info[op]].sizes for op in profile.launches.op
    )


def _predicted(answer: ProfileAnswer, chip: Device, others: Sequence[Device]) -> ProfileAnswer:
    try:
        predicted = predict(answer.profile, chip)
    except MissingTool as error:
        if others:
            raise
        return replace(answer, notes=(*answer.notes, f"{error.message}: {error.hint}"))
    return replace(
        answer,
        predicted=predicted,
        moved=tuple(elsewhere(answer.profile, predicted, other) for other in others),
        notes=(*answer.notes, *predicted.notes),
    )


__all__ = ["ProfileAnswer", "profiles"]
