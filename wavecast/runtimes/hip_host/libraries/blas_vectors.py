"""hipBLAS on vectors, and on matrices with vectors."""

from __future__ import annotations

import numpy as np

from wavecast.runtimes.hip_host.libraries.call import (
    CalledFunction,
    Function,
    InvalidCall,
    apply_operation,
)  # fmt: skip
from wavecast.runtimes.hip_host.libraries.elements import BY_PREFIX, Element, of_type
from wavecast.runtimes.hip_host.libraries.triangles import (
    solve_triangular,
    symmetric,
    triangle,
    write_triangle,
)  # fmt: skip

_BLOCK = 4096


def _vector(call: CalledFunction, count: int, element: Element) -> np.ndarray:
    """The vector of the next two arguments, address and distance of elements."""
    address, step = call.numbers(2)
    return call.vector(address, count, step, element)


def _operand(call: CalledFunction, count: int, element: Element) -> np.ndarray:
    """As `_vector`, of functions with matrices: the distance is not 0."""
    address, step = call.numbers(2)
    if not step:
        raise InvalidCall
    return call.vector(address, count, step, element)


def _pack_scalar(element: Element, value: complex) -> bytes:
    to = np.zeros(1, element.stored)
    element.store(to, np.array([value]).astype(element.computed))
    return to.tobytes()


def axpy(call: CalledFunction) -> None:
    """y += alpha x."""
    element, count = BY_PREFIX[call.kind], call.number()
    alpha = call.scalar(element)
    x, y = _vector(call, count, element), _vector(call, count, element)
    y += element.computed.type(alpha) * x


def scal(call: CalledFunction) -> None:
    """x *= alpha."""
    element, count = BY_PREFIX[call.kind], call.number()
    alpha = call.scalar(element)
    x = _vector(call, count, element)
    x *= element.computed.type(alpha)


def scal_real(call: CalledFunction) -> None:
    """x *= alpha, a real number."""
    element, count = BY_PREFIX[call.kind], call.number()
    alpha = call.scalar(element.real)
    x = _vector(call, count, element)
    x *= element.real.computed.type(alpha.real)


def copy(call: CalledFunction) -> None:
    """y = x."""
    element, count = BY_PREFIX[call.kind], call.number()
    x, y = _vector(call, count, element), _vector(call, count, element)
    y[...] = x


def swap(call: CalledFunction) -> None:
    """x, y = y, x."""
    element, count = BY_PREFIX[call.kind], call.number()
    x, y = _vector(call, count, element), _vector(call, count, element)
    x[...], y[...] = y.copy(), x.copy()


def _extreme(call: CalledFunction, largest: bool) -> bytes:
    """The first index, from 1, of the largest or least |Re x| + |Im x|; 0 for an empty vector."""
    element, (bytes_of_index, count) = BY_PREFIX[call.kind], call.numbers(2)
    x = _vector(call, count, element)
    sizes = np.abs(np.real(x)) + np.abs(np.imag(x)) if np.iscomplexobj(x) else np.abs(x)
    index = 0 if not len(x) else 1 + int(np.argmax(sizes) if largest else np.argmin(sizes))
    return index.to_bytes(bytes_of_index, "little")


def asum(call: CalledFunction) -> bytes:
    """The sum of |Re x| + |Im x|."""
    element, count = BY_PREFIX[call.kind], call.number()
    x = _vector(call, count, element)
    total = np.abs(np.real(x)).sum() + (np.abs(np.imag(x)).sum() if np.iscomplexobj(x) else 0)
    return _pack_scalar(element.real, total)


def nrm2(call: CalledFunction) -> bytes:
    """The Euclidean norm."""
    element, count = BY_PREFIX[call.kind], call.number()
    x = _vector(call, count, element)
    wide = x.astype(np.result_type(x.dtype, np.float64))
    return _pack_scalar(element.real, np.sqrt(np.vdot(wide, wide).real))


def _sum_of_products(x: np.ndarray, y: np.ndarray) -> complex:
    """The sum of x y in blocks, whose sums are added in double precision: one sum in single
    precision would lose more than the tree of a GPU does."""
    starts = range(0, len(x), _BLOCK)
    return sum((np.dot(x[at : at + _BLOCK], y[at : at + _BLOCK]).item() for at in starts), 0.0)


def dot(call: CalledFunction) -> bytes:
    """The sum of x y."""
    element, count = BY_PREFIX[call.kind], call.number()
    x, y = (element.load(_vector(call, count, element)) for _ in range(2))
    return _pack_scalar(element, _sum_of_products(x, y))


def dotc(call: CalledFunction) -> bytes:
    """The sum of conj(x) y."""
    element, count = BY_PREFIX[call.kind], call.number()
    x, y = _vector(call, count, element), _vector(call, count, element)
    return _pack_scalar(element, _sum_of_products(x.conj(), y))


def rot(call: CalledFunction) -> None:
    """x, y = c x + s y, c y - s x."""
    element, count = BY_PREFIX[call.kind], call.number()
    x, y = _vector(call, count, element), _vector(call, count, element)
    c, s = (element.computed.type(call.scalar(element)) for _ in range(2))
    x[...], y[...] = c * x + s * y, c * y - s * x


def rotg(call: CalledFunction) -> bytes:
    """r, z, c, s of the Givens rotation of a and b (netlib, drotg)."""
    element = BY_PREFIX[call.kind]
    a, b = call.scalar(element).real, call.scalar(element).real
    r = float(np.copysign(np.hypot(a, b), a if abs(a) > abs(b) else b))
    c, s = (a / r, b / r) if r else (1.0, 0.0)
    z = (s if abs(a) > abs(b) else 1 / c if c else 1.0) if r else 0.0
    return np.array([r, z, c, s], element.stored).tobytes()


def dot_ex(call: CalledFunction) -> bytes:
    """The sum of x y, of types given by arguments."""
    count, pairs = call.number(), []
    for _ in range(2):
        address, kind, step = call.numbers(3)
        element = of_type(kind)
        pairs.append(element.load(call.vector(address, count, step, element)))
    result, compute = (of_type(number) for number in call.numbers(2))
    x, y = (vector.astype(compute.computed, copy=False) for vector in pairs)
    return _pack_scalar(result, _sum_of_products(x, y))


def nrm2_ex(call: CalledFunction) -> bytes:
    """The Euclidean norm, of types given by arguments."""
    count = call.number()
    address, kind, step, result, _ = call.numbers(5)
    element = of_type(kind)
    x = element.load(call.vector(address, count, step, element))
    return _pack_scalar(
        of_type(result), float(np.linalg.norm(x.astype(np.result_type(x.dtype, "f8"))))
    )


def axpy_ex(call: CalledFunction) -> None:
    """y += alpha x, of types given by arguments."""
    count, raw = call.number(), call.numbers(2)
    alpha = _scalar_of(raw, of_type(call.number()))
    x_at, x_kind, x_step, y_at, y_kind, y_step, compute = call.numbers(7)
    x_element, y_element = of_type(x_kind), of_type(y_kind)
    x = x_element.load(call.vector(x_at, count, x_step, x_element))
    y = call.vector(y_at, count, y_step, y_element)
    kind = of_type(compute).computed
    y_element.store(y, y_element.load(y).astype(kind) + kind.type(alpha) * x.astype(kind))


def scal_ex(call: CalledFunction) -> None:
    """x *= alpha, of types given by arguments."""
    count, raw = call.number(), call.numbers(2)
    alpha = _scalar_of(raw, of_type(call.number()))
    address, kind, step, compute = call.numbers(4)
    element = of_type(kind)
    x = call.vector(address, count, step, element)
    dtype = of_type(compute).computed
    element.store(x, element.load(x).astype(dtype) * dtype.type(alpha))


def _scalar_of(words: list[int], element: Element) -> complex:
    raw = np.array(words, np.int64).tobytes()
    return element.load(np.frombuffer(raw, element.stored, count=1))[0].item()


def gemv(call: CalledFunction) -> None:
    """y = alpha op(a) x + beta y."""
    element = BY_PREFIX[call.kind]
    operation, rows, columns = call.numbers(3)
    if not (rows and columns):
        return
    alpha = call.scalar(element)
    address, leading = call.numbers(2)
    a = apply_operation(call.matrix(address, rows, columns, leading, element), operation)
    x = _operand(call, a.shape[1], element)
    beta = call.scalar(element)
    y = _operand(call, a.shape[0], element)
    _update(y, alpha, a @ x, beta)


def _update(y: np.ndarray, alpha: complex, product: np.ndarray, beta: complex) -> None:
    """y = alpha product + beta y; with a beta of zero y is not read, as it may be NaN."""
    kind = y.dtype.type
    y[...] = kind(alpha) * product if beta == 0 else kind(alpha) * product + kind(beta) * y


def symv(call: CalledFunction) -> None:
    """y = alpha a x + beta y with one triangle of a symmetric or Hermitian matrix."""
    element = BY_PREFIX[call.kind]
    fill, count = call.numbers(2)
    alpha = call.scalar(element)
    address, leading = call.numbers(2)
    a = symmetric(call.matrix(address, count, count, leading, element), fill, ".hemv." in call.name)
    x = _operand(call, count, element)
    beta = call.scalar(element)
    _update(_operand(call, count, element), alpha, a @ x, beta)


def ger(call: CalledFunction) -> None:
    """a += alpha x y^T, or y^H for `gerc`."""
    element = BY_PREFIX[call.kind]
    rows, columns = call.numbers(2)
    alpha = call.scalar(element)
    x, y = _operand(call, rows, element), _operand(call, columns, element)
    address, leading = call.numbers(2)
    a = call.matrix(address, rows, columns, leading, element)
    a += element.computed.type(alpha) * np.outer(x, y.conj() if ".gerc." in call.name else y)


def syr(call: CalledFunction) -> None:
    """One triangle of a += alpha x x^T, or x^H for `her`."""
    element, hermitian = BY_PREFIX[call.kind], ".her." in call.name
    fill, count = call.numbers(2)
    alpha = call.scalar(element.real if hermitian else element)
    x = _operand(call, count, element)
    address, leading = call.numbers(2)
    a = call.matrix(address, count, count, leading, element)
    product = np.outer(x, x.conj() if hermitian else x)
    write_triangle(a, a + element.computed.type(alpha) * product, fill, hermitian)


def syr2(call: CalledFunction) -> None:
    """One triangle of a += alpha x y^T + alpha y x^T, conjugated for `her2`."""
    element, hermitian = BY_PREFIX[call.kind], ".her2." in call.name
    fill, count = call.numbers(2)
    alpha = element.computed.type(call.scalar(element))
    x, y = _operand(call, count, element), _operand(call, count, element)
    address, leading = call.numbers(2)
    a = call.matrix(address, count, count, leading, element)
    product = alpha * np.outer(x, y.conj() if hermitian else y)
    other = product.conj().T if hermitian else product.T
    write_triangle(a, a + product + other, fill, hermitian)


def trmv(call: CalledFunction) -> None:
    """x = op(a) x with a triangle."""
    a, x = _triangular(call)
    x[...] = a @ x


def trsv(call: CalledFunction) -> None:
    """x = op(a)^-1 x with a triangle."""
    a, x = _triangular(call)
    x[...] = solve_triangular(a, x[:, None])[:, 0]


def _triangular(call: CalledFunction) -> tuple[np.ndarray, np.ndarray]:
    element = BY_PREFIX[call.kind]
    fill, operation, diagonal, count, address, leading = call.numbers(6)
    a = triangle(call.matrix(address, count, count, leading, element), fill, diagonal)
    return apply_operation(a, operation), _operand(call, count, element)


FUNCTIONS: dict[str, Function] = {
    "axpy": axpy,
    "scal": scal,
    "scal_real": scal_real,
    "copy": copy,
    "swap": swap,
    "amax": lambda call: _extreme(call, True),
    "amin": lambda call: _extreme(call, False),
    "asum": asum,
    "nrm2": nrm2,
    "dot": dot,
    "dotu": dot,
    "dotc": dotc,
    "rot": rot,
    "rotg": rotg,
    "dot_ex": dot_ex,
    "nrm2_ex": nrm2_ex,
    "axpy_ex": axpy_ex,
    "scal_ex": scal_ex,
    "gemv": gemv,
    "symv": symv,
    "hemv": symv,
    "ger": ger,
    "geru": ger,
    "gerc": ger,
    "syr": syr,
    "her": syr,
    "syr2": syr2,
    "her2": syr2,
    "trmv": trmv,
    "trsv": trsv,
}
"""By the name of the function without library and type."""

__all__ = ["FUNCTIONS"]
