"""The operators over convolutions."""

from __future__ import annotations

from wavecast.kernels.conv import combine, depthwise, implicit, layout, weights
from wavecast.kernels.conv.convolution import (
    conv2d,
    conv2d_reference,
    convolution,
    convolution_reference,
    gradient,
    setup,
)
from wavecast.kernels.conv.gradients import (
    convolution_backward_data,
    convolution_backward_data_reference,
    convolution_backward_weight,
    convolution_backward_weight_reference,
)
from wavecast.kernels.conv.sizes import (
    CASES,
    GRADIENT_SHAPES,
    SHAPES,
    THOROUGH,
    data_inputs,
    inputs,
    weight_inputs,
    without_ends,
    work,
)
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance

_TOLERANCE = Tolerance(ulps=1.0, accumulated=1e-5)
_SPACES = (implicit.FORWARD, depthwise.DEPTHWISE, layout.SPACE, combine.SPACE)
_CASES_2D = tuple(case for case in (*CASES, *THOROUGH) if case["size"].count("x") == 1)

OPERATORS = (
    Operator(
        name="convolution",
        summary="convolution of one, two or three dimensions with bias and activation",
        call=convolution,
        reference=convolution_reference,
        inputs=inputs,
        work=work("forward"),
        batch=Batch(("x",), merged=True),
        cases=CASES,
        thorough=THOROUGH,
        shapes=SHAPES,
        spaces=_SPACES,
        tolerance=_TOLERANCE,
        gradient=Gradient(setup, gradient),
    ),
    Operator(
        name="conv2d",
        summary="convolution of images with bias and activation",
        call=conv2d,
        reference=conv2d_reference,
        inputs=inputs,
        work=work("forward"),
        batch=Batch(("x",), merged=True),
        cases=_CASES_2D[:2],
        thorough=_CASES_2D[2:5],
        shapes=SHAPES[2:3],
        spaces=_SPACES,
        tolerance=_TOLERANCE,
        gradient=Gradient(setup, gradient),
    ),
    Operator(
        name="convolution_backward_data",
        summary="gradient of a convolution's input",
        call=convolution_backward_data,
        reference=convolution_backward_data_reference,
        gradient=by_reference(convolution_backward_data_reference),
        inputs=data_inputs,
        work=work("data"),
        cases=without_ends(CASES),
        thorough=without_ends(THOROUGH),
        shapes=GRADIENT_SHAPES,
        spaces=_SPACES,
        tolerance=_TOLERANCE,
    ),
    Operator(
        name="convolution_backward_weight",
        summary="gradients of a convolution's weight and bias",
        call=convolution_backward_weight,
        reference=convolution_backward_weight_reference,
        gradient=by_reference(convolution_backward_weight_reference),
        inputs=weight_inputs,
        work=work("weight"),
        cases=without_ends(CASES),
        thorough=(*without_ends(THOROUGH), {**without_ends(CASES)[1], "bias": False}),
        shapes=GRADIENT_SHAPES,
        spaces=(weights.WEIGHTS, depthwise.DEPTHWISE_WEIGHT, layout.SPACE, combine.SPACE),
        tolerance=_TOLERANCE,
    ),
)
