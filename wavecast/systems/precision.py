"""The number formats of a checkpoint: which weights are quantised, and to what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from wavecast import dtypes
from wavecast.arch import Device
from wavecast.errors import UnknownName, UsageError

NARROW: Final = ("fp8", "int8", "mxfp4", "nvfp4", "int4")
FORMATS: Final = ("bf16", "fp16", *NARROW)


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """Weights of `weights`, multiplied with activations of `activations`, scaled by `scaling` (one
    of `model.ops.gemm.formats.SCALINGS`)."""

    weights: str
    activations: str
    scaling: str

    @property
    def bytes(self) -> float:
        """Bytes of an element with its scales."""
        found = dtypes.lookup(self.weights)
        block = 4 / (128 * 128) if self.scaling == "block" else 0.0
        return found.bytes + (found.scale_bytes or block)

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


def precision(
    config: Mapping[str, Any], *, dtype: str = "", cache: str = "", attention: str = ""
) -> Precision:
    """The formats that `dtype` names for all projections, else those of the checkpoint's
    `quantization_config`, else bf16. Embedding and output projection keep 16 bits.

    `cache` is the dtype of keys and values (fp8, bf16, fp16; "": bf16), `attention` the format of
    the projections of attention where it differs from `dtype`.

    Raises UnknownName for a format, UsageError for a `quantization_config` nobody knows.
    """
    found = _given(dtype) if dtype else _of_checkpoint(config)
    if attention:
        found = replace(found, attention=weight_format(attention))
    if cache and cache not in ("bf16", "fp16", "fp8"):
        raise UnknownName("dtype of keys and values", cache, ("bf16", "fp16", "fp8"))
    return replace(found, cache=cache or found.cache)


def on_device(formats: Precision, device: Device) -> tuple[Precision, tuple[str, ...]]:
    """The formats as a device multiplies them, and notes: where it has no matrix rate for a format,
    engines widen the weights to bf16 in the kernel."""
    notes: dict[str, None] = {}

    def widened(form: WeightFormat) -> WeightFormat:
        if not form.quantised_activations:
            return form
        if device.peak_flops(dtypes.lookup(form.activations).rate) is None:
            why = f"{device.id} does not multiply {form.activations}: weights are widened to bf16"
            notes[why] = None
            return WeightFormat(form.weights, "bf16", "none")
        return form

    roles = ("attention", "dense", "experts", "head")
    found = replace(formats, **{role: widened(getattr(formats, role)) for role in roles})
    return found, tuple(notes)


_EXPERTS: Final = {"fp4": WeightFormat("mxfp4", "fp8", "mx"), "fp8": None}
"""`expert_dtype` of a checkpoint of fp8 (DeepSeek-V4): weights of routed experts in fp4 with a
scale per 32 are multiplied with fp8; None: as the other weights."""


def _given(dtype: str) -> Precision:
    wide = weight_format("bf16")
    every = weight_format(dtype)
    return Precision(every, every, every, wide, "bf16")


def _of_checkpoint(config: Mapping[str, Any]) -> Precision:
    wide = weight_format("bf16")
    quantisation = config.get("quantization_config")
    if not quantisation:
        return Precision(wide, wide, wide, wide, "bf16")
    if not isinstance(quantisation, Mapping):
        raise UsageError(f"quantization_config is {quantisation!r}, not an object")
    method = quantisation.get("quant_method")
    if method == "fp8":
        scaling = "block" if quantisation.get("weight_block_size") else "token"
        narrow = weight_format("fp8", scaling)
    elif method == "mxfp4":
        narrow = WeightFormat("mxfp4", "bf16", "mx")
    elif method in ("awq", "gptq"):
        narrow = weight_format("int4")
    else:
        raise UsageError(
            f"quantization_config has quant_method {method!r}; known: fp8, mxfp4, awq, gptq",
            hint="--dtype names the format of the weights",
        )
    experts = narrow
    stored = quantisation.get("expert_dtype", config.get("expert_dtype"))
    if stored is not None:
        if not isinstance(stored, str) or stored not in _EXPERTS:
            raise UsageError(
                f"expert_dtype is {stored!r}; known: {', '.join(_EXPERTS)}",
                hint="--dtype names the format of the weights",
            )
        experts = _EXPERTS[stored] or narrow
    excluded = quantisation.get("modules_to_not_convert") or []
    if not isinstance(excluded, list):
        raise UsageError(f"modules_to_not_convert is {excluded!r}, not a list")
    kept = " ".join(map(str, excluded))
    return Precision(
        attention=wide if "attn" in kept else narrow,
        dense=wide if "mlp" in kept.replace("mlp.router", "").replace("mlp.gate", "") else narrow,
        experts=experts,
        head=wide,
        cache="bf16",
    )


__all__ = ["FORMATS", "Precision", "WeightFormat", "on_device", "precision", "weight_format"]
