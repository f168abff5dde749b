"""Rules about single memory instructions, on analyses put together by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rules.support import LINE, assembly_subject, find, memory, the_one, with_memory
from tests.rules.test_loop_rules import loop, nest
from wavecast.analyze.result import MemoryInstruction
from wavecast.isa.instruction import SourceLocation
from wavecast.rules import RuleInput, lds_conflicts

TTIR = """
#loc = loc("kernel.py":1:0)
#loc1 = loc("kernel.py":7:4)
module {
  tt.func public @k(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32} loc("x"(#loc)), %stride: i32 loc("stride"(#loc)), %n: i32 loc("n"(#loc))) attributes {noinline = false} {
    %0 = tt.get_program_id x : i32 loc(#loc)
    %1 = arith.muli %0, %stride : i32 loc(#loc)
    %2 = tt.addptr %x, %1 : !tt.ptr<bf16>, i32 loc(#loc)
    %3 = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32> loc(#loc)
    %4 = tt.splat %2 : !tt.ptr<bf16> -> tensor<1024x!tt.ptr<bf16>> loc(#loc)
    %5 = tt.addptr %4, %3 : tensor<1024x!tt.ptr<bf16>>, tensor<1024xi32> loc(#loc)
    %6 = tt.splat %n : i32 -> tensor<1024xi32> loc(#loc)
    %7 = arith.cmpi slt, %3, %6 : tensor<1024xi32> loc(#loc)
    %8 = tt.load %5, %7 : tensor<1024x!tt.ptr<bf16>> loc(#loc1)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""  # noqa: E501


def narrow(count: int = 4, **changes: Any) -> list[MemoryInstruction]:
    """Loads of two bytes per lane from one source line."""
    values = {"mnemonic": "global_load_ushort", "bytes_per_lane": 2, "stride": 2, **changes}
    return [memory(index, **values) for index in range(count)]


def kernel(**stages: str) -> RuleInput:
    return assembly_subject("s_nop 0", stages=stages if stages else None)


def test_two_byte_loads_of_neighbouring_elements() -> None:
    found = the_one(with_memory(kernel(), *narrow(8)), "narrow-global-access")
    assert found.severity == "warning"
    assert "move 2 bytes per lane where 16 are possible" in found.message
    assert "8 global_load_ushort for 16 bytes per lane; 1 16-byte" in found.evidence
    assert found.location == LINE


def test_the_pieces_of_one_lane_side_by_side_count_too() -> None:
    pieces = narrow(8, pattern="strided", stride=16)
    assert find(with_memory(kernel(), *pieces), "narrow-global-access")


def test_rows_of_a_tile_narrower_than_the_wave_count_too() -> None:
    rows = narrow(8, pattern="irregular", stride=None, lines=4, transactions_ideal=1)
    assert find(with_memory(kernel(), *rows), "narrow-global-access")


def test_the_argument_without_divisibility_is_named() -> None:
    found = the_one(with_memory(kernel(ttir=TTIR), *narrow(8)), "narrow-global-access")
    assert "its address depends on stride, not known to be a multiple of 16" in found.evidence
    assert "stride is a multiple of 16" in found.advice
    known = TTIR.replace("%stride: i32 loc", "%stride: i32 {tt.divisibility = 16 : i32} loc")
    masked = the_one(with_memory(kernel(ttir=known), *narrow(8)), "narrow-global-access")
    assert "its mask depends on n" in masked.evidence
    proven = known.replace("%n: i32 loc", "%n: i32 {tt.divisibility = 16 : i32} loc")
    hint = the_one(with_memory(kernel(ttir=proven), *narrow(8)), "narrow-global-access")
    assert "tl.max_contiguous" in hint.advice


def test_loads_the_source_does_not_have_are_left_out() -> None:
    elsewhere = narrow(8, location=SourceLocation("kernel.py", 9))
    assert not find(with_memory(kernel(ttir=TTIR), *elsewhere), "narrow-global-access")


def test_gathers_wide_loads_and_single_loads_are_no_narrow_access() -> None:
    for pieces in (
        narrow(8, pattern="irregular", stride=None, lines=64, transactions_ideal=1),
        narrow(8, pattern="strided", stride=8192),
        narrow(8, bytes_per_lane=8),
        narrow(2),
        narrow(8, space="lds"),
    ):
        assert not find(with_memory(kernel(), *pieces), "narrow-global-access")


def test_narrow_access_before_the_loop_matters_where_it_takes_time() -> None:
    wide_in_loop = memory(100, loop=0)
    found = assembly_subject(loop("\tv_exp_f32 v1, v2\n" * 8))
    assert not find(with_memory(found, *narrow(8), wide_in_loop), "narrow-global-access")
    in_loop = narrow(8, loop=0)
    assert find(with_memory(found, *in_loop, wide_in_loop), "narrow-global-access")
    before = "\tv_exp_f32 v1, v2\n" * 100
    costly = assembly_subject(before + loop("\tv_exp_f32 v1, v2\n"))
    assert find(with_memory(costly, *narrow(8), wide_in_loop), "narrow-global-access")


def test_lanes_a_row_apart() -> None:
    scattered = memory(pattern="strided", stride=8192, lines=64, transactions_ideal=8)
    found = the_one(with_memory(kernel(), scattered), "uncoalesced-global")
    assert found.severity == "warning"
    assert "64 cache lines per wave, 8 would do" in found.message
    assert "8,192 bytes apart" in found.evidence
    direct = replace(scattered, kind="load_to_lds", argument="scales")
    message = the_one(with_memory(kernel(), direct), "uncoalesced-global").message
    assert message.startswith("loads to LDS of scales touch")


def test_a_gather_is_a_note_and_contiguous_access_is_nothing() -> None:
    gather = memory(pattern="irregular", stride=None, lines=64, transactions_ideal=8)
    assert the_one(with_memory(kernel(), gather), "uncoalesced-global").severity == "note"
    assert not find(with_memory(kernel(), memory()), "uncoalesced-global")
    together = [
        memory(n, stride=16, bytes_per_lane=4, lines=8, transactions_ideal=2) for n in range(4)
    ]
    assert not find(with_memory(kernel(), *together), "uncoalesced-global")
    halved = memory(pattern="strided", stride=32, lines=16, transactions_ideal=8)
    assert not find(with_memory(kernel(), halved), "uncoalesced-global")


def test_rows_of_a_tile_that_end_early_are_no_gather() -> None:
    rows = memory(pattern="rows", stride=None, lines=32, transactions_ideal=8, row_bytes=32)
    found = the_one(with_memory(kernel(), rows), "uncoalesced-global")
    assert found.severity == "warning"
    assert "sort" not in found.advice
    assert "jump after 32 bytes" in found.evidence
    assert all(fix.at_best for fix in found.fixes)


LDS_LOOP = """
.LBB0_1:
{reads}
\tv_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]
\ts_add_i32 s4, s4, 1
\ts_cmp_lt_i32 s4, s5
\ts_cbranch_scc1 .LBB0_1
"""


def test_bank_conflicts_of_known_groups_warn_in_an_lds_bound_loop() -> None:
    reads = "\n".join(f"\tds_read_b128 v[{20 + 4 * n}:{23 + 4 * n}], v60" for n in range(8))
    loop = assembly_subject(LDS_LOOP.format(reads=reads))
    read = {"mnemonic": "ds_read_b128", "space": "lds", "argument": "", "loop": 0, "stride": 256}
    found = the_one(with_memory(loop, memory(**read, conflict_ways=2.0)), "lds-bank-conflicts")
    assert found.severity == "warning"
    assert "2 times as long" in found.message
    assert "lanes 256 bytes apart" in found.evidence
    assert "documented" in found.evidence
    assert "swizzle" in found.advice
    for fine in (
        memory(**read, conflict_ways=1.0),
        memory(**read, conflict_ways=None),
        memory(**{**read, "loop": None}, conflict_ways=4.0),
    ):
        assert not find(with_memory(loop, fine), "lds-bank-conflicts")


def test_conflicts_of_derived_groups_need_more_and_only_note() -> None:
    reads = "\n".join(f"\tds_read_b32 v{20 + n}, v60" for n in range(32))
    loop = assembly_subject(LDS_LOOP.format(reads=reads))
    read = {"mnemonic": "ds_read_b32", "space": "lds", "bytes_per_lane": 4, "loop": 0}
    assert not find(with_memory(loop, memory(**read, conflict_ways=2.0)), "lds-bank-conflicts")
    found = the_one(with_memory(loop, memory(**read, conflict_ways=8.0)), "lds-bank-conflicts")
    assert found.severity == "note"
    assert "derived" in found.evidence


def test_conflicts_in_code_that_takes_no_time_are_left_alone() -> None:
    reads = "\n".join(f"\tds_read_b32 v{20 + n}, v60" for n in range(32))
    loop = assembly_subject(LDS_LOOP.format(reads=reads))
    read = {"mnemonic": "ds_read_b32", "space": "lds", "bytes_per_lane": 4, "conflict_ways": 32.0}
    inside = memory(**read, loop=0)
    outside = memory(**read, loop=None, location=SourceLocation("kernel.py", 3, 1))
    one = the_one(with_memory(loop, outside, inside), "lds-bank-conflicts")
    assert one.location is not None
    assert one.location.line == 7
    assert "LDS pipe needs" in one.evidence


def test_narrow_lds_reads_in_a_matrix_loop() -> None:
    reads = "\n".join(f"\tds_read_u16 v{20 + n}, v60 offset:{128 * n}" for n in range(16))
    found = the_one(assembly_subject(LDS_LOOP.format(reads=reads)), "narrow-lds-access")
    assert found.severity == "warning"
    assert "LDS loads move 2 bytes per lane" in found.message
    assert "16 ds_read_u16 per iteration for 32 bytes per lane" in found.evidence


def test_wide_lds_reads_and_narrow_ones_outside_loops_are_fine() -> None:
    wide = "\n".join(f"\tds_read_b128 v[{20 + 4 * n}:{23 + 4 * n}], v60" for n in range(8))
    assert not find(assembly_subject(LDS_LOOP.format(reads=wide)), "narrow-lds-access")
    before = "\n".join(f"\tds_read_u16 v{20 + n}, v60 offset:{128 * n}" for n in range(16))
    assert not find(assembly_subject(before + LDS_LOOP.format(reads="")), "narrow-lds-access")


def test_a_small_part_of_the_traffic_is_left_alone() -> None:
    indices = narrow(4, loop=0)
    tiles = [memory(100 + number, loop=0) for number in range(8)]
    assert find(with_memory(kernel(), *indices, *tiles[:1]), "narrow-global-access")
    assert not find(with_memory(kernel(), *indices, *tiles), "narrow-global-access")


def test_nvidia_gets_neither_words_nor_options_of_amd() -> None:
    reads = "\n".join(f"\tds_read_b32 v{20 + n}, v60" for n in range(32))
    loop = assembly_subject(LDS_LOOP.format(reads=reads), stages={})
    read = {"mnemonic": "LDS", "space": "lds", "bytes_per_lane": 4, "loop": 0}
    found = with_memory(loop, memory(**read, conflict_ways=8.0))
    hopper = replace(found, code=replace(found.code, target="sm_90"))
    assert not hopper.code.is_amd
    (one,) = lds_conflicts.RULE.check(hopper)
    assert one.message.startswith("shared memory loads take 8 times")
    assert "shared memory pipe" in one.evidence
    assert "kpack" not in one.advice
    assert "kpack=2" in the_one(found, "lds-bank-conflicts").advice


def test_bank_conflicts_around_a_small_inner_loop_count_by_their_time() -> None:
    reads = "\n".join(f"\tds_read_b128 v[{20 + 4 * n}:{23 + 4 * n}], v60" for n in range(8)) + "\n"
    conflict = memory(
        0, space="lds", mnemonic="ds_read_b128", conflict_ways=16.0, loop=0, location=LINE
    )
    small = with_memory(assembly_subject(nest(reads, SMALL_LOOP)), conflict)
    assert the_one(small, "lds-bank-conflicts").location == LINE
    large = with_memory(assembly_subject(nest(reads, SMALL_LOOP * 400)), conflict)
    assert not find(large, "lds-bank-conflicts")


SMALL_LOOP = "\tv_mul_f32_e32 v1, v2, v3\n"
"""One vector instruction of an inner loop whose trips are not known."""
