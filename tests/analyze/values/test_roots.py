"""Which argument an address comes from, however the pointer travelled."""

from __future__ import annotations

import pytest

from tests.analyze.values.support import Kernel

TWO = ("x", "y")
LOADS = "s_load_dwordx4 s[4:7], s[0:1], 0x0\n"


def names(body: str, text: str, **changes) -> tuple[str, ...]:
    return Kernel(body, pointers=TWO, **changes).access(text, grid=None).arguments


def test_loads_of_several_pointers_at_once() -> None:
    body = LOADS + "global_load_dword v1, v0, s[4:5]\nglobal_store_dword v0, v1, s[6:7]"
    found = Kernel(body, pointers=TWO).evaluate(grid=None)
    assert (found.arguments_read, found.arguments_written) == ({"x"}, {"y"})
    assert found.complete
    assert not found.arguments_updated


def test_a_load_over_its_own_address() -> None:
    body = "s_load_dwordx2 s[0:1], s[0:1], 0x8\nglobal_load_dword v1, v0, s[0:1]"
    assert names(body, "global_load") == ("y",)


def test_preloaded_arguments() -> None:
    directives = {
        "user_sgpr_kernarg_segment_ptr": 1,
        "user_sgpr_kernarg_preload_length": 4,
        "user_sgpr_count": 6,
    }
    body = "global_load_dword v1, v0, s[4:5]"
    assert names(body, "global_load", directives=directives) == ("y",)


def test_vector_arithmetic_and_rubbish_in_high_halves() -> None:
    """The high half of the addend is left over from another pointer and ignored."""
    body = f"""{LOADS}v_mov_b32_e32 v5, s5
v_mov_b32_e32 v4, 0
v_mad_u64_u32 v[4:5], s[8:9], v0, 4, v[4:5]
v_ashrrev_i32_e32 v5, 31, v4
v_lshl_add_u64 v[4:5], v[4:5], 1, s[6:7]
global_load_dword v6, v[4:5], off"""
    assert names(body, "global_load") == ("y",)


def test_buffer_descriptors() -> None:
    body = f"""{LOADS}s_and_b32 s9, s5, 0xffff
s_mov_b32 s8, s4
s_mov_b32 s10, -1
s_mov_b32 s11, 0x27000
buffer_load_dword v1, v0, s[8:11], 0 offen"""
    assert names(body, "buffer_load") == ("x",)


def test_scalars_parked_in_lanes() -> None:
    body = f"""{LOADS}v_writelane_b32 v40, s4, 0
v_writelane_b32 v40, s5, 1
v_writelane_b32 v40, s6, 2
v_writelane_b32 v40, s7, 3
v_readlane_b32 s8, v40, 2
v_readlane_b32 s9, v40, 3
global_load_dword v1, v0, s[8:9]"""
    assert names(body, "global_load") == ("y",)
    access = Kernel(body, pointers=TWO).access("global_load")
    assert access.exact


def test_addresses_spilled_to_scratch() -> None:
    body = f"""{LOADS}v_lshlrev_b32_e32 v2, 2, v0
v_mov_b32_e32 v3, 0
v_lshl_add_u64 v[2:3], v[2:3], 0, s[6:7]
scratch_store_dwordx2 off, v[2:3], off offset:8
v_mov_b32_e32 v2, 0
v_mov_b32_e32 v3, 0
scratch_load_dwordx2 v[4:5], off, off offset:8
global_load_dword v1, v[4:5], off"""
    kernel = Kernel(body, pointers=TWO, scratch=64)
    access = kernel.access("global_load")
    assert (access.argument, access.pattern) == ("y", "contiguous")
    assert kernel.evaluate().memory(len(kernel.program.instructions) - 3) is None


def test_atomics_update() -> None:
    body = LOADS + "global_atomic_add v0, v1, s[6:7]"
    found = Kernel(body, pointers=TWO).evaluate(grid=None)
    assert found.arguments_updated == {"y"}
    assert not found.arguments_written


def test_a_choice_between_pointers_names_both() -> None:
    body = f"""{LOADS}s_cmp_lt_i32 s2, 5
s_cselect_b32 s8, s4, s6
s_cselect_b32 s9, s5, s7
global_load_dword v1, v0, s[8:9]"""
    kernel = Kernel(body, pointers=TWO)
    access = kernel.access("global_load", grid=None)
    assert (access.argument, set(access.arguments)) == ("", {"x", "y"})
    assert kernel.evaluate(grid=None).arguments_read == {"x", "y"}


def test_an_address_from_memory_is_not_complete() -> None:
    body = f"""{LOADS}s_load_dwordx2 s[8:9], s[4:5], 0x0
global_load_dword v1, v0, s[8:9]"""
    found = Kernel(body, pointers=TWO).evaluate()
    assert not found.complete
    assert found.arguments_read == {"x"}


@pytest.mark.parametrize("grid", [(4, 1, 1), None])
def test_requested_bytes(grid) -> None:
    body = f"""{LOADS}s_mov_b32 s8, 0
.LBB0_1:
global_load_dwordx2 v[2:3], v0, s[4:5]
s_add_i32 s8, s8, 1
s_cmp_lt_i32 s8, 10
s_cbranch_scc1 .LBB0_1
global_store_dword v0, v2, s[6:7]"""
    found = Kernel(body, pointers=TWO).evaluate(grid)
    assert found.requested == {"x": (10 * 64 * 8, 0), "y": (0, 64 * 4)}
