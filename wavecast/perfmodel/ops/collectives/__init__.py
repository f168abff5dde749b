"""Collectives over the GPUs of a node and over nodes: algorithms, libraries, prices."""

from __future__ import annotations

from wavecast.perfmodel.ops.collectives.algorithms import FUNCTIONS
from wavecast.perfmodel.ops.collectives.problem import (
    TIMINGS,
    Collective,
    known_of,
    one_node,
    price,
)

__all__ = ["FUNCTIONS", "TIMINGS", "Collective", "known_of", "one_node", "price"]
