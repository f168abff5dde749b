"""Keras layers whose forward and backward passes are operators of the kernel library.

Weights have Keras's conventions: kernels are [inputs, outputs]. Shapes of inputs must be known when
a function is traced: give `keras.Input` a `batch_size`, or run eagerly.
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false, reportAttributeAccessIssue=false
# pyright: reportIncompatibleMethodOverride=false, reportGeneralTypeIssues=false
# TensorFlow is optional; a checker without it takes this package for it.

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import keras
import tensorflow as tf

from wavecast.errors import UsageError
from wavecast.frameworks.tensorflow.functions import function

_operator = cache(function)


class _Rebuilt(keras.layers.Layer):
    """A layer that `settings`, names of the constructor's arguments, rebuild."""

    settings: ClassVar[tuple[str, ...]] = ()

    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {**super().get_config(), **{name: getattr(self, name) for name in self.settings}}

    def weight(self, name: str, *shape: int, initializer: str = "glorot_uniform") -> Any:
        """A trainable weight."""
        return self.add_weight(shape=shape, initializer=initializer, name=name)


class _SameShape(_Rebuilt):
    """A layer whose output has the shape of its input."""

    def compute_output_shape(self, input_shape: Any) -> Any:
        """That of the input."""
        return input_shape


class KerasRMSNorm(_SameShape):
    """`rms_norm` of the last dimension with a trainable scale."""

    settings = ("epsilon",)

    def __init__(self, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        """The scale [columns]."""
        self.scale = self.weight("scale", input_shape[-1], initializer="ones")

    def call(self, x: Any) -> Any:
        """`x` [..., columns]. Raises ArgumentError."""
        return _operator("rms_norm")(x, _cast(self.scale, x), self.epsilon)


class KerasLayerNorm(_SameShape):
    """`layer_norm` of the last dimension with a trainable scale and bias."""

    settings = ("epsilon",)

    def __init__(self, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        """The scale and the bias [columns]."""
        self.scale = self.weight("scale", input_shape[-1], initializer="ones")
        self.bias = self.weight("bias", input_shape[-1], initializer="zeros")

    def call(self, x: Any) -> Any:
        """`x` [..., columns]. Raises ArgumentError."""
        return _operator("layer_norm")(x, _cast(self.scale, x), _cast(self.bias, x), self.epsilon)


class KerasAttention(_SameShape):
    """Self-attention with projections: `matmul`, `attention`, `matmul`. `heads` of `head_dim` share
    `kv_heads` heads of keys and values (default: as many)."""

    settings = ("heads", "head_dim", "kv_heads", "causal")

    def __init__(
        self, heads: int, head_dim: int, kv_heads: int = 0, causal: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.heads, self.head_dim, self.causal = heads, head_dim, causal
        self.kv_heads = kv_heads or heads
        if heads % self.kv_heads:
            raise UsageError(f"{heads} heads do not divide among {self.kv_heads} of keys")

    def build(self, input_shape: Any) -> None:
        """Kernels of queries, keys and values together, and of the output."""
        hidden = input_shape[-1]
        width = (self.heads + 2 * self.kv_heads) * self.head_dim
        self.qkv = self.weight("qkv", hidden, width)
        self.out = self.weight("out", self.heads * self.head_dim, hidden)

    def call(self, x: Any) -> Any:
        """`x` [batch, tokens, hidden]. Raises ArgumentError."""
        batch, tokens, _ = x.shape
        counts = [self.heads, self.kv_heads, self.kv_heads]
        joined = _operator("matmul")(x, _cast(self.qkv, x))
        parts = tf.split(joined, [count * self.head_dim for count in counts], axis=-1)
        q, k, v = (
            tf.reshape(part, (batch, tokens, count, self.head_dim))
            for part, count in zip(parts, counts, strict=True)
        )
        output, _ = _operator("attention")(q, k, v, self.causal)
        merged = tf.reshape(output, (batch, tokens, self.heads * self.head_dim))
        return _operator("matmul")(merged, _cast(self.out, x))


class KerasGatedMLP(_SameShape):
    """`matmul`, `silu_mul`, `matmul`: down(silu(gate(x)) · up(x)) with `units` in between."""

    settings = ("units",)

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape: Any) -> None:
        """Kernels of gate and up together, and of down."""
        hidden = input_shape[-1]
        self.gate_up = self.weight("gate_up", hidden, 2 * self.units)
        self.down = self.weight("down", self.units, hidden)

    def call(self, x: Any) -> Any:
        """`x` [..., hidden]. Raises ArgumentError."""
        inner = _operator("silu_mul")(_operator("matmul")(x, _cast(self.gate_up, x)))
        return _operator("matmul")(inner, _cast(self.down, x))


class KerasExperts(_SameShape):
    """A mixture of gated experts: `matmul` for the router, `moe_route`, `moe_experts`. Each token
    goes to `top_k` of `experts` experts of `units`."""

    settings = ("experts", "top_k", "units", "scoring")

    def __init__(
        self, experts: int, top_k: int, units: int, scoring: str = "softmax", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if not 1 <= top_k <= experts:
            raise UsageError(f"top_k is {top_k} of {experts} experts")
        self.experts, self.top_k, self.units, self.scoring = experts, top_k, units, scoring

    def build(self, input_shape: Any) -> None:
        """The router [hidden, experts], and the experts' weights as `moe_experts` has them."""
        hidden = input_shape[-1]
        self.router = self.weight("router", hidden, self.experts)
        self.gate_up = self.weight("gate_up", self.experts, 2 * self.units, hidden)
        self.down = self.weight("down", self.experts, hidden, self.units)

    def call(self, x: Any) -> Any:
        """`x` [..., hidden]. Raises ArgumentError."""
        rows = tf.reshape(x, (-1, x.shape[-1]))
        logits = _operator("matmul")(rows, _cast(self.router, x))
        weights, indices = _operator("moe_route")(logits, self.top_k, self.scoring)
        products = (_cast(self.gate_up, x), _cast(self.down, x))
        output = _operator("moe_experts")(rows, weights, indices, *products)
        return tf.reshape(output, x.shape)


class KerasConvolution(_Rebuilt):
    """`convolution` of one, two or three spatial dimensions, the length of `kernel_size`, with
    channels last. Arguments are those of `keras.layers.Conv2D`; sizes are one number per spatial
    dimension or one for all. `padding` is `valid` or `same`; `activation` is none, relu, silu or
    gelu."""

    settings = (
        "filters", "kernel_size", "strides", "padding", "dilation_rate", "groups", "activation",
    )  # fmt: skip

    def __init__(
        self,
        filters: int,
        kernel_size: Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str = "valid",
        dilation_rate: int | Sequence[int] = 1,
        groups: int = 1,
        activation: str = "none",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.filters, self.groups, self.activation = filters, groups, activation
        self.kernel_size, self.padding = tuple(kernel_size), padding
        if not 1 <= len(self.kernel_size) <= 3:
            raise UsageError(f"kernel_size {self.kernel_size}: one to three numbers")
        if padding not in ("valid", "same"):
            raise UsageError(f"padding is valid or same, not {padding!r}")
        if filters % groups:
            raise UsageError(f"{filters} filters do not divide among {groups} groups")
        self.strides = self._sizes("strides", strides)
        self.dilation_rate = self._sizes("dilation_rate", dilation_rate)

    def build(self, input_shape: Any) -> None:
        """The kernel [*kernel_size, channels / groups, filters] and the bias [filters]."""
        channels = input_shape[-1]
        if channels % self.groups:
            raise UsageError(f"{channels} channels do not divide among {self.groups} groups")
        shape = (*self.kernel_size, channels // self.groups, self.filters)
        self.kernel = self.weight("kernel", *shape)
        self.bias = self.weight("bias", self.filters, initializer="zeros")

    def compute_output_shape(self, input_shape: Any) -> Any:
        """[batch, …, filters]."""
        spans = zip(input_shape[1:-1], self._pad_widths(input_shape), strict=True)
        extents = [
            (size + sum(padded) - dilation * (kernel - 1) - 1) // stride + 1
            for (size, padded), kernel, stride, dilation in zip(
                spans, self.kernel_size, self.strides, self.dilation_rate, strict=True
            )
        ]
        return (input_shape[0], *extents, self.filters)

    def call(self, x: Any) -> Any:
        """`x` [batch, …, channels]. Raises ArgumentError."""
        padded = self._pad_widths(x.shape)
        uneven = [(0, after - before) for before, after in padded]
        if any(after for _, after in uneven):
            x = tf.pad(x, [(0, 0), *uneven, (0, 0)])
        last = len(self.kernel_size) + 1
        inner = range(1, last)
        kernel = tf.transpose(_cast(self.kernel, x), (last, last - 1, *range(last - 1)))
        output = _operator("convolution")(
            tf.transpose(x, (0, last, *inner)), kernel, _cast(self.bias, x),
            list(self.strides), [before for before, _ in padded], list(self.dilation_rate),
            self.groups, self.activation,
        )  # fmt: skip
        return tf.transpose(output, (0, *range(2, last + 1), 1))

    def _pad_widths(self, shape: Any) -> list[tuple[int, int]]:
        """Zeros before and after each spatial dimension of an input, as TensorFlow adds them: of an
        odd number the last is after."""
        if self.padding == "valid":
            return [(0, 0)] * len(self.kernel_size)
        sizes = zip(shape[1:-1], self.kernel_size, self.strides, self.dilation_rate, strict=True)
        padding = []
        for size, kernel, stride, dilation in sizes:
            read = (-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1
            zeros = max(read - size, 0)
            padding.append((zeros // 2, zeros - zeros // 2))
        return padding

    def _sizes(self, name: str, value: int | Sequence[int]) -> tuple[int, ...]:
        sizes = (value,) * len(self.kernel_size) if isinstance(value, int) else tuple(value)
        if len(sizes) != len(self.kernel_size):
            raise UsageError(f"{name} {sizes}: one number, or {len(self.kernel_size)}")
        return sizes


def _cast(weight: Any, x: Any) -> Any:
    """A weight in the dtype of the input, as a tensor."""
    return tf.cast(tf.convert_to_tensor(weight), x.dtype)


__all__ = [
    "KerasAttention",
    "KerasConvolution",
    "KerasExperts",
    "KerasGatedMLP",
    "KerasLayerNorm",
    "KerasRMSNorm",
]
