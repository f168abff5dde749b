"""Names in headings."""

from __future__ import annotations

import pytest

from wavecast.compile.names import readable


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
