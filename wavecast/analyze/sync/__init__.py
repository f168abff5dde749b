"""Waits and wait states a program lacks, read off its code without running it.

`missing_waits` follows memory operations from issue to the wait that covers them, `hazards` the
pairs of instructions between which the hardware needs software to leave room, `outstanding_at` says
what a wave may still have in flight when it tells the others it has reached a barrier, and
`unfinished_stores` which of that others may miss.
"""

from wavecast.analyze.sync.barriers import outstanding_at, unfinished_stores
from wavecast.analyze.sync.hazards import hazards
from wavecast.analyze.sync.violation import Violation
from wavecast.analyze.sync.waits import missing_waits

__all__ = ["Violation", "hazards", "missing_waits", "outstanding_at", "unfinished_stores"]
