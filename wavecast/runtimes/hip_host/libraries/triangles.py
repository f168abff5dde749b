"""Matrices of which one triangle is stored."""

from __future__ import annotations

import numpy as np

from wavecast.runtimes.hip_host.libraries.call import check_value

UPPER, LOWER = 121, 122
"""HIPBLAS_FILL_MODE_UPPER and HIPBLAS_FILL_MODE_LOWER; another value is an InvalidCall."""
NON_UNIT, UNIT = 131, 132
"""HIPBLAS_DIAG_NON_UNIT and HIPBLAS_DIAG_UNIT, likewise."""


def triangle(matrix: np.ndarray, fill: int, diagonal: int) -> np.ndarray:
    """The stored triangle with zeros in the other, and ones on a diagonal that is not stored."""
    upper = check_value(fill, UPPER, LOWER) == UPPER
    values = np.triu(matrix) if upper else np.tril(matrix)
    if check_value(diagonal, NON_UNIT, UNIT) == UNIT:
        np.fill_diagonal(values, 1)
    return values


def symmetric(matrix: np.ndarray, fill: int, hermitian: bool) -> np.ndarray:
    """The whole matrix of which a triangle is stored."""
    upper = check_value(fill, UPPER, LOWER) == UPPER
    half = np.triu(matrix, 1) if upper else np.tril(matrix, -1)
    diagonal = np.diag(np.real(np.diagonal(matrix)) if hermitian else np.diagonal(matrix))
    return half + (half.conj().T if hermitian else half.T) + diagonal


def write_triangle(to: np.ndarray, values: np.ndarray, fill: int, hermitian: bool) -> None:
    """Write one triangle; the diagonal of a Hermitian matrix is real."""
    count = len(to)
    upper = check_value(fill, UPPER, LOWER) == UPPER
    indices = np.triu_indices(count) if upper else np.tril_indices(count)
    to[indices] = values[indices]
    if hermitian:
        at = np.arange(count)
        to[at, at] = np.real(values[at, at])


def solve_triangular(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a^-1 b for a triangle [n, n] and b [n, m], by blocks."""
    size, block = len(a), 64
    lower = not np.any(np.triu(a, 1))
    x = b.astype(np.result_type(a, b), copy=True)
    starts = range(0, size, block)
    for start in starts if lower else reversed(starts):
        end = min(start + block, size)
        with np.errstate(divide="ignore", invalid="ignore"):
            x[start:end] = _block_solved(a[start:end, start:end], x[start:end], lower)
        rest = slice(end, size) if lower else slice(0, start)
        x[rest] -= a[rest, start:end] @ x[start:end]
    return x


def _block_solved(a: np.ndarray, b: np.ndarray, lower: bool) -> np.ndarray:
    x = b.copy()
    for row in range(len(a)) if lower else reversed(range(len(a))):
        x[row] /= a[row, row]
        rest = slice(row + 1, None) if lower else slice(0, row)
        x[rest] -= np.outer(a[rest, row], x[row])
    return x


__all__ = ["UNIT", "UPPER", "solve_triangular", "symmetric", "triangle", "write_triangle"]
