"""Small hand-written kernels on the emulator: pointers in, numpy arrays changed in place.

Every kernel starts with the arguments' addresses in s[8:9], s[10:11], s[12:13] and s[14:15], the
work-item's number in v0 and four times that in v1.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.emulate import engine
from wavecast.emulate.compiled import NativeKernel
from wavecast.isa.parser import parse
from wavecast.isa.program import Kernel

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")

_TEXT = """
	.text
	.type k,@function
k:
	{load} s[8:15], s[0:1], 0x0
	v_and_b32_e32 v0, 0x3ff, v0
	v_lshlrev_b32_e32 v1, 2, v0
{body}
	s_endpgm
.Lfunc_end0:
	.amdhsa_kernel k
		.amdhsa_group_segment_fixed_size {lds}
		.amdhsa_private_segment_fixed_size {scratch}
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 2
		.amdhsa_next_free_vgpr 64
		.amdhsa_next_free_sgpr 64
		.amdhsa_float_denorm_mode_32 3
{extra}
	.end_amdhsa_kernel
"""


def lanes_of(target: str) -> int:
    """Lanes of a wave as these kernels are compiled."""
    return 64 if target.startswith("gfx9") else 32


def assembly(
    target: str, body: str, *, lds: int = 0, scratch: int = 0, directives: str = ""
) -> str:
    """`body` as the kernel `k`, with bytes of LDS and, per lane, of scratch, and further lines of
    its descriptor."""
    narrow = lanes_of(target) == 32
    extra = "\t\t.amdhsa_wavefront_size32 1\n" * narrow + directives
    load = "s_load_b256" if narrow else "s_load_dwordx8"
    return _TEXT.format(load=load, body=body, lds=lds, scratch=scratch, extra=extra)


def kernel_of(target: str, body: str, *, lds: int = 0, scratch: int = 0) -> Kernel:
    """The kernel of `assembly`."""
    return parse(assembly(target, body, lds=lds, scratch=scratch), target).kernels["k"]


def code_of(target: str, text: str) -> CodeObject:
    """The code object of an assembly with one kernel, `k`."""
    return CodeObject(
        kernel="k", target=target, origin="assembly", stages={"amdgcn": text}, parameters=(),
        options={}, workgroup_size=0, dynamic_lds=0, source="", source_line=0, source_text="",
        compiler="", digest=f"{target} {text}",
    )  # fmt: skip


def pointers(arrays: tuple[np.ndarray, ...]) -> bytes:
    """An argument segment with the addresses of up to four arrays."""
    found = [array.ctypes.data for array in arrays] + [0] * (4 - len(arrays))
    return np.array(found, np.uint64).tobytes()


def run(
    target: str,
    body: str,
    *arrays: np.ndarray,
    threads: int | None = None,
    groups: int = 1,
    host_threads: int = 1,
    lds: int = 0,
    scratch: int = 0,
    ranges: list[tuple[int, int]] | None = None,
    budget: int = engine.DEFAULT_BUDGET,
    cut: bool = False,
) -> None:
    """Run `body` with up to four arrays as arguments; only they may be touched. The number of the
    workgroup is in s2 on gfx9 and gfx11, in ttmp9 on gfx12."""
    launch = Launch(
        code=code_of(target, assembly(target, body, lds=lds, scratch=scratch)),
        grid=(groups, 1, 1),
        block=(threads or lanes_of(target), 1, 1),
        kernarg=pointers(arrays),
    )
    known = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays]
    native = _native(target, body, lds, scratch)
    engine.run(
        native, launch, ranges if ranges is not None else known,
        threads=host_threads, budget=budget, cut=cut,
    )  # fmt: skip


@lru_cache(maxsize=32)
def _native(target: str, body: str, lds: int, scratch: int) -> NativeKernel:
    """Native code of `body`, which tests run on one set of data after the other."""
    return engine.translate(kernel_of(target, body, lds=lds, scratch=scratch))


def masked(target: str, mask: int) -> str:
    """Instructions that set EXEC to the mask's bits of one wave."""
    low = f"\ts_mov_b32 exec_lo, {mask & 0xFFFFFFFF:#x}\n"
    return low if lanes_of(target) == 32 else f"{low}\ts_mov_b32 exec_hi, {mask >> 32:#x}\n"


def whole(target: str) -> str:
    """Instructions that set EXEC to all lanes."""
    return masked(target, (1 << lanes_of(target)) - 1)


def spill(first: int, count: int, base: str = "s[12:13]", lanes: int = 64) -> str:
    """Store `count` registers from v`first` on, one row of dwords after another."""
    return "\n".join(
        f"\tglobal_store_dword v1, v{first + row}, {base} offset:{4 * lanes * row}"
        for row in range(count)
    )
