"""Rules about what an iteration of a hot loop does, on loops written in assembly."""

from __future__ import annotations

from tests.rules.support import assembly_subject, find, the_one

MFMA = "\tv_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]\n"
LOAD = "\tglobal_load_dwordx4 v[20:23], v[24:25], off\n"
END = "\ts_add_i32 s4, s4, 1\n\ts_cmp_lt_i32 s4, s5\n\ts_cbranch_scc1 .LBB0_1\n"


def loop(*lines: str) -> str:
    """A loop around the lines."""
    return ".LBB0_1:\n" + "".join(lines) + END


def test_spills_in_a_loop_warn_and_name_the_scratch_traffic() -> None:
    body = loop("\tscratch_load_dword v1, off, off offset:16\n", MFMA) + (
        "\tscratch_store_dword off, v1, off offset:16\n"
    )
    subject = assembly_subject(body, vgprs=256, vgpr_spills=12, scratch_bytes=48)
    found = the_one(subject, "register-spills")
    assert found.severity == "warning"
    assert found.message == "12 VGPRs spilled, also inside a loop"
    assert "48 bytes of scratch per lane" in found.evidence
    assert "1 scratch instruction in loops" in found.evidence
    assert "1 outside of loops" in found.evidence


def test_spills_outside_of_loops_are_a_note_and_no_spill_is_nothing() -> None:
    body = "\tscratch_store_dword off, v1, off offset:16\n" + loop(MFMA)
    subject = assembly_subject(body, vgprs=256, vgpr_spills=1, scratch_bytes=4)
    assert the_one(subject, "register-spills").severity == "note"
    assert not find(assembly_subject(loop(MFMA), vgprs=256), "register-spills")


def test_scalar_spills_count_where_a_loop_moves_them() -> None:
    moves = "".join(f"\tv_readlane_b32 s{8 + lane}, v40, {lane}\n" for lane in range(6))
    inside = assembly_subject(loop(moves, MFMA), sgpr_spills=6)
    found = the_one(inside, "register-spills")
    assert found.severity == "note"
    assert "6 lane moves" in found.evidence
    outside = assembly_subject(moves + loop(MFMA), sgpr_spills=6)
    assert not find(outside, "register-spills")


def test_more_warps_are_not_advised_where_they_share_one_register_file() -> None:
    body = loop("\tscratch_load_dword v1, off, off offset:16\n", MFMA)
    shared = assembly_subject(
        body, threads=512, vgprs=256, vgpr_spills=12, scratch_bytes=48, stages={},
        options={"num_warps": 8},
    )  # fmt: skip
    assert "more warps would not help" in the_one(shared, "register-spills").advice
    alone = assembly_subject(
        body, vgprs=256, vgpr_spills=12, scratch_bytes=48, stages={}, options={"num_warps": 4}
    )
    assert "num_warps (now 4)" in the_one(alone, "register-spills").advice
    capped = assembly_subject(
        body, vgprs=128, vgpr_spills=12, scratch_bytes=48, stages={}, options={"waves_per_eu": 4}
    )
    assert "waves_per_eu=4" in the_one(capped, "register-spills").advice


def test_a_wait_right_after_the_load_in_a_matrix_loop() -> None:
    subject = assembly_subject(loop(LOAD, "\ts_waitcnt vmcnt(0)\n", MFMA), vgprs=512)
    found = the_one(subject, "full-wait-in-loop")
    assert found.severity == "warning"
    assert "0 cycles of work" in found.evidence
    assert "about 288 clocks of L2 latency" in found.evidence


def test_a_wait_after_enough_work_is_fine() -> None:
    subject = assembly_subject(loop(LOAD, MFMA * 16, "\ts_waitcnt vmcnt(0)\n", MFMA), vgprs=512)
    assert not find(subject, "full-wait-in-loop")


def test_a_wait_for_older_loads_only_is_fine() -> None:
    subject = assembly_subject(loop(LOAD, "\ts_waitcnt vmcnt(1)\n", MFMA), vgprs=512)
    assert not find(subject, "full-wait-in-loop")


def test_other_workgroups_fill_the_wait() -> None:
    body = loop(LOAD, "\ts_waitcnt vmcnt(0)\n", MFMA * 4)
    assert not find(assembly_subject(body, vgprs=64), "full-wait-in-loop")
    together = loop(LOAD, "\ts_waitcnt vmcnt(0)\n", "\ts_barrier\n", MFMA * 4)
    alone = assembly_subject(together, vgprs=64, threads=1024, dynamic_lds=65536)
    assert find(alone, "full-wait-in-loop")


def test_a_streaming_loop_with_too_little_in_flight_is_a_note() -> None:
    narrow = "\tglobal_load_ushort v20, v[24:25], off\n"
    add = "\tv_add_f32_e32 v0, v0, v20\n"
    subject = assembly_subject(loop(narrow, "\ts_waitcnt vmcnt(0)\n", add), vgprs=512)
    assert the_one(subject, "full-wait-in-loop").severity == "note"
    enough = assembly_subject(loop(LOAD * 4, "\ts_waitcnt vmcnt(0)\n", add), vgprs=64)
    assert not find(enough, "full-wait-in-loop")


def guarded(number: int, body: str) -> str:
    """`body` behind a branch on the lane mask, as the compiler writes a masked load."""
    return (
        f"\ts_and_saveexec_b64 s[10:11], vcc\n\ts_cbranch_execz .LSKIP{number}\n{body}"
        f".LSKIP{number}:\n\ts_or_b64 exec, exec, s[10:11]\n"
    )


def test_masked_loads_with_branches_in_a_loop() -> None:
    body = loop(*(guarded(number, LOAD) for number in range(4)), MFMA)
    found = the_one(assembly_subject(body), "divergence-in-hot-loop")
    assert found.severity == "warning"
    assert "4 branches on the lane mask" in found.message
    assert "4 around global accesses" in found.evidence
    assert "no-buffer-loads" in found.advice


def test_branches_around_arithmetic_get_other_advice() -> None:
    body = loop(*(guarded(n, "\tv_add_f32_e32 v1, v1, v2\n") for n in range(4)), LOAD)
    assert "tl.where" in the_one(assembly_subject(body), "divergence-in-hot-loop").advice


def test_few_branches_and_branches_outside_are_fine() -> None:
    few = loop(*(guarded(number, LOAD) for number in range(3)), MFMA)
    assert not find(assembly_subject(few), "divergence-in-hot-loop")
    before = "".join(guarded(number, LOAD) for number in range(4)) + loop(MFMA)
    assert not find(assembly_subject(before), "divergence-in-hot-loop")


def test_a_matrix_loop_bound_by_vector_work() -> None:
    busy = "".join(f"\tv_add_f32_e32 v{30 + n % 8}, v1, v2\n" for n in range(128))
    found = the_one(assembly_subject(loop(busy, MFMA)), "low-matrix-density")
    assert found.severity == "warning"
    assert "matrix" in found.evidence
    assert "epilogue" in found.advice


def test_a_matrix_loop_bound_by_the_matrix_pipe_is_fine() -> None:
    assert not find(assembly_subject(loop(MFMA * 8, "\tv_add_f32_e32 v30, v1, v2\n")),
                    "low-matrix-density")  # fmt: skip
    assert not find(assembly_subject(loop(LOAD)), "low-matrix-density")


def test_accumulators_copied_every_iteration() -> None:
    copies = "".join(f"\tv_accvgpr_read_b32 v{40 + n}, a{n}\n" for n in range(16))
    subject = assembly_subject(loop(copies, MFMA), vgprs=256, agprs=64)
    found = the_one(subject, "accumulator-copies")
    assert "16 copies" in found.message
    assert "64 AGPRs" in found.evidence
    after = assembly_subject(loop(MFMA) + copies, vgprs=256, agprs=64)
    assert not find(after, "accumulator-copies")


def test_a_loop_bound_by_exponentials() -> None:
    exps = "".join(f"\tv_exp_f32_e32 v{30 + n}, v{30 + n}\n" for n in range(16))
    found = the_one(assembly_subject(loop(exps)), "transcendental-bound-loop")
    assert "16 instructions per iteration" in found.evidence
    adds = "".join(f"\tv_add_f32_e32 v{30 + n}, v1, v2\n" for n in range(128))
    assert not find(assembly_subject(loop(exps, adds)), "transcendental-bound-loop")


def test_vgprs_spilled_to_agprs_are_no_memory_traffic() -> None:
    assert not find(assembly_subject(loop(MFMA), vgprs=256, vgpr_spills=9), "register-spills")


def test_waves_per_eu_is_blamed_only_where_it_caps_registers() -> None:
    body = loop("\tscratch_load_b32 v1, off, off offset:16\n", "\tv_add_f32_e32 v0, v0, v1\n")
    roomy = assembly_subject(
        body, "gfx1100", vgprs=256, vgpr_spills=12, scratch_bytes=48, stages={},
        options={"waves_per_eu": 2, "num_warps": 8},
    )  # fmt: skip
    assert "waves_per_eu" not in the_one(roomy, "register-spills").advice


def test_gfx90a_spills_through_a_buffer_descriptor() -> None:
    reload = "\tbuffer_load_dword v1, off, s[92:95], 0 offset:16\n"
    spilled = assembly_subject(loop(reload, MFMA), vgprs=256, vgpr_spills=4, scratch_bytes=16)
    assert the_one(spilled, "register-spills").severity == "warning"
    tensor = loop("\tbuffer_load_dword v1, v2, s[92:95], 0 offen\n", MFMA)
    assert not find(assembly_subject(tensor, vgprs=256, scratch_bytes=16), "register-spills")


def nest(before: str, inner: str) -> str:
    """A loop of unknown trips with `before` ahead of an inner loop around `inner`."""
    inside = inner + "\ts_cmp_lt_i32 s6, s7\n\ts_cbranch_scc1 .LBB0_2\n"
    return loop(before, ".LBB0_2:\n", inside)


SMALL = "\tglobal_load_dwordx4 v[20:23], v[24:25], off\n"
"""An inner loop of next to no time, and of next to all where it has 100 products."""


def test_the_body_of_an_outer_loop_counts_by_its_time() -> None:
    exponentials = "\tv_exp_f32 v1, v2\n" * 200
    found = the_one(assembly_subject(nest(exponentials, SMALL)), "transcendental-bound-loop")
    assert "200 instructions per iteration" in found.evidence
    rare = nest(exponentials, MFMA * 100)
    assert not find(assembly_subject(rare), "transcendental-bound-loop")


def test_copies_around_an_inner_loop_count_where_they_take_time() -> None:
    copies = "".join(f"\tv_accvgpr_read_b32 v{40 + n}, a{n}\n" for n in range(200))
    found = the_one(assembly_subject(nest(copies, SMALL), agprs=200), "accumulator-copies")
    assert found.message.startswith("200 copies")
    assert not find(assembly_subject(nest(copies, MFMA * 100), agprs=200), "accumulator-copies")


def test_a_wait_around_an_inner_loop_is_exposed_unless_the_loop_is_in_between() -> None:
    work, read = "\tv_exp_f32 v1, v2\n" * 20, "\tds_read_b128 v[30:33], v24\n"
    exposed = nest(LOAD + "\ts_waitcnt vmcnt(0)\n" + work, read)
    found = the_one(assembly_subject(exposed, vgprs=512), "full-wait-in-loop")
    assert "0 cycles of work" in found.evidence
    covered = nest("\ts_waitcnt vmcnt(0)\n" + work + LOAD, read)
    assert not find(assembly_subject(covered, vgprs=512), "full-wait-in-loop")


def test_branches_that_guard_an_inner_loop_are_not_counted() -> None:
    def guards(count: int) -> str:
        return "".join(
            f"\ts_and_saveexec_b64 s[10:11], vcc\n\ts_cbranch_execz .LBB0_{9 + n}\n"
            f"\tv_exp_f32 v1, v2\n.LBB0_{9 + n}:\n\ts_or_b64 exec, exec, s[10:11]\n"
            for n in range(count)
        )

    work = "\tv_exp_f32 v1, v2\n" * 200
    found = the_one(assembly_subject(nest(work + guards(6), SMALL)), "divergence-in-hot-loop")
    assert found.message.startswith("5 branches")
    assert not find(assembly_subject(nest(work + guards(4), SMALL)), "divergence-in-hot-loop")


def test_who_meets_at_barriers() -> None:
    """All waves, those that have joined a named one, or both."""
    every, named = "\ts_barrier_signal -1\n\ts_barrier_wait -1\n", "\ts_barrier_wait 1\n"
    work = "\tv_add_f32_e32 v1, v2, v3\n"
    for barriers, who in (
        (every, "the 4 waves of a workgroup meet at each"),
        (named, "the waves that have joined a named barrier meet at each"),
        (every + named, "4 waves of a workgroup, or those that have joined a named one, meet"),
    ):
        subject = assembly_subject(loop(work, barriers), target="gfx1250", threads=128)
        assert who in the_one(subject, "barrier-heavy-loop").evidence
