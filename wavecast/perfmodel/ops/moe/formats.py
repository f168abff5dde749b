"""Number formats of activations and weights, and what the matrix pipes make of a pair of them."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.dtypes import lookup
from wavecast.errors import UnknownName, UsageError

WIDTHS = {
    name: lookup(name).bytes + lookup(name).scale_bytes
    for name in ("bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4")
}
"""Bytes per element, block scales included (OCP Microscaling: one byte per 32; NVFP4: per 16)."""

ACTIVATIONS = {name: lookup(name).rate for name in ("bf16", "fp16", "fp8", "int8", "mxfp8")}
"""Formats of activations -> dtype of the matrix products; mxfp4 is in `FORMATS` by its weights."""

SCALINGS = ("none", "tensor", "token", "block", "mx")
"""Scales of fp8 and int8: none, one per tensor, per token and output, per 1x128 block, per 1x32."""


@dataclass(frozen=True, slots=True)
class MoeFormats:
    """A pair of formats. `activation` and `weight` are names of `WIDTHS`."""

    activation: str
    weight: str
    scaling: str

    def __post_init__(self) -> None:
        for name in (self.activation, self.weight):
            if name not in WIDTHS:
                raise UnknownName("number format", name, WIDTHS)
        if self.scaling not in SCALINGS:
            raise UnknownName("scaling", self.scaling, SCALINGS)
        if self.activation == "mxfp4" and self.weight != "mxfp4":
            raise UsageError(f"no library multiplies mxfp4 by {self.weight}")
        if self.activation in ("int4", "nvfp4"):
            raise UsageError(f"activations are not stored as {self.activation}")
        if WIDTHS[self.weight] > WIDTHS[self.activation]:
            raise UsageError(f"no library multiplies {self.activation} by wider {self.weight}")

    @property
    def compute(self) -> str:
        """Dtype of the matrix products: narrower weights are widened to the activations'."""
        return "fp4" if self.activation == "mxfp4" else ACTIVATIONS[self.activation]

    @property
    def activation_width(self) -> float:
        """Bytes per activation."""
        return WIDTHS[self.activation]

    @property
    def weight_width(self) -> float:
        """Bytes per weight."""
        return WIDTHS[self.weight]

    @property
    def widened(self) -> bool:
        """Whether the vector pipes must widen every weight before it can be multiplied."""
        return self.compute in ("bf16", "fp16", "int8") and self.weight != self.activation

    @property
    def row_scaled(self) -> bool:
        """Whether products are scaled once, after the sum over K."""
        return self.scaling in ("tensor", "token") and self.compute in ("fp8", "int8")

    @property
    def scaled_in_groups(self) -> bool:
        """Whether each group of elements along K has its own scale."""
        return self.scaling in ("block", "mx")

    @property
    def scaled_instructions(self) -> bool:
        """Whether the matrix instructions that take block scales multiply them."""
        return self.activation.startswith("mx")

    @property
    def fusible(self) -> bool:
        """Whether libraries have both stages in one kernel (AITER: plain fp8 and int8)."""
        return self.compute in ("fp8", "int8") and self.activation == self.weight

    def __str__(self) -> str:
        names = self.activation
        if self.weight != self.activation:
            names += f"·{self.weight}"
        return names if self.scaling in ("none", "mx") else f"{names} per {self.scaling}"


__all__ = ["SCALINGS", "WIDTHS", "MoeFormats"]
