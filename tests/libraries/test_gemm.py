"""Matrix products of AITER, rocBLAS (Tensile) and hipBLASLt (TensileLite)."""

from __future__ import annotations

import re
import struct
from math import prod

import pytest
import torch

from tests.libraries.data import FP8, fp4_values, packed_fp4, shuffled, shuffled_scales
from tests.libraries.launching import launch, library_kernel, needs_objects

pytestmark = [needs_objects, pytest.mark.torch, pytest.mark.thorough]


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_aiter_bf16_with_split_k() -> None:
    kernel = library_kernel("aiter_gfx942_bf16gemm_bf16gemm_fp32bf16_tn_64x64_splitk_clean.co")
    m, n, k, split = 64, 128, 256, 2
    a, b, d = _random(m, k).bfloat16(), _random(n, k).bfloat16(), torch.zeros(m, n)
    arguments = {
        "D": d, "A": a, "B": b, "alpha": 1.0, "strideA0": 2 * k, "strideB0": 2 * k,
        "strideC0": 4 * n, "strideD0": 4 * n, "Mdim": m, "Ndim": n, "Kdim": k,
        "splitk": split, "ptr_semaphore": torch.zeros(1024, dtype=torch.int32),
    }  # fmt: skip
    launch(kernel, (n // 64, m // 64, split), 256, arguments)
    torch.testing.assert_close(d, a.float() @ b.float().T, rtol=1e-5, atol=1e-4)


def test_aiter_fp8_with_scales_of_blocks() -> None:
    kernel = library_kernel(
        "aiter_gfx942_fp8gemm_blockscale_fp8gemm_bf16_blockscale_BpreShuffle_128x128.co"
    )
    m, n, k, block = 128, 128, 256, 128
    a, b = _random(m, k).to(FP8), _random(n, k + 1)[:, :k].to(FP8)
    scale_a, scale_b = torch.rand(m, k // block) + 0.5, torch.rand(n // block, k // block) + 0.5
    c = torch.zeros(m, n, dtype=torch.bfloat16)
    arguments = {
        "C": c, "A": a, "B": shuffled(b.contiguous()), "SA": scale_a.T.contiguous(),
        "SB": scale_b, "BIAS": torch.zeros(n), "M": m, "Ndim": n, "K": k, "PA": k, "PB": k,
        "PC": 2 * n, "KS": 1, "scale_m": m, "scale_n": n // block, "scale_k": k // block,
    }  # fmt: skip
    launch(kernel, (n // 128, m // 128, 1), 256, arguments)
    whole_a = a.float() * scale_a.repeat_interleave(block, 1)
    whole_b = b.float() * scale_b.repeat_interleave(block, 0).repeat_interleave(block, 1)
    torch.testing.assert_close(c.float(), whole_a @ whole_b.T, rtol=1e-2, atol=0.05)


def test_aiter_fp4_with_scales_of_32_values() -> None:
    kernel = library_kernel("aiter_gfx950_f4gemm_f4gemm_bf16_per1x32Fp4_BpreShuffle_128x128.co")
    m, n, k = 128, 128, 512
    draw = torch.Generator().manual_seed(4)
    codes = [torch.randint(0, 16, (rows, k), generator=draw) for rows in (m, n)]
    scales = [
        torch.randint(125, 130, (rows, k // 32), generator=draw).to(torch.uint8) for rows in (m, n)
    ]
    d = torch.zeros(m, n, dtype=torch.bfloat16)
    packed, ordered = [packed_fp4(one) for one in codes], [shuffled_scales(one) for one in scales]
    arguments = {
        "D": d, "A": packed[0], "B": shuffled(packed[1]), "alpha": 1.0, "strideC0": n,
        "strideA0": k, "strideB0": k, "Mdim": m, "Ndim": n, "Kdim": k, "ScaleA": ordered[0],
        "ScaleB": ordered[1], "strideScaleA0": ordered[0].shape[1],
        "strideScaleB0": ordered[1].shape[1],
    }  # fmt: skip
    launch(kernel, (n // 128, m // 128, 1), 256, arguments)
    a, b = (fp4_values(*one) for one in zip(codes, scales, strict=True))
    torch.testing.assert_close(d.float(), a @ b.T, rtol=1e-2, atol=0.5)


def test_tensile_fp16() -> None:
    """C = A B with A transposed, in Tensile's order: column-major C, `Fp16AltRnz` rounds the
    products' factors to bfloat16."""
    kernel = library_kernel(
        "rocblas_TensileLibrary_Type_HH_HPA_Fp16AltRnz_Fp16Alt_Contraction_l_Alik_Bjlk_Cijk_Dijk"
        "_gfx90a.co",
        "MT64x64x64_MI32x32x8x1",
    )
    threads = [int(size) for size in re.findall(r"_WG(\d+)_(\d+)_(\d+)", kernel.symbol)[0]]
    (in_block,) = map(int, re.findall(r"_WGM(\d+)", kernel.symbol))
    m, n, k = 128, 64, 128
    a, b = _random(m, k).half(), _random(k, n).half()
    c, d = torch.zeros(n, m).half(), torch.zeros(n, m).half()
    groups = m // 64, n // 64
    remainder = groups[1] % in_block or in_block
    arguments = {
        "Tensor2dSizeA": m * k, "Tensor2dSizeB": n * k, "AddressD": d, "AddressC": c,
        "AddressA": a, "AddressB": b, "Alpha": 1.0,
        "StridesD": struct.pack("<II", m, m * n), "StridesC": struct.pack("<II", m, m * n),
        "StridesA": struct.pack("<II", k, m * k), "StridesB": struct.pack("<II", n, n * k),
        "SizesFree": struct.pack("<III", m, n, 1), "SizesSum": k,
        "NumWorkGroups0": groups[0], "NumWorkGroups1": groups[1],
        "NumFullBlocks": groups[1] // in_block, "WgmRemainder1": remainder,
        "MagicNumberWgmRemainder1": (1 << 31) // remainder + 1,
    }  # fmt: skip
    launch(kernel, (*groups, 1), prod(threads), arguments)
    torch.testing.assert_close(d.float(), (a.float() @ b.float()).T, rtol=2e-2, atol=0.15)


def test_hipblaslt_bf16_calls_its_activation() -> None:
    """TensileLite computes the address of a function of the kernel, and calls it per element."""
    kernel = library_kernel(
        "hipblaslt_TensileLibrary_BB_BB_HA_Bias_Aux_SAV_UA_Type_BB_HPA_Contraction_l_Alik_Bjlk"
        "_Cijk_Dijk_gfx1100.co",
        "MT64x16x32",
    )
    threads = [int(size) for size in re.findall(r"_WG(\d+)_(\d+)_(\d+)", kernel.symbol)[0]]
    m, n, k = 64, 32, 96
    a, b, d = _random(m, k).bfloat16(), _random(k, n).bfloat16(), torch.zeros(n, m).bfloat16()
    groups = -(-m // 64) * -(-n // 16)
    arguments = {
        "Gemm info": 1, "kernel info0": 1, "kernel info1": 1, "numWG": groups, "SizesFree0": m,
        "SizesFree1": n, "SizesFree2": 1, "SizesSum0": k, "D": d, "C": d, "A": a, "B": b,
        "strideD0": m, "strideD1": m * n, "strideC0": m, "strideC1": m * n, "strideA0": k,
        "strideA1": m * k, "strideB0": n, "strideB1": n * k, "alpha": 1.0,
    }  # fmt: skip
    launch(kernel, (groups, 1, 1), prod(threads), arguments)
    torch.testing.assert_close(d.float(), (a.float() @ b.float()).T, rtol=1e-2, atol=0.05)
