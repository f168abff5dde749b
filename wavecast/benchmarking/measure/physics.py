"""Times that cannot be true are refused, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

TIMER_SECONDS: Final = 0.5e-6
"""Resolution of events: half a microsecond (CUDA runtime API, cudaEventElapsedTime; HIP's are
finer)."""
_SLACK: Final = 0.97
"""A time may lie so far under the floor: clocks boost and datasheets round."""
_EQUAL: Final = 20
"""As many equal samples in a row do not happen to a clock that runs."""


def implausible(
    samples: Sequence[float],
    *,
    floor_seconds: float | None = None,
    floor_of: str = "",
    cold: bool = True,
    least_bytes: float | None = None,
    peak_bandwidth: float | None = None,
    resolution: float = TIMER_SECONDS,
) -> str:
    """Why samples (seconds) cannot be true, "" if they can.

    `floor_seconds` is the least time the work needs at the datasheet's peaks, bound by `floor_of`;
    of work bound by memory it only counts where caches are cold. `least_bytes` over the median must
    not exceed `peak_bandwidth` (byte/s), cold as well.
    """
    if not samples:
        return "nothing was measured"
    if any(not sample > 0 for sample in samples):
        return "a time that is not positive: the work did not run between the events"
    ordered = sorted(samples)
    middle = ordered[len(ordered) // 2]
    if middle < resolution:
        return f"{middle:.3g} s is below the {resolution:.1g} s the timer resolves"
    if len(samples) >= _EQUAL and ordered[0] == ordered[-1]:
        return f"{len(samples)} samples without any variance: the clock does not run"
    bound_by_memory = floor_of == "memory"
    if floor_seconds and middle < _SLACK * floor_seconds and (cold or not bound_by_memory):
        what = f" ({floor_of})" if floor_of else ""
        return f"{middle:.4g} s is faster than the {floor_seconds:.4g} s the work needs{what}"
    if cold and least_bytes and peak_bandwidth and least_bytes / middle > peak_bandwidth / _SLACK:
        rate = least_bytes / middle
        return f"{rate / 1e12:.3g} TB/s is more than the memory's {peak_bandwidth / 1e12:.3g} TB/s"
    return ""


__all__ = ["TIMER_SECONDS", "implausible"]
