"""Two and four 8-bit floats from pairs of halves and of bf16, as ROCm's hip_fp8.h makes them."""

from __future__ import annotations

import numpy as np
import pytest

import wavecast
from tests.targets import swept

pytestmark = [pytest.mark.hip, pytest.mark.torch]
torch = pytest.importorskip("torch")
FORMATS = {
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "e4m3_fnuz": torch.float8_e4m3fnuz,
    "e5m2_fnuz": torch.float8_e5m2fnuz,
}


def source(name: str) -> str:
    return f"""#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
template <typename Pair> __device__ void pack(const Pair *in, unsigned *four, short *two) {{
    int i = threadIdx.x;
    four[i] = __hip_fp8x4_{name}(in[2 * i], in[2 * i + 1]).__x;
    two[i] = __hip_fp8x2_{name}(in[2 * i]).__x;
}}
extern "C" __global__ void halves(const __half2 *in, unsigned *four, short *two) {{
    pack(in, four, two);
}}
extern "C" __global__ void bfloats(const __hip_bfloat162 *in, unsigned *four, short *two) {{
    pack(in, four, two);
}}
"""


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("target", swept(("gfx942", "gfx950")))
def test_pairs_become_8_bit_floats(name, target, tmp_path) -> None:
    path = tmp_path / "pack.hip"
    path.write_text(source(name))
    kernels = wavecast.load(path, arch=target)
    numbers = torch.from_numpy(np.random.default_rng(7).normal(size=256).astype(np.float32))
    for kernel, dtype in (("halves", torch.float16), ("bfloats", torch.bfloat16)):
        narrow = numbers.to(dtype)
        four, two = torch.zeros(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int16)
        kernels[kernel](1, 64, narrow, four, two)
        right = narrow.float().to(FORMATS[name]).view(torch.uint8).reshape(64, 4)
        assert torch.equal(four.view(torch.uint8).reshape(64, 4), right)
        assert torch.equal(two.view(torch.uint8).reshape(64, 2), right[:, :2])
