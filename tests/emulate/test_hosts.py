"""Native code for hosts other than this one: fewer features, and another instruction set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from llvmlite import binding

from tests.emulate.memory_support import kernel_of
from wavecast.compile.processor import VARIABLE, Processor, processor
from wavecast.emulate import native
from wavecast.emulate.lower import matrix, runtime
from wavecast.emulate.matrix.host import host
from wavecast.errors import UsageError

AARCH64 = 0xB7
"""ELF machine number. Source: ELF for the Arm 64-bit Architecture."""
BODY = """
	v_cvt_f32_u32_e32 v2, v0
	v_fma_f32 v3, v2, v2, 1.0
	v_mfma_f32_16x16x16_bf16 v[8:11], v[2:3], v[2:3], 0
	global_store_dword v1, v8, s[8:9]
"""
SAME = """
import sys
from tests.emulate.test_outlining import _ran
from wavecast.compile.processor import processor
print(processor().strip_lanes)
for quick in (True, False):
    print(_ran("gfx942", quick=quick).tolist())
"""


def _printed(level: str) -> list[str]:
    environment = {**os.environ, VARIABLE: level}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SAME], env=environment, cwd=root, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.skipif(processor().architecture != "x86_64", reason="levels of x86-64")
def test_every_strip_width_gives_the_same() -> None:
    usual = _printed("")
    for level, lanes in (("x86-64-v2", "4"), ("x86-64-v3", "8")):
        if processor().strip_lanes < int(lanes):
            continue
        first, *rest = _printed(level)
        assert first == lanes
        assert rest == usual[1:]


def test_levels_nobody_knows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "pentium")
    with pytest.raises(UsageError, match="pentium"):
        processor.__wrapped__()


@pytest.mark.parametrize("quick", [True, False])
def test_code_for_aarch64(monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    other = Processor("aarch64-unknown-linux-gnu", "generic", "+neon", frozenset())
    monkeypatch.setattr(native, "processor", lambda: other)
    monkeypatch.setattr(runtime, "processor", lambda: other)
    monkeypatch.setattr(matrix, "detect", lambda: host(other.architecture, {}))
    made = native.compile_kernel(kernel_of("gfx942", BODY), quick=quick)
    objects = [made.code, runtime._compile(made.outlined)]
    assert len(made.outlined) > 2
    for code in objects:
        assert code[:4] == b"\x7fELF"
        assert int.from_bytes(code[18:20], "little") == AARCH64
