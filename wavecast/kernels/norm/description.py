"""What the descriptions of row normalisations have in common: tensors, inputs, work, sizes."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.describe import Signature, Work, checks, sizes

CASES = sizes(
    "rows columns dtype",
    *((5, 300, "bfloat16"), (3, 17, "float32"), (133, 64, "float16"), (2, 20000, "bfloat16")),
)
THOROUGH = sizes(
    "rows columns dtype",
    *((1, 1, "float32"), (700, 128, "bfloat16"), (3, 16385, "float32"), (2, 7168, "float16")),
)
SHAPES = sizes(
    "rows columns dtype",
    *((8192, 4096, "bfloat16"), (8192, 8192, "bfloat16")),
    *((64, 7168, "bfloat16"), (1, 4096, "bfloat16")),
)
HEADS = sizes("rows columns dtype", (262144, 128, "bfloat16"))
"""The heads of a q/k norm."""


def signature(*names: str, results: tuple[str, ...] = ("y",)) -> Signature:
    """Tensors of a norm of rows: x and those like it, `dy` of any dtype, `weight` and `bias` of one
    row. All but x and dy can be None where a call has them as options."""
    row = {"weight": "weight?: [columns] float", "bias": "bias?: [columns] =weight"}
    line = {**row, "x": "x: [..., columns] float", "dy": "dy: [..., columns] float"}
    line |= {"residual?": "residual?: [..., columns] =x", "dsum": "dsum?: [..., columns] =x"}
    like = [line.get(name, f"{name}: [..., columns] =x") for name in names]
    return Signature(*like, returns=tuple(f"{name}: [..., columns] =x" for name in results))


def check_bias(operator: str, weight: Tensor | None, bias: Tensor | None) -> None:
    """A bias needs a weight. Raises ArgumentError."""
    checks.require(bias is None or weight is not None, operator, "a bias needs a weight")


def work(read: int, written: int, operations: float) -> Callable[..., Work]:
    """Work of a call that reads and writes so many tensors like `x`, with so many operations per
    element."""

    def done(rows: int, columns: int, dtype: str, **_: Any) -> Work:
        size = rows * columns * getattr(torch, dtype).itemsize
        flops = {"vector_fp32": operations * rows * columns}
        return Work(flops, read * size, written * size, "formula", "formula")

    return done
