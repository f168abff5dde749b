"""From the time of a kernel to the time somebody measured: how it was timed decides what is added.

`kernel` is the kernel alone, as a profiler reports it. `launch` is from one recorded event to the
next around a launch that others precede; `launch, client` the same by the benchmark client of
Tensile, whose logic files have its speeds, and `launch, client, warm` by its older one, which
repeats a product with the same operands (rocBLAS; hipBLASLt's rotates buffers). The rest is an
eager PyTorch call between two events
while the GPU idles: it waits for the host, and the kernel starts before the host has recorded the
second event, so the longer of the two decides:

    seconds = (host^p + (start + before + kernel)^p)^(1/p)

with host the sum of what the call does on the host (`TIMINGS`) and before the part of it that
delays the kernel (`BEFORE`), all in `timing.toml`.
"""

from __future__ import annotations

from typing import Final

from wavecast.errors import UnknownName
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import Amount
from wavecast.perfmodel.memory import overlap_time

FAMILY = "timing"

TIMINGS: Final[dict[str, tuple[str, ...]]] = {
    "kernel": (),
    "launch": (),
    "launch, client": (),
    "launch, client, warm": (),
    "eager": ("host_call",),
    "eager, framed": ("host_call", "host_frame"),
    "eager, with a number": ("host_call", "host_frame", "host_number"),
    "eager, softmax": ("host_call", "host_frame", "host_softmax"),
    "eager, norm": ("host_call", "host_frame", "host_norm"),
    "eager, python": ("host_call", "host_python"),
}
"""Name -> coefficients of `timing` that add up to the time of the host."""

WARM: Final = ("launch, client, warm",)
"""Timings whose operands are in the caches of the chip, where they fit."""

BEFORE: Final = ("host_softmax", "host_norm", "host_python")
"""What the host does between the first event and the launch of the kernel."""


def measurement_time(chip: Chip, timing: str, kernel: Amount) -> Amount:
    """Seconds a measurement of a kernel of `kernel` seconds gives. Raises UnknownName."""
    if timing not in TIMINGS:
        raise UnknownName("way of timing", timing, TIMINGS)
    constants = coefficients.values(FAMILY, chip.device)
    if timing == "kernel":
        return constants["kernel_start"] + kernel
    if timing == "launch":
        return chip.launch + kernel
    if timing in ("launch, client", *WARM):
        return constants["client_launch"] + kernel
    steps = TIMINGS[timing]
    host = sum(constants[name] for name in steps)
    before = sum(constants[name] for name in steps if name in BEFORE)
    return overlap_time(
        [host, constants["eager_start"] + before + kernel], constants["eager_overlap"]
    )


__all__ = ["TIMINGS", "WARM", "measurement_time"]
