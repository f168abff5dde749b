"""Memory that the processes of ranks share."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from wavecast import processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory of forks: Linux")


def test_a_name_is_the_same_memory_in_forks_that_name_it_in_any_order() -> None:
    from wavecast.runtimes.distributed.shared_region import SharedRegion

    region = SharedRegion()

    def write() -> None:
        region.array("second", 5000)[:] = 2
        region.array("first", 100)[:] = 1

    first = region.array("first", 100)
    assert not first.any()
    assert processes.wait(processes.fork(write)) == processes.Ended()
    assert (first == 1).all()
    second = region.array("second", 5000)
    assert (second == 2).all()
    assert not np.shares_memory(first, second)
    assert not region.array("second", 4999).any(), "another size is other memory"


def test_no_room_is_an_error() -> None:
    from wavecast.runtimes.distributed.shared_region import SharedRegion

    with pytest.raises(MemoryError, match="no room is left"):
        SharedRegion().array("large", SharedRegion.SIZE)
