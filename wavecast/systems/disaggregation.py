"""Disaggregated serving: some instances prefill, others decode, and caches move between them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from wavecast.errors import UsageError
from wavecast.systems.engine import Setting
from wavecast.systems.parallel import Parallelism

NIC: Final = 50e9
"""Bytes per second of one GPU's network adapter: 400 Gbit/s."""
SETUP: Final = 1e-3
"""Seconds to start the transfer of a request's cache. Assumed."""
_MOST: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Disaggregation:
    """`prefill` and `decode` instances, each on the GPUs of the deployment's parallelism; those
    that prefill on the GPUs of `parallel` where it is given, with other `settings` of the engine
    (names of `engine.SETTINGS`) than the deployment has. Every GPU sends its part of a cache with
    `bandwidth` bytes per second."""

    prefill: int
    decode: int
    bandwidth: float = NIC
    parallel: Parallelism | None = None
    settings: tuple[tuple[str, Setting], ...] = ()

    def __post_init__(self) -> None:
        for name in ("prefill", "decode"):
            if not 1 <= getattr(self, name) <= _MOST:
                raise UsageError(f"{getattr(self, name)} instances for {name}, not 1 to {_MOST}")
        if not self.bandwidth > 0:
            raise UsageError(f"a bandwidth of {self.bandwidth:g} bytes per second")

    @property
    def instances(self) -> int:
        """Instances of both kinds."""
        return self.prefill + self.decode

    @property
    def uneven(self) -> bool:
        """Whether instances that prefill differ from those that decode."""
        return self.parallel is not None or bool(self.settings)

    def gpus(self, parallel: Parallelism) -> int:
        """GPUs of all instances, where those that decode have the GPUs of `parallel`."""
        return self.prefill * (self.parallel or parallel).gpus + self.decode * parallel.gpus

    def __str__(self) -> str:
        suffix = f" (prefill {self.parallel})" if self.parallel else ""
        return f"{self.prefill}p{self.decode}d{suffix}"


def disaggregation(
    text: str, bandwidth: float = NIC, parallel: Parallelism | None = None
) -> Disaggregation:
    """`1p2d`: one instance prefills, two decode. Raises UsageError."""
    match = re.fullmatch(r"(\d{1,4})p(\d{1,4})d", text.lower())
    if match is None:
        raise UsageError(f"{text!r} is not like 1p2d")
    return Disaggregation(int(match[1]), int(match[2]), bandwidth, parallel)


__all__ = ["Disaggregation", "disaggregation"]
