"""Matrix instructions: calls of the outlined functions of `wavecast.emulate.matrix`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavecast.emulate.errors import Unsupported
from wavecast.isa.instruction import Decoded

if TYPE_CHECKING:
    from wavecast.emulate.lower.kernel import KernelLowering


def lower(lowering: KernelLowering, decoded: Decoded) -> None:
    """Lower one matrix instruction."""
    raise Unsupported("matrix instructions")
