"""hipBLAS on matrices."""

from __future__ import annotations

import numpy as np

from wavecast.runtimes.hip_host.libraries.call import (
    LEFT,
    NOT_TRANSPOSED,
    RIGHT,
    CalledFunction,
    Function,
    InvalidCall,
    apply_operation,
    check_value,
)  # fmt: skip
from wavecast.runtimes.hip_host.libraries.elements import BY_PREFIX, Element, of_type
from wavecast.runtimes.hip_host.libraries.triangles import (
    solve_triangular,
    symmetric,
    triangle,
    write_triangle,
)  # fmt: skip


def product(a: np.ndarray, b: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """a b of one dtype. Exact for integers."""
    if dtype.kind in "iu":  # numpy has no fast product of integers; doubles hold 2^53
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64).astype(dtype)
    return a.astype(dtype, copy=False) @ b.astype(dtype, copy=False)


def scale_and_add(
    c: np.ndarray, element: Element, alpha: complex, values: np.ndarray, beta: complex
) -> np.ndarray:
    """alpha values + beta c; with a beta of zero c is not read, as it may be NaN."""
    kind = values.dtype.type
    total = values if alpha == 1 else kind(alpha) * values
    return total if beta == 0 else total + kind(beta) * element.load(c).astype(values.dtype)


def gemm(call: CalledFunction) -> None:
    """d = alpha op(a) op(b) + beta c, for a batch (`hipblas/level_3.h`)."""
    scalar = of_type(call.number())
    op_a, op_b, m, n, k = call.numbers(5)
    alpha = call.scalar(scalar)
    a_at, a_type, lda, a_step, b_at, b_type, ldb, b_step = call.numbers(8)
    beta = call.scalar(scalar)
    c_at, c_type, ldc, c_step, d_at, ldd, d_step, batch, pointers = call.numbers(9)
    if min(m, n, k, batch) < 0:
        raise InvalidCall
    if not (m and n and batch):
        return
    if alpha == 0:  # a and b are not read, and may be null
        k = 0
    if beta == 0:  # c is not read, and may be null
        c_at, ldc, c_step = d_at, ldd, d_step
    a_element, b_element, c_element = of_type(a_type), of_type(b_type), of_type(c_type)
    kind = np.result_type(scalar.computed, np.float32) if scalar.computed.kind != "i" else np.int32
    addresses = [
        call.batch(at, step, batch, pointers, element.stored.itemsize)
        for at, step, element in (
            (a_at, a_step, a_element), (b_at, b_step, b_element),
            (c_at, c_step, c_element), (d_at, d_step, c_element),
        )
    ]  # fmt: skip
    sizes = f"x{batch}" if batch != 1 else ""
    call.described = f"{c_element.name} {m}x{n}x{k}{sizes}"
    a_shape = (m, k) if op_a == NOT_TRANSPOSED else (k, m)
    b_shape = (k, n) if op_b == NOT_TRANSPOSED else (n, k)
    shapes = ((*a_shape, lda, a_element), (*b_shape, ldb, b_element), (m, n, ldc, c_element),
              (m, n, ldd, c_element))  # fmt: skip
    stacks = [[*call.stack(at, *shape)] for at, shape in zip(addresses, shapes, strict=True)]
    if len({len(stack) for stack in stacks}) > 1:  # not all of them are one array
        stacks = [[matrix[None] for part in stack for matrix in part] for stack in stacks]
    for a_one, b_one, c_one, d_one in zip(*stacks, strict=True):
        a = apply_operation(a_element.load(a_one), op_a)
        b = apply_operation(b_element.load(b_one), op_b)
        values = product(a, b, np.dtype(kind))
        c_element.store(d_one, scale_and_add(c_one, c_element, alpha, values, beta))


def symm(call: CalledFunction) -> None:
    """c = alpha a b + beta c, or b a, with one triangle of a."""
    element = BY_PREFIX[call.kind]
    side, fill, m, n = call.numbers(4)
    left = check_value(side, LEFT, RIGHT) == LEFT
    alpha = call.scalar(element)
    a_at, lda, b_at, ldb = call.numbers(4)
    beta = call.scalar(element)
    c_at, ldc = call.numbers(2)
    count = m if left else n
    a = symmetric(call.matrix(a_at, count, count, lda, element), fill, ".hemm." in call.name)
    b = call.matrix(b_at, m, n, ldb, element)
    c = call.matrix(c_at, m, n, ldc, element)
    c[...] = scale_and_add(c, element, alpha, a @ b if left else b @ a, beta)


def syrk(call: CalledFunction) -> None:
    """One triangle of c = alpha op(a) op(a)^T + beta c, ^H for `herk`."""
    element, hermitian = BY_PREFIX[call.kind], ".herk." in call.name
    scalar = element.real if hermitian else element
    fill, operation, n, k = call.numbers(4)
    alpha = call.scalar(scalar)
    a = _factor(call, operation, n, k, element)
    beta = call.scalar(scalar)
    c_at, ldc = call.numbers(2)
    c = call.matrix(c_at, n, n, ldc, element)
    values = a @ (a.conj().T if hermitian else a.T)
    write_triangle(c, scale_and_add(c, element, alpha, values, beta), fill, hermitian)


def syr2k(call: CalledFunction) -> None:
    """One triangle of c = alpha (op(a) op(b)^T + op(b) op(a)^T) + beta c."""
    element = BY_PREFIX[call.kind]
    fill, operation, n, k = call.numbers(4)
    alpha = call.scalar(element)
    a, b = (_factor(call, operation, n, k, element) for _ in range(2))
    beta = call.scalar(element)
    c_at, ldc = call.numbers(2)
    c = call.matrix(c_at, n, n, ldc, element)
    write_triangle(c, scale_and_add(c, element, alpha, a @ b.T + b @ a.T, beta), fill, False)


def _factor(call: CalledFunction, operation: int, n: int, k: int, element: Element) -> np.ndarray:
    address, leading = call.numbers(2)
    shape = (n, k) if operation == NOT_TRANSPOSED else (k, n)
    return apply_operation(call.matrix(address, *shape, leading, element), operation)


def trmm(call: CalledFunction) -> None:
    """c = alpha op(a) b, or b op(a), with a triangle a."""
    element = BY_PREFIX[call.kind]
    side, fill, operation, diagonal, m, n = call.numbers(6)
    left = check_value(side, LEFT, RIGHT) == LEFT
    alpha = element.computed.type(call.scalar(element))
    a_at, lda, b_at, ldb, c_at, ldc = call.numbers(6)
    count = m if left else n
    a = apply_operation(
        triangle(call.matrix(a_at, count, count, lda, element), fill, diagonal), operation
    )
    b = call.matrix(b_at, m, n, ldb, element)
    call.matrix(c_at, m, n, ldc, element)[...] = alpha * (a @ b if left else b @ a)


def trsm(call: CalledFunction) -> None:
    """b = alpha op(a)^-1 b, or b op(a)^-1, with a triangle a; for a batch."""
    element = BY_PREFIX[call.kind]
    side, fill, operation, diagonal, m, n = call.numbers(6)
    left = check_value(side, LEFT, RIGHT) == LEFT
    alpha = element.computed.type(call.scalar(element))
    a_at, lda, b_at, ldb, step, batch, pointers = call.numbers(7)
    count, size = m if left else n, element.stored.itemsize
    addresses = zip(
        call.batch(a_at, step, batch, pointers, size),
        call.batch(b_at, step, batch, pointers, size),
        strict=True,
    )
    for a_one, b_one in addresses:
        a = triangle(call.matrix(a_one, count, count, lda, element), fill, diagonal)
        a = apply_operation(a, operation)
        b = call.matrix(b_one, m, n, ldb, element)
        b[...] = alpha * (solve_triangular(a, b) if left else solve_triangular(a.T, b.T).T)


def geam(call: CalledFunction) -> None:
    """c = alpha op(a) + beta op(b)."""
    element = BY_PREFIX[call.kind]
    op_a, op_b, m, n = call.numbers(4)
    total: np.ndarray | None = None
    for operation in (op_a, op_b):
        factor = element.computed.type(call.scalar(element))
        address, leading = call.numbers(2)
        if not factor:
            continue
        shape = (m, n) if operation == NOT_TRANSPOSED else (n, m)
        term = factor * apply_operation(call.matrix(address, *shape, leading, element), operation)
        total = term if total is None else total + term
    c_at, ldc = call.numbers(2)
    call.matrix(c_at, m, n, ldc, element)[...] = 0 if total is None else total


def dgmm(call: CalledFunction) -> None:
    """c = diag(x) a, or a diag(x)."""
    element = BY_PREFIX[call.kind]
    side, m, n, a_at, lda, x_at, step, c_at, ldc = call.numbers(9)
    left = check_value(side, LEFT, RIGHT) == LEFT
    a = call.matrix(a_at, m, n, lda, element)
    x = call.vector(x_at, m if left else n, step, element)
    call.matrix(c_at, m, n, ldc, element)[...] = a * (x[:, None] if left else x)


FUNCTIONS: dict[str, Function] = {
    "gemm": gemm,
    "symm": symm,
    "hemm": symm,
    "syrk": syrk,
    "herk": syrk,
    "syr2k": syr2k,
    "trmm": trmm,
    "trsm": trsm,
    "geam": geam,
    "dgmm": dgmm,
}
"""By the name of the function without library and type."""

__all__ = ["FUNCTIONS", "product", "scale_and_add"]
