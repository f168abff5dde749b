"""Random LLVM IR on the emulator against the same IR on the host; a longer run is
`python -m tests.emulate.differential`."""

from __future__ import annotations

import pytest

from tests.emulate.differential.program import (
    Const,
    Program,
    Statement,
    Use,
    statements,
)
from tests.emulate.differential.reduce import reduced
from tests.emulate.differential.run import attempt, program_of
from tests.targets import swept

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
SEEDS = range(40, 46)


@pytest.mark.parametrize("target", swept(TARGETS))
def test_random_programs(target: str) -> None:
    for seed in SEEDS:
        outcome = attempt(program_of(seed, target), target, seed)
        assert outcome.kind == "same", f"seed {seed}: {outcome.text}"


def test_seeds_repeat() -> None:
    assert program_of(7, "gfx942") == program_of(7, "gfx942")


def _chain() -> Program:
    """%3 = %1 + %2, %4 = %3 * %1, %5 = %4 ^ 12, %6 = popcount %2; outputs %5 and %6."""
    first, second = Use(1, "i32"), Use(2, "i32")
    nodes = (
        Statement(3, "i32", "add", (first, second)),
        Statement(4, "i32", "mul", (Use(3, "i32"), first)),
        Statement(5, "i32", "xor", (Use(4, "i32"), Const("i32", (12,)))),
        Statement(6, "i32", "ctpop", (second,)),
    )
    outputs = (Use(5, "i32"), Use(6, "i32"))
    return Program(((1, "i32"), (2, "i32")), (), nodes, outputs, frozenset({1, 2, 3, 4, 5, 6}))


def test_reduction_keeps_what_fails() -> None:
    def fails(program: Program) -> bool:
        return any(statement.operation == "mul" for statement in statements(program.nodes))

    small = reduced(_chain(), fails)
    assert [statement.operation for statement in statements(small.nodes)] in (
        ["mul"],
        ["mul", "xor"],
    )
    assert len(small.outputs) == 1
