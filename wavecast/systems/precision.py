"""The number formats of a model: those of its checkpoint, or the ones that are asked for."""

from __future__ import annotations

from dataclasses import replace

from wavecast.errors import UnknownName
from wavecast.systems.checkpoint_formats import of_checkpoint
from wavecast.systems.huggingface import ModelConfig
from wavecast.systems.weight_formats import FORMATS, Precision, WeightFormat, weight_format


def precision(
    config: ModelConfig, *, dtype: str = "", cache: str = "", attention: str = ""
) -> Precision:
    """The formats that `dtype` names for all projections, else those of the checkpoint's
    `quantization_config`, else bf16. Embedding and output projection keep 16 bits.

    `cache` is the dtype of keys and values (fp8, bf16, fp16; "": the checkpoint's), `attention` the
    format of the projections of attention where it differs from `dtype`.

    Raises UnknownName for a format, UsageError for a `quantization_config` nobody knows.
    """
    formats = _from_dtype(dtype) if dtype else of_checkpoint(config)
    if attention:
        formats = replace(formats, attention=weight_format(attention))
    if cache and cache not in ("bf16", "fp16", "fp8"):
        raise UnknownName("dtype of keys and values", cache, ("bf16", "fp16", "fp8"))
    return replace(formats, cache=cache or formats.cache)


def _from_dtype(dtype: str) -> Precision:
    wide = weight_format("bf16")
    every = weight_format(dtype)
    return Precision(every, every, every, wide, "bf16")


__all__ = ["FORMATS", "Precision", "WeightFormat", "precision", "weight_format"]
