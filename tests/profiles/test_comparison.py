"""Two profiles are matched by operator and module, and their totals stay exact."""

from __future__ import annotations

from wavecast.profiles.comparison import compare_profiles
from wavecast.profiles.profile import Profile, ProfiledKernel, ProfiledOp

_NORM = "void at::native::vectorized_layer_norm_kernel"


def _profile(*runs: tuple[str, str, str, int]) -> Profile:
    """Launches: (operator, module, kernel, nanoseconds)."""
    profile, now = Profile("test"), 0
    for op, module, kernel, duration in runs:
        number = profile.kernels.number(ProfiledKernel(kernel))
        profile.launches.add(number, 0, 0, now, duration)
        if op:
            profile.launches.op[-1] = len(profile.ops)
            profile.ops.add(profile.op_infos.number(ProfiledOp(op)), 0, now, duration)
            profile.ops.module[-1] = profile.modules.number(module)
        now += duration
    return profile


def test_operators_of_layers_are_matched_whatever_their_kernels_are() -> None:
    amd = _profile(
        ("aten::mm", "M_0.L_0", "Cijk_Alik_Bljk_BBS_BH_MT64x32x256_", 70),
        ("aten::mm", "M_0.L_1", "Cijk_Alik_Bljk_BBS_BH_MT64x32x256_", 30),
        ("aten::layer_norm", "M_0.N_0", _NORM, 11),
        ("", "", "ncclDevKernel_a", 5),
    )
    nvidia = _profile(
        ("aten::mm", "M_0.L_0", "ampere_sgemm_128x64_nn", 40),
        ("", "", "ncclDevKernel_b", 9),
        ("aten::add", "M_0", "void at::native::elementwise_kernel<128, 2>", 3),
    )
    found = compare_profiles(amd, nvidia)
    rows = {(row.op, row.module): row for row in found.rows}
    product = rows["aten::mm", "M.L"]
    assert (product.first.share.nanoseconds, product.second.share.nanoseconds) == (100, 40)
    assert (len(product.first.calls), len(product.second.calls)) == (2, 1)
    assert product.ratio == 0.4
    assert product.form == "128x64 fp32 NN" or "→" in product.form
    assert rows["", ""].ratio == 9 / 5
    assert rows["aten::layer_norm", "M.N"].ratio is None
    assert found.rows[0] is product
    assert found.totals == (116, 52)
    assert found.matched_shares == (105 / 116, 49 / 52)
    assert found.by_category()["gemm"] == (100, 40)
