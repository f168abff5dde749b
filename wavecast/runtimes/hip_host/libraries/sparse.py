"""hipSPARSE: products, solutions with triangles, conversions (`hipsparse/operations.h`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.runtimes.hip_host.libraries.blas_matrices import scale_and_add
from wavecast.runtimes.hip_host.libraries.call import CalledFunction, Function
from wavecast.runtimes.hip_host.libraries.elements import Element, of_type

_CSR, _CSC, _COO = 1, 2, 3
"""`hipsparseFormat_t`."""
_INDICES: Final = {1: np.uint16, 2: np.int32, 3: np.int64}
"""`hipsparseIndexType_t`."""
_UPPER, _UNIT = 1, 1
"""HIPSPARSE_FILL_MODE_UPPER and HIPSPARSE_DIAG_TYPE_UNIT."""


@dataclass
class _Matrix:
    """A sparse matrix as its descriptor has it."""

    call: CalledFunction
    shape: tuple[int, int]
    entries: int
    addresses: tuple[int, int, int]
    format: int
    offset_dtype: type
    index_dtype: type
    base: int
    element: Element
    fill: int
    diagonal: int

    @property
    def _lines(self) -> int:
        return self.shape[1 if self.format == _CSC else 0]

    def offsets(self) -> np.ndarray:
        """Where the entries of each row, or column, begin, as they are stored."""
        return self.call.integers(self.addresses[0], self._lines + 1, self.offset_dtype)

    @property
    def stored_entries(self) -> int:
        """The number of entries, which the offsets have where there are some."""
        if self.format == _COO:
            return self.entries
        offsets = self.offsets()
        return int(offsets[-1] - offsets[0])

    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each entry, from 0."""
        entries = self.stored_entries
        inner = self.call.integers(self.addresses[1], entries, self.index_dtype) - self.base
        if self.format == _COO:
            outer = self.call.integers(self.addresses[0], entries, self.offset_dtype) - self.base
        else:
            outer = np.repeat(np.arange(self._lines), np.diff(self.offsets()))
        return (inner, outer) if self.format == _CSC else (outer, inner)

    def values(self) -> np.ndarray:
        """The values as they are stored, writable."""
        return self.call.array(self.addresses[2], self.stored_entries, self.element)

    def triples(self, operation: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Rows, columns and values of op(matrix), and its number of rows."""
        rows, columns = self.coordinates()
        values = self.element.load(self.values())
        if not operation:
            return rows, columns, values, self.shape[0]
        return columns, rows, values.conj() if operation == 2 else values, self.shape[1]

    def write(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Store entries, which are sorted by the lines of the format, with the offsets."""
        outer, inner = (columns, rows) if self.format == _CSC else (rows, columns)
        self.write_offsets(outer)
        self.call.integers(self.addresses[1], len(inner), self.index_dtype)[...] = inner + self.base
        self.element.store(self.call.array(self.addresses[2], len(inner), self.element), values)

    def write_offsets(self, outer: np.ndarray) -> None:
        """Store where each line begins, or for COO the row of each entry."""
        if self.format == _COO:
            to = self.call.integers(self.addresses[0], len(outer), self.offset_dtype)
            to[...] = outer + self.base
            return
        counts = np.bincount(outer, minlength=self._lines)
        self.offsets()[...] = np.concatenate([[0], np.cumsum(counts)]) + self.base


def _matrix(call: CalledFunction) -> _Matrix:
    rows, columns, entries, offsets, indices, values = call.numbers(6)
    kind, offset_type, index_type, base, dtype, fill, diagonal = call.numbers(7)
    return _Matrix(
        call, (rows, columns), entries, (offsets, indices, values), kind, _INDICES[offset_type],
        _INDICES[index_type], base, of_type(dtype), fill, diagonal,
    )  # fmt: skip


def _dense(call: CalledFunction) -> tuple[np.ndarray, Element]:
    rows, columns, leading, address, dtype, order = call.numbers(6)
    element = of_type(dtype)
    view = call.matrix if order else call.row_major
    return view(address, rows, columns, leading, element), element


def _vector(call: CalledFunction) -> tuple[np.ndarray, np.ndarray, Element]:
    """Indices from 0, and values as they are stored."""
    entries, indices, values, index_type, base, dtype = call.numbers(6)
    element = of_type(dtype)
    indices = call.integers(indices, entries, _INDICES[index_type]).astype(np.int64) - base
    return indices, call.array(values, entries, element), element


def _as(operation: int, matrix: np.ndarray) -> np.ndarray:
    return matrix if not operation else matrix.conj().T if operation == 2 else matrix.T


def product(call: CalledFunction) -> None:
    """c = alpha op(a) op(b) + beta c for a sparse a; b and c are vectors or matrices."""
    compute = of_type(call.number())
    op_a, op_b = call.numbers(2)
    alpha = call.scalar(compute)
    rows, columns, values, count = _matrix(call).triples(op_a)
    stored, b_element = _dense(call)
    b = _as(op_b, b_element.load(stored)).astype(compute.computed, copy=False)
    beta = call.scalar(compute)
    c, c_element = _dense(call)
    sums = np.zeros((count, b.shape[1]), compute.computed)
    values = values.astype(compute.computed, copy=False)
    for column in range(b.shape[1]):
        np.add.at(sums[:, column], rows, values * b[columns, column])
    c_element.store(c, scale_and_add(c, c_element, alpha, sums, beta))


def sampled_product(call: CalledFunction) -> None:
    """c = alpha op(a) op(b) + beta c at the entries of a sparse c."""
    compute = of_type(call.number())
    op_a, op_b = call.numbers(2)
    alpha = call.scalar(compute)
    pair = [_dense(call) for _ in range(2)]
    a, b = (
        _as(operation, element.load(stored)).astype(compute.computed, copy=False)
        for operation, (stored, element) in zip((op_a, op_b), pair, strict=True)
    )
    beta = call.scalar(compute)
    c = _matrix(call)
    rows, columns = c.coordinates()
    values = c.values()
    products = np.einsum("ek,ek->e", a[rows], b[:, columns].T)
    c.element.store(values, scale_and_add(values, c.element, alpha, products, beta))


def dot(call: CalledFunction) -> bytes:
    """The sum of op(x) y for a sparse x."""
    compute = of_type(call.number())
    operation = call.number()
    indices, values, element = _vector(call)
    y, y_element = _dense(call)
    x = element.load(values)
    total = np.dot(x.conj() if operation == 2 else x, y_element.load(y[indices, 0]))
    return np.array([total]).astype(compute.stored).tobytes()


def solve(call: CalledFunction) -> None:
    """c = alpha op(a)^-1 op(b) with a triangle of a sparse a, row by row."""
    compute = of_type(call.number())
    op_a, op_b = call.numbers(2)
    alpha = compute.computed.type(call.scalar(compute))
    a = _matrix(call)
    rows, columns = a.coordinates()
    mask = columns >= rows if a.fill == _UPPER else columns <= rows
    values = a.element.load(a.values())[mask]
    rows, columns = rows[mask], columns[mask]
    if op_a:
        rows, columns = columns, rows
        values = values.conj() if op_a == 2 else values
    upper = (a.fill == _UPPER) != bool(op_a)
    stored, b_element = _dense(call)
    x = alpha * _as(op_b, b_element.load(stored)).astype(compute.computed)
    order = np.argsort(rows, kind="stable")
    rows, columns, values = rows[order], columns[order], values[order]
    starts = np.searchsorted(rows, np.arange(a.shape[0] + 1))
    lines = range(a.shape[0])
    for row in reversed(lines) if upper else lines:
        part = slice(starts[row], starts[row + 1])
        on_diagonal = columns[part] == row
        others, factors = columns[part][~on_diagonal], values[part][~on_diagonal]
        x[row] -= factors @ x[others]
        if a.diagonal != _UNIT:
            x[row] /= values[part][on_diagonal].sum()
    c, c_element = _dense(call)
    c_element.store(c, x)


def _gemm(call: CalledFunction) -> tuple[_Matrix, np.ndarray, np.ndarray, np.ndarray]:
    """alpha op(a) op(b) by rows: c's descriptor, rows, columns and values."""
    compute = of_type(call.number())
    op_a, op_b = call.numbers(2)
    alpha = call.scalar(compute)
    call.scalar(compute)  # beta: c has no entries before
    a, b, c = _matrix(call), _matrix(call), _matrix(call)
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
    a = _matrix(call)
    to, element = _dense(call)
    to[...] = 0
    rows, columns = a.coordinates()
    matrix = np.zeros(a.shape, element.computed)
    np.add.at(matrix, (rows, columns), a.element.load(a.values()))
    element.store(to, matrix)


def _nonzero(call: CalledFunction) -> tuple[_Matrix, np.ndarray, np.ndarray, np.ndarray]:
    stored, element = _dense(call)
    to = _matrix(call)
    values = element.load(stored)
    if to.format == _CSC:
        columns, rows = np.nonzero(values.T)
    else:
        rows, columns = np.nonzero(values)
    return to, rows, columns, values[rows, columns]


def to_sparse_size(call: CalledFunction) -> bytes:
    """The number of elements of a dense matrix that are not zero; the offsets are stored."""
    to, rows, columns, _ = _nonzero(call)
    if to.format != _COO:
        to.write_offsets(columns if to.format == _CSC else rows)
    return len(rows).to_bytes(8, "little")


def to_sparse(call: CalledFunction) -> None:
    """A dense matrix as a sparse one."""
    to, rows, columns, values = _nonzero(call)
    to.write(rows, columns, values)


def convert(call: CalledFunction) -> None:
    """CSR to CSC."""
    a, to = _matrix(call), _matrix(call)
    rows, columns = a.coordinates()
    order = np.lexsort((rows, columns))
    to.write(rows[order], columns[order], a.element.load(a.values())[order])


def count(call: CalledFunction) -> bytes:
    """Elements of a dense matrix that are not zero, by row or column, and all."""
    by_column = call.number()
    matrix, _ = _dense(call)
    counts = np.count_nonzero(matrix, axis=0 if by_column else 1)
    call.integers(call.number(), len(counts))[...] = counts
    return int(counts.sum()).to_bytes(4, "little")


def axpby(call: CalledFunction) -> None:
    """y = alpha x + beta y for a sparse x."""
    compute = of_type(call.number())
    alpha, beta = (compute.computed.type(call.scalar(compute)) for _ in range(2))
    indices, values, element = _vector(call)
    y, y_element = _dense(call)
    vector = beta * y_element.load(y[:, 0])
    np.add.at(vector, indices, alpha * element.load(values))
    y_element.store(y[:, 0], vector)


def gather(call: CalledFunction) -> None:
    """The values of a sparse vector from a dense one."""
    y, _ = _dense(call)
    indices, values, _ = _vector(call)
    values[...] = y[indices, 0]


def scatter(call: CalledFunction) -> None:
    """The values of a sparse vector into a dense one."""
    indices, values, _ = _vector(call)
    y, _ = _dense(call)
    y[indices, 0] = values


def identity(call: CalledFunction) -> None:
    """0, 1, 2 …"""
    size, address = call.numbers(2)
    call.integers(address, size)[...] = np.arange(size)


def sort(call: CalledFunction) -> None:
    """Sort the entries of each row of a CSR matrix by column, and a permutation with them."""
    rows, entries, base, offsets_at, indices_at, permutation_at = call.numbers(6)
    offsets = call.integers(offsets_at, rows + 1) - base
    indices, permutation = (
        call.integers(address, entries) for address in (indices_at, permutation_at)
    )
    order = np.lexsort((indices, np.repeat(np.arange(rows), np.diff(offsets))))
    indices[...], permutation[...] = indices[order], permutation[order]


def ilu(call: CalledFunction) -> bytes:
    """L and U of an incomplete factorisation without further entries; the first zero pivot."""
    a = _matrix(call)
    rows, columns = a.coordinates()
    values = a.values()
    starts = np.searchsorted(rows, np.arange(a.shape[0] + 1))
    indices = [dict(zip(columns[s:e].tolist(), range(s, e), strict=True))
              for s, e in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]  # fmt: skip
    zero = -1
    for row, entries in enumerate(indices):
        for column in sorted(candidate for candidate in entries if candidate < row):
            pivot = indices[column].get(column)
            if pivot is None or values[pivot] == 0:
                continue
            values[entries[column]] /= values[pivot]
            for other, position in indices[column].items():
                if other > column and other in entries:
                    values[entries[other]] -= values[entries[column]] * values[position]
        diagonal = entries.get(row)
        if zero < 0 and (diagonal is None or values[diagonal] == 0):
            zero = row + a.base
    return zero.to_bytes(4, "little", signed=True)


FUNCTIONS: dict[str, Function] = {
    function.__name__: function
    for function in (
        product, sampled_product, dot, solve, gemm_size, gemm, to_dense, to_sparse_size, to_sparse,
        convert, count, axpby, gather, scatter, identity, sort, ilu,
    )
}  # fmt: skip
"""By the name of the function without library."""

__all__ = ["FUNCTIONS"]
