"""What a result depends on besides operands: the target and the MODE register.

MODE as compilers set it up: rounding to nearest even everywhere, denormals kept or flushed per
width, IEEE handling of signalling NaNs, clamp of NaN to zero (DX10_CLAMP), saturating conversions
to small formats (FP16_OVFL).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Denormals:
    """One field of MODE.FP_DENORM: whether denormal inputs and results survive."""

    inputs: bool = True
    results: bool = True

    @classmethod
    def of(cls, field: int) -> Denormals:
        """The two-bit field as `.amdhsa_float_denorm_mode_*` gives it: 0 flushes, 3 keeps."""
        return cls(inputs=bool(field & 2), results=bool(field & 1))


@dataclass(frozen=True, slots=True)
class Machine:
    """The state semantics may ask for. The defaults are those compilers give to kernels.

    `target` is an LLVM processor name (`gfx942`); "" where the caller knows none, and semantics
    that differ between targets then follow the newest.

    `ieee` (MODE.IEEE; gfx12 has no such bit and behaves as if it were set): minimum and maximum of
    a signalling NaN and a number are that NaN, quieted; without it, the number.
    `dx10_clamp`: the `clamp` modifier turns NaN into 0; the executor of `clamp` reads it, as gfx12
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
