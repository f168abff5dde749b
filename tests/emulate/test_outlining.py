"""Kernels translated quickly: calls of functions per shape of instruction, later replaced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.memory_support import TARGETS, assembly, kernel_of, lanes_of, pointers
from wavecast.compile.assembly import load
from wavecast.compile.codeobject import Launch
from wavecast.emulate import engine, native
from wavecast.emulate.check.writers import WriterMode
from wavecast.emulate.lower.outlining import shape_of
from wavecast.emulate.mode import Mode
from wavecast.isa.decode import Decoder

ARITHMETIC = """
	v_mov_b32_e32 v2, 0x40490fdb
	v_cvt_f32_u32_e32 v3, v0
	v_fma_f32 v4, -v3, v2, 1.0
	v_mul_f32_e64 v5, |v4|, 0.5 clamp
	v_rcp_f32_e32 v6, v4
	v_cmp_gt_f32_e32 {mask}, v5, v6
	v_cndmask_b32_e64 v7, v5, v6, {mask}
	v_lshlrev_b32_e32 v7, 1, v7
	v_mad_u32_u24 v8, v0, 7, v7
	v_readlane_b32 s20, v8, 3
	v_xor_b32_e32 v8, s20, v8
	v_mov_b32_dpp v9, v8 row_shr:1 row_mask:0xf bank_mask:0xf
	v_add_f64 v[10:11], v[2:3], v[2:3]
	v_xor_b32_e32 v9, v9, v11
	v_cmp_ne_u32_e64 s[22:23], v9, v8
	v_cndmask_b32_e64 v9, v9, v0, s[22:23]
	{store}
"""


def _ran(target: str, *, quick: bool) -> np.ndarray:
    out = np.zeros(lanes_of(target), np.uint32)
    gfx12 = target.startswith("gfx12")
    store = "global_store_b32" if gfx12 else "global_store_dword"
    mask = "vcc" if lanes_of(target) == 64 else "vcc_lo"
    body = ARITHMETIC.format(mask=mask, store=f"{store} v1, v9, s[8:9]")
    if lanes_of(target) == 32:
        body = body.replace("s[22:23]", "s22")
    if gfx12:
        body = body.replace("v_add_f64", "v_add_f64_e32")
    kernel = kernel_of(target, body)
    code: Any = None
    launch = Launch(code, (1, 1, 1), (len(out), 1, 1), (), pointers((out,)))
    made = native.compile_kernel(kernel, quick=quick).load(lambda: kernel)
    engine.run(made, launch, [(out.ctypes.data, out.ctypes.data + out.nbytes)])
    return out


@pytest.mark.parametrize("target", TARGETS)
def test_both_ways_give_the_same(target: str) -> None:
    fused = _ran(target, quick=False)
    assert len(np.unique(fused)) > 8
    assert (_ran(target, quick=True) == fused).all()


SCALARS = """
	s_movk_i32 s20, 0x7f
	s_addk_i32 s20, 0xfffd
	s_lshl_b32 s20, s20, 2
	s_cmp_gt_u32 s20, 0x64
	s_cselect_b32 s21, s20, 5
	s_mul_hi_u32 s22, s21, 0x40000000
	v_mov_b32_e32 v2, s22
	v_cmp_gt_u32_e32 {mask}, 5, v0
	s_and_saveexec_{type} {saved}, {mask}
	v_xor_b32_e32 v2, s21, v2
	s_or_{type} exec{half}, exec{half}, {saved}
	{store} v1, v2, s[8:9]
"""


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("quick", [True, False])
def test_scalar_instructions_and_partial_exec(target: str, quick: bool) -> None:
    out = np.zeros(lanes_of(target), np.uint32)
    names = {"mask": "vcc", "type": "b64", "saved": "s[24:25]", "half": ""}
    if lanes_of(target) == 32:
        names = {"mask": "vcc_lo", "type": "b32", "saved": "s24", "half": "_lo"}
    store = "global_store_b32" if lanes_of(target) == 32 else "global_store_dword"
    kernel = kernel_of(target, SCALARS.format(store=store, **names))
    code: Any = None
    launch = Launch(code, (1, 1, 1), (len(out), 1, 1), (), pointers((out,)))
    made = native.compile_kernel(kernel, quick=quick)
    assert any("scalar.s_addk_i32" in name for name in made.outlined) == quick
    loaded = made.load(lambda: kernel)
    engine.run(loaded, launch, [(out.ctypes.data, out.ctypes.data + out.nbytes)])
    assert out[:5].tolist() == [496 ^ 124] * 5
    assert (out[5:] == 124).all()


def _shape(text: str) -> str:
    return shape_of(Decoder("gfx942", 64).decode(text))


def test_constants_of_scalar_instructions_are_arguments() -> None:
    assert _shape("s_movk_i32 s1, 0x10") == _shape("s_movk_i32 s2, 0x20")
    assert _shape("s_add_u32 s1, s2, 7") == _shape("s_add_u32 s9, vcc_lo, 0x1234")
    assert _shape("s_add_u32 s1, s2, 7") != _shape("s_add_u32 s1, s2, s3")


def test_registers_are_not_part_of_a_shape() -> None:
    assert _shape("v_add_u32_e32 v1, v2, v3") == _shape("v_add_u32_e32 v9, v9, v9")
    assert _shape("v_add_u32_e32 v1, 64, v3") == _shape("v_add_u32_e32 v1, 0x12345, v4")
    assert _shape("v_add_u32_e32 v1, s4, v3") == _shape("v_add_u32_e32 v1, s90, v3")
    assert _shape("v_add_u32_e32 v1, s4, v3") == _shape("v_add_u32_e32 v1, vcc_lo, v3")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("v_add_u32_e32 v1, v2, v3", "v_add_u32_e32 v1, s2, v3"),
        ("v_add_u32_e32 v1, s2, v3", "v_add_u32_e32 v1, 2, v3"),
        ("v_add_u32_e32 v1, v2, v3", "v_sub_u32_e32 v1, v2, v3"),
        ("v_add_f32_e64 v1, v2, v3", "v_add_f32_e64 v1, -v2, v3"),
        ("v_add_f32_e64 v1, v2, v3", "v_add_f32_e64 v1, |v2|, v3"),
        ("v_add_f32_e64 v1, v2, v3", "v_add_f32_e64 v1, v2, v3 clamp"),
        ("v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
         "v_mov_b32_dpp v1, v2 row_shr:2 row_mask:0xf bank_mask:0xf"),
    ],
)  # fmt: skip
def test_what_changes_the_code_is(one: str, other: str) -> None:
    assert _shape(one) != _shape(other)


@pytest.mark.parametrize("mode", [None, WriterMode(0, 0)], ids=["plain", "watched"])
def test_code_that_runs_long_is_replaced_and_the_replacement_kept(
    mode: Mode | None, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    body = "\tv_mov_b32_e32 v3, 9\n\tglobal_store_dword v1, v3, s[8:9]\n"
    (code,) = load(assembly("gfx942", body), "gfx942")
    found = native.native_kernel(code, mode)
    before = found.address
    improvement = found.improvement
    assert improvement is not None
    improvement.add_runtime(60.0)
    assert improvement.thread is not None
    improvement.thread.join()
    assert found.address != before
    out = np.zeros(64, np.uint32)
    launch = Launch(code, (1, 1, 1), (64, 1, 1), (), pointers((out,)))
    engine.run(found, launch, [(out.ctypes.data, out.ctypes.data + out.nbytes)], mode=mode)
    assert (out == 9).all()
    assert native.native_kernel(code, mode).improvement is None


def test_equal_machine_code_of_triton_is_translated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches whose arguments are aligned otherwise have another digest, and mostly equal code."""
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    (loaded,) = load(assembly("gfx942", "\tv_mov_b32_e32 v3, 9\n"), "gfx942")
    stages = {**loaded.stages, "hsaco": b"code"}
    code = replace(loaded, origin="triton", stages=stages, digest="aligned")
    compiled: list[str] = []
    compile_kernel = native.compile_kernel

    def noted(*args: Any, **options: Any) -> Any:
        compiled.append(args[0].name)
        return compile_kernel(*args, **options)

    monkeypatch.setattr(native, "compile_kernel", noted)
    native.native_kernel(code)
    native.native_kernel(replace(code, digest="not aligned"))
    assert len(compiled) == 1
    native.native_kernel(code, WriterMode(0, 0))
    native.native_kernel(replace(code, stages={**stages, "hsaco": b"other data"}))
    native.native_kernel(replace(code, moved_files={"a.py": "b.py"}))
    native.native_kernel(loaded)
    native.native_kernel(replace(loaded, digest="other"))
    assert len(compiled) == 6
