"""The emulator with its checks: the one place that joins them."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.check.determinism import OrderChecks
from wavecast.emulate.check.gpus.order import GpuOrder
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.launch import Emulator
from wavecast.emulate.mode import Mode, Modes
from wavecast.emulate.tensors import CANARY
from wavecast.emulate.written_bytes import WrittenBytes


@dataclass(frozen=True, slots=True)
class CheckedEmulator:
    """An emulator, and its checks; None where launches are not checked."""

    emulator: Emulator
    checks: CheckMode | None


def checked_emulator(
    reports: Reports | None,
    device: Device | None = None,
    *,
    trace: Mode | None = None,
    threads: int | None = None,
    max_instructions: int | None = None,
    canary: int = CANARY,
    written: WrittenBytes | None = None,
    gpus: GpuOrder | None = None,
) -> CheckedEmulator:
    """An emulator whose launches are checked as `reports` asks for, which gathers what is found;
    without `reports` they are not checked. `trace` is another mode.

    `device`, `canary`, `written` and `gpus` are those of `CheckSession`, `threads` and
    `max_instructions` those of `Emulator`. Raises UsageError as it does.
    """
    checks = orders = None
    if reports is not None:
        checks = CheckMode(
            reports.add, canary, numbers=reports.numbers, written=written, gpus=gpus, device=device
        )
        orders = OrderChecks(reports.add) if reports.determinism else None
    modes = [mode for mode in (trace, checks) if mode is not None]
    return CheckedEmulator(Emulator(threads, Modes.of(modes), max_instructions, orders), checks)


__all__ = ["CheckedEmulator", "checked_emulator"]
