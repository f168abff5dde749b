"""Small PTX kernels with launches, for tests of NVIDIA predictions."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache

from wavecast.compile import nvidia
from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter

BASE = 1 << 32
"""Where the first array of a launch is; each next one is as far from the one before."""

HEAD = """.version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
.reqntid {threads}
{{
 .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<40>; .reg .pred %p<8>;
 .shared .align 16 .b8 room[8192];
 ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r9, [n];
 cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2;
 mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
 mad.lo.u32 %r4, %r2, %r3, %r1;
"""

COPY = """
 setp.ge.u32 %p1, %r4, %r9; @%p1 bra DONE;
 mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
 ld.global.f32 %f1, [%d4]; st.global.f32 [%d5], %f1;
DONE: ret;
"""

LOOP = """
 mov.u32 %r5, 0; mov.f32 %f2, 0f00000000; mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3;
NEXT: ld.global.f32 %f1, [%d4]; add.f32 %f2, %f2, %f1; add.s64 %d4, %d4, 4096;
 add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r9; @%p1 bra NEXT;
 add.s64 %d5, %d2, %d3; st.global.f32 [%d5], %f2; ret;
"""

DATA_LOOP = """
 mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; ld.global.u32 %r6, [%d4]; mov.u32 %r5, 0;
NEXT: add.u32 %r5, %r5, %r6; shr.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0; @%p1 bra NEXT;
 add.s64 %d5, %d2, %d3; st.global.u32 [%d5], %r5; ret;
"""

GATHER = """
 mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; ld.global.u32 %r6, [%d4];
 mul.wide.u32 %d6, %r6, 4; add.s64 %d7, %d2, %d6; ld.global.f32 %f1, [%d7];
 st.global.f32 [%d4], %f1; ret;
"""


@cache
def code(body: str, target: str = "sm_90", threads: int = 128) -> CodeObject:
    """The code object of a kernel `k(a, b, n)` with a PTX body."""
    text = HEAD.format(target=target, threads=threads) + body + "\n}"
    (found,) = nvidia.load_ptx(text, target)
    return found


def launch(
    body: str,
    target: str = "sm_90",
    *,
    grid: int = 264,
    threads: int = 128,
    number: int = 1 << 30,
    content: bytes = b"",
) -> Launch:
    """A launch of the kernel over two arrays of 16 MiB; `content` are the bytes of the first."""
    own = code(body, target, threads)
    named = [
        Parameter(name, kind, p.offset, p.size)
        for name, kind, p in zip("abn", ("*fp32", "*fp32", "i32"), own.parameters, strict=True)
    ]
    size = 16 << 20
    tensors = [
        Argument(name, "tensor", "float32", (size // 4,), (1,), size, content=bytes_)
        for name, bytes_ in (("a", content), ("b", b""))
    ]
    return Launch(
        code=replace(own, parameters=tuple(named)),
        grid=(grid, 1, 1),
        block=(threads, 1, 1),
        arguments=(*tensors, Argument("n", "scalar", "i32", value=number)),
        kernarg=struct.pack("<QQI", BASE, 2 * BASE, number),
    )
