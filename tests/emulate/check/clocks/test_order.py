"""What orders two accesses of the same place, and for how long that is remembered."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.check.support import checked
from tests.emulate.memory_support import kernel_of, lanes_of
from wavecast.emulate.check.clocks.atomicity import accesses
from wavecast.emulate.check.clocks.missing_order import Lack, RaceSide, Unordered, explanation
from wavecast.emulate.reports import Kind
from wavecast.isa.opcode import MemoryKind

_NUMBER = "s_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v2, s2\n"
"""v2: the number of the workgroup."""


@pytest.mark.parametrize(
    ("target", "scope", "orders"),
    [
        ("gfx942", "", False),
        ("gfx942", "sc0", False),
        ("gfx942", "sc1", True),
        ("gfx950", "sc0 sc1", True),
        ("gfx90a", "glc", True),
    ],
)
def test_only_device_scope_orders_workgroups(target: str, scope: str, orders: bool) -> None:
    """sc0 alone is the scope of a workgroup."""
    body = f"{_NUMBER}global_store_dword v1, v2, s[8:9] {scope}\n"
    found = checked(target, body, np.full(64, 9, np.uint32), groups=2)
    assert [report.kind for report in found] == ([] if orders else [Kind.WORKGROUP_RACE])


_FLAT_ATOMIC = {
    "gfx90a": "flat_atomic_add v6, v[4:5], v0 glc\ns_waitcnt vmcnt(0) lgkmcnt(0)\n",
    "gfx942": "flat_atomic_add v6, v[4:5], v0 sc0\ns_waitcnt vmcnt(0) lgkmcnt(0)\n",
}
_ACQUIRE = {"gfx90a": "buffer_wbinvl1_vol\n", "gfx942": "buffer_inv sc1\n"}
_RELEASE = {
    "gfx90a": "s_waitcnt vmcnt(0)\n",
    "gfx942": "buffer_wbl2 sc1\ns_waitcnt vmcnt(0)\n",
}


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_flat_atomics_order_workgroups_with_a_release_and_an_acquire(target: str) -> None:
    """Also where the program makes flat addresses of LDS. An atomic alone orders nothing."""
    atomic, acquire, release = _FLAT_ATOMIC[target], _ACQUIRE[target], _RELEASE[target]

    def kinds(*parts: str) -> list[Kind]:
        body = (
            f"{_NUMBER}s_mov_b64 s[20:21], src_shared_base\n"
            "v_mov_b32_e32 v4, s10\nv_mov_b32_e32 v5, s11\n"
        )
        data, count = np.full(64, 9, np.uint32), np.zeros(1, np.uint32)
        found = checked(target, body + "".join(parts), data, count, groups=2)
        return [report.kind for report in found]

    load = "global_load_dword v3, v1, s[8:9]\ns_waitcnt vmcnt(0)\n"
    store = f"{load}v_add_u32_e32 v3, v3, v2\nglobal_store_dword v1, v3, s[8:9]\n"
    assert kinds(atomic, acquire, store, release, atomic) == []
    race = [Kind.WORKGROUP_RACE] * 2
    assert kinds(atomic, store, release, atomic) == race
    assert kinds(atomic, acquire, store, atomic) == race
    assert kinds(atomic, acquire, store) == race
    assert kinds(store) == race


@pytest.mark.parametrize("groups", [2, 3, 6, 7, 8, 100])
def test_one_workgroup_overwrites_what_others_have_read(groups: int) -> None:
    """The last one, so that it is told who they are or that they are several."""
    body = (
        f"{_NUMBER}s_cmp_eq_u32 s2, {groups - 1}\ns_cbranch_scc1 .LLAST\n"
        "global_load_dword v3, v1, s[8:9]\ns_waitcnt vmcnt(0)\ns_endpgm\n"
        ".LLAST:\nglobal_store_dword v1, v2, s[8:9]\n"
    )
    (report,) = checked("gfx942", body, np.zeros(64, np.uint32), groups=groups)
    assert report.kind is Kind.WORKGROUP_RACE
    assert report.workgroup == (groups - 1, 0, 0)
    who = "workgroup (0, 0, 0)" if groups == 2 else "other workgroups"
    assert report.message.startswith(f"overwrites what {who} read")


_WAVES_APART = """
    v_readfirstlane_b32 s20, v0
    s_waitcnt lgkmcnt(0)
    v_xor_b32_e32 v3, 0x100, v1
"""
"""s20: 0 in the first of two waves; v3: the other wave's offset."""
_WAITS = "s_waitcnt vmcnt(0) lgkmcnt(0)\n"


def _loop(count: int, body: str) -> str:
    return (
        f"s_mov_b32 s21, {count}\n.LAGAIN:\n{body}"
        "s_sub_u32 s21, s21, 1\ns_cmp_lg_u32 s21, 0\ns_cbranch_scc1 .LAGAIN\n"
    )


def _kinds(body: str, target: str = "gfx942") -> list[Kind]:
    """What two waves are reported for, one of 64 lanes each at s[8:9] and in LDS."""
    arrays = np.zeros(128, np.uint32), np.zeros(128, np.uint32)
    return [r.kind for r in checked(target, _WAVES_APART + body, *arrays, threads=128, lds=512)]


@pytest.mark.parametrize("phases", [1, 2, 64, 256, 2048, 8192, 65536])
def test_barriers_order_what_was_long_ago(phases: int) -> None:
    """However many there are: numbers of phases do not run over."""
    barriers = _loop(phases, "s_barrier\n")
    store = "ds_write_b32 v1, {0}\nglobal_store_dword v1, {0}, s[8:9]\n" + _WAITS
    load = "ds_read_b32 v4, v3\nglobal_load_dword v5, v3, s[8:9]\n" + _WAITS
    early = store.format("v0") + barriers
    assert _kinds(early + load) == []
    assert set(_kinds(early + store.format("v3") + load)) == {Kind.LDS_RACE, Kind.GLOBAL_RACE}


def test_barriers_order_what_was_many_operations_ago() -> None:
    """A table in LDS that is read all the time."""
    few = "s_mov_b64 exec, 1\n"
    four = "".join(f"ds_read_b32 v{number}, v1\n" for number in range(4, 8))
    reads = _loop(40_000, four + _WAITS)
    every = "s_mov_b64 exec, -1\n"
    table = f"ds_write_b32 v1, v0\n{_WAITS}s_barrier\n"
    load = "ds_read_b32 v4, v3\n" + _WAITS
    assert _kinds(table + few + reads + every + "s_barrier\n" + load) == []


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
def test_a_barrier_does_not_wait_for_stores_of_the_phase_before(target: str) -> None:
    """As LLVM writes loops of two barriers where the code before the loop has waited: the wait of
    the release fence at the head is gone (llvm/llvm-project#220357)."""
    store, load = "ds_write_b32 v1, v0\n", "ds_read_b32 v4, v3\n"
    wait = "s_waitcnt lgkmcnt(0)\n"

    def phases(count: int, head: str) -> list[Kind]:
        loop = f"{head}s_barrier\n{load}{wait}s_barrier\n{store}"
        return _kinds(store + wait + _loop(count, loop), target)

    assert phases(3, wait) == phases(1, "") == []
    assert phases(3, "") == [Kind.LDS_RACE]


@pytest.mark.parametrize("phases", [1, 2, 3])
def test_what_an_ended_wave_stored_is_there_in_later_phases(phases: int) -> None:
    store = "ds_write_b32 v1, v0\ns_endpgm\n"
    other = "s_cmp_lg_u32 s20, {}\ns_cbranch_scc1 .LOTHER\n" + store + ".LOTHER:\n"
    load = "ds_read_b32 v4, v3\n" + _WAITS
    barriers = _loop(phases, "s_barrier\n")
    for ending in (0, 64):
        assert Kind.LDS_RACE not in _kinds(other.format(ending) + barriers + load)
    assert _kinds(other.format(0) + load) == [Kind.LDS_RACE]


def test_what_counts_at_a_split_barrier_is_done_at_its_signal() -> None:
    head = "v_xor_b32_e32 v3, 0x80, v1\nds_store_b32 v1, v0\n"
    tail = "s_barrier_wait -1\nds_load_b32 v4, v3\ns_wait_dscnt 0x0\n"
    signal, wait = "s_barrier_signal -1\n", "s_wait_dscnt 0x0\n"

    def kinds(between: str) -> list[Kind]:
        body = head + between + tail
        return [report.kind for report in checked("gfx1201", body, threads=64, lds=256)]

    assert kinds(wait + signal) == []
    assert kinds(signal + wait) == [Kind.LDS_RACE]


@pytest.mark.parametrize(
    ("target", "mode", "wait"),
    [
        ("gfx942", "", ""),
        ("gfx1100", "\t\t.amdhsa_workgroup_processor_mode 0", ""),
        ("gfx1100", "", "s_waitcnt_vscnt null, 0x0\n"),
        ("gfx1201", "", "s_wait_storecnt 0x0\n"),
    ],
)
def test_barriers_order_stores_that_were_waited_for(target: str, mode: str, wait: str) -> None:
    """Waves on one compute unit share a cache and need no wait."""
    new = target.startswith("gfx12")
    barrier = "s_barrier_signal -1\ns_barrier_wait -1\n" if new else "s_barrier\n"
    size = 2 * lanes_of(target)

    def kinds(between: str) -> list[Kind]:
        body = f"v_xor_b32_e32 v3, {hex(4 * lanes_of(target))}, v1\n"
        body += "s_wait_kmcnt 0x0\n" if new else "s_waitcnt lgkmcnt(0)\n"
        name = "dword" if target.startswith("gfx9") else "b32"
        body += f"global_store_{name} v1, v0, s[8:9]\n{between}{barrier}"
        body += f"global_load_{name} v5, v3, s[8:9]\n"
        body += "s_wait_loadcnt 0x0\n" if new else "s_waitcnt vmcnt(0)\n"
        arrays = (np.zeros(size, np.uint32),)
        return [r.kind for r in checked(target, body, *arrays, threads=size, directives=mode)]

    assert kinds(wait) == []
    if wait:
        assert kinds("") == [Kind.GLOBAL_RACE]


@pytest.mark.parametrize("space", ["ds_write_b32 v4, v3", "global_store_dword v4, v3, s[8:9]"])
def test_lanes_that_store_different_values_to_one_address(space: str) -> None:
    """Floats that differ by rounding are replicas of one sum."""

    def kinds(value: str) -> list[Kind]:
        body = f"{value}\nv_mov_b32_e32 v4, 0\ns_waitcnt lgkmcnt(0)\n{space}\n"
        found = checked("gfx942", body, np.zeros(64, np.uint32), lds=256)
        return [report.kind for report in found]

    assert kinds("v_cvt_f32_u32_e32 v3, v0") == [Kind.LANE_RACE]
    assert kinds("v_lshrrev_b32_e32 v3, 5, v0") == [Kind.LANE_RACE]
    assert kinds("v_mov_b32_e32 v3, 7") == []
    assert kinds("v_add_u32_e32 v3, 0x3f800000, v0") == []


def test_a_race_of_two_launches_names_the_access_that_is_not_atomic() -> None:
    sides = []
    for text in ("global_store_dword v1, v2, s[8:9]", "global_atomic_add v1, v2, s[8:9] sc1"):
        program = kernel_of("gfx942", f"{text}\ns_endpgm\n").program
        sides.append(RaceSide(program, accesses(program)))
    indices = [
        next(i.index for i in side.program.instructions if i.memory and i.memory.kind is kind)
        for side, kind in zip(sides, (MemoryKind.STORE, MemoryKind.ATOMIC), strict=True)
    ]
    (store, atomic), unordered = sides, Unordered(Lack.NOTHING_SHARED)
    text = store.program.instructions[indices[0]].decoded.text
    expected = f"the store {text!r} is not atomic, the other access is"
    assert explanation(store, atomic, unordered, *indices) == expected
    assert explanation(atomic, store, unordered, *reversed(indices)) == expected
