"""Whether anything became worse."""

from __future__ import annotations

from collections.abc import Sequence

from wavecast.benchmarking.diff.figures import is_worse
from wavecast.benchmarking.diff.result import Diff
from wavecast.benchmarking.kpis import Kpi
from wavecast.errors import NothingAnalysed


def worse(diff: Diff, kpis: Sequence[Kpi], minimum: float = 0.0) -> list[str]:
    """What became worse by more than `minimum` of what it was, a line each: KPIs of kernels of
    both sides, kernels that are gone, and those that can be explained no more.

    Raises NothingAnalysed for a KPI that no kernel has on both sides.
    """
    lines = []
    for kpi in kpis:
        count = 0
        for kernel in diff.kernels:
            delta = kernel.figure(kpi.name)
            if delta is None or delta.before is None or delta.after is None:
                continue
            count += 1
            if is_worse(kpi, delta.before, delta.after, minimum):
                change = f"{delta.before:.6g} → {delta.after:.6g} {kpi.unit}".rstrip()
                lines.append(f"{kpi.name} of {kernel.name} on {kernel.device.target}: {change}")
        if not count:
            raise NothingAnalysed(f"no kernel has {kpi.name} on both sides")
    failed = {(failure.kernel, failure.target) for failure in diff.failed_after}
    for kernel in diff.kernels:
        if kernel.after is None and (kernel.name, kernel.device.target) not in failed:
            lines.append(f"{kernel.name} on {kernel.device.target} is gone")
    earlier = {(failure.kernel, failure.target) for failure in diff.failed_before}
    for failure in diff.failed_after:
        if (failure.kernel, failure.target) not in earlier:
            lines.append(f"{failure.kernel} on {failure.target} fails: {failure.message}")
    return lines


__all__ = ["worse"]
