"""A small PTX kernel that copies boxes of a tensor by TMA, for tests of NVIDIA predictions."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache

from wavecast.compile import nvidia
from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter

BASE = 1 << 32
"""Where the tensor is."""
ROWS, COLUMNS = 64, 64
"""Elements of a box, of two bytes each."""
BOX = 2 * ROWS * COLUMNS

TEXT = """.version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .align 64 .b8 t[128], .param .u32 n)
.reqntid 128
{{
 .reg .b32 %r<20>; .reg .b64 %d<10>; .reg .pred %p<8>;
 .shared .align 1024 .b8 tile[{box}]; .shared .align 8 .b8 full[8];
 ld.param.u32 %r9, [n]; mov.b64 %d1, t; cvta.param.u64 %d2, %d1;
 mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, full; mov.u32 %r4, tile;
 setp.ne.u32 %p1, %r1, 0; shl.b32 %r6, %r2, 6; mov.u32 %r5, 0; mov.u32 %r7, 0;
 @!%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
 bar.sync 0;
NEXT: shl.b32 %r8, %r5, 6;
 @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {expected};
 @!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
  [%r4], [%d2, {{%r8, %r6}}], [%r3];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], %r7;
 @!%p2 bra WAIT;
 xor.b32 %r7, %r7, 1; bar.sync 0;
 add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r9; @%p3 bra NEXT;
 {end}
 ret;
}}
"""
STORE = """
 @!%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {%r8, %r6}], [%r4];
 @!%p1 cp.async.bulk.commit_group; @!%p1 cp.async.bulk.wait_group 0;
"""


@cache
def code(target: str, end: str = "", expected: int = BOX) -> CodeObject:
    """The code object of a kernel `k(t, n)` that copies `n` boxes of a row of boxes, one after the
    other, and ends with `end`."""
    text = TEXT.format(target=target, box=BOX, expected=expected, end=end)
    (found,) = nvidia.load_ptx(text, target)
    return found


def launch(
    target: str, *, grid: int, number: int, end: str = "", box: int = BOX, host: bool = True
) -> Launch:
    """A launch of `grid` workgroups that copy `number` boxes each, of a tensor with as many rows
    and columns of boxes. `host`: the descriptor is an argument."""
    shape = (grid * ROWS, number * COLUMNS)
    tensor = Argument(
        "t",
        "descriptor" if host else "pointer",
        dtype="bfloat16",
        shape=shape,
        strides=(shape[1], 1),
        bytes=2 * shape[0] * shape[1],
        storage=BASE,
        value=(ROWS, COLUMNS),
    )
    made = code(target, end, box)
    named = zip("tn", ("tensordesc<bf16[64, 64]>", "i32"), made.parameters, strict=True)
    parameters = tuple(Parameter(name, kind, p.offset, p.size) for name, kind, p in named)
    last = parameters[-1].offset
    assert last is not None
    return Launch(
        code=replace(made, parameters=parameters),
        grid=(grid, 1, 1),
        block=(128, 1, 1),
        arguments=(tensor, Argument("n", "scalar", dtype="i32", value=number)),
        kernarg=bytes(last) + struct.pack("<I", number),
    )
