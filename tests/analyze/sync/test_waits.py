"""Missing waits planted by hand, one per counter, generation and shape of code.

Expected values are worked out from the ISA documents' description of the counters: operations of
one kind complete in order, kinds among each other, scalar loads and flat accesses (CDNA) do not.
"""

from __future__ import annotations

import pytest

from tests.analyze.support import program
from wavecast.analyze.sync import missing_waits

LOAD = "global_load_dword v1, v0, s[0:1]"
LOAD_B32 = "global_load_b32 v1, v0, s[0:1]"
STORE = "global_store_dword v0, v5, s[0:1]"
USE = "v_add_f32_e32 v2, 1.0, v1"
NO_WAIT: tuple[tuple[int, str, int], ...] = ()


def found(body: str, target: str) -> tuple[tuple[int, str, int], ...]:
    """(instruction, counter, largest value the wait may let stand) of every violation."""
    return tuple((v.instruction, v.counter, v.value) for v in missing_waits(program(body, target)))


def lines(*instructions: str) -> str:
    return "\n".join(f"\t{line}" if not line.endswith(":") else line for line in instructions)


STRAIGHT = {
    "a vector load": ("gfx942", (LOAD, USE), ((1, "vmcnt", 0),)),
    "its wait": ("gfx942", (LOAD, "s_waitcnt vmcnt(0)", USE), NO_WAIT),
    "its wait as a number": ("gfx942", (LOAD, "s_waitcnt 0xf70", USE), NO_WAIT),
    "the wait of another counter": (
        "gfx942", (LOAD, "s_waitcnt lgkmcnt(0)", USE), ((2, "vmcnt", 0),)),
    "a later load leaves one open": (
        "gfx942", (LOAD, "global_load_dword v3, v0, s[0:1]", USE), ((2, "vmcnt", 1),)),
    "a wait that leaves the later load open": (
        "gfx942", (LOAD, "global_load_dword v3, v0, s[0:1]", "s_waitcnt vmcnt(1)", USE), NO_WAIT),
    "a wait too weak by one": (
        "gfx942", (LOAD, "global_load_dword v3, v0, s[0:1]", "s_waitcnt vmcnt(2)", USE),
        ((3, "vmcnt", 1),)),
    "a counter that is full but for one": (
        "gfx942", (LOAD, *["global_load_dword v3, v0, s[0:1]"] * 62, USE), ((63, "vmcnt", 62),)),
    "a counter that is full: issue waited for the oldest": (
        "gfx942", (LOAD, *["global_load_dword v3, v0, s[0:1]"] * 63, USE), NO_WAIT),
    "CDNA counts stores with loads": ("gfx90a", (LOAD, STORE, USE), ((2, "vmcnt", 1),)),
    "RDNA 3 counts stores apart": (
        "gfx1100", (LOAD_B32, "global_store_b32 v0, v5, s[0:1]", "s_waitcnt vmcnt(1)", USE),
        ((3, "vmcnt", 0),)),
    "an atomic without result is a store": (
        "gfx1100", (LOAD_B32, "global_atomic_add_u32 v0, v5, s[0:1]", USE), ((2, "vmcnt", 0),)),
    "an atomic with result is a load": (
        "gfx1100", ("global_atomic_add_u32 v1, v0, v5, s[0:1] glc", USE), ((1, "vmcnt", 0),)),
    "a load to AGPRs": (
        "gfx942", ("global_load_dword a3, v0, s[0:1]", "v_accvgpr_read_b32 v2, a3"),
        ((1, "vmcnt", 0),)),
    "a load from scratch": (
        "gfx942", ("scratch_load_dword v1, off, off", USE), ((1, "vmcnt", 0),)),
    "a buffer load": (
        "gfx950", ("buffer_load_dwordx4 v[0:3], v4, s[4:7], 0 offen", "v_mov_b32_e32 v9, v2"),
        ((1, "vmcnt", 0),)),
    "the store of a loaded value": (
        "gfx942", (LOAD, "global_store_dword v0, v1, s[0:1]"), ((1, "vmcnt", 0),)),
    "the address of a load": (
        "gfx942", (LOAD, "global_load_dword v3, v1, s[0:1]"), ((1, "vmcnt", 0),)),
    "LDS": ("gfx942", ("ds_read_b32 v1, v0", USE), ((1, "lgkmcnt", 0),)),
    "LDS in order": (
        "gfx942", ("ds_read_b32 v1, v0", "ds_write_b32 v0, v5", "s_waitcnt lgkmcnt(1)", USE),
        NO_WAIT),
    "LDS hardware without memory": (
        "gfx942", ("ds_bpermute_b32 v1, v0, v5", USE), ((1, "lgkmcnt", 0),)),
    "a scalar load": (
        "gfx942", ("s_load_dword s2, s[0:1], 0x0", "s_add_u32 s3, s2, 1"), ((1, "lgkmcnt", 0),)),
    "scalar loads come in any order": (
        "gfx942",
        ("s_load_dword s2, s[0:1], 0x0", "s_load_dword s4, s[0:1], 0x4", "s_waitcnt lgkmcnt(1)",
         "s_add_u32 s3, s2, 1"),
        ((3, "lgkmcnt", 0),)),
    "a scalar load does not disturb the order of LDS": (
        "gfx942",
        ("ds_read_b32 v1, v0", "ds_read_b32 v3, v0", "s_load_dword s2, s[0:1], 0x0",
         "s_waitcnt lgkmcnt(1)", USE),
        NO_WAIT),
    "but its own count hides nothing": (
        "gfx942",
        ("ds_read_b32 v1, v0", "s_load_dword s2, s[0:1], 0x0", "s_waitcnt lgkmcnt(1)", USE),
        ((3, "lgkmcnt", 0),)),
    "a scalar load into VCC": (
        "gfx1100", ("s_load_b32 vcc_lo, s[0:1], 0x0", "s_cbranch_vccz .L", ".L:"),
        ((1, "lgkmcnt", 0),)),
    "the clock": (
        "gfx942", ("s_memtime s[2:3]", "s_add_u32 s4, s2, 1"), ((1, "lgkmcnt", 0),)),
    "a message with an answer": (
        "gfx1100", ("s_sendmsg_rtn_b32 s2, sendmsg(MSG_RTN_GET_DOORBELL)", "s_add_u32 s3, s2, 1"),
        ((1, "lgkmcnt", 0),)),
    "flat counts twice": (
        "gfx942", ("flat_load_dword v1, v[4:5]", USE),
        ((1, "vmcnt", 0), (1, "lgkmcnt", 0))),
    "flat needs both waits": (
        "gfx942", ("flat_load_dword v1, v[4:5]", "s_waitcnt vmcnt(0)", USE),
        ((2, "lgkmcnt", 0),)),
    "flat is in no order on CDNA": (
        "gfx942",
        ("flat_load_dword v1, v[4:5]", "flat_load_dword v3, v[4:5]",
         "s_waitcnt vmcnt(1) lgkmcnt(1)", USE),
        ((3, "vmcnt", 0), (3, "lgkmcnt", 0))),
    "flat is in order on RDNA": (
        "gfx1100",
        ("flat_load_b32 v1, v[4:5]", "flat_load_b32 v3, v[4:5]",
         "s_waitcnt vmcnt(1) lgkmcnt(1)", USE),
        NO_WAIT),
    "overwritten before it arrives": (
        "gfx942", (LOAD, "v_mov_b32_e32 v1, 0"), ((1, "vmcnt", 0),)),
    "loaded twice, in order": (
        "gfx942", (LOAD, LOAD, "s_waitcnt vmcnt(0)", USE), NO_WAIT),
    "loaded twice on RDNA 4, which keeps no order": (
        "gfx1201", (LOAD_B32, LOAD_B32), ((1, "loadcnt", 0),)),
    "loaded from LDS over a load from memory": (
        "gfx942", (LOAD, "ds_read_b32 v1, v0"), ((1, "vmcnt", 0),)),
    "the data of a store may change at once": (
        "gfx942", (STORE, "v_mov_b32_e32 v5, 0", "v_mov_b32_e32 v0, 0"), NO_WAIT),
    "GDS reads its data late": (
        "gfx942", ("ds_add_u32 v0, v5 gds", "v_mov_b32_e32 v5, 0"), ((1, "expcnt", 0),)),
    "a load to LDS changes no register": (
        "gfx942", ("buffer_load_dword v4, s[4:7], 0 offen lds", USE), NO_WAIT),
    "the upper half is not the lower": (
        "gfx1100",
        ("global_load_d16_hi_b16 v1, v[4:5], off", "ds_store_b16 v0, v1"), NO_WAIT),
    "the lower half is": (
        "gfx1100", ("global_load_d16_b16 v1, v[4:5], off", "ds_store_b16 v0, v1"),
        ((1, "vmcnt", 0),)),
    "both halves of a register": (
        "gfx1201",
        ("ds_load_u16_d16 v1, v0", "ds_load_u16_d16_hi v1, v0 offset:2",
         "s_wait_dscnt 0x1", "v_mov_b32_e32 v2, v1"),
        ((3, "dscnt", 0),)),
    "RDNA 4: a load": ("gfx1201", (LOAD_B32, USE), ((1, "loadcnt", 0),)),
    "RDNA 4: LDS": ("gfx1201", ("ds_load_b32 v1, v0", USE), ((1, "dscnt", 0),)),
    "RDNA 4: a scalar load": (
        "gfx1201", ("s_load_b32 s2, s[0:1], 0x0", "s_add_co_u32 s3, s2, 1"), ((1, "kmcnt", 0),)),
    "RDNA 4: a combined wait": (
        "gfx1201", (LOAD_B32, "ds_load_b32 v3, v0", "s_wait_loadcnt_dscnt 0x0", USE,
                    "v_mov_b32_e32 v4, v3"), NO_WAIT),
    "RDNA 4: half of a combined wait": (
        "gfx1201", (LOAD_B32, "ds_load_b32 v3, v0", "s_wait_loadcnt_dscnt 0x1", USE,
                    "v_mov_b32_e32 v4, v3"), ((4, "dscnt", 0),)),
    "RDNA 4: flat": (
        "gfx1201", ("flat_load_b32 v1, v[4:5]", "s_wait_loadcnt 0x0", USE), ((2, "dscnt", 0),)),
    "RDNA 4: the state of a barrier": (
        "gfx1201", ("s_get_barrier_state s2, -1", "s_add_co_u32 s3, s2, 1"), ((1, "kmcnt", 0),)),
    "RDNA 3: waiting for everything": ("gfx1100", (LOAD_B32, "s_wait_idle", USE), NO_WAIT),
    "a count in a register tells nothing": (
        "gfx1100", (LOAD_B32, "s_waitcnt_vmcnt s4, 0x0", USE), ((2, "vmcnt", 0),)),
    "the end of the program needs no wait": ("gfx942", (LOAD, STORE), NO_WAIT),
    "one finding per counter, for the newest load": (
        "gfx942",
        (LOAD, "global_load_dword v2, v0, s[0:1]", "global_load_dword v9, v0, s[0:1]",
         "v_add_f32_e32 v3, v1, v2"),
        ((3, "vmcnt", 1),)),
}  # fmt: skip


@pytest.mark.parametrize("name", STRAIGHT)
def test_straight_code(name: str) -> None:
    target, body, expected = STRAIGHT[name]
    assert found(lines(*body), target) == expected


def test_a_path_without_the_wait() -> None:
    body = lines(
        LOAD,
        "s_cbranch_scc1 .Lother",
        "s_waitcnt vmcnt(0)",
        ".Lother:",
        USE,
    )
    assert found(body, "gfx942") == ((3, "vmcnt", 0),)


def test_waits_on_both_paths() -> None:
    body = lines(
        LOAD,
        "s_cbranch_scc1 .Lother",
        "s_waitcnt vmcnt(0)",
        "s_branch .Lend",
        ".Lother:",
        "s_waitcnt vmcnt(0)",
        ".Lend:",
        USE,
    )
    assert found(body, "gfx942") == NO_WAIT


def test_the_shorter_path_decides() -> None:
    """One path issues a load more: a wait for one left is enough there only."""
    body = lines(
        LOAD,
        "s_cbranch_scc1 .Lother",
        "global_load_dword v3, v0, s[0:1]",
        ".Lother:",
        "s_waitcnt vmcnt(1)",
        USE,
    )
    assert found(body, "gfx942") == ((4, "vmcnt", 0),)


def test_a_value_from_the_iteration_before() -> None:
    body = lines(
        "v_mov_b32_e32 v1, 0",
        ".Lloop:",
        USE,
        LOAD,
        "s_cbranch_scc1 .Lloop",
    )
    assert found(body, "gfx942") == ((1, "vmcnt", 0),)


@pytest.mark.parametrize(("value", "expected"), [(1, NO_WAIT), (2, ((4, "vmcnt", 1),))])
def test_a_pipelined_loop(value: int, expected: tuple[tuple[int, str, int], ...]) -> None:
    """Two loads in flight: the older one, of the iteration before, is used."""
    body = lines(
        LOAD,
        ".Lloop:",
        "v_add_u32_e32 v0, 4, v0",
        "global_load_dword v3, v0, s[0:1]",
        f"s_waitcnt vmcnt({value})",
        USE,
        "s_waitcnt vmcnt(0)",
        "v_mov_b32_e32 v4, v3",
        LOAD,
        "s_cbranch_scc1 .Lloop",
    )
    assert found(body, "gfx942") == expected


def test_a_function_waits_for_what_it_was_given() -> None:
    body = lines(
        LOAD,
        "s_getpc_b64 s[4:5]",
        "s_swappc_b64 s[30:31], s[4:5]",
        USE,
    )
    assert found(body, "gfx942") == NO_WAIT


def test_code_no_path_reaches() -> None:
    body = lines("s_branch .Lend", LOAD, USE, ".Lend:", "s_nop 0")
    assert found(body, "gfx942") == NO_WAIT


def test_the_report_names_what_is_missing() -> None:
    body = lines("ds_load_b64 v[2:3], v0", "v_add_f32_e32 v4, v2, v3")
    (violation,) = missing_waits(program(body, "gfx1201"))
    assert violation.registers == ("v2", "v3")
    assert violation.cause == 0
    assert violation.remedy == "s_wait_dscnt 0x0"
    assert violation.explanation == (
        "`v_add_f32_e32 v4, v2, v3` reads v2 and v3 before `ds_load_b64 v[2:3], v0` is sure to "
        "have written them: `s_wait_dscnt 0x0` is missing"
    )


def guarded(*between: str, again: str = "s_cmp_eq_u32 s5, 1") -> str:
    """A load unless s5 is 1; the same comparison skips the wait for it."""
    return lines(
        "s_cmp_eq_u32 s5, 1",
        "s_cbranch_scc1 .Lloaded",
        LOAD,
        ".Lloaded:",
        *between,
        again,
        "s_cbranch_scc1 .Lwaited",
        "s_waitcnt vmcnt(0)",
        ".Lwaited:",
        USE,
    )


def test_the_same_comparison_skips_a_load_and_its_wait() -> None:
    assert missing_waits(program(guarded(), "gfx90a")) == ()


@pytest.mark.parametrize(
    "body",
    [
        guarded("s_add_u32 s5, s5, -1"),
        guarded(again="s_cmp_eq_u32 s5, 2"),
        guarded().replace("s_cbranch_scc1 .Lwaited", "s_cbranch_scc0 .Lwaited"),
    ],
)
def test_another_comparison_does_not(body: str) -> None:
    (violation,) = missing_waits(program(body, "gfx90a"))
    assert violation.remedy == "s_waitcnt vmcnt(0)"
