"""A launch made by hand."""

from __future__ import annotations

from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter

CODE = CodeObject(
    kernel="add",
    target="gfx942",
    origin="triton",
    stages={"amdgcn": "\ts_endpgm\n", "hsaco": b"\x7fELF"},
    parameters=(
        Parameter("x_ptr", "*fp32", 0, 8, None, ("divisibility=16",)),
        Parameter("BLOCK", "constexpr", None, None, 256),
    ),
    options={"num_warps": 4, "allowed": ("ieee", "tf32")},
    workgroup_size=256,
    dynamic_lds=0,
    source="add.py",
    source_line=3,
    source_text="def add(): ...\n",
    compiler="triton 3.9.0",
    digest="0123",
)

LAUNCH = Launch(
    code=CODE,
    grid=(4, 1, 1),
    block=(256, 1, 1),
    arguments=(
        Argument("x_ptr", "tensor", "float32", (1000,), (1,), 4000, 0x5000),
        Argument("BLOCK", "constant", value=256),
    ),
    kernarg=b"\0" * 8,
    configuration="BLOCK=256",
    scalars={"BLOCK": 256},
)
