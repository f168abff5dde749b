"""Names of kernels as tables show them."""

from __future__ import annotations

import pytest

from wavecast.profiles.kernel_names import display_name, functor, recognise

_NATIVE = "void at::native::"
_LAMBDA = "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            f"{_NATIVE}elementwise_kernel_manual_unroll<128, 8, at::native::gpu_kernel_impl_nocast<"
            "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
            "at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&)>(int)",
            "MulFunctor",
        ),
        (
            f"{_NATIVE}vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::"
            "pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase&, float)::"
            "{lambda(float)#1}, std::array<char*, 2ul> >(int)",
            "pow_tensor_scalar_kernel_impl",
        ),
        (
            f"{_NATIVE}vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda{_LAMBDA}>(int)",
            "neg_kernel_cuda",
        ),
        (
            f"{_NATIVE}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<"
            "float, float, float, float>, unsigned int, float, 4> >(at::native::ReduceOp<float>)",
            "MeanOps",
        ),
        (
            f"{_NATIVE}(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
            "namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::"
            "BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>()",
            "BinaryOpListAlphaFunctor",
        ),
        (f"{_NATIVE}vectorized_elementwise_kernel<4, char, std::array<char*, 2ul> >(int)", ""),
        (f"{_NATIVE}(anonymous namespace)::CatArrayBatchedCopy<unsigned int, 4, 64>(int)", ""),
        ("void other::elementwise_kernel<MulFunctor>(int)", ""),
        (f"{_NATIVE}elementwise_kernel<128, at::native::AbsFunctor<fl", "AbsFunctor"),
        ("Cijk_Alik_Bljk_SB_MT64x16x32_MI16", ""),
        ("", ""),
    ],
)
def test_the_functor_of_pytorchs_generic_kernels(name: str, expected: str) -> None:
    assert functor(name) == expected
    if expected:
        assert display_name(name).endswith(
            f"kernel<{expected}>"
        ) or "manual_unroll<" in display_name(name)
    else:
        assert "<" not in display_name(name)


@pytest.mark.parametrize(
    ("name", "library", "category"),
    [
        ("bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_clmp_dynBatch_sm100f", "TensorRT-LLM",
         "moe"),
        ("gemm_Bfloat16_E4m3E4m3_Fp32_t128x64x128_s4_sm100a", "TensorRT-LLM", "gemm"),
        ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128", "TensorRT-LLM",
         "attention"),
        ("void moe::dev::routing::routingIndicesOffsetsKernel<Params>(Params)", "TensorRT-LLM",
         "moe"),
        ("void fbgemm_gpu::permute_2D_data_kernel<false, int>(int)", "FBGEMM", "index and copy"),
        ("void epilogue::impl::globalKernel<float, true>(int, cublasLtEpilogue_t)", "cuBLAS",
         "gemm"),
        ("void magma_sgemmEx_kernel<float, 6, 3>(int)", "MAGMA", "gemm"),
        ("batched_transpose_64x64_pack_4x4_ediv_4x4_half", "MIOpen", "index and copy"),
        ("SubTensorOpWithCastTensor1d", "MIOpen", "element-wise"),
        ("triton__0d1d2d", "Inductor", "element-wise"),
        ("triton_poi_fused_add_0", "Inductor", "element-wise"),
    ],
)  # fmt: skip
def test_libraries_by_their_names(name: str, library: str, category: str) -> None:
    found = recognise(name)
    assert (found.library, found.category) == (library, category)
