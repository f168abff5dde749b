"""Number formats of weights, and those of a model by role."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from wavecast import dtypes
from wavecast.arch import Device
from wavecast.errors import UnknownName

NARROW: Final = ("fp8", "int8", "mxfp4", "nvfp4", "int4")
FORMATS: Final = ("bf16", "fp16", *NARROW)


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """Weights of `weights`, multiplied with activations of `activations`, scaled by `scaling` (one
    of `perfmodel.ops.gemm.formats.SCALINGS`). So many integers as `group` share a scale of 16 bits
    (0: those of a column, whose scale does not count)."""

    weights: str
    activations: str
    scaling: str
    group: int = 0

    @property
    def bytes(self) -> float:
        """Bytes of an element with its scales."""
        dtype = dtypes.lookup(self.weights)
        block = 4 / (128 * 128) if self.scaling == "block" else 0.0
        group = 2 / self.group if self.group else 0.0
        return dtype.bytes + (dtype.scale_bytes or block or group)

    @property
    def stored(self) -> str:
        """The format of the weights where it is not that of the activations, else ""."""
        pair = (self.weights, self.activations)
        return "" if pair[0] == pair[1] or pair == ("nvfp4", "mxfp4") else self.weights

    @property
    def quantised_activations(self) -> bool:
        """Whether activations are converted before the product."""
        return self.activations not in ("bf16", "fp16")


@dataclass(frozen=True, slots=True)
class Precision:
    """Formats by role: projections of attention, dense layers and shared experts, routed experts;
    embedding and output projection; the cache of keys and values."""

    attention: WeightFormat
    dense: WeightFormat
    experts: WeightFormat
    head: WeightFormat
    cache: str

    def on_device(self, device: Device) -> tuple[Precision, tuple[str, ...]]:
        """The formats as a device multiplies them, and notes: where it has no matrix rate for a
        format, engines widen the weights to bf16 in the kernel."""
        notes: dict[str, None] = {}

        def widen(form: WeightFormat) -> WeightFormat:
            if not form.quantised_activations:
                return form
            if device.peak_flops(dtypes.lookup(form.activations).rate) is None:
                multiplied = form.activations if form.stored else form.weights
                why = f"{device.id} does not multiply {multiplied}: weights are widened to bf16"
                notes[why] = None
                return replace(form, activations="bf16", scaling="none")
            return form

        roles = ("attention", "dense", "experts", "head")
        formats = replace(self, **{role: widen(getattr(self, role)) for role in roles})
        return formats, tuple(notes)


def weight_format(name: str, scaling: str = "") -> WeightFormat:
    """The usual way to multiply weights of a format. Raises UnknownName."""
    if name not in FORMATS:
        raise UnknownName("format of weights", name, FORMATS)
    if name in ("bf16", "fp16"):
        return WeightFormat(name, name, "none")
    if name in ("mxfp4", "nvfp4"):
        return WeightFormat(name, "mxfp4", "mx")  # at the rate of mxfp4
    if name == "int4":
        return WeightFormat(name, "bf16", "none")
    return WeightFormat(name, name, scaling or "token")


__all__ = ["FORMATS", "NARROW", "Precision", "WeightFormat", "weight_format"]
