"""hipBLASLt's matrix product with an epilogue (`hipblaslt/hipblaslt.h`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.emulate.errors import Unsupported
from wavecast.runtimes.hip_host.libraries.blas_matrices import product, scale_and_add
from wavecast.runtimes.hip_host.libraries.call import (
    CalledFunction,
    Function,
    InvalidCall,
    apply_operation,
)  # fmt: skip
from wavecast.runtimes.hip_host.libraries.elements import BY_PREFIX, Element, of_type

_DEFAULT, _RELU, _BIAS, _GELU = 1, 2, 4, 32
"""Bits of `hipblasLtEpilogue_t`; 1 alone is none."""
_KNOWN: Final = _DEFAULT | _RELU | _BIAS | _GELU


@dataclass(frozen=True, slots=True)
class _Layout:
    address: int
    element: Element
    rows: int
    columns: int
    leading: int
    by_row: int
    stride: int

    def matrix(self, call: CalledFunction, number: int) -> np.ndarray:
        """One matrix of the batch as it is stored."""
        address = self.address + number * self.stride * self.element.stored.itemsize
        view = call.row_major if self.by_row else call.matrix
        return view(address, self.rows, self.columns, self.leading, self.element)


def _layout(call: CalledFunction) -> _Layout:
    address, kind, rows, columns, leading, by_row, stride = call.numbers(7)
    return _Layout(address, of_type(kind), rows, columns, leading, by_row, stride)


def matmul(call: CalledFunction) -> None:
    """d = epilogue(alpha op(a) op(b) + beta c), for a batch."""
    scalar = of_type(call.number())
    op_a, op_b, batch = call.numbers(3)
    alpha, beta = call.scalar(scalar), call.scalar(scalar)
    a, b, c, d = (_layout(call) for _ in range(4))
    epilogue, bias_at, bias_type, *scales, largest_at = call.numbers(8)
    if epilogue & ~_KNOWN:
        raise Unsupported(f"{call.readable} does not support the epilogue {epilogue}")
    scale_a, scale_b, scale_c, scale_d = (_scale(call, address) for address in scales)
    call.described = f"{d.element.name} {d.rows}x{d.columns}x{a.columns if op_a == 111 else a.rows}"
    kind = np.result_type(scalar.computed, np.float32) if scalar.computed.kind != "i" else np.int32
    bias = None
    if epilogue & _BIAS:
        element = d.element if bias_type < 0 else of_type(bias_type)
        bias = element.load(call.array(bias_at, d.rows, element))[:, None]
    largest = 0.0
    for number in range(batch):
        left = apply_operation(a.element.load(a.matrix(call, number)), op_a)
        right = apply_operation(b.element.load(b.matrix(call, number)), op_b)
        if left.shape[1] != right.shape[0]:
            raise InvalidCall
        values = product(left, right, np.dtype(kind))
        to = d.matrix(call, number)
        before = c.matrix(call, number) if beta else to
        output = scale_and_add(before, c.element, alpha * scale_a * scale_b, values, beta * scale_c)
        output = output if bias is None else output + bias
        if epilogue & _RELU:
            output = np.maximum(output, 0)
        if epilogue & _GELU:
            output = _gelu(output)
        largest = max(largest, float(np.abs(output).max(initial=0)))
        d.element.store(to, output if scale_d == 1 else output * scale_d)
    if largest_at:
        call.array(largest_at, 1, BY_PREFIX["S"])[0] = largest


def _scale(call: CalledFunction, address: int) -> float:
    """A factor in memory, 1 without one."""
    return float(call.array(address, 1, BY_PREFIX["S"])[0]) if address else 1.0


def _gelu(x: np.ndarray) -> np.ndarray:
    """By the hyperbolic tangent, as of hipBLASLt."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


FUNCTIONS: dict[str, Function] = {"matmul": matmul}
"""By the name of the function without library."""

__all__ = ["FUNCTIONS"]
