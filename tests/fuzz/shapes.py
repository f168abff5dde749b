"""Valid AMDGCN kernels of unusual shape: control flow no compiler writes, and extremes of size."""

from __future__ import annotations

import random

_HEAD = """\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"
\t.text
\t.globl k
\t.type k,@function
k:
"""
_TAIL = """.Lfunc_end0:
\t.section .rodata,"a",@progbits
\t.amdhsa_kernel k
\t\t.amdhsa_next_free_vgpr 8
\t\t.amdhsa_next_free_sgpr 16
{accum}\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_user_sgpr_count 2
\t.end_amdhsa_kernel
"""
_WORK = (
    "v_add_u32_e32 v1, v2, v3",
    "v_mov_b32_e32 v4, v1",
    "s_add_i32 s4, s4, 1",
    "s_lshl_b32 s5, s4, 2",
    "s_cmp_lt_u32 s4, s6",
    "global_load_dword v5, v1, s[2:3]",
    "ds_read_b32 v6, v1",
    "s_waitcnt vmcnt(0) lgkmcnt(0)",
    "v_cmp_gt_u32_e32 vcc, s5, v1",
    "s_and_saveexec_b64 s[8:9], vcc",
    "s_or_b64 exec, exec, s[8:9]",
    "s_load_dwordx2 s[2:3], s[0:1], 0x0",
    "s_barrier",
)
_BRANCHES = ("s_branch", "s_cbranch_scc0", "s_cbranch_scc1", "s_cbranch_execz", "s_cbranch_vccnz")


def module(body: str, target: str = "gfx942") -> str:
    """`body` as the kernel `k` of an assembly text."""
    accum = "\t\t.amdhsa_accum_offset 8\n" if target in ("gfx90a", "gfx942", "gfx950") else ""
    return _HEAD.format(target=target) + body + _TAIL.format(accum=accum)


def random_flow(rng: random.Random, blocks: int, length: int = 3) -> str:
    """Blocks that jump anywhere: unreachable code, irreducible and endless loops, self-branches."""
    out = []
    for index in range(blocks):
        out.append(f".L{index}:")
        out += ["\t" + rng.choice(_WORK) for _ in range(rng.randint(0, length))]
        kind = rng.random()
        if kind < 0.7:
            out.append(f"\t{rng.choice(_BRANCHES)} .L{rng.randrange(blocks)}")
        elif kind < 0.75:
            out.append("\ts_endpgm")
        elif kind < 0.77:
            out.append("\ts_setpc_b64 s[10:11]")
    out.append("\ts_endpgm")
    return module("\n".join(out) + "\n")


def nested_loops(depth: int) -> str:
    """`depth` loops inside one another, each counted in an SGPR of its own as far as they go."""
    opening = [f"\ts_mov_b32 s{4 + i % 90}, 0\n.Lloop{i}:" for i in range(depth)]
    closing = [
        f"\ts_add_i32 s{4 + i % 90}, s{4 + i % 90}, 1\n\ts_cmp_lt_u32 s{4 + i % 90}, 3\n"
        f"\ts_cbranch_scc1 .Lloop{i}"
        for i in reversed(range(depth))
    ]
    body = ["\tv_add_u32_e32 v1, v1, v2"]
    return module("\n".join([*opening, *body, *closing, "\ts_endpgm", ""]))


def ladder(blocks: int) -> str:
    """Every block may leave to the end: many edges into one block."""
    rungs = ["\tv_add_u32_e32 v1, v1, v2\n\ts_cbranch_scc1 .Lend" for _ in range(blocks)]
    return module("\n".join([*rungs, ".Lend:", "\ts_endpgm", ""]))


def backward_chain(blocks: int) -> str:
    """Blocks laid out in reverse: the order of the text is the worst one for data flow."""
    out = [f"\ts_branch .L{blocks - 1}"]
    for index in range(blocks):
        out.append(f".L{index}:\n\tv_add_u32_e32 v1, v1, v2")
        out.append(f"\ts_branch .L{index - 1}" if index else "\ts_endpgm")
    return module("\n".join([*out, ""]))


def same_header(latches: int) -> str:
    """One loop with many latches, each a conditional jump to the header."""
    rungs = ["\tv_add_u32_e32 v1, v1, v2\n\ts_cbranch_scc1 .Lhead" for _ in range(latches)]
    return module("\n".join([".Lhead:", *rungs, "\ts_endpgm", ""]))


def straight(rng: random.Random, count: int) -> str:
    """`count` instructions with no branch."""
    return module("\n".join(["\t" + rng.choice(_WORK) for _ in range(count)] + ["\ts_endpgm", ""]))


def counted_loops(rng: random.Random, loops: int, body: int) -> str:
    """Loops one after the other, each with `body` instructions and a known trip count."""
    out = []
    for index in range(loops):
        out.append(f"\ts_mov_b32 s7, 0\n.Lloop{index}:")
        out += ["\tv_add_u32_e32 v1, v2, v3"] * body
        out.append(f"\ts_add_i32 s7, s7, 1\n\ts_cmp_lt_u32 s7, {rng.randint(1, 1 << 31)}")
        out.append(f"\ts_cbranch_scc1 .Lloop{index}")
    return module("\n".join([*out, "\ts_endpgm", ""]))


FIXED: dict[str, str] = {
    "empty": module(""),
    "single instruction": module("\ts_endpgm\n"),
    "no end": module("\tv_add_u32_e32 v1, v2, v3\n"),
    "self-branch": module(".L0:\n\ts_branch .L0\n"),
    "conditional self-branch": module(".L0:\n\ts_cbranch_scc1 .L0\n\ts_endpgm\n"),
    "endless loop": module(".L0:\n\tv_add_u32_e32 v1, v2, v3\n\ts_branch .L0\n"),
    "label at the end": module("\ts_cbranch_scc1 .L0\n\ts_endpgm\n.L0:\n"),
    "branch out of the end": module("\ts_branch .L0\n.L0:\n"),
    "conditional end": module("\ts_cbranch_scc0 .L0\n.L0:\n"),
    "irreducible": module(
        "\ts_cbranch_scc1 .L1\n.L0:\n\ts_nop 0\n\ts_cbranch_scc0 .L1\n\ts_endpgm\n.L1:\n"
        "\ts_nop 1\n\ts_branch .L0\n"
    ),
    "entry is a loop": module("\ts_nop 0\n.L0:\n\ts_cbranch_scc1 .L0\n\ts_branch .L0\n"),
    "unreachable": module("\ts_endpgm\n.L0:\n\ts_nop 0\n\ts_branch .L0\n"),
}
"""Shapes small enough to name."""


def large(rng: random.Random) -> dict[str, str]:
    """Shapes whose cost shows when an analysis is worse than linear."""
    return {
        "20k straight": straight(rng, 20_000),
        "5k blocks of anything": random_flow(rng, 5_000),
        "400 nested loops": nested_loops(400),
        "5k-rung ladder": ladder(5_000),
        "5k blocks backwards": backward_chain(5_000),
        "3k latches": same_header(3_000),
        "500 loops of 40": counted_loops(rng, 500, 40),
    }
