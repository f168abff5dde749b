"""Factorisations: LU, QR and Cholesky, of single matrices and batches (hipBLAS, hipSOLVER)."""

from __future__ import annotations

import numpy as np

from wavecast.runtimes.hip_host.libraries.call import (
    NOT_TRANSPOSED,
    CalledFunction,
    Function,
    InvalidCall,
    apply_operation,
)  # fmt: skip
from wavecast.runtimes.hip_host.libraries.elements import BY_PREFIX
from wavecast.runtimes.hip_host.libraries.triangles import solve_triangular


def lu(a: np.ndarray, pivots: np.ndarray | None) -> int:
    """Overwrite `a` with L and U as LAPACK's getrf does, exchanging rows where there are
    `pivots`, which count from 1. The value is 0, or the number of the first zero on U's
    diagonal."""
    rows, columns = a.shape
    singular = 0
    for at in range(min(rows, columns)):
        if pivots is not None:
            pivot = at + int(np.argmax(np.abs(a[at:, at])))
            pivots[at] = pivot + 1
            if pivot != at:
                a[[at, pivot]] = a[[pivot, at]]
        if a[at, at] == 0:
            singular = singular or at + 1
            continue
        a[at + 1 :, at] /= a[at, at]
        a[at + 1 :, at + 1 :] -= np.outer(a[at + 1 :, at], a[at, at + 1 :])
    return singular


def lu_solved(
    a: np.ndarray, pivots: np.ndarray | None, b: np.ndarray, operation: int
) -> np.ndarray:
    """op(a)^-1 b from the factors of `lu`."""
    lower = np.tril(a, -1) + np.eye(len(a), dtype=a.dtype)
    upper, order = np.triu(a), _permutation(pivots, len(a))
    if operation == NOT_TRANSPOSED:
        return solve_triangular(upper, solve_triangular(lower, b[order]))
    solution = solve_triangular(
        apply_operation(lower, operation), solve_triangular(apply_operation(upper, operation), b)
    )
    back = np.empty_like(solution)
    back[order] = solution
    return back


def _permutation(pivots: np.ndarray | None, count: int) -> np.ndarray:
    order = np.arange(count)
    if pivots is not None and np.any((pivots < 1) | (pivots > count)):
        raise InvalidCall
    for at, other in enumerate([] if pivots is None else pivots.tolist()):
        order[[at, other - 1]] = order[[other - 1, at]]
    return order


def getrf(call: CalledFunction) -> None:
    """LU of square matrices."""
    element = BY_PREFIX[call.kind]
    n, at, leading, pivots_at, info_at, batch, pointers = call.numbers(7)
    infos = call.integers(info_at, batch)
    for number, address in enumerate(call.batch(at, 0, batch, pointers, 0)):
        pivots = call.integers(pivots_at + 4 * n * number, n) if pivots_at else None
        infos[number] = lu(call.matrix(address, n, n, leading, element), pivots)


def getrs(call: CalledFunction) -> None:
    """op(a)^-1 b from LU factors."""
    element = BY_PREFIX[call.kind]
    operation, n, columns, a_at, lda, pivots_at, b_at, ldb, batch, pointers = call.numbers(10)
    addresses = zip(
        call.batch(a_at, 0, batch, pointers, 0), call.batch(b_at, 0, batch, pointers, 0),
        strict=True,
    )  # fmt: skip
    for number, (a_one, b_one) in enumerate(addresses):
        pivots = call.integers(pivots_at + 4 * n * number, n) if pivots_at else None
        b = call.matrix(b_one, n, columns, ldb, element)
        b[...] = lu_solved(call.matrix(a_one, n, n, lda, element), pivots, b, operation)


def getri(call: CalledFunction) -> None:
    """Inverses from LU factors."""
    element = BY_PREFIX[call.kind]
    n, a_at, lda, pivots_at, c_at, ldc, info_at, batch = call.numbers(8)
    infos = call.integers(info_at, batch)
    addresses = zip(call.batch(a_at, 0, batch, 1, 0), call.batch(c_at, 0, batch, 1, 0), strict=True)
    for number, (a_one, c_one) in enumerate(addresses):
        pivots = call.integers(pivots_at + 4 * n * number, n) if pivots_at else None
        a = call.matrix(a_one, n, n, lda, element)
        zeros = np.flatnonzero(np.diagonal(a) == 0)
        infos[number] = 0 if not len(zeros) else zeros[0] + 1
        if not len(zeros):
            unit = np.eye(n, dtype=element.computed)
            call.matrix(c_one, n, n, ldc, element)[...] = lu_solved(a, pivots, unit, NOT_TRANSPOSED)


def gels(call: CalledFunction) -> None:
    """Least squares, or the least solution, of op(a) x = b. a gets the factor R, or L, only."""
    element = BY_PREFIX[call.kind]
    operation, m, n, columns, a_at, lda, b_at, ldb, info_at, batch = call.numbers(10)
    infos = call.integers(info_at, batch) if info_at else None
    addresses = zip(call.batch(a_at, 0, batch, 1, 0), call.batch(b_at, 0, batch, 1, 0), strict=True)
    for number, (a_one, b_one) in enumerate(addresses):
        stored = call.matrix(a_one, m, n, lda, element)
        a = apply_operation(stored, operation)
        b = call.matrix(b_one, max(m, n), columns, ldb, element)
        solution, _, rank, _ = np.linalg.lstsq(a, b[: a.shape[0]], rcond=None)
        b[: a.shape[1]] = solution
        if infos is not None:
            infos[number] = 0 if rank == min(m, n) else rank + 1
        if m >= n:
            at = np.triu_indices(n)
            stored[at] = _triangle_of(stored)[at]
        else:
            at = np.tril_indices(m)
            stored[at] = _triangle_of(stored.conj().T).conj().T[at]


def _triangle_of(a: np.ndarray) -> np.ndarray:
    """R of a = Q R."""
    return np.asarray(np.linalg.qr(a, mode="r"))


FUNCTIONS: dict[str, Function] = {
    "getrf": getrf, "getrs": getrs, "getri": getri, "gels": gels,
}  # fmt: skip
"""Functions of hipBLAS, by the name of the function without library and type."""

__all__ = ["FUNCTIONS", "lu", "lu_solved"]
