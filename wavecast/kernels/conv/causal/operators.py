"""What the operators over causal convolutions are tested with and judged on."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels.conv.causal.backward import (
    BACKWARD,
    causal_conv1d_backward,
    causal_conv1d_backward_reference,
    gradient,
    setup,
)
from wavecast.kernels.conv.causal.forward import (
    FORWARD,
    causal_conv1d,
    causal_conv1d_reference,
)
from wavecast.kernels.conv.causal.step import (
    UPDATE,
    causal_conv1d_update,
    causal_conv1d_update_reference,
)
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator, Tolerance
from wavecast.model.bounds import Work


def _inputs(
    make: Make,
    batch: int,
    channels: int,
    length: int,
    taps: int,
    dtype: str,
    layout: str = "first",
    bias: bool = True,
    state: bool = True,
    activation: str = "silu",
) -> dict[str, Any]:
    if layout == "last":
        x = make.normal((batch, length, channels), dtype).transpose(1, 2)
    else:
        x = make.normal((batch, channels, length), dtype)
    return {
        "x": x,
        "weight": make.normal((channels, taps), dtype, 0.5),
        "bias": make.normal((channels,), dtype) if bias else None,
        "state": make.normal((batch, channels, taps - 1), dtype) if state else None,
        "activation": activation,
    }


def _backward_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    given = _inputs(make, **sizes)
    batch, channels, length = given["x"].shape
    last = sizes.get("layout") == "last"
    dy = make.normal((batch, length, channels) if last else given["x"].shape, sizes["dtype"])
    dy = dy.transpose(1, 2) if last else dy
    shape = (batch, channels, sizes["taps"] - 1)
    return {"dy": dy, "dnext": make.normal(shape, sizes["dtype"]), **given}


def _update_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    given = _inputs(make, **{**sizes, "length": 1, "state": True})
    given["x"] = given["x"].squeeze(2)
    return {name: given[name] for name in ("x", "state", "weight", "bias", "activation")}


def _work(kind: str) -> Any:
    def work(
        batch: int, channels: int, taps: int, dtype: str, length: int = 1, **flags: Any
    ) -> Work:
        size = getattr(torch, dtype).itemsize
        many = batch * channels * length
        kept = batch * channels * (taps - 1) * size
        weight = channels * (taps + bool(flags.get("bias", True))) * size
        held = kept if flags.get("state", True) else 0
        if kind == "backward":
            flops = {"vector_fp32": many * (6.0 * taps + 8)}
            read, written = 2 * many * size + weight + held + kept, many * size + weight + held
        else:
            flops = {"vector_fp32": many * (2.0 * taps + 4)}
            read, written = many * size + weight + held, many * size + kept
        return Work(flops, read, written, "formula", "formula")

    return work


_CASES: tuple[dict[str, Any], ...] = (
    {"batch": 2, "channels": 3, "length": 5, "taps": 3, "dtype": "float32"},
    {"batch": 2, "channels": 5, "length": 1300, "taps": 4, "dtype": "bfloat16"},
    {
        "batch": 1,
        "channels": 70,
        "length": 75,
        "taps": 4,
        "dtype": "float16",
        "layout": "last",
        "bias": False,
        "state": False,
    },
)
_THOROUGH: tuple[dict[str, Any], ...] = (
    {"batch": 1, "channels": 6, "length": 2, "taps": 4, "dtype": "float16"},
    {
        "batch": 3,
        "channels": 9,
        "length": 40,
        "taps": 2,
        "dtype": "float32",
        "activation": "none",
        "bias": False,
    },
    {
        "batch": 2,
        "channels": 72,
        "length": 33,
        "taps": 5,
        "dtype": "bfloat16",
        "layout": "last",
        "activation": "none",
    },
    {"batch": 2, "channels": 5, "length": 1040, "taps": 4, "dtype": "float16"},
    {
        "batch": 1,
        "channels": 3,
        "length": 152,
        "taps": 9,
        "dtype": "float32",
        "state": False,
        "bias": False,
        "activation": "none",
    },
    {"batch": 1, "channels": 7, "length": 300, "taps": 1, "dtype": "float16", "state": False},
)
_UPDATES: tuple[dict[str, Any], ...] = (
    {"batch": 3, "channels": 300, "taps": 4, "dtype": "bfloat16"},
    {"batch": 2, "channels": 17, "taps": 3, "dtype": "float32", "activation": "none"},
    {"batch": 1, "channels": 130, "taps": 2, "dtype": "float16", "bias": False},
)
_SHAPES: tuple[dict[str, Any], ...] = (
    {"batch": 1, "channels": 4096, "length": 8192, "taps": 4, "dtype": "bfloat16", "state": False},
    {
        "batch": 1,
        "channels": 4096,
        "length": 8192,
        "taps": 4,
        "dtype": "bfloat16",
        "layout": "last",
        "state": False,
    },
)
_TOLERANCE = Tolerance(ulps=1.0, accumulated=1e-5)

OPERATORS = (
    Operator(
        name="causal_conv1d",
        summary="causal convolution along time, one short filter per channel",
        call=causal_conv1d,
        reference=causal_conv1d_reference,
        inputs=_inputs,
        work=_work("forward"),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(FORWARD,),
        tolerance=_TOLERANCE,
        gradient=Gradient(setup, gradient),
    ),
    Operator(
        name="causal_conv1d_update",
        summary="one step of causal_conv1d, which moves its state on in place",
        call=causal_conv1d_update,
        reference=causal_conv1d_update_reference,
        inputs=_update_inputs,
        work=_work("update"),
        cases=_UPDATES,
        shapes=({"batch": 256, "channels": 4096, "taps": 4, "dtype": "bfloat16"},),
        spaces=(UPDATE,),
        tolerance=_TOLERANCE,
        mutates=("state",),
    ),
    Operator(
        name="causal_conv1d_backward",
        summary="gradients of causal_conv1d",
        call=causal_conv1d_backward,
        reference=causal_conv1d_backward_reference,
        gradient=by_reference(causal_conv1d_backward_reference),
        inputs=_backward_inputs,
        work=_work("backward"),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(BACKWARD,),
        tolerance=Tolerance(ulps=1.0, accumulated=1e-4),
    ),
)
