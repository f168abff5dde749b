"""What the checks of this package report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """An instruction that may run too early.

    `instruction` uses `registers` although `cause` may not have written them, or not be done
    reading them; both are indices into the program. `remedy` is the instruction required in
    between, `counter` what it waits on (`vmcnt`, `dscnt` … or, for hazards, `wait states`, `VALU
    instructions`, `va_vdst` …) and `value` the largest value the wait may have, or the number
    of wait states still missing. `statement` says in one line what is wrong.
    """

    instruction: int
    registers: tuple[str, ...]
    cause: int
    counter: str
    value: int
    remedy: str
    statement: str

    @property
    def explanation(self) -> str:
        """What is wrong and what is missing, in one line."""
        return f"{self.statement}: `{self.remedy}` is missing"


def list_registers(registers: tuple[str, ...], most: int = 4) -> str:
    """`v1, v2 and v3`, cut after `most` names."""
    if len(registers) > most:
        return f"{', '.join(registers[: most - 1])} and {len(registers) - most + 1} more"
    if len(registers) == 1:
        return registers[0]
    return f"{', '.join(registers[:-1])} and {registers[-1]}"
