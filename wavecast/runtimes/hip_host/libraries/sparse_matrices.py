"""Sparse matrices, dense ones and vectors as hipSPARSE's and rocSPARSE's headers pass them
(`wavecast/sparse_call.h`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.runtimes.hip_host.libraries.call import CalledFunction
from wavecast.runtimes.hip_host.libraries.elements import Element, of_type

CSC, COO, _BSR, _ELL = 2, 3, 4, 5
"""`WC_SPARSE_…`; 1 is CSR."""
_INDICES: Final = {1: np.uint16, 2: np.int32, 3: np.int64}
"""`hipsparseIndexType_t`."""


@dataclass
class SparseMatrix:
    """A sparse matrix as its descriptor has it. `block` is the shape of the blocks of BSR, which
    are stored by rows, or `by_column`."""

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
    block: tuple[int, int]
    by_column: int

    @property
    def _lines(self) -> int:
        if self.format == _BSR:
            return self.shape[0] // self.block[0]
        return self.shape[1 if self.format == CSC else 0]

    @property
    def _block_size(self) -> int:
        return self.block[0] * self.block[1] if self.format == _BSR else 1

    def offsets(self) -> np.ndarray:
        """Where the entries of each row, or column, begin, as they are stored."""
        if not self._lines:  # there may be no array
            return np.zeros(1, self.offset_dtype)
        return self.call.integers(self.addresses[0], self._lines + 1, self.offset_dtype)

    @property
    def stored_entries(self) -> int:
        """The number of indices, which the offsets have where there are some."""
        if self.format in (COO, _ELL):
            return self.entries
        offsets = self.offsets()
        return int(offsets[-1] - offsets[0])

    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each stored value, from 0; -1 for columns of ELL without a value."""
        inner = self.call.integers(self.addresses[1], self.stored_entries, self.index_dtype)
        inner = inner.astype(np.int64) - self.base
        if self.format == COO:
            outer = self.call.integers(self.addresses[0], self.entries, self.offset_dtype)
            return outer.astype(np.int64) - self.base, inner
        if self.format == _ELL:
            return np.arange(len(inner)) % max(1, self.shape[0]), np.maximum(inner, -1)
        outer = np.repeat(np.arange(self._lines), np.diff(self.offsets()))
        if self.format == _BSR:
            return self.in_blocks(outer, inner)
        return (inner, outer) if self.format == CSC else (outer, inner)

    def in_blocks(self, outer: np.ndarray, inner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the values of blocks, in the order of memory."""
        rows, columns = np.indices(self.block)
        if self.by_column:
            rows, columns = rows.T, columns.T
        return (
            (outer[:, None, None] * self.block[0] + rows).ravel(),
            (inner[:, None, None] * self.block[1] + columns).ravel(),
        )

    def values(self) -> np.ndarray:
        """The values as they are stored, writable."""
        count = self.stored_entries * self._block_size
        return self.call.array(self.addresses[2], count, self.element)

    def triples(self, operation: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Rows, columns and values of op(matrix), and its number of rows."""
        rows, columns = self.coordinates()
        values = self.element.load(self.values())
        if self.format == _ELL:
            mask = columns >= 0
            rows, columns, values = rows[mask], columns[mask], values[mask]
        if not operation:
            return rows, columns, values, self.shape[0]
        return columns, rows, values.conj() if operation == 2 else values, self.shape[1]

    def write(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Store entries, which are sorted by the lines of the format, with the offsets."""
        outer, inner = (columns, rows) if self.format == CSC else (rows, columns)
        self.write_offsets(outer)
        self.call.integers(self.addresses[1], len(inner), self.index_dtype)[...] = inner + self.base
        self.element.store(self.call.array(self.addresses[2], len(inner), self.element), values)

    def write_offsets(self, outer: np.ndarray) -> None:
        """Store where each line begins, or for COO the row of each entry."""
        if self.format == COO:
            to = self.call.integers(self.addresses[0], len(outer), self.offset_dtype)
            to[...] = outer + self.base
            return
        counts = np.bincount(outer, minlength=self._lines)
        self.offsets()[...] = np.concatenate([[0], np.cumsum(counts)]) + self.base

    def block_row(self, row: int) -> int:
        """The number, from `base`, of the row or the row of blocks that a row is in."""
        return row // (self.block[0] if self.format == _BSR else 1) + self.base


def read_matrix(call: CalledFunction) -> SparseMatrix:
    """The sparse matrix that is the next argument."""
    rows, columns, entries, offsets, indices, values = call.numbers(6)
    kind, offset_type, index_type, base, dtype, fill, diagonal = call.numbers(7)
    block_rows, block_columns, by_column = call.numbers(3)
    return SparseMatrix(
        call, (rows, columns), entries, (offsets, indices, values), kind, _INDICES[offset_type],
        _INDICES[index_type], base, of_type(dtype), fill, diagonal, (block_rows, block_columns),
        by_column,
    )  # fmt: skip


def read_dense(call: CalledFunction) -> tuple[np.ndarray, Element]:
    """The dense matrix or vector that is the next argument, as it is stored, writable."""
    rows, columns, leading, address, dtype, order = call.numbers(6)
    element = of_type(dtype)
    view = call.matrix if order else call.row_major
    return view(address, rows, columns, leading, element), element


def read_vector(call: CalledFunction) -> tuple[np.ndarray, np.ndarray, Element]:
    """The sparse vector that is the next argument: indices from 0, and values as stored."""
    entries, indices, values, index_type, base, dtype = call.numbers(6)
    element = of_type(dtype)
    indices = call.integers(indices, entries, _INDICES[index_type]).astype(np.int64) - base
    return indices, call.array(values, entries, element), element


__all__ = ["COO", "CSC", "SparseMatrix", "read_dense", "read_matrix", "read_vector"]
