"""Shapes of Blackwell's tcgen05 matrix instructions.

SASS names only a register with the instruction descriptor; PTX shows where its constant comes from.
Layout of the descriptor: PTX ISA, "Instruction descriptor" of the tcgen05 family: bits 17-22 are
N / 8, bits 24-28 M / 16, bits 7-9 the format of A.
"""

from __future__ import annotations

import re

from wavecast.isa.opcode import MatrixShape
from wavecast.isa.program import Program

_MMA = re.compile(
    r"tcgen05\.mma\.(?:sp\.)?cta_group::(?P<group>\d)\.kind::(?P<kind>\w+)[^;\[]*"
    r"\[[^\]]*\],\s*(?:\[[^\]]*\]|[^,]+),\s*[^,]+,\s*(?P<descriptor>%?\w+)"
)
_CONSTANT = re.compile(r"mov\.(?:b|u|s)32\s+(%r\d+),\s*(-?(?:0x[0-9a-fA-F]+|\d+))\s*;")
_KINDS = {
    "f16": {0: "fp16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "i8": {0: "int8", 1: "int8"},
    "f8f6f4": {0: "fp8", 1: "fp8", 3: "fp6", 4: "fp6", 5: "fp4"},
    "mxf8f6f4": {0: "fp8", 1: "fp8", 3: "fp6", 4: "fp6", 5: "fp4"},
    "mxf4": {1: "fp4"},
    "mxf4nvf4": {1: "fp4"},
}
_K = {"f16": 16, "tf32": 8, "i8": 32, "f8f6f4": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}


def shapes(program: Program, ptx: str) -> dict[int, MatrixShape]:
    """Instruction index -> shape, for the tcgen05 instructions of a program.

    The two texts list the instructions in the same order. Where their numbers differ (ptxas
    unrolled a loop) shapes are known only if all are equal; instructions whose descriptor is no
    constant are left out.
    """
    places = [i.index for i in program.instructions if i.opcode.cost_class == "tcgen05"]
    constants = {name: int(value, 0) for name, value in _CONSTANT.findall(ptx)}
    found = [_shape(match, constants) for match in _MMA.finditer(ptx)]
    if len(found) != len(places):
        if len(set(found)) != 1:
            return {}
        found = found[:1] * len(places)
    return {index: shape for index, shape in zip(places, found, strict=True) if shape is not None}


def _shape(match: re.Match[str], constants: dict[str, int]) -> MatrixShape | None:
    text, kind = match["descriptor"], match["kind"]
    descriptor = constants.get(text) if text.startswith("%") else int(text, 0)
    if descriptor is None or kind not in _K:
        return None
    n, m = (descriptor >> 17 & 0x3F) * 8, (descriptor >> 24 & 0x1F) * 16
    a_type = _KINDS[kind].get(descriptor >> 7 & 7)
    b_type = _KINDS[kind].get(descriptor >> 10 & 7)
    if a_type is None or b_type is None:
        return None
    return MatrixShape(m, n, _K[kind], 1, a_type, b_type, "", sparse=bool(descriptor >> 2 & 1))
