"""Names of kernels as tables show them."""

from __future__ import annotations

import pytest

from wavecast.bench.profiles.kernel_names import functor, shown

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
        assert shown(name).endswith(f"kernel<{expected}>") or "manual_unroll<" in shown(name)
    else:
        assert "<" not in shown(name)
