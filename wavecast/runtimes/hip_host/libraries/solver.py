"""hipSOLVER on dense matrices (`hipsolver/hipsolver.h`)."""

from __future__ import annotations

from typing import Final

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
)
from wavecast.runtimes.hip_host.libraries.elements import BY_PREFIX
from wavecast.runtimes.hip_host.libraries.factors import lu, lu_solved
from wavecast.runtimes.hip_host.libraries.triangles import (
    NON_UNIT,
    UPPER,
    solve_triangular,
    symmetric,
    triangle,
    write_triangle,
)  # fmt: skip

_MODES: Final = (201, 202)
"""HIPSOLVER_EIG_MODE_NOVECTOR and HIPSOLVER_EIG_MODE_VECTOR."""
_TYPE_1, _TYPE_2, _TYPE_3 = 211, 212, 213
"""HIPSOLVER_EIG_TYPE_1 to HIPSOLVER_EIG_TYPE_3."""
_ALL, _BY_VALUE, _BY_INDEX = 221, 222, 223
"""HIPSOLVER_EIG_RANGE_ALL, HIPSOLVER_EIG_RANGE_V and HIPSOLVER_EIG_RANGE_I."""
_JOBS: Final = tuple(map(ord, "ASON"))
"""Which singular vectors there are: all, the first, the first in the matrix, none."""


def _report(call: CalledFunction, address: int, value: int) -> None:
    """Store a status, where the function has an argument for it."""
    if address:
        call.integers(address, 1)[0] = value


def potrf(call: CalledFunction) -> None:
    """Cholesky: one triangle gets the factor; info is the first minor that is not positive."""
    element = BY_PREFIX[call.kind]
    fill, n, at, leading, info = call.numbers(5)
    a = call.matrix(at, n, n, leading, element)
    whole = symmetric(a, fill, hermitian=True)
    minor = _first_not_positive(whole)
    if not minor:
        factor = np.linalg.cholesky(whole)
        write_triangle(a, factor.conj().T if fill == UPPER else factor, fill, hermitian=False)
    _report(call, info, minor)


def _first_not_positive(a: np.ndarray) -> int:
    def positive(size: int) -> bool:
        try:
            np.linalg.cholesky(a[:size, :size])
        except np.linalg.LinAlgError:
            return False
        return True

    if positive(len(a)):
        return 0
    good, bad = 0, len(a)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if positive(middle) else (good, middle)
    return bad


def potrs(call: CalledFunction) -> None:
    """a^-1 b from a Cholesky factor."""
    element = BY_PREFIX[call.kind]
    fill, n, columns, a_at, lda, b_at, ldb, info = call.numbers(8)
    half = triangle(call.matrix(a_at, n, n, lda, element), fill, NON_UNIT)
    lower = half.conj().T if fill == UPPER else half
    b = call.matrix(b_at, n, columns, ldb, element)
    b[...] = solve_triangular(lower.conj().T, solve_triangular(lower, b))
    _report(call, info, 0)


def getrf(call: CalledFunction) -> None:
    """LU with exchanged rows, or without them where there is no array of pivots."""
    element = BY_PREFIX[call.kind]
    m, n, at, leading, pivots_at, info = call.numbers(6)
    pivots = call.integers(pivots_at, min(m, n)) if pivots_at else None
    _report(call, info, lu(call.matrix(at, m, n, leading, element), pivots))


def getrs(call: CalledFunction) -> None:
    """op(a)^-1 b from LU factors."""
    element = BY_PREFIX[call.kind]
    operation, n, columns, a_at, lda, pivots_at, b_at, ldb, info = call.numbers(9)
    pivots = call.integers(pivots_at, n) if pivots_at else None
    b = call.matrix(b_at, n, columns, ldb, element)
    b[...] = lu_solved(call.matrix(a_at, n, n, lda, element), pivots, b, operation)
    _report(call, info, 0)


def getri(call: CalledFunction) -> None:
    """The inverse, in place of LU factors; info is the first pivot that is 0."""
    element = BY_PREFIX[call.kind]
    n, at, leading, pivots_at, info = call.numbers(5)
    a = call.matrix(at, n, n, leading, element)
    zeros = np.flatnonzero(np.diagonal(a) == 0)
    if not zeros.size:
        pivots = call.integers(pivots_at, n)
        a[...] = lu_solved(a, pivots, np.eye(n, dtype=a.dtype), NOT_TRANSPOSED)
    _report(call, info, int(zeros[0]) + 1 if zeros.size else 0)


def geqrf(call: CalledFunction) -> None:
    """QR: R, and the reflectors of Q with their factors, as of LAPACK."""
    element = BY_PREFIX[call.kind]
    m, n, at, leading, tau_at, info = call.numbers(6)
    a = call.matrix(at, m, n, leading, element)
    reflectors, tau = np.linalg.qr(a, mode="raw")
    a[...] = reflectors.T
    call.array(tau_at, min(m, n), element)[...] = tau
    _report(call, info, 0)


def gesvd(call: CalledFunction) -> None:
    """Singular values, largest first, and the vectors that are asked for: A all, S the first."""
    element = BY_PREFIX[call.kind]
    left, right, m, n, at, leading, s_at, u_at, ldu, v_at, ldv, info = call.numbers(12)
    a = call.matrix(at, m, n, leading, element)
    for job in (left, right):
        check_value(job, *_JOBS)
    u, s, v = np.linalg.svd(a, full_matrices=ord("A") in (left, right))
    call.array(s_at, min(m, n), element.real)[...] = s
    least = min(m, n)
    jobs = ((left, u, u[:, :least], u_at, ldu), (right, v, v[:least], v_at, ldv))
    for job, whole, first, address, ld in jobs:
        vectors = whole if job == ord("A") else first
        rows, columns = vectors.shape
        if job in (ord("A"), ord("S")):
            call.matrix(address, rows, columns, ld, element)[...] = vectors
        elif job == ord("O"):
            a[:rows, :columns] = vectors
    _report(call, info, 0)


def _reflected(reflectors: np.ndarray, tau: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Q c, by the reflectors below the diagonal of a QR factorisation [m, k], their factors [k] and
    c [m, n]."""
    for column in reversed(range(len(tau))):
        v = reflectors[column:, column].copy()
        v[0] = 1
        c[column:] -= tau[column] * np.outer(v, v.conj() @ c[column:])
    return c


def orgqr(call: CalledFunction) -> None:
    """The first columns of Q, in place of the reflectors."""
    element = BY_PREFIX[call.kind]
    m, n, count, at, leading, tau_at, info = call.numbers(7)
    if not 0 <= count <= n <= m:
        raise InvalidCall
    a = call.matrix(at, m, n, leading, element)
    tau = call.array(tau_at, count, element)
    a[...] = _reflected(a[:, :count], tau, np.eye(m, n, dtype=a.dtype))
    _report(call, info, 0)


def ormqr(call: CalledFunction) -> None:
    """op(Q) c or c op(Q)."""
    element = BY_PREFIX[call.kind]
    side, operation, m, n, count, a_at, lda, tau_at, c_at, ldc, info = call.numbers(11)
    left = check_value(side, LEFT, RIGHT) == LEFT
    order = m if left else n
    if not 0 <= count <= order:
        raise InvalidCall
    a, tau = call.matrix(a_at, order, count, lda, element), call.array(tau_at, count, element)
    q = apply_operation(_reflected(a, tau, np.eye(order, dtype=a.dtype)), operation)
    c = call.matrix(c_at, m, n, ldc, element)
    c[...] = q @ c if left else c @ q
    _report(call, info, 0)


def gels(call: CalledFunction) -> bytes:
    """Least squares: x of the least |a x - b|. Returns the iterations, of which there are none."""
    element = BY_PREFIX[call.kind]
    m, n, columns, a_at, lda, b_at, ldb, x_at, ldx, info = call.numbers(10)
    a, b = call.matrix(a_at, m, n, lda, element), call.matrix(b_at, m, columns, ldb, element)
    solution, _, rank, _ = np.linalg.lstsq(a, b, rcond=None)
    call.matrix(x_at, n, columns, ldx, element)[...] = solution
    _report(call, info, 0 if rank == min(m, n) else int(rank) + 1)
    return np.int32(0).tobytes()


def syevd(call: CalledFunction) -> None:
    """Eigenvalues of symmetric or Hermitian matrices, least first; a gets the vectors. Those of a
    batch are at equal distances, or where pointers say."""
    element = BY_PREFIX[call.kind]
    mode, fill, n, at, leading, w_at, info, batch, a_step, w_step, pointers = call.numbers(11)
    wants_vectors = check_value(mode, *_MODES) == _MODES[1]
    addresses = call.batch(at, a_step, batch, pointers, element.stored.itemsize)
    w = call.array(w_at, (batch - 1) * w_step + n, element.real)
    for index, address in enumerate(addresses):
        a = call.matrix(address, n, n, leading, element)
        values, vectors = np.linalg.eigh(symmetric(a, fill, hermitian=True))
        w[index * w_step : index * w_step + n] = values
        if wants_vectors:
            a[...] = vectors
    call.integers(info, batch)[...] = 0


def syevdx(call: CalledFunction) -> bytes:
    """The eigenvalues of a range, by value (lower, upper] or by index from 1 on. Returns how many;
    the first columns of a get their vectors."""
    element = BY_PREFIX[call.kind]
    mode, selection, fill, n, at, leading = call.numbers(6)
    wants_vectors = check_value(mode, *_MODES) == _MODES[1]
    check_value(selection, _ALL, _BY_VALUE, _BY_INDEX)
    lower, upper = call.real(), call.real()
    first, last, w_at, info = call.numbers(4)
    empty = selection == _BY_VALUE and lower >= upper
    if empty or (selection == _BY_INDEX and n and not 1 <= first <= last <= n):
        raise InvalidCall
    a = call.matrix(at, n, n, leading, element)
    values, vectors = np.linalg.eigh(symmetric(a, fill, hermitian=True))
    chosen = np.ones(n, bool)
    if selection == _BY_VALUE:
        chosen = (values > lower) & (values <= upper)
    elif selection == _BY_INDEX:
        chosen = (np.arange(1, n + 1) >= first) & (np.arange(1, n + 1) <= last)
    count = int(chosen.sum())
    call.array(w_at, n, element.real)[:count] = values[chosen]
    if wants_vectors:
        a[:, :count] = vectors[:, chosen]
    _report(call, info, 0)
    return np.int32(count).tobytes()


def sygvd(call: CalledFunction) -> None:
    """Eigenvalues of a x = w b x (type 1), a b x = w x (2) or b a x = w x (3), b positive. a gets
    the vectors, b its Cholesky factor; info is n + the first minor of b that is not positive."""
    element = BY_PREFIX[call.kind]
    kind, mode, fill, n, a_at, lda, b_at, ldb, w_at, info = call.numbers(10)
    wants_vectors = check_value(mode, *_MODES) == _MODES[1]
    check_value(kind, _TYPE_1, _TYPE_2, _TYPE_3)
    a, b = (call.matrix(at, n, n, leading, element) for at, leading in ((a_at, lda), (b_at, ldb)))
    whole_b = symmetric(b, fill, hermitian=True)
    if minor := _first_not_positive(whole_b):
        _report(call, info, n + minor)
        return
    whole, factor = symmetric(a, fill, hermitian=True), np.linalg.cholesky(whole_b)
    adjoint = factor.conj().T
    if kind == _TYPE_1:
        half = solve_triangular(factor, whole)
        reduced = solve_triangular(factor, half.conj().T).conj().T
    else:
        reduced = adjoint @ whole @ factor
    values, vectors = np.linalg.eigh(reduced)
    call.array(w_at, n, element.real)[...] = values
    if wants_vectors:
        a[...] = factor @ vectors if kind == _TYPE_3 else solve_triangular(adjoint, vectors)
    write_triangle(b, adjoint if fill == UPPER else factor, fill, hermitian=False)
    _report(call, info, 0)


FUNCTIONS: dict[str, Function] = {
    function.__name__: function
    for function in (
        potrf,
        potrs,
        getrf,
        getrs,
        getri,
        geqrf,
        orgqr,
        ormqr,
        gels,
        gesvd,
        syevd,
        syevdx,
        sygvd,
    )
}
"""By the name of the function without library and type."""

__all__ = ["FUNCTIONS"]
