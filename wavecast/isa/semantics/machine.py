"""What a result depends on besides operands: the target and the MODE register.

MODE as compilers set it up: rounding to nearest even everywhere, denormals kept or flushed per
width, IEEE handling of signalling NaNs, clamp of NaN to zero (DX10_CLAMP), saturating conversions
to small formats (FP16_OVFL).
"""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.arch import capabilities


@dataclass(frozen=True, slots=True)
class Denormals:
    """One field of MODE.FP_DENORM: whether denormal inputs and results survive."""

    inputs: bool = True
    results: bool = True

    @classmethod
    def of(cls, field: int) -> Denormals:
        """The two-bit field as `.amdhsa_float_denorm_mode_*` gives it: 0 flushes, 3 keeps both."""
        return cls(inputs=bool(field & 1), results=bool(field & 2))


@dataclass(frozen=True, slots=True)
class FloatMode:
    """The state semantics may ask for. The defaults are those compilers give to kernels.

    `target` is a member of `wavecast.isa.targets.TARGETS`; "" where the caller knows none, and
    rows that differ between targets then follow gfx9.

    `ieee` (MODE.IEEE, up to gfx11): minimum and maximum of a signalling NaN and a number are that
    NaN, quieted; without it, the number. gfx12 has no such bit: see `quiets_signalling`.
    `dx10_clamp`: the `clamp` modifier replaces NaN by 0; the executor of `clamp` reads it, as gfx12
    always does.
    `fp16_overflow` (MODE.FP16_OVFL): results too large for f16, fp8 and bf8 become the largest
    number of the format instead of infinity or NaN.
    """

    target: str = ""
    denormals_f32: Denormals = Denormals()
    denormals_f16_f64: Denormals = Denormals()
    ieee: bool = True
    dx10_clamp: bool = True
    fp16_overflow: bool = False

    @property
    def follows_2019(self) -> bool:
        """Instructions follow IEEE 754-2019 (minimumNumber), not 754-2008 (minNum)."""
        return capabilities(self.target).ieee754_2019_extremes

    @property
    def quiets_signalling(self) -> bool:
        """Minimum and maximum give a signalling operand, quieted, instead of the number."""
        return self.ieee and not self.follows_2019
