"""Profiles as JSON: where the time of a run went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from wavecast import json_objects
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
from wavecast.profiles.counters import CountedLaunches
from wavecast.profiles.kernel_forms import form
from wavecast.profiles.kernel_names import recognise
from wavecast.profiles.summary import KernelVariation
from wavecast.report.profiles import code
from wavecast.report.profiles import trace as profiles_trace
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.profiles.answer import ProfileAnswer
    from wavecast.profiles.comparison import ComparedOperator, ProfileComparison
    from wavecast.profiles.elsewhere import MovedProfile
    from wavecast.profiles.predicted import PredictedProfile
    from wavecast.profiles.ranks import RankSkew
    from wavecast.profiles.summary import DeviceSummary, TimeShare

_NANO: Final = 1e-9


def document(
    answers: Sequence[ProfileAnswer],
    against: ProfileComparison | None = None,
    skew: RankSkew | None = None,
) -> dict[str, Any]:
    """The profiles, their comparison, and what ranks wait for one another, as plain dicts, lists,
    strings and numbers."""
    return json_objects.values(
        ProfileDocument(
            wavecast=__version__,
            ranks=[_rank(answer) for answer in answers],
            comparison=_comparison(against) if against else None,
            skew=_skew(skew) if skew else None,
        )
    )


def _skew(skew: RankSkew) -> RankSkewJson:
    return RankSkewJson(
        slowest=skew.slowest,
        collectives=len(skew.collectives),
        unmatched=skew.unmatched,
        median_skew=skew.median_skew * _NANO,
        waited={str(rank): time * _NANO for rank, time in skew.waited.items()},
        last_in={str(rank): float(count) for rank, count in skew.last_in.items()},
    )


def _comparison(comparison: ProfileComparison) -> ComparedProfilesJson:
    first, second = comparison.totals
    return ComparedProfilesJson(
        first=first * _NANO,
        second=second * _NANO,
        matched_first=comparison.matched_shares[0],
        matched_second=comparison.matched_shares[1],
        operators=[_operator_comparison(row) for row in comparison.rows],
    )


def _operator_comparison(row: ComparedOperator) -> ComparedOperatorJson:
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
    counts_by_kernel, varied = activity.counters, activity.variations
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
            _kernel_json(answer, number, counts_by_kernel.get(number), varied.get(number))
            for number in summary.by_kernel
        ],
        copies=activity.copies,
        memory=activity.memory,
        collectives=activity.collectives,
        annotations=activity.annotations,
        sequences=activity.sequences,
        predicted=_predicted_json(answer.predicted) if answer.predicted else None,
        code=[code.entry(kernel) for kernel in answer.code.kernels],
        traces=[profiles_trace.entry(trace) for trace in answer.traces],
        findings=answer.findings,
        elsewhere=[_moved_json(projection) for projection in answer.moved],
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


def _moved_json(projection: MovedProfile) -> MovedProfileJson:
    return MovedProfileJson(
        chip=projection.device.id,
        seconds=projection.seconds,
        low=projection.low,
        high=projection.high,
        speedup=projection.here.measured / projection.seconds,
        changes=projection.changes.text,
        span_here=projection.before.span * _NANO,
        span=projection.after.span * _NANO,
        operators=[
            MovedOperatorJson(
                name=operator.here.name,
                sizes=operator.here.sizes,
                count=operator.here.count,
                measured=operator.here.measured,
                seconds=operator.seconds,
                basis=operator.basis.value,
            )
            for operator in projection.operators
        ],
        residuals=list(projection.residuals),
    )


def _shares(shares: Mapping[str, TimeShare]) -> list[TimeShareJson]:
    return [
        TimeShareJson(name=name, count=share.count, seconds=share.nanoseconds * _NANO)
        for name, share in shares.items()
    ]


def _device_json(answer: ProfileAnswer, device: DeviceSummary) -> ProfiledDeviceJson:
    device_info = answer.profile.devices.get(device.device)
    activity = answer.activity.devices[device.device]
    return ProfiledDeviceJson(
        number=device.device,
        name=device_info.name if device_info else "",
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
    counts: CountedLaunches | None,
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
        counters=dict(counts.figures()) if counts else {},
    )


__all__ = ["document"]
