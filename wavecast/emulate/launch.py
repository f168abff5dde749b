"""Launches in, results in memory out: translation kept per code, host threads chosen."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.emulate.errors import Unsupported
from wavecast.errors import UsageError
from wavecast.limits import available_processors

if TYPE_CHECKING:  # what executes costs more to import than programs that only record launches have
    from wavecast.emulate.check.determinism import OrderChecks
    from wavecast.emulate.compiled import NativeKernel
    from wavecast.emulate.launch_counts import LaunchCounts
    from wavecast.emulate.mode import Mode
    from wavecast.emulate.team import Team, TeamMember

AddressRange = tuple[int, int]
"""First host address, and the one after the last."""


class Emulator:
    """Runs launches of AMD code on the host's processor to the end, plain or in a mode.

    `threads` is how many host threads share the workgroups of a launch (default: the processors
    this process may use), `max_instructions` how many instructions each wave may execute. With
    `orders` every launch is repeated in other orders of workgroups and waves, and what differs is
    reported. `launched` counts launches where it is not None. Raises UsageError for numbers below 1
    or beyond 64 bits.
    """

    def __init__(
        self,
        threads: int | None = None,
        mode: Mode | None = None,
        max_instructions: int | None = None,
        orders: OrderChecks | None = None,
    ) -> None:
        self.launched: LaunchCounts | None = None
        for what, number in (("threads", threads), ("max_instructions", max_instructions)):
            if number is not None and not 1 <= number < 1 << 63:
                raise UsageError(f"{what}={number}: it must be at least 1 and less than 2^63")
        self.threads = threads or available_processors()
        self.mode = mode
        self.orders = orders
        self._max_instructions = max_instructions
        self._translated: dict[str, NativeKernel] = {}
        self._translating = threading.Lock()

    def separate(self) -> Emulator:
        """Another one with the same limits, without modes and with its own translations."""
        emulator = Emulator(self.threads, max_instructions=self._max_instructions)
        emulator.launched = self.launched
        return emulator

    @property
    def budget(self) -> int:
        """How many instructions a wave may execute."""
        from wavecast.emulate.resident import DEFAULT_BUDGET

        return self._max_instructions or DEFAULT_BUDGET

    def translate(self, code: CodeObject) -> NativeKernel:
        """Native code for a kernel, made once per digest. Raises Unsupported, InputError."""
        from wavecast.emulate.native import native_kernel

        native = self._translated.get(code.digest)
        if native is None:
            if not code.is_amd:
                raise Unsupported(f"{code.kernel}: code for {code.target} cannot be executed")
            with self._translating, _no_collection():
                native = self._translated.get(code.digest) or native_kernel(code, self.mode)
            self._translated[code.digest] = native
        return native

    def run(
        self,
        launch: Launch,
        ranges: Sequence[AddressRange],
        *,
        threads: int | None = None,
        mode: Mode | None = None,
        cut: int | None = None,
        team: Team | None = None,
        member: TeamMember | None = None,
    ) -> None:
        """Run a launch that may touch the memory in `ranges`, on `threads` and in `mode` instead of
        its own; the code of that mode must be the same. Waves end after about `cut` instructions.
        Launches that may wait for each other have one `team`, of which each is a `member`.

        Every 32-bit word that holds a byte of them may be touched: compilers widen scalar loads
        and make atomics of 16 bits from those of 32. Ranges that overlap count as one.
        Raises Unsupported for code without a meaning here, ExecutionError when it breaks off.
        """
        from wavecast.emulate import engine

        native = self.translate(launch.code)
        x, y, z = launch.grid
        threads = max(1, min(threads or self.threads, x * y * z))
        words = [(first & ~3, end + 3 & ~3) for first, end in _union(ranges)]
        mode = mode or self.mode
        budget = self.budget if cut is None else min(cut, self.budget)
        before = self.orders.snapshot(words) if self.orders is not None else None
        if self.launched is not None:
            self.launched.add(launch)
        engine.run(
            native,
            launch,
            words,
            threads=threads,
            mode=mode,
            budget=budget,
            cut=cut is not None,
            team=team,
            member=member,
        )
        if self.orders is not None and before is not None:
            self.orders.compare(launch, words, before, budget)


def _union(ranges: Sequence[AddressRange]) -> list[AddressRange]:
    """Sorted ranges that do not overlap: arrays may share memory."""
    united: list[AddressRange] = []
    for first, end in sorted(ranges):
        if united and first < united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((first, end))
    return united


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Translation makes a great many objects and no garbage worth the collector's scans."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
