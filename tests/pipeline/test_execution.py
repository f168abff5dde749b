"""What a launch from the command line takes of memory, and how its arrays are compared."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from wavecast import limits
from wavecast.emulate.check.collected import Reports
from wavecast.errors import UsageError
from wavecast.pipeline.execute.execution import Execution, execute_code
from wavecast.pipeline.execute.options import ExecutionOptions
from wavecast.pipeline.plan import Plan, Planned
from wavecast.runtimes.module import described_array

pytestmark = pytest.mark.hip
SOURCE = """
#include <hip/hip_runtime.h>
extern "C" __global__ void add(unsigned char *x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] += 1;
}
"""
SIZE = 1 << 24


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "add.hip"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(described_array, "BLOCK", 1000)


def executed(source: Path, x: Planned, n: int = 1024, check: Reports | None = None) -> Execution:
    plan = Plan("add", (1, 1, 1), (256, 1, 1), arguments={"x": x, "n": Planned(str(n))})
    return execute_code(source, plan, ExecutionOptions(arch="gfx942", threads=1, check=check))


@pytest.mark.parametrize("content", ["random(1)", "arange", "full(7)"])
def test_an_array_takes_its_size_once(source: Path, content: str) -> None:
    executed(source, Planned("u8[1024]"))
    tracemalloc.start()
    try:
        executed(source, Planned(f"u8[{SIZE}]:{content}"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < SIZE + 32 * described_array.BLOCK


@pytest.mark.usefixtures("small_blocks")
def test_blocks_are_compared_with_what_they_were(source: Path) -> None:
    (x,) = executed(source, Planned("u8[2500]:uniform(3,0,200)"), 1003).outcomes
    assert x.changed == 1003
    again = np.concatenate(list(x.blocks()))
    assert again.shape == x.shape == (2500,)


@pytest.mark.usefixtures("small_blocks")
def test_an_expectation_names_the_first_element_of_any_block(source: Path) -> None:
    (x,) = executed(source, Planned("u8[2500]", expect="u8[2500]:full(1)"), 2400).outcomes
    assert x.comparison is not None
    assert (x.comparison.different, x.comparison.first) == (100, (2400,))
    (x,) = executed(source, Planned("u8[2500]:arange", expect="1"), 0).outcomes
    assert x.comparison is not None
    assert (x.comparison.first, x.comparison.largest) == ((0,), 254)
    (x,) = executed(source, Planned("u8[50x50]:full(3)", expect="4"), 2500).outcomes
    assert x.comparison is not None
    assert (x.comparison.different, x.changed) == (0, 2500)


def test_what_does_not_fit_is_refused_before_it_is_made(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "available_memory", lambda: 1 << 30)
    with pytest.raises(UsageError, match=r"add with x=u8\[2000000000\] needs 1.9"):
        executed(source, Planned("u8[2000000000]"))


def test_a_check_needs_memory_for_what_is_accessed(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "available_memory", lambda: 1 << 30)
    reports = Reports()
    (x,) = executed(source, Planned("u8[200000000]"), check=reports).outcomes
    assert x.changed == 1024
    assert list(reports) == []


def test_a_check_that_does_not_fit_ends_in_one_line(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(range(1 << 30, -1, -(1 << 27)))
    monkeypatch.setattr(limits, "available_memory", lambda: next(left))
    with pytest.raises(UsageError, match=r"a check of all that add accesses .* 0 GiB") as error:
        executed(source, Planned("u8[200000000]"), 200_000, check=Reports())
    assert "\n" not in str(error.value)
