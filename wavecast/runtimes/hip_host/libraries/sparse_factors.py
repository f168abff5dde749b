"""Incomplete factorisations of hipSPARSE and rocSPARSE, and systems of few diagonals
(`rocsparse/preconditioners.h`)."""

from __future__ import annotations

from typing import Final

import numpy as np

from wavecast.runtimes.hip_host.libraries.call import CalledFunction, Function
from wavecast.runtimes.hip_host.libraries.elements import of_type
from wavecast.runtimes.hip_host.libraries.sparse_matrices import SparseMatrix, read_matrix

_CORRECTION, _RESIDUAL, _STOPS = 4, 8, 2
"""Of `rocsparse_itilu0_option`: which norms there are, and whether small ones end iterations."""
_HEAD: Final = 8
"""Bytes before the norms in the buffer of an iterated factorisation."""


def ilu(call: CalledFunction) -> bytes:
    """L and U of an incomplete factorisation without further entries; the first zero pivot."""
    a = read_matrix(call)
    values = a.values()
    positions = _positions(a)
    zero = -1
    for row, entries in enumerate(positions):
        for column in sorted(candidate for candidate in entries if candidate < row):
            pivot = positions[column].get(column)
            if pivot is None or values[pivot] == 0:
                continue
            values[entries[column]] /= values[pivot]
            for other, position in positions[column].items():
                if other > column and other in entries:
                    values[entries[other]] -= values[entries[column]] * values[position]
        diagonal = entries.get(row)
        if zero < 0 and (diagonal is None or values[diagonal] == 0):
            zero = a.block_row(row)
    return zero.to_bytes(4, "little", signed=True)


def ic(call: CalledFunction) -> bytes:
    """L of an incomplete Cholesky factorisation, in the lower triangle; the first pivot that is not
    positive."""
    a = read_matrix(call)
    values = a.values()
    positions = _positions(a)
    zero = -1
    for row, entries in enumerate(positions):
        for column in sorted(candidate for candidate in entries if candidate <= row):
            others = positions[column]
            total = values[entries[column]] - sum(
                values[position] * np.conj(values[others[inner]])
                for inner, position in entries.items()
                if inner < column and inner in others
            )
            if column < row:
                pivot = others.get(column)
                total = total / values[pivot] if pivot is not None else total
            elif total.real > 0:
                total = np.sqrt(total.real)
            else:
                zero = zero if zero >= 0 else a.block_row(row)
            values[entries[column]] = total
        if row not in entries and zero < 0:
            zero = a.block_row(row)
    return zero.to_bytes(4, "little", signed=True)


def _positions(a: SparseMatrix) -> list[dict[int, int]]:
    """Of each row, where in the values its columns are."""
    rows, columns = a.coordinates()
    positions: list[dict[int, int]] = [{} for _ in range(a.shape[0])]
    for position in np.lexsort((columns, rows)).tolist():
        positions[rows[position]][int(columns[position])] = position
    return positions


def iterated_ilu(call: CalledFunction) -> bytes:
    """L and U by iterations over all entries at once, from the entries of the matrix; how many.

    Source: Chow and Patel, Fine-grained parallel incomplete LU factorization, SIAM J. Sci. Comput.
    37 (2015). The norms of each iteration go to a buffer: the largest change, and the largest
    residual of an entry, both as parts of the largest entry.
    """
    option, most = call.numbers(2)
    tolerance, to_at = call.real(), call.number()
    a = read_matrix(call)
    buffer_at = call.number()
    values = a.element.load(a.values())
    rows, columns = a.coordinates()
    lower = rows > columns
    entry, left, right = _terms(a, rows, columns)
    diagonal = np.array([line.get(row, -1) for row, line in enumerate(_positions(a))], np.int64)
    pivots = diagonal[columns]
    scale = float(np.abs(values).max(initial=0)) or 1.0
    factors, corrections, residuals = values.copy(), [], []
    for _ in range(most):
        sums = np.zeros_like(values)
        np.add.at(sums, entry, factors[left] * factors[right])
        rest = values - sums
        new = np.where(lower, rest / factors[pivots], rest)
        # of the factors before this iteration: L has ones on its diagonal
        residual = rest - np.where(lower, factors * factors[pivots], factors)
        corrections.append(float(np.abs(new - factors).max(initial=0)) / scale)
        residuals.append(float(np.abs(residual).max(initial=0)) / scale)
        factors = new
        norms = [
            norm[-1]
            for norm, bit in ((corrections, _CORRECTION), (residuals, _RESIDUAL))
            if option & bit
        ]
        if option & _STOPS and max(norms or residuals[-1:]) <= tolerance:
            break
    a.element.store(call.array(to_at, len(values), a.element), factors)
    call.integers(buffer_at, 1)[0] = len(residuals)
    history = np.array([*corrections, *residuals])
    call.array(buffer_at + _HEAD, len(history), of_type(1))[...] = history
    return len(residuals).to_bytes(4, "little")


def _terms(
    a: SparseMatrix, rows: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The products l(i, k) u(k, j) of each entry (i, j): the entry, and both positions."""
    positions = _positions(a)
    terms = [
        (entry, position, positions[inner][column])
        for entry, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True))
        for inner, position in positions[row].items()
        if inner < min(row, column) and column in positions[inner]
    ]
    entry, left, right = np.array(terms, np.int64).reshape(-1, 3).T
    return entry, left, right


def iterations(call: CalledFunction) -> bytes:
    """How many iterations a factorisation took; its norms go to an array, changes first."""
    element = of_type(call.number())
    buffer_at, to_at = call.numbers(2)
    count = int(call.integers(buffer_at, 1)[0])
    norms = call.array(buffer_at + _HEAD, 2 * count, of_type(1))
    element.real.store(call.array(to_at, 2 * count, element.real), norms)
    return count.to_bytes(4, "little")


def tridiagonal(call: CalledFunction) -> None:
    """x of a tridiagonal system for several right sides, in place."""
    element = of_type(call.number())
    size, sides = call.numbers(2)
    below, middle, above = (element.load(call.array(call.number(), size, element)) for _ in "ldu")
    x = call.matrix(call.number(), size, sides, call.number(), element)
    zeros = np.zeros_like(middle)
    band = np.stack([zeros, below, middle, above, zeros], axis=1)
    element.store(x, _solve_band(band[:, :, None], element.load(x)[:, None, :])[:, 0])


def pentadiagonal(call: CalledFunction) -> None:
    """x of several pentadiagonal systems, whose elements alternate, in place."""
    element = of_type(call.number())
    size, count, stride = call.numbers(3)
    *diagonals, x = (call.matrix(call.number(), count, size, stride, element).T for _ in range(6))
    band = np.stack([element.load(diagonal) for diagonal in diagonals], axis=1)
    element.store(x, _solve_band(band, element.load(x)[:, :, None])[..., 0])


def _solve_band(band: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Solutions by Givens rotations. `band` has the five diagonals of each row, [size, 5, systems],
    the lowest first; `x` is [size, systems, sides]."""
    size = len(band)
    rows = np.zeros((size + 2, 7, band.shape[2]), band.dtype)  # column c of row r at c - r + 2
    rows[:size, :5] = band
    rows[:2, 0] = rows[0, 1] = 0
    for row in range(size):
        rows[row, [index for index in range(5) if row + index - 2 >= size]] = 0
    x = np.concatenate([x, np.zeros((2, *x.shape[1:]), x.dtype)])
    for column in range(size):
        for row in (column + 2, column + 1):
            if row < size:
                _rotate(rows, x, row, column)
    for row in reversed(range(size)):
        for index in range(3, 7):
            if row + index - 2 < size:
                x[row] -= rows[row, index][:, None] * x[row + index - 2]
        x[row] /= rows[row, 2][:, None]
    return x[:size]


def _rotate(rows: np.ndarray, x: np.ndarray, row: int, column: int) -> None:
    """Make the element of a row in a column zero by a rotation with the row above."""
    above = row - 1
    shift = column - above + 2
    first, second = rows[above, shift].copy(), rows[row, shift - 1].copy()
    length = np.sqrt(np.abs(first) ** 2 + np.abs(second) ** 2)
    length = np.where(length == 0, 1, length)
    cosine, sine = np.where(second == 0, 1, first / length), second / length
    upper, lower = rows[above, shift:].copy(), rows[row, shift - 1 :].copy()
    lower_part = lower[: len(upper)]
    rows[above, shift:] = cosine.conj() * upper + sine.conj() * lower_part
    rows[row, shift - 1 : shift - 1 + len(upper)] = cosine * lower_part - sine * upper
    rows[row, shift - 1] = 0
    top, bottom = x[above].copy(), x[row].copy()
    x[above] = cosine.conj()[:, None] * top + sine.conj()[:, None] * bottom
    x[row] = cosine[:, None] * bottom - sine[:, None] * top


FUNCTIONS: dict[str, Function] = {
    function.__name__: function
    for function in (ilu, ic, iterated_ilu, iterations, tridiagonal, pentadiagonal)
}
"""By the name of the function without library."""

__all__ = ["FUNCTIONS"]
