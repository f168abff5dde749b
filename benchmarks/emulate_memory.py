"""How fast the emulator moves memory on one thread, beside numpy's copy in the same run.

    python benchmarks/emulate_memory.py [target …]

Bytes count once per load and once per store. LDS lines count LDS traffic.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from wavecast.compile.codeobject import Launch
from wavecast.emulate import engine
from wavecast.isa.parser import parse

TEXT = """
	.text
	.type k,@function
k:
	{prologue}
{body}
	s_endpgm
.Lfunc_end0:
	.amdhsa_kernel k
		.amdhsa_group_segment_fixed_size 4096
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 2
		.amdhsa_next_free_vgpr 64
		.amdhsa_next_free_sgpr 64
	.end_amdhsa_kernel
"""
PROLOGUE = """s_load_dwordx8 s[8:15], s[0:1], 0x0
	s_lshl_b32 s20, s2, {shift}
	v_and_b32_e32 v0, 0x3ff, v0
	v_lshlrev_b32_e32 v1, {lane}, v0
	v_add_u32_e32 v1, s20, v1"""
UNROLL = 8
SUFFIX = {2: "dword", 3: "dwordx2", 4: "dwordx4"}


def registers(first: int, lane: int) -> str:
    count = (1 << lane) // 4
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def copy_body(lane: int, adds: bool = False) -> str:
    """A wave moves UNROLL rows of 64 elements of 2^lane bytes."""
    lines = []
    for step in range(UNROLL):
        if step:
            lines.append(f"\tv_add_u32_e32 v1, {64 << lane:#x}, v1")
        lines.append(f"\tglobal_load_{SUFFIX[lane]} {registers(4, lane)}, v1, s[8:9]")
        if adds:
            lines.append(f"\tglobal_load_{SUFFIX[lane]} {registers(8, lane)}, v1, s[10:11]")
            lines += [
                f"\tv_add_u32_e32 v{4 + i}, v{4 + i}, v{8 + i}" for i in range((1 << lane) // 4)
            ]
        lines.append(f"\tglobal_store_{SUFFIX[lane]} v1, {registers(4, lane)}, s[12:13]")
    return "\n".join(lines)


def lds_body() -> str:
    """Sixteen-byte LDS stores and loads."""
    lines = ["\tv_lshlrev_b32_e32 v2, 4, v0", "\tv_mov_b32_e32 v4, 1"]
    for _ in range(2 * UNROLL):
        lines += ["\tds_write_b128 v2, v[4:7]", "\tds_read_b128 v[4:7], v2"]
    return "\n".join(lines)


def seconds(call: Callable[[], Any]) -> float:
    """Median of seven runs after one to warm up."""
    call()
    taken = []
    for _ in range(7):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def emulated(target: str, body: str, lane: int, arrays: list[np.ndarray], groups: int) -> float:
    shift = 6 + lane + UNROLL.bit_length() - 1
    prologue = PROLOGUE.format(shift=shift, lane=lane)
    kernel = parse(TEXT.format(prologue=prologue, body=body), target).kernels["k"]
    pointers = np.array([a.ctypes.data for a in arrays] + [0], np.uint64)
    code: Any = None
    launch = Launch(code=code, grid=(groups, 1, 1), block=(64, 1, 1), kernarg=pointers.tobytes())
    native = engine.translate(kernel)
    ranges = [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays]
    return seconds(lambda: engine.run(native, launch, ranges))


def main() -> None:
    size = 64 << 20
    arrays = [np.arange(size // 4, dtype=np.uint32) for _ in range(3)]
    one, two, out = arrays
    gigabytes = size / 1e9
    print(f"numpy copy       {2 * gigabytes / seconds(lambda: np.copyto(out, one)):6.2f} GB/s")
    print(f"numpy add        {3 * gigabytes / seconds(lambda: np.add(one, two, out)):6.2f} GB/s")
    for target in sys.argv[1:] or ["gfx942"]:
        for lane in (2, 3, 4):
            groups = size // (UNROLL * (64 << lane))
            for name, adds in (("copy", False), ("add", True)):
                out[:] = 0
                taken = emulated(target, copy_body(lane, adds), lane, arrays, groups)
                wanted = one + two if adds else one
                right = "" if np.array_equal(out, wanted) else "  WRONG"
                moved = (3 if adds else 2) * gigabytes
                print(f"{target} {name} x{1 << lane:<3}  {moved / taken:6.2f} GB/s{right}")
        groups = 4096
        taken = emulated(target, lds_body(), 4, arrays, groups)
        moved = groups * 4 * UNROLL * 1024 / 1e9
        print(f"{target} LDS x16   {moved / taken:6.2f} GB/s")


if __name__ == "__main__":
    main()
