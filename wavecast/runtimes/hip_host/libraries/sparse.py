"""hipSPARSE and rocSPARSE: products, solutions with triangles, conversions
(`hipsparse/operations.h`, `rocsparse/*.h`)."""

from __future__ import annotations

import numpy as np

from wavecast.runtimes.hip_host.libraries.blas_matrices import scale_and_add
from wavecast.runtimes.hip_host.libraries.call import CalledFunction, Function
from wavecast.runtimes.hip_host.libraries.elements import of_type
from wavecast.runtimes.hip_host.libraries.sparse_matrices import (
    COO,
    CSC,
    SparseMatrix,
    read_dense,
    read_matrix,
    read_vector,
)

_UPPER, _UNIT = 1, 1
"""HIPSPARSE_FILL_MODE_UPPER and HIPSPARSE_DIAG_TYPE_UNIT."""


def _as(operation: int, matrix: np.ndarray) -> np.ndarray:
    return matrix if not operation else matrix.conj().T if operation == 2 else matrix.T


def product(call: CalledFunction) -> None:
    """c = alpha op(a) op(b) + beta c for a sparse a; b and c are vectors or matrices."""
    compute = of_type(call.number())
    op_a, op_b = call.numbers(2)
    alpha = call.scalar(compute)
    rows, columns, values, count = read_matrix(call).triples(op_a)
    stored, b_element = read_dense(call)
    b = _as(op_b, b_element.load(stored)).astype(compute.computed, copy=False)
    beta = call.scalar(compute)
    c, c_element = read_dense(call)
    sums = _sums(rows, columns, values.astype(compute.computed, copy=False), b, count)
    c_element.store(c, scale_and_add(c, c_element, alpha, sums, beta))


def _sums(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, b: np.ndarray, count: int
) -> np.ndarray:
    """A sparse matrix of `count` rows by a dense one."""
    sums = np.zeros((count, b.shape[1]), values.dtype)
    for column in range(b.shape[1]):
        np.add.at(sums[:, column], rows, values * b[columns, column])
    return sums


def masked_product(call: CalledFunction) -> None:
    """y = alpha a x + beta y in the rows of blocks of a mask; the blocks of each end where an array
    says."""
    compute = of_type(call.number())
    alpha = call.scalar(compute)
    count, mask_at, ends_at = call.numbers(3)
    a = read_matrix(call)
    stored, x_element = read_dense(call)
    beta = call.scalar(compute)
    y, y_element = read_dense(call)
    mask = call.integers(mask_at, count).astype(np.int64) - a.base
    starts = a.offsets().astype(np.int64)[mask] - a.base
    counts = call.integers(ends_at, a.shape[0] // a.block[0]).astype(np.int64)[mask] - a.base
    counts -= starts
    blocks = np.repeat(starts, counts) + np.concatenate([np.arange(n) for n in counts] or [[]])
    size = a.block[0] * a.block[1]
    stop = int((starts + counts).max(initial=0))
    inner = call.integers(a.addresses[1], stop)[blocks.astype(np.int64)] - a.base
    values = call.array(a.addresses[2], stop * size, a.element).reshape(-1, size)
    rows, columns = a.in_blocks(np.repeat(mask, counts), inner)
    x = x_element.load(stored).astype(compute.computed, copy=False)
    loaded = a.element.load(values[blocks.astype(np.int64)].ravel())
    sums = _sums(rows, columns, loaded.astype(compute.computed, copy=False), x, a.shape[0])
    changed = (mask[:, None] * a.block[0] + np.arange(a.block[0])).ravel()
    result = scale_and_add(y[changed], y_element, alpha, sums[changed], beta)
    rounded = np.empty(result.shape, y_element.stored)
    y_element.store(rounded, result)
    y[changed] = rounded


def dense_product(call: CalledFunction) -> None:
    """y = alpha op(a) x + beta y for a sparse x."""
    compute = of_type(call.number())
    operation = call.number()
    alpha = call.scalar(compute)
    stored, a_element = read_dense(call)
    indices, values, x_element = read_vector(call)
    beta = call.scalar(compute)
    y, y_element = read_dense(call)
    a = _as(operation, a_element.load(stored)).astype(compute.computed, copy=False)
    product = a[:, indices] @ x_element.load(values).astype(compute.computed, copy=False)
    y_element.store(y, scale_and_add(y, y_element, alpha, product[:, None], beta))


def sampled_product(call: CalledFunction) -> None:
    """c = alpha op(a) op(b) + beta c at the entries of a sparse c."""
    compute = of_type(call.number())
    op_a, op_b = call.numbers(2)
    alpha = call.scalar(compute)
    pair = [read_dense(call) for _ in range(2)]
    a, b = (
        _as(operation, element.load(stored)).astype(compute.computed, copy=False)
        for operation, (stored, element) in zip((op_a, op_b), pair, strict=True)
    )
    beta = call.scalar(compute)
    c = read_matrix(call)
    rows, columns = c.coordinates()
    values = c.values()
    products = np.einsum("ek,ek->e", a[rows], b[:, columns].T)
    c.element.store(values, scale_and_add(values, c.element, alpha, products, beta))


def dot(call: CalledFunction) -> bytes:
    """The sum of op(x) y for a sparse x."""
    compute = of_type(call.number())
    operation = call.number()
    indices, values, element = read_vector(call)
    y, y_element = read_dense(call)
    x = element.load(values)
    total = np.dot(x.conj() if operation == 2 else x, y_element.load(y[indices, 0]))
    return np.array([total]).astype(compute.stored).tobytes()


def solve(call: CalledFunction) -> None:
    """c = alpha op(a)^-1 op(b) with a triangle of a sparse a, row by row."""
    solve_pivot(call)


def solve_pivot(call: CalledFunction) -> bytes:
    """`solve`; the first row whose diagonal is zero or missing, -1: none."""
    compute = of_type(call.number())
    op_a, op_b = call.numbers(2)
    alpha = compute.computed.type(call.scalar(compute))
    a = read_matrix(call)
    rows, columns, values, _ = triangle(a, op_a)
    upper = (a.fill == _UPPER) != bool(op_a)
    stored, b_element = read_dense(call)
    x = alpha * _as(op_b, b_element.load(stored)).astype(compute.computed)
    order = np.argsort(rows, kind="stable")
    rows, columns, values = rows[order], columns[order], values[order]
    starts = np.searchsorted(rows, np.arange(a.shape[0] + 1))
    lines, zero = range(a.shape[0]), a.shape[0]
    for row in reversed(lines) if upper else lines:
        part = slice(starts[row], starts[row + 1])
        on_diagonal = columns[part] == row
        others, factors = columns[part][~on_diagonal], values[part][~on_diagonal]
        x[row] -= factors @ x[others]
        if a.diagonal != _UNIT:
            pivot = values[part][on_diagonal].sum()
            x[row] /= pivot
            zero = zero if pivot else min(zero, row)
    c, c_element = read_dense(call)
    c_element.store(c, x)
    return (a.block_row(zero) if zero < a.shape[0] else -1).to_bytes(4, "little", signed=True)


def triangle(a: SparseMatrix, operation: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """As `triples`, of the triangle that the descriptor names."""
    rows, columns, values, count = a.triples(operation)
    upper = (a.fill == _UPPER) != bool(operation)
    mask = columns >= rows if upper else columns <= rows
    return rows[mask], columns[mask], values[mask], count


def iterate(call: CalledFunction) -> bytes:
    """c = alpha op(a)^-1 b with a triangle of a, by Jacobi's iterations from c: how many, and the
    largest residual of each, float64. They end at a tolerance."""
    compute = of_type(call.number())
    operation = call.number()
    alpha = compute.computed.type(call.scalar(compute))
    most, has_tolerance = call.numbers(2)
    tolerance = call.real()
    a = read_matrix(call)
    rows, columns, values, count = triangle(a, operation)
    stored, b_element = read_dense(call)
    c, c_element = read_dense(call)
    right = alpha * b_element.load(stored).astype(compute.computed)
    x = c_element.load(c).astype(compute.computed)
    diagonal = np.zeros((count, 1), compute.computed)
    np.add.at(diagonal[:, 0], rows[rows == columns], values[rows == columns])
    if a.diagonal == _UNIT:
        off = rows != columns
        rows, columns, values = rows[off], columns[off], values[off]
    history: list[float] = []
    for _ in range(most):
        product = _sums(rows, columns, values.astype(compute.computed, copy=False), x, count)
        residual = right - product - (x if a.diagonal == _UNIT else 0)
        x = x + (residual if a.diagonal == _UNIT else residual / diagonal)
        history.append(float(np.abs(residual).max(initial=0)))
        if has_tolerance and history[-1] <= tolerance:
            break
    c_element.store(c, x)
    return np.array([len(history), *history, *[0] * (most - len(history))]).tobytes()


def _gemm(call: CalledFunction) -> tuple[SparseMatrix, np.ndarray, np.ndarray, np.ndarray]:
    """alpha op(a) op(b) by rows: c's descriptor, rows, columns and values."""
    compute = of_type(call.number())
    op_a, op_b = call.numbers(2)
    alpha = call.scalar(compute)
    call.scalar(compute)  # beta: c has no entries before
    a, b, c = read_matrix(call), read_matrix(call), read_matrix(call)
    a_rows, a_columns, a_values, _ = a.triples(op_a)
    b_rows, b_columns, b_values, b_count = b.triples(op_b)
    order = np.argsort(b_rows, kind="stable")
    starts = np.searchsorted(b_rows[order], np.arange(b_count + 1))
    counts = np.diff(starts)[a_columns]
    from_a = np.repeat(np.arange(len(a_rows)), counts)
    within = np.arange(len(from_a)) - np.repeat(np.cumsum(counts) - counts, counts)
    from_b = order[starts[a_columns[from_a]] + within]
    indices = a_rows[from_a].astype(np.int64) * c.shape[1] + b_columns[from_b]
    terms = alpha * a_values[from_a] * b_values[from_b]
    positions, inverse = np.unique(indices, return_inverse=True)
    values = np.zeros(len(positions), np.result_type(terms))
    np.add.at(values, inverse, terms)
    return c, positions // c.shape[1], positions % c.shape[1], values


def gemm_size(call: CalledFunction) -> bytes:
    """The number of entries of a product, whose offsets are stored."""
    c, rows, _, _ = _gemm(call)
    c.write_offsets(rows)
    return len(rows).to_bytes(8, "little")


def gemm(call: CalledFunction) -> None:
    """A product of sparse matrices."""
    c, rows, columns, values = _gemm(call)
    c.write(rows, columns, values)


def to_dense(call: CalledFunction) -> None:
    """A sparse matrix as a dense one."""
    a = read_matrix(call)
    to, element = read_dense(call)
    to[...] = 0
    rows, columns = a.coordinates()
    matrix = np.zeros(a.shape, element.computed)
    np.add.at(matrix, (rows, columns), a.element.load(a.values()))
    element.store(to, matrix)


def _nonzero(call: CalledFunction) -> tuple[SparseMatrix, np.ndarray, np.ndarray, np.ndarray]:
    stored, element = read_dense(call)
    to = read_matrix(call)
    values = element.load(stored)
    if to.format == CSC:
        columns, rows = np.nonzero(values.T)
    else:
        rows, columns = np.nonzero(values)
    return to, rows, columns, values[rows, columns]


def to_sparse_size(call: CalledFunction) -> bytes:
    """The number of elements of a dense matrix that are not zero; the offsets are stored."""
    to, rows, columns, _ = _nonzero(call)
    if to.format != COO:
        to.write_offsets(columns if to.format == CSC else rows)
    return len(rows).to_bytes(8, "little")


def to_sparse(call: CalledFunction) -> None:
    """A dense matrix as a sparse one."""
    to, rows, columns, values = _nonzero(call)
    to.write(rows, columns, values)


def convert(call: CalledFunction) -> None:
    """CSR to CSC, or BSR to CSR."""
    a, to = read_matrix(call), read_matrix(call)
    rows, columns = a.coordinates()
    order = np.lexsort((rows, columns) if to.format == CSC else (columns, rows))
    to.write(rows[order], columns[order], a.element.load(a.values())[order])


def count(call: CalledFunction) -> bytes:
    """Elements of a dense matrix that are not zero, by row or column, and all."""
    by_column = call.number()
    matrix, _ = read_dense(call)
    counts = np.count_nonzero(matrix, axis=0 if by_column else 1)
    call.integers(call.number(), len(counts))[...] = counts
    return int(counts.sum()).to_bytes(4, "little")


def axpby(call: CalledFunction) -> None:
    """y = alpha x + beta y for a sparse x."""
    compute = of_type(call.number())
    alpha, beta = (compute.computed.type(call.scalar(compute)) for _ in range(2))
    indices, values, element = read_vector(call)
    y, y_element = read_dense(call)
    vector = beta * y_element.load(y[:, 0])
    np.add.at(vector, indices, alpha * element.load(values))
    y_element.store(y[:, 0], vector)


def gather(call: CalledFunction) -> None:
    """The values of a sparse vector from a dense one."""
    y, _ = read_dense(call)
    indices, values, _ = read_vector(call)
    values[...] = y[indices, 0]


def gather_array(call: CalledFunction) -> None:
    """The values of a sparse vector from an array."""
    element = of_type(call.number())
    address = call.number()
    indices, values, _ = read_vector(call)
    values[...] = call.array(address, int(indices.max(initial=-1)) + 1, element)[indices]


def scatter(call: CalledFunction) -> None:
    """The values of a sparse vector into a dense one."""
    indices, values, _ = read_vector(call)
    y, _ = read_dense(call)
    y[indices, 0] = values


def identity(call: CalledFunction) -> None:
    """0, 1, 2 …"""
    size, address = call.numbers(2)
    call.integers(address, size)[...] = np.arange(size)


def sort(call: CalledFunction) -> None:
    """Sort the entries of each row of a CSR matrix by column, and a permutation with them."""
    rows, entries, base, offsets_at, indices_at, permutation_at = call.numbers(6)
    offsets = call.integers(offsets_at, rows + 1) - base
    indices = call.integers(indices_at, entries)
    order = np.lexsort((indices, np.repeat(np.arange(rows), np.diff(offsets))))
    indices[...] = indices[order]
    if permutation_at:
        permutation = call.integers(permutation_at, entries)
        permutation[...] = permutation[order]


FUNCTIONS: dict[str, Function] = {
    function.__name__: function
    for function in (
        product, masked_product, dense_product, sampled_product, dot, solve, solve_pivot, iterate,
        gemm_size, gemm, to_dense, to_sparse_size, to_sparse, convert, count, axpby, gather,
        gather_array, scatter, identity, sort,
    )
}  # fmt: skip
"""By the name of the function without library."""

__all__ = ["FUNCTIONS"]
