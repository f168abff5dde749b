"""Calls whose speed in the emulator is watched, each beside what does the same on this host.

`python benchmarks/emulate_cases.py` is the process that `emulate_speed.py` starts per tree: it
reads the name of a case and `emulated` or `reference` from each line, makes that call once, and
answers with its processor time in seconds.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton.language as tl
from emulate_gemm import OPTIONS, gemm, operands

import wavecast
from wavecast.kernels import registry
from wavecast.launch.inputs import Make

PLAIN_TILE = (128, 128, 64, 4)
"""BM, BN, BK, waves of a GEMM without tuning."""
IMPROVEMENT = "wavecast-improvement"
"""The name of threads that compile code well, once it has run for long (`emulate/compiled.py`)."""
BLAS = "blas"
"""What to send to learn about numpy's BLAS."""
ENGINE_IDLE = 0.02
"""Seconds before a call: threads of the call before it have ended by then."""


@dataclass(frozen=True, slots=True)
class SpeedCase:
    """One call. `group` is the table it belongs to; `make` gives the emulated call (which runs
    inside the device of `target`) and its reference."""

    group: str
    target: str
    what: str
    make: Callable[[], tuple[Callable[[], Any], Callable[[], Any]]]

    @property
    def name(self) -> str:
        return f"{self.group}/{self.target}/{self.what}"


def _gemm(target: str, dtype: str, size: int) -> SpeedCase:
    """A Triton GEMM with a plain tile; its reference is numpy's product in float32."""

    def make() -> tuple[Callable[[], Any], Callable[[], Any]]:
        left, right = operands(size, dtype, target)
        integer = dtype == "int8"
        out = torch.empty((size, size), dtype=torch.int32 if integer else torch.float32)
        bm, bn, bk, waves = PLAIN_TILE
        options: dict[str, Any] = {
            "BM": bm,
            "BN": bn,
            "BK": bk,
            "ACC": tl.int32 if integer else tl.float32,
            "num_warps": waves,
            **OPTIONS.get(target, {}),
        }
        one = np.random.default_rng(0).standard_normal((size, size), np.float32)
        two = one.T.copy()
        return (
            lambda: gemm[size // bm, size // bn](left, right, out, size, size, **options),
            lambda: np.matmul(one, two),
        )

    return SpeedCase("gemm", target, f"{dtype} {size}", make)


def _operator(target: str, name: str, **sizes: Any) -> SpeedCase:
    """An operator of the library; its reference is the same in plain PyTorch, on the same data."""

    def make() -> tuple[Callable[[], Any], Callable[[], Any]]:
        operator = registry.operator(name)
        arguments = operator.inputs(Make(0), **sizes)
        return lambda: operator.call(**arguments), lambda: operator.reference(**arguments)

    return SpeedCase("library", target, name, make)


BF16 = {"dtype": "bfloat16"}
HEADS = {"b": 1, "s": 512, "t": 512, "hq": 4, "hkv": 2, "d": 128, "causal": True}
ROWS = {"rows": 512, "columns": 4096, **BF16}
EXPERTS = {"tokens": 64, "experts": 8, "model": 512, "inter": 512, "top_k": 2, **BF16}
CASES = (
    *(_gemm(target, "bf16", size)
      for target in ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250") for size in (1024, 2048)),
    *(_gemm(target, dtype, 1024) for target in ("gfx942", "gfx950") for dtype in ("fp8", "int8")),
    _operator("gfx942", "matmul", m=512, n=1024, k=1024, **BF16),
    _operator("gfx950", "scaled_matmul", m=512, n=1024, k=1024, dtype="float8_e4m3fn"),
    _operator("gfx950", "matmul_mx", m=512, n=1024, k=1024),
    _operator("gfx942", "matmul_w4a16", m=256, n=1024, k=1024, **BF16),
    _operator("gfx942", "attention", **HEADS, **BF16),
    _operator("gfx950", "attention_fp8", **HEADS, dtype="float8_e4m3fn"),
    _operator("gfx942", "paged_decode", sequences=8, heads=16, kv_heads=2, head=128, length=512,
              **BF16),
    _operator("gfx942", "rms_norm", **ROWS),
    _operator("gfx1201", "layer_norm", **ROWS),
    _operator("gfx942", "log_softmax", **ROWS),
    _operator("gfx942", "silu_mul", **ROWS),
    _operator("gfx942", "rope", tokens=512, q_heads=16, k_heads=4, dim=128, **BF16),
    _operator("gfx942", "moe_experts", **EXPERTS),
    _operator("gfx942", "moe_experts_int8", **EXPERTS),
    _operator("gfx942", "cross_entropy", **ROWS),
)  # fmt: skip


def serve(lines: Iterator[str]) -> None:
    """Answer lines of `NAME<tab>emulated|reference` with seconds, or with `error` and a reason.
    The device of a case stays open until another case follows."""
    by_name = {case.name: case for case in CASES}
    current, call = "", None
    with ExitStack() as stack:
        for line in lines:
            if line.strip() == BLAS:
                print(blas(), flush=True)
                continue
            if line != current:
                stack.close()
                name, which = line.strip().split("\t")
                emulated, reference = by_name[name].make()
                call = emulated if which == "emulated" else reference
                if which == "emulated":
                    stack.enter_context(wavecast.device(by_name[name].target, threads=1))
                current = line
            assert call is not None
            try:
                print(repr(_timed(call)), flush=True)
            except Exception as error:
                text = f"{type(error).__name__}: {error}".splitlines()[0]
                print(f"error {text}", flush=True)


def blas() -> str:
    """numpy's release, its BLAS, and the kernel that this chose."""
    build = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    folder = Path(np.__file__).parents[1] / "numpy.libs"
    core = "?"
    for path in folder.glob("*openblas*"):
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_get_corename64_", "openblas_get_corename"):
            if hasattr(library, name):
                function = getattr(library, name)
                function.restype = ctypes.c_char_p
                core = function().decode()
    return f"numpy {np.__version__}: {build['name']} {build['version']}, kernel {core}"


def _timed(call: Callable[[], Any]) -> float:
    """Processor time of a call, in seconds, without that of threads that compile its code well."""
    while True:
        _wait_for_compilation()
        time.sleep(ENGINE_IDLE)
        start = time.process_time()
        call()
        seconds = time.process_time() - start
        if not _wait_for_compilation():
            return seconds


def _wait_for_compilation() -> bool:
    """Whether there was a compilation to wait for."""
    threads = [thread for thread in threading.enumerate() if thread.name == IMPROVEMENT]
    for thread in threads:
        thread.join()
    return bool(threads)


if __name__ == "__main__":
    torch.set_num_threads(1)
    requests = os.fdopen(os.dup(0), "r")
    serve(iter(requests))
    sys.exit(0)
