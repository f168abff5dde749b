"""Disaggregated serving: some instances prefill, others decode, and caches move between them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from wavecast.errors import UsageError

NIC: Final = 50e9
"""Bytes per second of one GPU's network adapter: 400 Gbit/s."""
SETUP: Final = 1e-3
"""Seconds to start the transfer of a request's cache. Assumed."""
_MOST: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Disaggregation:
    """`prefill` and `decode` instances, each on the GPUs of the parallelism. Every GPU sends its
    part of a cache with `bandwidth` bytes per second."""

    prefill: int
    decode: int
    bandwidth: float = NIC

    def __post_init__(self) -> None:
        for name in ("prefill", "decode"):
            if not 1 <= getattr(self, name) <= _MOST:
                raise UsageError(f"{getattr(self, name)} instances for {name}, not 1 to {_MOST}")
        if not self.bandwidth > 0:
            raise UsageError(f"a bandwidth of {self.bandwidth:g} bytes per second")

    @property
    def instances(self) -> int:
        """Of both kinds."""
        return self.prefill + self.decode

    def __str__(self) -> str:
        return f"{self.prefill}p{self.decode}d"


def disaggregation(text: str, bandwidth: float = NIC) -> Disaggregation:
    """`1p2d`: one instance prefills, two decode. Raises UsageError."""
    match = re.fullmatch(r"(\d{1,4})p(\d{1,4})d", text.lower())
    if match is None:
        raise UsageError(f"{text!r} is not like 1p2d")
    return Disaggregation(int(match[1]), int(match[2]), bandwidth)


__all__ = ["Disaggregation", "disaggregation"]
