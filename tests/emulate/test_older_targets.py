"""gfx908 and gfx1030: a register per coordinate of a work-item, waves of both sizes, sums in
accumulation registers, checks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wavecast
from wavecast.compile import CodeObject, load, toolchain
from wavecast.emulate.check.collected import ChecksFailed
from wavecast.errors import MissingTool

pytestmark = pytest.mark.hip
SOURCE = """
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
__global__ void places(int *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z, w = gridDim.x * blockDim.x;
    out[(z * gridDim.y * blockDim.y + y) * w + x] = z * 10000 + y * 100 + x;
}
__global__ void sums(const float *x, float *total, int *largest, int n) {
    __shared__ float part[256];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += 256) v += x[i];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int k = 128; k; k >>= 1) {
        if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) { atomicAdd(total, part[0]); atomicMax(largest, (int)part[0]); }
}
__global__ void racy(float *out) {
    __shared__ float part[256];
    part[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = part[255 - threadIdx.x];
}
__global__ void numbers(const float *x, const unsigned *u, float *f, unsigned *i, __half *h) {
    int t = threadIdx.x;
    f[t] = sqrtf(x[t]) / (1.0f + x[t]) + fmaf(x[t], 0.25f, floorf(x[t]));
    i[t] = (u[t] * 2654435761u >> 7) + __popc(u[t]) + __brev(u[t]) + u[t] / 37u + __clz(u[t]);
    h[t] = __float2half(x[t]) * __float2half(0.5f) + __float2half(1.0f);
}
#ifdef __gfx908__
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
__global__ void product(const _Float16 *a, const _Float16 *b, float *c) {  // 32 x 32 x 8
    int lane = threadIdx.x, k = lane / 32 * 4;
    f16x4 x, y;
    for (int i = 0; i < 4; ++i) x[i] = a[lane % 32 * 8 + k + i];
    for (int i = 0; i < 4; ++i) y[i] = b[(k + i) * 32 + lane % 32];
    f32x16 acc = {0};
    acc = __builtin_amdgcn_mfma_f32_32x32x8f16(x, y, acc, 0, 0, 0);
    for (int i = 0; i < 16; ++i) c[(i / 4 * 8 + lane / 32 * 4 + i % 4) * 32 + lane % 32] = acc[i];
}
#endif
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[CodeObject]]:
    """The kernels by target."""
    try:
        toolchain.find()
    except MissingTool as error:
        pytest.skip(str(error))
    path: Path = tmp_path_factory.mktemp("older") / "k.hip"
    path.write_text(SOURCE)
    wide = load(path, "gfx1030", options=("-mwavefrontsize64",))
    return {t: load(path, t) for t in ("gfx908", "gfx1030")} | {"gfx1030 wave64": wide}


TARGETS = ("gfx908", "gfx1030", "gfx1030 wave64")


@pytest.mark.parametrize("target", TARGETS)
def test_coordinates(compiled: dict[str, list[CodeObject]], target: str) -> None:
    out = np.zeros((8, 12, 16), np.int32)
    wavecast.load(compiled[target], check=True)["places"]((2, 3, 4), (8, 4, 2), out)
    z, y, x = np.indices(out.shape)
    assert (out == z * 10000 + y * 100 + x).all()


@pytest.mark.parametrize("target", TARGETS)
def test_lds_and_atomics(compiled: dict[str, list[CodeObject]], target: str) -> None:
    module = wavecast.load(compiled[target], check=True)
    x = np.arange(1000, dtype=np.float32)
    total, largest = np.zeros(1, np.float32), np.zeros(1, np.int32)
    module["sums"](3, 256, x, total, largest, 1000)
    assert (total[0], largest[0]) == (3 * x.sum(), x.sum())
    with pytest.raises(ChecksFailed, match="race"):
        module["racy"](1, 256, np.zeros(256, np.float32))


@pytest.mark.parametrize("target", TARGETS)
def test_arithmetic(compiled: dict[str, list[CodeObject]], target: str) -> None:
    x = np.random.default_rng(0).random(64, np.float32) * 9
    u = np.random.default_rng(1).integers(1, 2**32, 64, np.uint32)
    f, i, h = np.zeros(64, np.float32), np.zeros(64, np.uint32), np.zeros(64, np.float16)
    wavecast.load(compiled[target])["numbers"](1, 64, x, u, f, i, h)
    np.testing.assert_allclose(f, np.sqrt(x) / (1 + x) + x * 0.25 + np.floor(x), rtol=3e-7)
    bits = [f"{value:032b}" for value in u.tolist()]
    mixed = (u * np.uint32(2654435761)) >> np.uint32(7)
    mixed += np.array([text.count("1") for text in bits], np.uint32)
    mixed += np.array([int(text[::-1], 2) for text in bits], np.uint32)
    mixed += u // np.uint32(37) + np.array([text.index("1") for text in bits], np.uint32)
    assert (i == mixed).all()
    np.testing.assert_allclose(h, x.astype(np.float16) * np.float16(0.5) + 1, rtol=1e-3)


def test_sums_in_accumulation_registers(compiled: dict[str, list[CodeObject]]) -> None:
    kernel = wavecast.load(compiled["gfx908"], check=True)["product"]
    assert "v_accvgpr_read_b32" in kernel.code.assembly
    random = np.random.default_rng(2)
    a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((32, 8), (8, 32)))
    c = np.zeros((32, 32), np.float32)
    kernel(1, 64, a, b, c)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize(("target", "device"), [("gfx908", "mi100"), ("gfx1030", "rx6800xt")])
def test_a_sample_is_predicted(
    compiled: dict[str, list[CodeObject]], target: str, device: str
) -> None:
    x, total, largest = np.ones(4096, np.float32), np.zeros(1, np.float32), np.zeros(1, np.int32)
    kernel = wavecast.load(compiled[target], device)["sums"]
    found = kernel.predict(960, 256, x, total, largest, 4096)
    assert found.device == device
    assert 2e-6 < found.seconds < 200e-6
