"""Tags of LDS (`lds/tags.py`) against the records they stand for: the same reports for programs of
random accesses, barriers and waits."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.check.support import checked
from tests.emulate.memory_support import assembly
from wavecast.compile.assembly import load
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.check.lds import tags
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.reports import Kind

_WAVES, _BYTES = 3, 4096
_SEEDS = 8
"""Programs of each kind; more were tried by hand."""
_HEAD = """
v_and_b32_e32 v2, 0xff, v1
v_xor_b32_e32 v3, 0x100, v1
v_lshlrev_b32_e32 v4, 2, v1
v_mov_b32_e32 v5, 64
v_lshrrev_b32_e32 v6, 6, v0
v_readfirstlane_b32 s20, v6
s_waitcnt lgkmcnt(0)
"""
_ADDRESSES = ("v1", "v2", "v3", "v4", "v5")
"""Own dwords, those of the first wave, of a neighbour, four own ones, one dword for all lanes."""


class _Untranslated(CheckMode):
    """Check mode whose code is not kept: tests change how it is made."""

    def key(self, target: str) -> str:
        del target
        return ""


def _program(seed: int, *, fills: bool) -> str:
    """A body: rounds of stores, loads and fills, by all waves or by some, in or out of order."""
    rng = random.Random(seed)
    orderly = rng.random() < 0.5
    lines = [_HEAD]
    for number in range(rng.randrange(8, 16)):
        width = rng.choice(("b32", "b32", "b64", "b128"))
        address = rng.choice(_ADDRESSES[: 2 if orderly else 5])
        offset = 16 * rng.choice((0, 0, 0, 16, 33))
        if width != "b32":
            address = rng.choice(("v4", "v4", "v2"))
        if fills and rng.random() < 0.3:
            access = f"s_mov_b32 m0, {offset}\nglobal_load_lds_dword v1, s[10:11]"
        elif number == 0 or rng.random() < 0.5:
            rows = {"b32": "v7", "b64": "v[8:9]", "b128": "v[8:11]"}[width]
            access = f"ds_write_{width} {address}, {rows} offset:{offset}"
        else:
            rows = {"b32": "v12", "b64": "v[12:13]", "b128": "v[12:15]"}[width]
            access = f"ds_read_{width} {rows}, {address} offset:{offset}"
        if rng.random() < 0.3:
            access = (
                f"s_cmp_eq_u32 s20, {rng.randrange(_WAVES)}\ns_cbranch_scc1 .LEND{number}\n"
                f"{access}\n.LEND{number}:"
            )
        lines.append(access)
        if orderly or rng.random() < 0.6:
            lines.append("s_waitcnt vmcnt(0) lgkmcnt(0)")
        elif fills and rng.random() < 0.5:
            lines.append("s_waitcnt lgkmcnt(0)")
        if orderly or rng.random() < 0.5:
            lines.append("s_barrier")
    registers = "".join(f"v_mov_b32_e32 v{n}, v0\n" for n in range(7, 16))
    return registers + "\n".join(lines) + "\ns_waitcnt vmcnt(0) lgkmcnt(0)\n"


@pytest.mark.parametrize("waves", [1, _WAVES])
@pytest.mark.parametrize("fills", [False, True])
def test_tags_report_what_records_report(
    monkeypatch: pytest.MonkeyPatch, waves: int, fills: bool
) -> None:
    data = np.arange(1024, dtype=np.uint32)
    kinds: set[Kind] = set()
    for seed in range(_SEEDS):
        body = _program(100 * waves + 10 * fills + seed, fills=fills)
        texts = []
        for uses in (tags.uses_tags, lambda program: False):
            with monkeypatch.context() as patch:
                patch.setattr(tags, "uses_tags", uses)
                reports = checked(
                    "gfx942", body, data, data.copy(), threads=64 * waves, groups=2, lds=_BYTES,
                    mode=_Untranslated,
                )  # fmt: skip
            texts.append([repr(report) for report in reports])
            kinds |= {report.kind for report in reports}
        assert texts[0] == texts[1], body
    assert Kind.UNINITIALISED_LDS in kinds
    assert (Kind.LDS_RACE in kinds) == (waves > 1)


@pytest.mark.parametrize(
    ("body", "uses"),
    [
        ("ds_write_b64 v1, v[2:3]\nds_read_b128 v[4:7], v1", True),
        ("ds_write2_b32 v1, v2, v3 offset1:1", True),
        ("global_load_lds_dword v1, s[10:11]\nglobal_atomic_add v1, v2, s[8:9]", True),
        ("ds_write_b16 v1, v2", False),
        ("ds_add_u32 v1, v2", False),
        ("flat_load_dword v4, v[2:3]", False),
    ],
)
def test_programs_with_tags_access_whole_dwords(body: str, uses: bool) -> None:
    (code,) = load(assembly("gfx942", body, lds=_BYTES), "gfx942")
    assert tags.uses_tags(parse_kernel(code).program) is uses


def test_a_long_phase_keeps_its_reports() -> None:
    loop = (
        "s_mov_b32 s21, 0\n.LLOOP:\nds_write_b32 v1, v0\nds_read_b32 v12, v1\n"
        "s_waitcnt lgkmcnt(0)\ns_add_u32 s21, s21, 1\ns_cmp_lt_u32 s21, 3000\n"
        "s_cbranch_scc1 .LLOOP\n"
    )
    foreign = "ds_read_b32 v13, v1 offset:512\n"
    for waves in (1, 2):
        reports = checked("gfx942", loop + foreign, threads=64 * waves, lds=_BYTES)
        assert {report.kind for report in reports} == {Kind.UNINITIALISED_LDS}
    reports = checked("gfx942", loop + foreign.replace("512", "256"), threads=128, lds=_BYTES)
    kinds = {report.kind for report in reports}
    assert kinds == {Kind.UNINITIALISED_LDS, Kind.LDS_RACE}
