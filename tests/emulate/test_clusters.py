"""Clusters of workgroups (gfx1250): places, the barrier, copies for several workgroups."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.emulate.memory_support import assembly
from wavecast.emulate.errors import ChecksFailed, ExecutionError
from wavecast.errors import LaunchError

GRID, CLUSTER = (4, 6, 2), (2, 3, 2)
_EXCHANGE = """
	s_and_b32 s22, ttmp6, 15
	s_lshl_b32 s23, ttmp9, 1
	s_add_co_i32 s23, s23, s22
	s_xor_b32 s24, s23, 1
	v_mov_b32_e32 v4, s23
	s_lshl_b32 s25, s23, 2
	s_lshl_b32 s26, s24, 2
	v_mov_b32_e32 v5, s25
	v_mov_b32_e32 v6, s26
	global_store_b32 v5, v4, s[8:9]
	{release}
	{signal}
	s_barrier_wait -3
	{acquire}
	global_load_b32 v7, v6, s[8:9]
	s_wait_loadcnt 0x0
	global_store_b32 v5, v7, s[10:11]
	s_wait_storecnt 0x0
"""
"""A pair of workgroups exchanges its numbers."""
FENCES = {
    "release": "global_wb scope:SCOPE_DEV\n\ts_wait_storecnt 0x0",
    "acquire": "global_inv scope:SCOPE_DEV",
    "signal": "s_barrier_signal -3",
}


def launch(tmp_path: Path, body: str, *arrays: np.ndarray, check: bool = False, **options) -> None:
    """Run a kernel with up to four arrays on gfx1250."""
    file = tmp_path / "k.s"
    metadata = "\n".join(
        f"      - {{.address_space: global, .offset: {8 * index}, .size: 8, "
        ".value_kind: global_buffer}"
        for index in range(4)
    )
    text = assembly("gfx1250", "\ts_wait_kmcnt 0x0\n" + body, lds=4096).rstrip() + (
        "\n\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .args:\n"
        f"{metadata}\n    .name: k\n    .symbol: k.kd\n    .kernarg_segment_size: 32\n"
        "    .group_segment_fixed_size: 4096\n    .private_segment_fixed_size: 0\n"
        "    .max_flat_workgroup_size: 128\n    .wavefront_size: 32\n    .sgpr_count: 64\n"
        f"    .vgpr_count: 64\n    .kernarg_segment_align: 8\n{options.pop('dims', '')}"
        "amdhsa.version: [1, 2]\n...\n\t.end_amdgpu_metadata\n"
    )
    file.write_text(text, encoding="utf-8")
    kernel = wavecast.load(file, "gfx1250", check=check)["k"]
    values = [*arrays, *[None] * (4 - len(arrays))]
    kernel(options.pop("grid"), options.pop("block", 32), *values, **options)


def test_a_workgroup_finds_its_place(tmp_path: Path) -> None:
    """TTMP9, TTMP7, TTMP6 and IB_STS2 of all workgroups, against a loop over the grid."""
    fields = 4
    body = """
	s_getreg_b32 s20, hwreg(HW_REG_IB_STS2, 21, 4)
	s_bfe_u32 s21, ttmp6, 0x40000
	s_bfe_u32 s22, ttmp6, 0x40004
	s_bfe_u32 s23, ttmp6, 0x40008
	s_and_b32 s24, ttmp7, 0xffff
	s_lshr_b32 s25, ttmp7, 16
	s_mul_i32 s26, ttmp9, 2
	s_add_co_i32 s26, s26, s21
	s_mul_i32 s27, s24, 3
	s_add_co_i32 s27, s27, s22
	s_mul_i32 s28, s25, 2
	s_add_co_i32 s28, s28, s23
	s_mul_i32 s28, s28, 6
	s_add_co_i32 s28, s28, s27
	s_mul_i32 s28, s28, 4
	s_add_co_i32 s28, s28, s26
	s_lshl_b32 s28, s28, 4
	v_mov_b32_e32 v4, ttmp9
	v_mov_b32_e32 v5, ttmp7
	v_mov_b32_e32 v6, ttmp6
	s_getreg_b32 s29, hwreg(HW_REG_IB_STS2, 6, 4)
	s_lshl_b32 s29, s29, 8
	s_or_b32 s20, s20, s29
	v_mov_b32_e32 v7, s20
	v_mov_b32_e32 v8, s28
	global_store_b128 v8, v[4:7], s[8:9]
"""
    out = np.zeros((*reversed(GRID), fields), np.uint32)
    launch(tmp_path, body, out, grid=GRID, cluster=CLUSTER)
    a, b, c = CLUSTER
    largest = (a - 1) << 12 | (b - 1) << 16 | (c - 1) << 20 | (a * b * c - 1) << 24
    for x, y, z in product(*map(range, GRID)):
        place = x % a, y % b, z % c
        flat = (place[2] * b + place[1]) * a + place[0]
        assert out[z, y, x].tolist() == [
            x // a,
            y // b | (z // c) << 16,
            place[0] | place[1] << 4 | place[2] << 8 | largest,
            flat | (a * b * c - 1) << 8,
        ]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("check", [False, True])
def test_the_barrier_orders_workgroups(tmp_path: Path, threads: int, check: bool) -> None:
    numbers, out = np.full(32, -1, np.int32), np.full(32, -1, np.int32)
    body = _EXCHANGE.format(**FENCES)
    launch(tmp_path, body, numbers, out, grid=32, cluster=2, check=check, threads=threads)
    np.testing.assert_array_equal(numbers, np.arange(32))
    np.testing.assert_array_equal(out, np.arange(32) ^ 1)


def test_fences_of_the_cluster_publish(tmp_path: Path) -> None:
    """As LLVM compiles them: a wait for the stores, an invalidation at the scope of the cluster."""
    numbers, out = np.zeros(4, np.int32), np.zeros(4, np.int32)
    fences = {**FENCES, "release": "s_wait_storecnt 0x0", "acquire": "global_inv scope:SCOPE_SE"}
    body = _EXCHANGE.format(**fences)
    launch(tmp_path, body, numbers, out, grid=4, cluster=2, check=True)
    np.testing.assert_array_equal(out, np.arange(4) ^ 1)


def test_what_is_not_published_races(tmp_path: Path) -> None:
    """A signal does not publish stores: the release before it does."""
    numbers, out = np.zeros(4, np.int32), np.zeros(4, np.int32)
    body = _EXCHANGE.format(**{**FENCES, "release": ""})
    with pytest.raises(ChecksFailed, match="workgroup-race"):
        launch(tmp_path, body, numbers, out, grid=4, cluster=2, check=True)


def test_a_barrier_that_not_all_reach_is_a_deadlock(tmp_path: Path) -> None:
    """Workgroup 3 ends before it signals."""
    skips = "s_cmp_eq_u32 s23, 3\n\ts_cbranch_scc1 out\n\ts_barrier_signal -3"
    body = _EXCHANGE.format(**{**FENCES, "signal": skips}) + "out:\n"
    numbers, out = np.zeros(4, np.int32), np.zeros(4, np.int32)
    with pytest.raises(ExecutionError, match=r"workgroup \(2, 0, 0\).*s_barrier_wait -3"):
        launch(tmp_path, body, numbers, out, grid=4, cluster=2)


def test_without_a_cluster_its_barrier_does_nothing(tmp_path: Path) -> None:
    body = "\ts_barrier_wait -3\n\ts_barrier_signal -3\n\tglobal_store_b32 v1, v0, s[8:9]\n"
    out = np.zeros(32, np.uint32)
    launch(tmp_path, body, out, grid=1)
    np.testing.assert_array_equal(out, np.arange(32))


@pytest.mark.parametrize(
    "copy",
    [
        "s_mov_b32 m0, 3\n\tcluster_load_async_to_lds_b32 v1, v1, s[8:9]\n\ts_wait_asynccnt 0x0\n"
        "\tds_load_b32 v4, v1\n\ts_wait_dscnt 0x0",
        "s_mov_b32 m0, 3\n\tcluster_load_b32 v4, v1, s[8:9]\n\ts_wait_loadcnt 0x0",
    ],
    ids=["lds", "registers"],
)
def test_each_workgroup_has_its_copy(tmp_path: Path, copy: str) -> None:
    body = f"""
	s_and_b32 s20, ttmp6, 15
	s_lshl_b32 s21, s20, 7
	v_add_nc_u32_e32 v5, s21, v1
	{copy}
	v_add_nc_u32_e32 v4, s20, v4
	global_store_b32 v5, v4, s[10:11]
"""
    numbers, out = np.arange(32, dtype=np.int32), np.zeros((2, 32), np.int32)
    launch(tmp_path, body, numbers, out, grid=2, cluster=2, check=True)
    np.testing.assert_array_equal(out, numbers + np.arange(2)[:, None])


def test_a_kernel_knows_its_cluster(tmp_path: Path) -> None:
    numbers, out = np.zeros(8, np.int32), np.zeros(8, np.int32)
    body, dims = _EXCHANGE.format(**FENCES), "    .cluster_dims: [2, 1, 1]\n"
    launch(tmp_path, body, numbers, out, grid=8, dims=dims)
    np.testing.assert_array_equal(out, np.arange(8) ^ 1)
    with pytest.raises(LaunchError, match=r"a cluster of \(4, 1, 1\)"):
        launch(tmp_path, body, numbers, out, grid=8, dims=dims, cluster=4)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"grid": 3, "cluster": 2}, "do not divide a grid"),
        ({"grid": (8, 8), "cluster": (8, 4)}, "1 to 16 workgroups"),
        ({"grid": 4, "cluster": 0}, "a cluster of 0"),
    ],
)
def test_clusters_that_cannot_be(tmp_path: Path, options: dict, reason: str) -> None:
    with pytest.raises(LaunchError) as caught:
        launch(tmp_path, "", **options)
    assert reason in f"{caught.value} {caught.value.hint}"


def test_other_targets_have_none(tmp_path: Path) -> None:
    file = tmp_path / "k.s"
    file.write_text(assembly("gfx942", ""), encoding="utf-8")
    kernel = wavecast.load(file, "gfx942")["k"]
    with pytest.raises(LaunchError, match="gfx942 has no clusters"):
        kernel(2, 64, b"", cluster=2)
