"""Hand-written kernels in check mode."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.emulate.memory_support import assembly, lanes_of, pointers
from wavecast.compile.assembly import load
from wavecast.compile.codeobject import Launch
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.launch import Emulator
from wavecast.emulate.reports import Kind, Report


def checked(
    target: str,
    body: str,
    *arrays: np.ndarray,
    threads: int | None = None,
    groups: int = 1,
    lds: int = 0,
    scratch: int = 0,
    directives: str = "",
    mode: Callable[[Callable[[list[Report]], None]], CheckMode] = CheckMode,
) -> list[Report]:
    """Run `body` (`memory_support.assembly`) in check mode; what it reports, by instruction."""
    found: list[Report] = []
    text = assembly(target, body, lds=lds, scratch=scratch, directives=directives)
    (code,) = load(text, target)
    block = threads or lanes_of(target), 1, 1
    launch = Launch(code, (groups, 1, 1), block, (), pointers(arrays))
    ranges = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays]
    Emulator(1, mode(found.extend)).run(launch, ranges)
    return sorted(found, key=lambda report: report.instruction)


def of_kind(found: list[Report], kind: Kind) -> list[Report]:
    return [report for report in found if report.kind is kind]
