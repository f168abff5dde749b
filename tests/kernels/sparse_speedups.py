"""The table of docs/sparse.md: what 2:4 sparse products are predicted to save.

python -m tests.kernels.sparse_speedups --write    # the table again: 2 minutes
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from wavecast import arch
from wavecast.kernels.sparse.instructions import sparse_product
from wavecast.pipeline.library.library import Surveyed, survey_call
from wavecast.report.kit.units import seconds

DOCS: Final = Path(__file__).parents[2] / "docs" / "sparse.md"
BEGIN: Final = "<!-- speedups: python -m tests.kernels.sparse_speedups --write -->\n"
END: Final = "<!-- end of speedups -->\n"
GPUS: Final = ("mi300x", "mi355x", "rx9070xt", "mi455x")
DTYPES: Final = {"bfloat16": "bf16", "float16": "f16", "float8_e4m3fn": "fp8", "int8": "i8"}
"""Dtypes, and the element types of the instruction table."""
SHAPES: Final = ((16, 28672, 4096), (4096, 10240, 8192))
HEAD: Final = (
    "| GPU | target | dtype | instruction | m=16 n=28672 k=4096 | dense | speedup "
    "| m=4096 n=10240 k=8192 | dense | speedup |\n|---|---|---|---|--:|--:|--:|--:|--:|--:|\n"
)


def row(gpu: str, dtype: str) -> str:
    """A line of the table."""
    device = arch.load(gpu)
    element = DTYPES[dtype]
    product = sparse_product(device.target, element, element)
    assert product is not None
    if element == "fp8" and dtype not in device.capabilities.matrix_fp8:
        dtype = "float8_e4m3fnuz"
    cells = [gpu, device.target, dtype, f"`{product.name}`"]
    for m, n, k in SHAPES:
        sizes: dict[str, Any] = {"m": m, "n": n, "k": k, "dtype": dtype}
        sparse = survey_call(("matmul_sparse24", sizes, gpu))
        narrow = element in ("fp8", "i8")
        further = {"scales": "tensor"} if narrow else {"layout": "NT"}
        dense = survey_call(("scaled_matmul" if narrow else "matmul", {**sizes, **further}, gpu))
        cells += [_time(sparse), _time(dense), f"{_speedup(sparse, dense):.2f}"]
    return "| " + " | ".join(cells) + " |\n"


def table(gpus: Sequence[str] = GPUS, dtypes: Sequence[str] = tuple(DTYPES)) -> str:
    """The lines of GPUs and dtypes."""
    return HEAD + "".join(row(gpu, dtype) for gpu in gpus for dtype in dtypes)


def stored() -> str:
    """The table in the docs."""
    return DOCS.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def _time(call: Surveyed) -> str:
    """The time, with its interval."""
    assert not call.failure, call.failure
    time, low, high = (seconds(_total(call, name)) for name in ("seconds", "low", "high"))
    return f"{time} ({low} to {high})"


def _total(call: Surveyed, name: str) -> float:
    """Seconds of all kernels of a call."""
    return sum(kernel.count * getattr(kernel, name) for kernel in call.kernels)


def _speedup(sparse: Surveyed, dense: Surveyed) -> float:
    return _total(dense, "seconds") / _total(sparse, "seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if not parser.parse_args().write:
        print(table())
        return
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCS.write_text(before + BEGIN + table() + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
