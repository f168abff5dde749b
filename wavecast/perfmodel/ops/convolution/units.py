"""Which arithmetic units the kernels of a library use on a chip."""

from __future__ import annotations

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.perfmodel.chip import LANES, Chip


def has_matrix(device: Device) -> bool:
    """Whether libraries use matrix instructions on the chip: if it has them for fp32."""
    return device.capabilities.matrix_fp32


def multiply_rate(chip: Chip, dtype: str) -> float:
    """FLOP per clock and CU of a library's products: matrix units where there are any.

    Raises MissingFact for 8-bit dtypes the chip does not have.
    """
    try:
        return chip.matrix_rate(dtype)
    except MissingFact:
        if dtype in ("int8", "fp8"):
            raise
        return vector_rate(dtype)


def vector_rate(dtype: str) -> float:
    """FLOP per clock and CU of products on the vector units.

    One multiply-add per lane and clock, two for pairs of fp16: the kernels use neither packed fp32
    (CDNA2 and later) nor dual issue (RDNA3).
    """
    return 2.0 * LANES * (2.0 if dtype == "fp16" else 1.0)


__all__ = ["has_matrix", "multiply_rate", "vector_rate"]
