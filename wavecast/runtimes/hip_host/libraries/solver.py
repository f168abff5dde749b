"""hipSOLVER on dense matrices (`hipsolver/hipsolver.h`)."""

from __future__ import annotations

from typing import Final

import numpy as np

from wavecast.runtimes.hip_host.libraries.call import CalledFunction, Function
from wavecast.runtimes.hip_host.libraries.elements import BY_PREFIX
from wavecast.runtimes.hip_host.libraries.factors import lu, lu_solved
from wavecast.runtimes.hip_host.libraries.triangles import (
    UPPER,
    solve_triangular,
    symmetric,
    write_triangle,
)  # fmt: skip

_VECTORS: Final = 202
"""HIPSOLVER_EIG_MODE_VECTOR."""


def _report(call: CalledFunction, address: int, value: int) -> None:
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
    a = call.matrix(a_at, n, n, lda, element)
    lower = np.triu(a).conj().T if fill == UPPER else np.tril(a)
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


def syevd(call: CalledFunction) -> None:
    """Eigenvalues of a symmetric or Hermitian matrix, least first; a gets the vectors."""
    element = BY_PREFIX[call.kind]
    mode, fill, n, at, leading, w_at, info = call.numbers(7)
    a = call.matrix(at, n, n, leading, element)
    values, vectors = np.linalg.eigh(symmetric(a, fill, hermitian=True))
    call.array(w_at, n, element.real)[...] = values
    if mode == _VECTORS:
        a[...] = vectors
    _report(call, info, 0)


FUNCTIONS: dict[str, Function] = {
    function.__name__: function for function in (potrf, potrs, getrf, getrs, geqrf, gesvd, syevd)
}
"""By the name of the function without library and type."""

__all__ = ["FUNCTIONS"]
