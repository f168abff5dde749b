"""Source lines of machine code, with the calls that were inlined."""

from __future__ import annotations

import pytest

from wavecast.compile import elf, hip
from wavecast.compile.dwarf import CallTable, InlinedCall
from wavecast.compile.parsing import parse_kernel

SOURCE = """#include <hip/hip_runtime.h>
#include "doubling.h"
__device__ inline float fourth(float x) {
    return twice(
        twice(x));
}
extern "C" __global__ void k(float *y) {
    y[threadIdx.x] =
        fourth(y[threadIdx.x]);
}
"""
HEADER = """
__device__ inline float add(float x, float y) { return x + y; }
__device__ inline float twice(float x) {
    return add(x, x);
}
"""


@pytest.mark.hip
@pytest.mark.llvm
@pytest.mark.usefixtures("hip_compiler")
def test_machine_code_has_the_calls_that_were_inlined() -> None:
    (compiled,) = hip.compile(SOURCE, "gfx942", ("-O3", "-g"), headers={"doubling.h": HEADER})
    binary = compiled.stages.get("hsaco")
    if not isinstance(binary, bytes):
        pytest.skip("the HIP compiler here has no linker")
    (code,) = elf.load(binary, "gfx942", "the file")
    chains = set()
    for instruction in parse_kernel(code).program.instructions:
        if instruction.mnemonic.startswith("v_add_f32"):
            chain, location = [], instruction.location
            while location is not None:
                chain.append(location.line)
                location = location.inlined_at
            chains.add(tuple(chain))
    assert (2, 4, 5) in chains  # not where `fourth` was called: that is the kernel's file, too
    assert chains <= {(2, 4, 5), (2, 4, 4)}


def test_calls_within_calls_and_next_to_each_other() -> None:
    calls = [
        InlinedCall(0, 16, 0, (0, 1, 0)),
        InlinedCall(4, 8, 1, (0, 2, 0)),
        InlinedCall(8, 12, 1, (0, 3, 0)),
        InlinedCall(20, 24, 0, (1, 4, 0)),
        InlinedCall(6, 6, 2, (0, 9, 0)),
    ]
    table = CallTable.of(calls)
    lines = {address: [line for _, line, _ in table.at(address)] for address in range(-2, 26, 2)}
    assert lines == {
        -2: [], 0: [1], 2: [1], 4: [2, 1], 6: [2, 1], 8: [3, 1], 10: [3, 1], 12: [1], 14: [1],
        16: [], 18: [], 20: [4], 22: [4], 24: [],
    }  # fmt: skip
