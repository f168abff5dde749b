"""What documents and counted instructions say of coefficients fitted to few chips.

Production uses the fitted values. A calibration that leaves out every chip of a scope
(`calibration.left_out`) forgets them and uses these, where there are any, instead of the value of
the other vendors' chips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Prior:
    """A value in the unit of its coefficient, and what says so."""

    value: float
    source: str


PRIORS: Final[Mapping[tuple[str, str, str], Prior]] = {
    ("timing", "kernel_start", "nvidia"): Prior(
        1.26e-6,
        "three latencies of the memory of an H100 (834 clk at 1980 MHz): instructions, "
        "constants, the last stores",
    ),
    ("elementwise", "division_instructions", "nvidia"): Prior(
        16.0,
        "OffsetCalculator.cuh: multiply high (at 32 of 128 lanes), add, shift, negate, multiply "
        "and add, compare, branch (at 64 lanes)",
    ),
    ("norm", "norm_reduction", "nvidia"): Prior(
        270.0,
        "layer_norm_kernel.cu: eight warps, five rounds of three shuffles (32 lanes) and nine "
        "operations; three rounds through shared memory",
    ),
    ("moe", "stream_fraction", "rdna4"): Prior(
        0.99, "hipengine-w7900: reads 952 of about 960 GB/s of GDDR6"
    ),
    **{
        ("gemm", "store_rate", generation): Prior(
            16.0, "public ISA knowledge (arch/costs/rdna3.toml): 32 addresses a clock for two CUs"
        )
        for generation in ("rdna2", "rdna3")
    },
    ("chips", "hbm_fraction", "nvidia"): Prior(
        0.863, "gpu-benches: triad of an A100, 1759 of 2039 GB/s"
    ),
}
"""By family, coefficient and scope."""


def prior(family: str, name: str, scope: str, otherwise: float) -> float:
    """The value without measurements of the scope: a prior, or `otherwise`."""
    known = PRIORS.get((family, name, scope))
    return otherwise if known is None else known.value


__all__ = ["PRIORS", "Prior", "prior"]
