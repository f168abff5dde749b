"""What an operation of the fuzzer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.emulate.differential.program import Statement
from tests.emulate.differential.text import Writer

Picked = tuple[str, tuple[str, ...], tuple[int | str, ...]]
"""Type of the result, types of the operands, details."""
Pick = Callable[[Random], Picked]
Write = Callable[[Writer, Statement], str]


@dataclass(frozen=True, slots=True)
class Operation:
    """`write` gives the name of the value; `pick` chooses types.

    `computes`: a NaN of the result has open bits. `exposes` are the operands whose bits reach the
    result in other ways than as a number: their NaN must be settled.
    """

    name: str
    write: Write
    pick: Pick
    computes: bool = False
    exposes: tuple[int, ...] = ()
