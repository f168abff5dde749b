"""What waves of a compute unit wait for and what of it works: the columns of the simulator's
account."""

from __future__ import annotations

from typing import Final

CAUSES: Final = (
    "issue", "dependency", "vector pipe", "matrix pipe", "transcendental pipe", "arbitration",
    "LDS pipe", "address path", "LDS latency", "L1 latency", "L2 latency",
    "memory-side cache latency", "memory latency", "L2 bandwidth", "memory-side cache bandwidth",
    "memory bandwidth", "scalar memory", "barrier", "no-op", "branch", "fetch", "counter full",
    "start",
)  # fmt: skip
(
    ISSUE, DEPENDENCY, VALU_BUSY, MATRIX_BUSY, TRANS_BUSY, ARBITRATION,
    LDS_BUSY, ADDRESS_BUSY, LDS_LATENCY, L1_LATENCY, L2_LATENCY,
    MALL_LATENCY, HBM_LATENCY, L2_BANDWIDTH, MALL_BANDWIDTH,
    HBM_BANDWIDTH, SCALAR_WAIT, BARRIER_WAIT, IDLE, BRANCHING, FETCHING, COUNTER_FULL,
    STARTING,
) = range(len(CAUSES))  # fmt: skip

BUSY: Final = (
    "vector", "matrix", "transcendental", "LDS", "address path", "L2", "memory-side cache",
    "memory", "issue",
)  # fmt: skip
"""Resources whose clocks of work are counted."""
(
    VECTOR_WORK, MATRIX_WORK, TRANS_WORK, LDS_WORK, ADDRESS_WORK, L2_WORK, MALL_WORK,
    HBM_WORK, ISSUE_WORK,
) = range(len(BUSY))  # fmt: skip
