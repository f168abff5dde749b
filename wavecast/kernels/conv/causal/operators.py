"""What the operators over causal convolutions are tested with and judged on."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import derivative, describe
from wavecast.kernels.conv.causal import backward, forward, step
from wavecast.kernels.describe import Make, Operator, Signature, Sizes, Tolerance


def _layout(
    make: Make, shape: tuple[int, ...], dtype: torch.dtype, sizes: Mapping[str, Any]
) -> Tensor:
    """A tensor [batch, channels, length], with channels innermost for the layout `last`."""
    if sizes.get("layout") != "last":
        return make.normal(shape, dtype)
    batch, channels, length = shape
    return make.normal((batch, length, channels), dtype).transpose(1, 2)


def _inputs(signature: Signature) -> Callable[..., dict[str, Any]]:
    make_inputs = signature.inputs(weight=describe.normal(0.5), x=_layout, dy=_layout)

    def inputs(make: Make, **sizes: Any) -> dict[str, Any]:
        arguments = make_inputs(make, **sizes)
        arguments.pop("layout", None)
        return arguments

    return inputs


def _case(batch: int, channels: int, length: int, taps: int, dtype: str, **more: Any) -> Sizes:
    sizes = {"batch": batch, "channels": channels, "length": length, "taps": taps}
    return {**sizes, "dtype": dtype, **more}


def _flops(taps: float, each: float) -> Callable[..., Mapping[str, float]]:
    """Vector operations: `taps` per element and tap, and `each` per element."""

    def flops(**sizes: Any) -> Mapping[str, float]:
        count = sizes["batch"] * sizes["channels"] * sizes.get("length", 1)
        return {"vector_fp32": count * (taps * sizes["taps"] + each)}

    return flops


_TOLERANCE = Tolerance(ulps=1.0, accumulated=1e-5)

CONVOLUTION = Operator(
    summary="causal convolution along time, one short filter per channel",
    call=forward.causal_conv1d,
    tensors=forward.TENSORS,
    inputs=_inputs(forward.TENSORS),
    flops=_flops(2.0, 4.0),
    cases=(
        _case(2, 3, 5, 3, "float32"),
        _case(2, 5, 1300, 4, "bfloat16"),
        _case(1, 70, 75, 4, "float16", layout="last", bias=False, state=False),
    ),
    thorough=(
        _case(1, 6, 2, 4, "float16"),
        _case(3, 9, 40, 2, "float32", activation="none", bias=False),
        _case(2, 72, 33, 5, "bfloat16", layout="last", activation="none"),
        _case(2, 5, 1040, 4, "float16"),
        _case(1, 3, 152, 9, "float32", state=False, bias=False, activation="none"),
        _case(1, 7, 300, 1, "float16", state=False),
    ),
    shapes=(
        _case(1, 4096, 8192, 4, "bfloat16", state=False),
        _case(1, 4096, 8192, 4, "bfloat16", layout="last", state=False),
    ),
    tolerance=_TOLERANCE,
    gradient=derivative.by_operator(
        forward.causal_conv1d,
        "causal_conv1d_backward",
        grads=("dy", "dnext"),
        saved=("x", "weight", "bias", "state", "activation"),
        of=("x", "weight", "bias", "state"),
    ),
)
UPDATE = Operator(
    summary="one step of causal_conv1d, which moves its state on in place",
    call=step.causal_conv1d_update,
    tensors=step.TENSORS,
    inputs=_inputs(step.TENSORS),
    flops=_flops(2.0, 4.0),
    cases=(
        {"batch": 3, "channels": 300, "taps": 4, "dtype": "bfloat16"},
        {"batch": 2, "channels": 17, "taps": 3, "dtype": "float32", "activation": "none"},
        {"batch": 1, "channels": 130, "taps": 2, "dtype": "float16", "bias": False},
    ),
    shapes=({"batch": 256, "channels": 4096, "taps": 4, "dtype": "bfloat16"},),
    tolerance=_TOLERANCE,
    mutates=("state",),
)
BACKWARD = derivative.operator(
    CONVOLUTION,
    backward.causal_conv1d_backward,
    tensors=backward.TENSORS,
    inputs=_inputs(backward.TENSORS),
    flops=_flops(6.0, 8.0),
    tolerance=Tolerance(ulps=1.0, accumulated=1e-4),
)
OPERATORS = (CONVOLUTION, UPDATE, BACKWARD)
