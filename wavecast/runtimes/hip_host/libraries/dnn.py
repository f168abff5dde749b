"""MIOpen: convolution, pooling, activations, softmax, normalisation and elementwise operations
(`miopen/miopen.h`)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from wavecast.runtimes.hip_host.libraries.blas_matrices import scale_and_add
from wavecast.runtimes.hip_host.libraries.call import CalledFunction, Function, InvalidCall
from wavecast.runtimes.hip_host.libraries.elements import Element, of_type

_TYPES: Final = {0: 2, 1: 0, 2: 10, 3: 3, 5: 14, 6: 1}
"""`miopenDataType_t` -> `hipDataType`."""
_MOST: Final = 5
"""Dimensions of a descriptor."""
_TRANSPOSED: Final = 1
"""miopenTranspose."""
_LOGARITHM: Final = 2
"""MIOPEN_SOFTMAX_LOG."""
_MAX, _AVERAGE = 0, 1
"""miopenPoolingMax and miopenPoolingAverage, which counts no padding."""


@dataclass
class _Tensor:
    """A tensor in memory: `values` as they are stored, writable."""

    values: np.ndarray
    element: Element

    def load(self) -> np.ndarray:
        """The values, to compute with in float32 or float64."""
        kind = np.float64 if self.element.computed == np.float64 else np.float32
        return self.element.load(self.values).astype(kind, copy=False)

    def store(self, alpha: complex, result: np.ndarray, beta: complex) -> None:
        """Write alpha result + beta values."""
        if result.shape != self.values.shape:
            raise InvalidCall
        total = scale_and_add(self.values, self.element, alpha, result, beta)
        self.element.store(self.values, total)


@dataclass
class _Window:
    """The descriptor of a convolution or of pooling."""

    mode: int
    groups: int
    sizes: list[int]
    padding: list[int]
    stride: list[int]
    dilation: list[int]


def _tensor(call: CalledFunction) -> _Tensor:
    kind, count, *numbers = call.numbers(2 + 2 * _MOST)
    sizes, strides = numbers[:count], numbers[_MOST : _MOST + count]
    address = call.number()
    if kind not in _TYPES:
        raise InvalidCall
    element = of_type(_TYPES[kind])
    reach = 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    data = call.array(address, reach if min(sizes) else 0, element)
    steps = [step * element.stored.itemsize for step in strides]
    return _Tensor(np.lib.stride_tricks.as_strided(data, sizes, steps), element)


def _window(call: CalledFunction) -> _Window:
    mode, spatial, groups, *numbers = call.numbers(15)
    parts = [numbers[first : first + spatial] for first in range(0, 12, 3)]
    return _Window(mode, groups, *parts)


def _scale(call: CalledFunction, wide: bool) -> float:
    """A scalar: a double for tensors of doubles, else a float."""
    return float(np.real(call.scalar(of_type(1 if wide else 0))))


def _is_wide(call: CalledFunction, count: int) -> bool:
    """Whether the last of the tensors of a call is of doubles: `count` words before the end."""
    return call.words[len(call.words) - count] == 6


_RESULT: Final = 3 + 2 * _MOST
"""Words of the last tensor and its address."""


def _patches(x: np.ndarray, sizes: list[int], window: _Window) -> np.ndarray:
    """[images, channels, positions…, window…]: what each position of a window sees."""
    pads = [(0, 0), (0, 0), *((pad, pad) for pad in window.padding)]
    padded = np.pad(x, pads)
    reach = [d * (n - 1) + 1 for n, d in zip(sizes, window.dilation, strict=True)]
    axes = tuple(range(2, x.ndim))
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=axes)
    every = [slice(None)] * 2 + [slice(None, None, step) for step in window.stride]
    return seen[(*every, *(slice(None, None, step) for step in window.dilation))]


def _forward(x: np.ndarray, w: np.ndarray, window: _Window) -> np.ndarray:
    """The convolution of x [n, c, …] by w [k, c / groups, …]."""
    groups = window.groups
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise InvalidCall
    patches = _patches(x, [*w.shape[2:]], window)
    spatial = x.ndim - 2
    parts = []
    for group_x, group_w in zip(
        np.split(patches, groups, axis=1), np.split(w, groups), strict=True
    ):
        axes = [1, *range(2 + spatial, 2 + 2 * spatial)], [*range(1, 2 + spatial)]
        parts.append(np.moveaxis(np.tensordot(group_x, group_w, axes), -1, 1))
    return np.concatenate(parts, axis=1)


def _backward(dy: np.ndarray, w: np.ndarray, window: _Window, shape: tuple[int, ...]) -> np.ndarray:
    """The gradient of the input [n, c, …] of a convolution, of that of its result."""
    groups = window.groups
    if dy.shape[1] != w.shape[0] or shape[1] != w.shape[1] * groups:
        raise InvalidCall
    padded = [n + 2 * pad for n, pad in zip(shape[2:], window.padding, strict=True)]
    dx = np.zeros((*shape[:2], *padded), dy.dtype)
    channels = w.shape[1]
    for group, (part, weights) in enumerate(
        zip(np.split(dy, groups, axis=1), np.split(w, groups), strict=True)
    ):
        to = dx[:, group * channels : (group + 1) * channels]
        for offset in product(*map(range, w.shape[2:])):
            at = tuple(
                slice(o * d, o * d + step * (n - 1) + 1, step)
                for o, d, step, n in zip(
                    offset, window.dilation, window.stride, dy.shape[2:], strict=True
                )
            )
            term = np.tensordot(part, weights[(slice(None), slice(None), *offset)], ([1], [0]))
            to[(slice(None), slice(None), *at)] += np.moveaxis(term, -1, 1)
    inner = (slice(pad, pad + n) for n, pad in zip(shape[2:], window.padding, strict=True))
    return dx[(slice(None), slice(None), *inner)]


def _weights(dy: np.ndarray, x: np.ndarray, window: _Window, shape: tuple[int, ...]) -> np.ndarray:
    """The gradient of the weights [k, c / groups, …] of a convolution."""
    groups, spatial = window.groups, x.ndim - 2
    if dy.shape[1] != shape[0] or x.shape[1] != shape[1] * groups:
        raise InvalidCall
    patches = _patches(x, [*shape[2:]], window)
    axes = [0, *range(2, 2 + spatial)]
    parts = zip(np.split(dy, groups, axis=1), np.split(patches, groups, axis=1), strict=True)
    return np.concatenate([np.tensordot(a, b, (axes, axes)) for a, b in parts])


def convolve(call: CalledFunction) -> None:
    """y = alpha (x * w) + beta y; of a transposed convolution what its gradient is."""
    wide = _is_wide(call, _RESULT)
    alpha = _scale(call, wide)
    x, w, window = _tensor(call), _tensor(call), _window(call)
    beta = _scale(call, wide)
    y = _tensor(call)
    if window.mode == _TRANSPOSED:
        result = _backward(x.load(), w.load(), window, y.values.shape)
    else:
        result = _forward(x.load(), w.load(), window)
    y.store(alpha, result, beta)


def convolve_data(call: CalledFunction) -> None:
    """dx = alpha (gradient of x) + beta dx."""
    wide = _is_wide(call, _RESULT)
    alpha = _scale(call, wide)
    dy, w, window = _tensor(call), _tensor(call), _window(call)
    beta = _scale(call, wide)
    dx = _tensor(call)
    if window.mode == _TRANSPOSED:
        result = _forward(dy.load(), w.load(), window)
    else:
        result = _backward(dy.load(), w.load(), window, dx.values.shape)
    dx.store(alpha, result, beta)


def convolve_weights(call: CalledFunction) -> None:
    """dw = alpha (gradient of w) + beta dw."""
    wide = _is_wide(call, _RESULT)
    alpha = _scale(call, wide)
    dy, x, window = _tensor(call), _tensor(call), _window(call)
    beta = _scale(call, wide)
    dw = _tensor(call)
    pair = (x, dy) if window.mode == _TRANSPOSED else (dy, x)
    dw.store(alpha, _weights(pair[0].load(), pair[1].load(), window, dw.values.shape), beta)


def pool(call: CalledFunction) -> None:
    """y = alpha (the largest, or the mean, of each window of x) + beta y."""
    wide = _is_wide(call, _RESULT)
    window = _window(call)
    alpha = _scale(call, wide)
    x = _tensor(call)
    beta = _scale(call, wide)
    y = _tensor(call)
    values = x.load()
    axes = tuple(range(-len(window.sizes), 0))
    if window.mode == _MAX:
        in_tensor = _patches(np.ones_like(values), window.sizes, window) > 0
        seen = _patches(values, window.sizes, window)
        result = np.where(in_tensor, seen, -np.inf).max(axis=axes)
    else:
        total = _patches(values, window.sizes, window).sum(axis=axes)
        if window.mode == _AVERAGE:
            counts = _patches(np.ones_like(values), window.sizes, window).sum(axis=axes)
        else:
            counts = np.full_like(total, np.prod(window.sizes))
        result = total / counts
    y.store(alpha, result.astype(values.dtype), beta)


def _mapped(call: CalledFunction, wide: bool) -> tuple[float, _Tensor, float, _Tensor]:
    alpha = _scale(call, wide)
    x = _tensor(call)
    return alpha, x, _scale(call, wide), _tensor(call)


def activate(call: CalledFunction) -> None:
    """y = alpha f(x) + beta y."""
    wide = _is_wide(call, _RESULT)
    mode, a, b, g = call.number(), call.real(), call.real(), call.real()
    alpha, x, beta, y = _mapped(call, wide)
    v = x.load()
    kind = v.dtype.type
    functions = (
        lambda: v,
        lambda: 1 / (1 + np.exp(-v)),
        lambda: kind(b) * np.tanh(kind(a) * v),
        lambda: np.maximum(v, 0),
        lambda: np.logaddexp(v, 0),
        lambda: np.abs(v),
        lambda: (kind(a) + kind(b) * v) ** kind(g),
        lambda: np.clip(v, 0, kind(a)),
        lambda: np.where(v > 0, v, kind(a) * v),
        lambda: np.where(v > 0, v, kind(a) * np.expm1(np.minimum(v, 0))),
    )
    y.store(alpha, functions[mode]().astype(v.dtype), beta)


def softmax(call: CalledFunction) -> None:
    """y = alpha softmax(x) + beta y, over the channels of each position or over each image."""
    wide = _is_wide(call, _RESULT)
    algorithm, over_channels = call.numbers(2)
    alpha, x, beta, y = _mapped(call, wide)
    values = x.load()
    axes = (1,) if over_channels else tuple(range(1, values.ndim))
    shifted = values - values.max(axis=axes, keepdims=True)
    total = np.exp(shifted).sum(axis=axes, keepdims=True)
    result = shifted - np.log(total) if algorithm == _LOGARITHM else np.exp(shifted) / total
    y.store(alpha, result, beta)


def normalize(call: CalledFunction) -> None:
    """y = alpha (scale (x - mean) / sqrt(variance + epsilon) + bias) + beta y."""
    wide = _is_wide(call, _RESULT)
    call.number()  # the parameters have a size per channel, or per element
    epsilon = call.real()
    described = call.numbers(2 + 2 * _MOST)
    addresses = call.numbers(4)
    alpha, x, beta, y = _mapped(call, wide)
    scale, bias, mean, variance = (
        _tensor(CalledFunction(call.name, [*described, address], call.ranges)).load()
        for address in addresses
    )
    values = x.load()
    result = (values - mean) / np.sqrt(variance + values.dtype.type(epsilon)) * scale + bias
    y.store(alpha, result.astype(values.dtype), beta)


def combine(call: CalledFunction) -> None:
    """c = op(alpha1 a, alpha2 b) + beta c; b has a size of 1 where it is the same for all of a."""
    wide = _is_wide(call, _RESULT)
    operation = call.number()
    first, second = _scale(call, wide), _scale(call, wide)
    a, b = _tensor(call), _tensor(call)
    beta = _scale(call, wide)
    c = _tensor(call)
    x, other = a.load(), b.load()
    function = (np.add, np.multiply, np.minimum, np.maximum)[operation]
    c.store(1, function(x.dtype.type(first) * x, x.dtype.type(second) * other), beta)


def fill(call: CalledFunction) -> None:
    """y = alpha."""
    alpha = _scale(call, _is_wide(call, _RESULT))
    y = _tensor(call)
    y.store(1, np.full(y.values.shape, alpha, y.load().dtype), 0)


def scale(call: CalledFunction) -> None:
    """y = alpha y."""
    alpha = _scale(call, _is_wide(call, _RESULT))
    y = _tensor(call)
    y.store(alpha, y.load(), 0)


def sum_(call: CalledFunction) -> None:
    """db = alpha (sums of dy) + beta db, over the dimensions that db has not."""
    wide = _is_wide(call, _RESULT)
    alpha, dy, beta, db = _mapped(call, wide)
    axes = tuple(axis for axis, size in enumerate(db.values.shape) if size == 1)
    db.store(alpha, dy.load().sum(axis=axes, keepdims=True), beta)


FUNCTIONS: dict[str, Function] = {
    function.__name__.rstrip("_"): function
    for function in (
        convolve, convolve_data, convolve_weights, pool, activate, softmax, normalize, combine,
        fill, scale, sum_,
    )
}  # fmt: skip
"""By the name of the function without library."""

__all__ = ["FUNCTIONS"]
