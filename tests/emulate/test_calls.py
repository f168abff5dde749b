"""Calls, returns and recursion: functions that compilers did not inline."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.differential.execute import assembly
from tests.emulate.memory_support import run
from tests.isa.test_flow import FAR_JUMPS
from wavecast.compile.assembly import load
from wavecast.compile.codeobject import Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate import engine
from wavecast.emulate.errors import ExecutionError, Unsupported
from wavecast.emulate.native import compile_kernel

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")

_SOURCE = """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()

define internal i32 @fibonacci(i32 %n) noinline {
  %small = icmp slt i32 %n, 2
  br i1 %small, label %done, label %more
more:
  %a = sub i32 %n, 1
  %b = sub i32 %n, 2
  %x = call i32 @fibonacci(i32 %a)
  %y = call i32 @fibonacci(i32 %b)
  %sum = add i32 %x, %y
  br label %done
done:
  %result = phi i32 [ %n, %0 ], [ %sum, %more ]
  ret i32 %result
}

define internal i32 @triple(i32 %n) noinline {
  %result = mul i32 %n, 3
  ret i32 %result
}

define amdgpu_kernel void @k(ptr addrspace(1) %out, i1 %choice) #0 {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %n = and i32 %lane, 7
  %function = select i1 %choice, ptr @triple, ptr @fibonacci
  %direct = call i32 @fibonacci(i32 %n)
  %computed = call i32 %function(i32 %direct)
  %place = getelementptr i32, ptr addrspace(1) %out, i32 %lane
  store i32 %computed, ptr addrspace(1) %place
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
"""


def _fibonacci(n: int) -> int:
    return n if n < 2 else _fibonacci(n - 1) + _fibonacci(n - 2)


def _run(text: str, target: str, choice: int, quick: bool = False) -> np.ndarray:
    (code,) = load(text, target)
    out = np.zeros(64, np.int32)
    kernarg = np.array([out.ctypes.data, choice], np.uint64).tobytes()
    launch = Launch(code=code, grid=(1, 1, 1), block=(64, 1, 1), kernarg=kernarg)
    kernel = parse_kernel(code, link=True)
    native = compile_kernel(kernel, quick=quick).load(lambda: kernel)
    engine.run(native, launch, [(out.ctypes.data, out.ctypes.data + out.nbytes)])
    return out


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_recursion_and_function_pointers(target: str, quick: bool) -> None:
    text = assembly(_SOURCE, target, 0)
    numbers = np.array([_fibonacci(lane & 7) for lane in range(64)])
    assert (_run(text, target, 1, quick) == 3 * numbers).all()
    assert (_run(text, target, 0, quick) == [_fibonacci(int(n)) for n in numbers]).all()


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_functions_whose_names_are_quoted(target: str) -> None:
    """LLVM quotes names with other characters than letters, digits and `_.$@`."""
    name = "triple<i32,  (i8 :: -1); // [2]>"
    text = assembly(_SOURCE.replace("@triple", f'@"{name}"'), target, 0)
    assert f'"{name}"@rel32@lo+' in text
    numbers = np.array([_fibonacci(lane & 7) for lane in range(64)])
    assert (_run(text, target, 1) == 3 * numbers).all()


@pytest.mark.parametrize("form", FAR_JUMPS)
def test_loops_that_close_with_a_far_jump(form: str) -> None:
    jump = FAR_JUMPS[form].replace("LBB0_3", "LBB0_1").replace("s5, 0", "s5, -1")  # backward
    body = f"""
	v_mov_b32_e32 v2, 0
	s_mov_b32 s16, 0
.LBB0_1:
	v_add_u32_e32 v2, v2, v0
	s_add_i32 s16, s16, 1
	s_cmp_ge_i32 s16, 5
	s_cbranch_scc1 .LBB0_2
	s_getpc_b64 s[4:5]
.Lpost_getpc0:{jump}
	s_setpc_b64 s[4:5]
.LBB0_2:
	global_store_dword v1, v2, s[8:9]"""
    out = np.zeros(64, np.uint32)
    run("gfx942", body, out)
    assert (out == 5 * np.arange(64)).all()


def test_a_jump_to_no_function_is_an_error() -> None:
    text = assembly(_SOURCE, "gfx942", 0).replace(
        "s_swappc_b64 s[30:31], s[", "s_swappc_b64 s[30:31], exec ; s["
    )
    with pytest.raises(ExecutionError, match="not a function"):
        _run(text, "gfx942", 1)


def test_symbols_of_other_modules_are_refused() -> None:
    text = assembly(_SOURCE, "gfx942", 0).replace("triple@rel32", "elsewhere@rel32")
    with pytest.raises(Unsupported, match="the symbol 'elsewhere'"):
        _run(text, "gfx942", 1)
