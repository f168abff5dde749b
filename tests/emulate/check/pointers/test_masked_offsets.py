"""Offsets beyond the records of a buffer: those that mask lanes, and negative ones."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.memory_support import assembly, pointers
from wavecast.compile.assembly import load
from wavecast.compile.codeobject import Argument, Launch
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.errors import AddressFault
from wavecast.emulate.launch import Emulator
from wavecast.emulate.reports import Kind, Report

_BODY = """
v_mov_b32 v2, {offset}
v_cmp_eq_u32 vcc, 12, v1
v_cndmask_b32 v1, v1, v2, vcc
s_waitcnt lgkmcnt(0)
s_mov_b64 s[20:21], s[10:11]
s_mov_b32 s22, {records}
s_mov_b32 s23, 0x00020000
s_nop 4
buffer_load_dword v3, v1, s[20:23], 0 offen
s_waitcnt vmcnt(0)
"""


def checked(records: str, offset: str) -> list[Kind]:
    """Kinds of what is reported of a load whose lane 3 has this offset."""
    data = np.arange(64, dtype=np.uint32)
    (code,) = load(assembly("gfx942", _BODY.format(records=records, offset=offset)), "gfx942")
    arguments = tuple(
        Argument(name, "tensor", "u32", (64,), (1,), data.nbytes, data.ctypes.data)
        for name in ("out", "data")
    )
    launch = Launch(code, (1, 1, 1), (64, 1, 1), arguments, pointers([data, data]))
    reports: list[Report] = []
    ranges = [(data.ctypes.data, data.ctypes.data + data.nbytes)]
    Emulator(1, CheckMode(reports.extend)).run(launch, ranges)
    return [report.kind for report in reports if report.kind is Kind.OUT_OF_BOUNDS]


@pytest.mark.parametrize(
    ("records", "offset", "kinds"),
    [
        ("0x7ffffffe", "0x80000000", []),  # how Triton masks a lane
        ("0x7ffffffe", "-4", [Kind.OUT_OF_BOUNDS]),
        ("-1", "-4", []),  # how FlyDSL masks a lane: its element is 2^31 - 1
    ],
)
def test_offsets_that_mask_lanes(records: str, offset: str, kinds: list[Kind]) -> None:
    assert checked(records, offset) == kinds


def test_a_descriptor_of_all_offsets_masks_no_others() -> None:
    with pytest.raises(AddressFault, match="lane 3"):
        checked("-1", "0x80000000")
