"""Trying one seed: what came of it, and the small program of a failure."""

from __future__ import annotations

from dataclasses import dataclass

from tests.emulate.differential.execute import (
    Uncompiled,
    assembly,
    difference,
    host_text,
    kernel_text,
)
from tests.emulate.differential.generate import generate
from tests.emulate.differential.program import Program
from tests.emulate.differential.reduce import reduced, without_dead
from wavecast.emulate.errors import Unsupported
from wavecast.errors import WavecastError


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kind`: "same", "different", "unsupported", "uncompiled", or the name of an exception."""

    kind: str
    text: str = ""

    @property
    def failed(self) -> bool:
        return self.kind not in ("same", "unsupported", "uncompiled")


def optimised(seed: int) -> int:
    """Odd seeds run the optimiser before the target's code generator."""
    return 2 * (seed & 1)


def quick(seed: int) -> bool:
    """Every other pair of seeds runs code that is translated quickly."""
    return bool(seed >> 1 & 1)


def attempt(program: Program, target: str, seed: int) -> Outcome:
    """Compile, run and compare one program."""
    try:
        found = difference(program, target, seed, optimised(seed), quick=quick(seed))
    except Uncompiled as error:
        return Outcome("uncompiled", str(error))
    except Unsupported as error:
        return Outcome("unsupported", str(error).split(": ", 1)[-1])
    except (WavecastError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        return Outcome(type(error).__name__, str(error))
    return Outcome("same") if found is None else Outcome("different", str(found))


def program_of(seed: int, target: str) -> Program:
    """The program of a seed, without what nothing uses."""
    return without_dead(generate(seed, target))


def report(seed: int, target: str, outcome: Outcome, seconds: float = 60) -> str:
    """The failure reduced, as text: what differs, both IR texts, the assembly."""

    def fails(candidate: Program) -> bool:
        return attempt(candidate, target, seed).kind == outcome.kind

    small = reduced(program_of(seed, target), fails, seconds)
    again = attempt(small, target, seed)
    kernel = kernel_text(small, target)
    return "\n".join(
        [
            f"; seed {seed} target {target} optimiser {optimised(seed)} quick {quick(seed)}",
            f"; {again.kind}: {again.text}",
            kernel,
            "; host",
            host_text(small),
            "; assembly",
            assembly(kernel, target, optimised(seed)),
        ]
    )
