"""What the host processor offers to matrix code: vector width, and a few exact shortcuts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """`vector_bits` is the widest vector worth using; `vectors` how many registers it has.

    `half_conversion`: conversions between f16 and f32 are instructions. `pair_product`: the x86
    intrinsic that multiplies pairs of i16 and adds each pair into i32 at this width, or "".
    `bf16_dots`: an instruction adds the products of pairs of bf16 to f32, of vectors of 512 bits.
    `byte_dots`: one adds the products of four unsigned and four signed bytes to i32, of such too.
    `byte_tables`: one looks bytes of such vectors up in tables of 128.
    """

    vector_bits: int
    vectors: int
    half_conversion: bool = False
    pair_product: str = ""
    bf16_dots: bool = False
    byte_dots: bool = False
    byte_tables: bool = False

    def width(self, element_bits: int) -> int:
        """Elements of `element_bits` in one vector."""
        return self.vector_bits // element_bits


_PAIRS = {
    512: "llvm.x86.avx512.pmaddw.d.512",
    256: "llvm.x86.avx2.pmadd.wd",
    128: "llvm.x86.sse2.pmadd.wd",
}
_WIDE_FEATURES = ("avx512bf16", "avx512vnni", "avx512vbmi")
"""LLVM's names of what the last fields of `Host` need, in their order."""


def host(architecture: str, features: Mapping[str, bool]) -> Host:
    """The host with LLVM's architecture name (`x86_64`, `aarch64`) and feature flags."""
    if architecture == "x86_64":
        if features.get("avx512f") and features.get("avx512bw") and features.get("avx512vl"):
            bits = 512
        else:
            bits = 256 if features.get("avx2") and features.get("fma") else 128
        vectors = 32 if bits == 512 else 16
        wide = (bits == 512 and bool(features.get(name)) for name in _WIDE_FEATURES)
        return Host(bits, vectors, bool(features.get("f16c")), _PAIRS[bits], *wide)
    if architecture in ("aarch64", "arm64"):
        return Host(128, 32, half_conversion=True)
    return Host(128, 16)
