"""Which instructions have a result that the hardware's documentation leaves open."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from wavecast.isa.instruction import Instruction


@dataclass(frozen=True, slots=True)
class OpenBehaviour:
    """A row of `open_behaviours.toml`."""

    name: str
    status: str
    pattern: str


@cache
def open_behaviours() -> tuple[OpenBehaviour, ...]:
    """All of them, in the order in which they are tried."""
    text = (resources.files("wavecast.isa.semantics") / "open_behaviours.toml").read_text("utf-8")
    return tuple(OpenBehaviour(**row) for row in tomllib.loads(text)["behaviour"])


def open_behaviour(instruction: Instruction) -> OpenBehaviour | None:
    """What is open about the result of an instruction; None where it is documented."""
    return _of_mnemonic(instruction.mnemonic.removesuffix(f"_{instruction.decoded.encoding}"))


@cache
def _of_mnemonic(name: str) -> OpenBehaviour | None:
    for behaviour in open_behaviours():
        if re.fullmatch(behaviour.pattern, name):
            return behaviour
    return None


__all__ = ["OpenBehaviour", "open_behaviour", "open_behaviours"]
