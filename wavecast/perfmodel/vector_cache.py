"""What the vector L1 of a compute unit keeps between loads that are executed side by side.

Waves of a workgroup go through a region of code together, an instruction at a time, which is an
assumption. A line that one of them asks for again is there, or on its way, if the lines that all
workgroups of the unit asked for since then fit the cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np


def missed_shares(loads: Sequence[np.ndarray], capacity: float) -> list[float]:
    """The part of the lines that each load of a region asks for which the cache does not have.

    `loads` (i64[n]), in the order of execution, are the lines that the waves of a workgroup ask
    for, a line once for each wave; `capacity` is the lines that the cache keeps for a workgroup.
    """
    cached: OrderedDict[int, None] = OrderedDict()  # the line asked for last is the last
    shares = []
    for lines in loads:
        missed = 0
        for line in lines.tolist():
            missed += line not in cached
            cached[line] = None
            cached.move_to_end(line)
            if len(cached) > capacity:
                cached.popitem(last=False)
        shares.append(missed / len(lines) if len(lines) else 1.0)
    return shares


__all__ = ["missed_shares"]
