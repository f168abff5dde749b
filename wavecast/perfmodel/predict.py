"""The prediction for a launch profile, from a simulation of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from wavecast.arch import Device
from wavecast.perfmodel.account import NONE, SourcePosition, account
from wavecast.perfmodel.distance import PredictionSubject
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.launches import changes_of
from wavecast.perfmodel.notes import NOT_SIMULATED, text
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.profile import LaunchProfile, ProfileSource

KERNEL: Final = "kernel"
"""Family of the residuals that give a kernel its interval."""
_ORIGINS: Final = {
    "triton": "Triton",
    "hip": "HIP",
    "cuda": "CUDA",
    "assembly": "assembly",
    "elf": "code object",
}
_SOURCES: Final = {
    ProfileSource.CODE: "predicted from code",
    ProfileSource.SAMPLE: "executed sample",
}


def predict(
    profile: LaunchProfile,
    device: Device,
    *,
    what_if: bool = False,
    operations: Mapping[SourcePosition, Sequence[str]] = NONE,
) -> Prediction:
    """The predicted time of a launch on a device, with its account.

    `what_if` also simulates every change. `operations` are the names of the kernel's operations
    in a higher IR by source place, for shares by operation. The interval of a sample that covers
    the launch badly is wider, and the prediction's notes say why.

    Raises UsageError for a device of another target, MissingFact where the device lacks a number.
    """
    changes = changes_of(profile, device)
    timing = changes.simulation.run()
    coverage = profile.coverage
    prediction = Prediction(
        device=device.id,
        seconds=timing.seconds,
        low=timing.seconds,
        high=timing.seconds,
        limiter=timing.limiter,
        fidelity=profile.source.value,
        bounds=dict(timing.bounds),
        assumed={
            "clock_ghz": round(timing.clock / 1e9, 3),
            **({"compiler": profile.compiler} if profile.compiler else {}),
        },
        lines=account(timing, profile.program, operations),
        what_if=changes.all(timing) if what_if else (),
        not_modelled=tuple(text(note) for note in (*profile.notes, *NOT_SIMULATED)),
        notes=(
            *(coverage.texts() if coverage else ()),
            *((profile.compiler_note,) if profile.compiler_note else ()),
        ),
    )
    widen = coverage.widening if coverage else 1.0
    return with_interval(prediction, subject_of(profile), device, widen=widen)


def subject_of(profile: LaunchProfile) -> PredictionSubject:
    """What the prediction of a profile is of: kernels are told apart by the source of their code
    and by what the profile was made from, their sizes are the work-items of the launch."""
    return kernel_subject(profile.origin, profile.source, profile.placement.work_items)


def kernel_subject(origin: str, source: ProfileSource, work_items: float) -> PredictionSubject:
    """The subject of a launch of code from `origin` (`codeobject.Origin`) that has `work_items`."""
    library = f"{_ORIGINS.get(origin, 'code of unknown origin')}, {_SOURCES[source]}"
    return PredictionSubject(KERNEL, library, sizes={"work-items": float(work_items)})


__all__ = ["KERNEL", "kernel_subject", "predict", "subject_of"]
