"""Which instructions change a value, for `lost-update`."""

from __future__ import annotations

import pytest

from wavecast.emulate.check.updates.read_modify_write import repeats
from wavecast.isa import table
from wavecast.isa.opcode import OperandAccess


def rows() -> dict[str, list[bool]]:
    """Row without memory -> for each operand that it reads whether f(f(x)) is f(x)."""
    return {
        row.name: [
            repeats(row, position)
            for position in range(sum(r.access is not OperandAccess.WRITE for r in row.operands))
        ]
        for row in table.rows()
        if row.memory is None
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v_or_b32", [True, True]),
        ("v_max_u32", [True, True]),
        ("v_mov_b32", [True]),
        ("v_lshl_or_b32", [False, False, True]),
        ("v_add_nc_u32", [False, False]),
        ("v_add_f64", [False, False]),
        ("s_add_f32", [False, False]),
        ("v_xor_b32", [False, False]),
    ],
)
def test_what_gives_the_same_twice(name: str, expected: list[bool]) -> None:
    assert rows()[name] == expected
