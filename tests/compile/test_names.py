"""Names in headings."""

from __future__ import annotations

import pytest

from wavecast.compile.names import distinct_names, readable


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("matmul_kernel", "matmul_kernel"),
        ("_Z8mfmaGemmPKDF16_S0_Pfiii", "mfmaGemm"),
        ("_ZN3gpu9sumKernelIfEEvPKT_", "gpu::sumKernel<…>"),
        ("_Z3addIfEvPKT_S2_PS0_i", "add<…>"),
        ("_ZN12_GLOBAL__N_15scaleEPf", "(anonymous)::scale"),
        ("_Z", "_Z"),
        ("_Z99short", "_Z99short"),
        ("_ZTV3abc", "_ZTV3abc"),
    ],
)
def test_readable(symbol: str, name: str) -> None:
    assert readable(symbol) == name


def test_instances_of_one_template_have_different_names() -> None:
    double, single = "_ZN3gpu9sumKernelIdEEvPKT_", "_ZN3gpu9sumKernelIfEEvPKT_"
    more = "_ZN3gpu9sumKernelIff6layoutEEvPKT_"
    assert distinct_names([double, "matmul", single, double]) == {
        double: "gpu::sumKernel<…d…>",
        "matmul": "matmul",
        single: "gpu::sumKernel<…f…>",
    }
    names = distinct_names([double, single, more])
    assert len({*names.values()}) == 3
    assert names[more] == "gpu::sumKernel<…ff6layout…>"
    assert distinct_names([single]) == {single: "gpu::sumKernel<…>"}
    assert distinct_names([]) == {}
