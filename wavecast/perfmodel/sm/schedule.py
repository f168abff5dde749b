"""What a profile of SASS has beyond a program: its costs and its memory barriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wavecast.perfmodel.sm.code import SmCode


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The instructions of a SASS program with their control bits and costs, and the arrivals that
    complete a phase of each memory barrier (i64[n])."""

    code: SmCode
    arrivals: np.ndarray[Any, Any]


__all__ = ["Schedule"]
