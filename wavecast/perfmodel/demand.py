"""What one launch of a tile kernel asks of every resource.

Fields are numbers, or arrays over candidate configurations (and problems) that broadcast against
each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Amount = float | np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class WorkgroupDemand:
    """Demand of one launch.

    `workgroups` workgroups, of which registers and LDS let `resident` run on a CU at once.

    Per workgroup, clocks of a whole CU: `matrix` (all its matrix pipes busy, at full rate),
    `vector` (VALU issue of all SIMDs); bytes: `lds` through the LDS, `l2` asked from the L2;
    elements of the result: `stored` at the end, when nothing is left to overlap them with.
    `latency` is the seconds a workgroup waits for memory in a row.

    `serial` is the share of what the other pipes take that the kernel's main loop does not hide
    behind the busiest. `lds_rate` is what the LDS gives to this kernel's accesses relative to
    its full rate. `asynchronous`: copies that run ahead hide waits behind work, and work behind
    waits, nearly whole.

    Per launch, bytes: `read` and `written` that memory must move at least, `refetched` what the
    L2s of several dies fetch beyond that, `combined` partial sums written and read again by
    workgroups that share a result; `combining` is 1 where there are any, else 0.
    `dtype` is that of the matrix products, "" without.
    """

    workgroups: Amount
    resident: Amount = 1.0
    dtype: str = ""
    matrix: Amount = 0.0
    serial: Amount = 1.0
    vector: Amount = 0.0
    lds: Amount = 0.0
    lds_rate: Amount = 1.0
    l2: Amount = 0.0
    stored: Amount = 0.0
    latency: Amount = 0.0
    asynchronous: Amount = 0.0
    read: Amount = 0.0
    written: Amount = 0.0
    refetched: Amount = 0.0
    combined: Amount = 0.0
    combining: Amount = 0.0


__all__ = ["Amount", "WorkgroupDemand"]
