"""Profiles as JSON: where the time of a run went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from wavecast.bench.profiles.counters import CountedLaunches
from wavecast.bench.profiles.kernel_forms import form
from wavecast.bench.profiles.kernel_names import recognise
from wavecast.bench.profiles.ranks import skew
from wavecast.bench.profiles.summary import KernelVariation
from wavecast.documents import base
from wavecast.documents.profile import (
    ComparedOperatorJson,
    ComparedProfilesJson,
    MovedOperatorJson,
    MovedProfileJson,
    PredictedProfileJson,
    ProfiledDeviceJson,
    ProfiledKernelJson,
    ProfileDocument,
    ProfileRankJson,
    RankSkewJson,
    TimeShareJson,
)
from wavecast.report import profiles_code, profiles_trace
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.bench.profiles.answer import ProfileAnswer
    from wavecast.bench.profiles.comparison import ComparedOperator, ProfileComparison
    from wavecast.bench.profiles.elsewhere import MovedProfile
    from wavecast.bench.profiles.predicted import PredictedProfile
    from wavecast.bench.profiles.profile import Profile
    from wavecast.bench.profiles.summary import DeviceSummary, TimeShare

_NANO: Final = 1e-9


def document(
    answers: Sequence[ProfileAnswer], against: ProfileComparison | None = None
) -> dict[str, Any]:
    """The profiles, and their comparison, as plain dicts, lists, strings and numbers."""
    return base.values(
        ProfileDocument(
            wavecast=__version__,
            ranks=[_rank(answer) for answer in answers],
            comparison=_comparison(against) if against else None,
            skew=_skew([answer.profile for answer in answers]),
        )
    )


def _skew(profiles: Sequence[Profile]) -> RankSkewJson | None:
    found = skew(profiles)
    if found is None:
        return None
    return RankSkewJson(
        slowest=found.slowest,
        collectives=len(found.collectives),
        unmatched=found.unmatched,
        median_skew=found.median_skew * _NANO,
        waited={str(rank): time * _NANO for rank, time in found.waited.items()},
        last_in={str(rank): float(count) for rank, count in found.last_in.items()},
    )


def _comparison(found: ProfileComparison) -> ComparedProfilesJson:
    first, second = found.totals
    return ComparedProfilesJson(
        first=first * _NANO,
        second=second * _NANO,
        matched_first=found.matched[0],
        matched_second=found.matched[1],
        operators=[_compared(row) for row in found.rows],
    )


def _compared(row: ComparedOperator) -> ComparedOperatorJson:
    return ComparedOperatorJson.of(
        row,
        name=row.op,
        first=row.first.share.nanoseconds * _NANO,
        second=row.second.share.nanoseconds * _NANO,
        first_count=row.first.share.count,
        second_count=row.second.share.count,
        first_kernel=row.first.kernel,
        second_kernel=row.second.kernel,
    )


def _rank(answer: ProfileAnswer) -> ProfileRankJson:
    profile, summary = answer.profile, answer.summary
    activity = answer.activity
    counted, varied = activity.counters, activity.variations
    return ProfileRankJson(
        path=str(answer.path),
        tool=profile.tool,
        rank=profile.rank,
        seconds=summary.kernel_time * _NANO,
        devices=[_device_json(answer, device) for device in summary.devices],
        categories=_shares(summary.by_category),
        libraries=_shares(summary.by_library),
        operators=_shares(summary.by_op),
        modules=_shares(summary.by_module),
        kernels=[
            _kernel_json(answer, number, counted.get(number), varied.get(number))
            for number in summary.by_kernel
        ],
        copies=activity.copies,
        memory=activity.memory,
        collectives=activity.collectives,
        annotations=activity.annotations,
        sequences=activity.sequences,
        predicted=_predicted_json(answer.predicted) if answer.predicted else None,
        code=[profiles_code.entry(one) for one in answer.code.kernels],
        traces=[profiles_trace.entry(one) for one in answer.traces],
        findings=answer.findings,
        elsewhere=[_moved_json(moved) for moved in answer.moved],
        notes=list(answer.notes),
    )


def _predicted_json(predicted: PredictedProfile) -> PredictedProfileJson:
    error = predicted.median_error
    return PredictedProfileJson(
        chip=predicted.device.id,
        covered=predicted.covered,
        median_error=error if math.isfinite(error) else None,
        operators=list(predicted.operators),
    )


def _moved_json(moved: MovedProfile) -> MovedProfileJson:
    return MovedProfileJson(
        chip=moved.device.id,
        seconds=moved.seconds,
        low=moved.low,
        high=moved.high,
        speedup=moved.here.measured / moved.seconds,
        changes=moved.changes.text,
        span_here=moved.before.span * _NANO,
        span=moved.after.span * _NANO,
        operators=[
            MovedOperatorJson(
                name=one.here.name,
                sizes=one.here.sizes,
                count=one.here.count,
                measured=one.here.measured,
                seconds=one.seconds,
                basis=one.basis.value,
            )
            for one in moved.operators
        ],
        residuals=list(moved.residuals),
    )


def _shares(found: Mapping[str, TimeShare]) -> list[TimeShareJson]:
    return [
        TimeShareJson(name=name, count=share.count, seconds=share.nanoseconds * _NANO)
        for name, share in found.items()
    ]


def _device_json(answer: ProfileAnswer, device: DeviceSummary) -> ProfiledDeviceJson:
    given = answer.profile.devices.get(device.device)
    activity = answer.activity.devices[device.device]
    return ProfiledDeviceJson(
        number=device.device,
        name=given.name if given else "",
        chip=answer.chip(device.device),
        span=device.span * _NANO,
        busy=device.busy * _NANO,
        kernels=device.kernels,
        collectives=device.collectives * _NANO,
        exposed=device.exposed * _NANO,
        idle={cause: time * _NANO for cause, time in device.idle.items()},
        critical_path={part: time * _NANO for part, time in activity.path.parts.items()},
        launching=activity.costs,
        queues=activity.queues,
    )


def _kernel_json(
    answer: ProfileAnswer,
    number: int,
    counted: CountedLaunches | None,
    varied: KernelVariation | None,
) -> ProfiledKernelJson:
    kernel, share = answer.profile.kernels[number], answer.summary.by_kernel[number]
    name = recognise(kernel.name)
    return ProfiledKernelJson(
        name=kernel.name,
        library=name.library,
        category=name.category,
        form=form(kernel.name).text,
        count=share.count,
        seconds=share.nanoseconds * _NANO,
        shortest=varied.shortest * _NANO if varied else None,
        longest=varied.longest * _NANO if varied else None,
        deviation=varied.deviation * _NANO if varied else None,
        blocks=list(kernel.blocks),
        threads=list(kernel.threads),
        registers=kernel.registers,
        lds_bytes=kernel.lds_bytes,
        scratch_bytes=kernel.scratch_bytes,
        counters=dict(counted.figures()) if counted else {},
    )


__all__ = ["document"]
