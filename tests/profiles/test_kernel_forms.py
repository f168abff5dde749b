"""What names of kernels say, as the libraries' public sources write them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wavecast.kernels
from wavecast.profiles import kernel_names
from wavecast.profiles.kernel_forms import form, target
from wavecast.profiles.kernel_names import recognise, short
from wavecast.profiles.kernel_sizes import operation
from wavecast.profiles.profile import ProfiledKernel

_TENSILE = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1_ISA942_SK3_SKX"
_FLASH = (
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 96, 4, "
    "false, false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<64, 128, 96, 4, "
    "cutlass::bfloat16_t> >, false, true, false, false>(pytorch_flash::Flash_fwd_params)"
)
_ADD = (
    "void at::native::vectorized_elementwise_kernel<{vector}, at::native::CUDAFunctor_add<{type}>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<{type}>, std::array<char*, 3ul>)"
)
_MUL = (
    "void at::native::elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel_impl_nocast<"
    "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
    "at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, at::native::Bin"
)


@pytest.mark.parametrize(
    ("name", "text", "library"),
    [
        (_TENSILE, "64x32x256 bf16 TN stream-K", "hipBLASLt"),
        ("Cijk_Ailk_Bjlk_SB_MT64x16x16_MI16x16x1_GSU4_ISA90a", "64x16x16 fp32 NT split-K 4",
         "hipBLASLt"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas",
         "128x128x64 bf16 TN", "cuBLAS"),
        ("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", "128x256x64 bf16 TN",
         "cuBLAS"),
        ("ampere_sgemm_128x64_nn", "128x64 fp32 NN", "cuBLAS"),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopB_TNN", "128x256x64 bf16 TN", "cuBLAS"),
        ("nvjet_hsh_64x8_64x16_1x4_h_bz_splitK_TNT", "64x8x64 fp16 TN split-K", "cuBLAS"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_Params)",
         "128x32x8 fp32 NN", "CUTLASS"),
        ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x4_tn_align8",
         "128x64x64 bf16 TN", "CUTLASS"),
        (_FLASH, "128x96 bf16 head 64 causal", "FlashAttention"),
        ("_ZN5aiter30fmha_fwd_hd128_bf16_causal_rtneE", "bf16 head 128 causal", "AITER"),
        ("_ZN5aiter39mla_a16w16_qh16_m32x1_n16x1_coex0_mask1E", "bf16", "AITER"),
        ("_ZN5aiter28pa_bf16_noquant_gqa16_1tg_4wE", "bf16", "AITER"),
        ("_ZN5aiter39fmoe_fp8_blockscale_g1u1_novs_subGU_256E", "fp8", "AITER"),
        ("_ZN5aiter48f8gemm_bf16_mxfp8fp4_ABpreShuffle_256x256_4x4_psE", "256x256 fp8 x fp4",
         "AITER"),
        ("flatmm_uk_gfx9_f16f8_128x256x128_1x4x1_16x16x32", "128x256x128 fp8", "AITER"),
        ("_ZN2ck27kernel_gemm_xdl_cshuffle_v3INS_33GridwiseGemm_xdl_cshuffle_v3INS_16tensor_operation"
         "6device18GemmSpecializationE0ELi256ELi224ELi256ELi64ELi8ELi8E", "224x256x64",
         "Composable Kernel"),
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_19Generic2dBlockShapeINS_8sequenceIJLi1ELi3072EEEE",
         "rows up to 3072", "Composable Kernel"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
         "16x128x256 bf16xbf16xmxfp4 NN", "Triton"),
        ("triton_poi_fused_add_mul_3", "add mul", "Inductor"),
        ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "bf16", "vLLM"),
        (_ADD.format(vector=8, type="c10::BFloat16"), "bf16", "PyTorch"),
        ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "", "RCCL/NCCL"),
        ("moe_product_fp8_kernel", "", "wavecast"),
    ],
)  # fmt: skip
def test_forms(name: str, text: str, library: str) -> None:
    assert form(name).text == text
    assert recognise(name).library == library
    assert recognise(name).category != "other"


def test_targets_and_short_names() -> None:
    assert target(_TENSILE) == "gfx942"
    assert target(_FLASH) == ""
    assert short(_TENSILE).endswith("_MT64x32x256")
    assert short("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdE") == "ck_tile::kentry::Rmsnorm2dFwd"


@pytest.mark.parametrize(
    ("name", "blocks", "threads", "bytes_"),
    [
        (_ADD.format(vector=4, type="float"), 100, 256, 3 * 4 * 100 * 256 * 4),
        (_ADD.format(vector=8, type="c10::BFloat16"), 100, 256, 3 * 2 * 100 * 256 * 8),
        (_ADD.format(vector=2, type="float"), 10, 128, 3 * 4 * 10 * 128 * 4),
        (_MUL, 100, 128, 3 * 2 * 100 * 128 * 8),
    ],
)
def test_elements_of_a_grid(name: str, blocks: int, threads: int, bytes_: int) -> None:
    found = operation(ProfiledKernel(name, (blocks, 1, 1), (threads, 1, 1)))
    assert found is not None
    assert found.work().bytes == bytes_


def test_attention_of_a_grid() -> None:
    found = operation(ProfiledKernel(_FLASH, (5, 16, 8), (128, 1, 1)))
    assert str(found) == "attention causal 16x8/8x64/64 640x640 bf16"


def test_without_a_grid_or_a_rule_there_are_no_sizes() -> None:
    assert operation(ProfiledKernel(_MUL)) is None
    assert operation(ProfiledKernel(_TENSILE, (70, 1, 1), (256, 1, 1))) is None


def test_the_kernels_of_this_package_are_recognised() -> None:
    rules = Path(kernel_names.__file__).with_name("kernel_names.toml").read_text()
    own = re.findall(r'library = "wavecast"\ncategory = "\S+"\npattern = "(.*)"', rules)
    source = "\n".join(
        file.read_text() for file in Path(wavecast.kernels.__path__[0]).rglob("*.py")
    )
    names = set(re.findall(r"^def (\w+_kernel)\(", source, re.MULTILINE))
    for pattern in own:
        assert any(re.search(pattern, name) for name in names)
    found = {name for name in names if recognise(name).library == "wavecast"}
    assert {n for n in names if n.startswith("moe_")} <= found
