"""Compiled kernels are clean, and every wait or no-op taken out of them is missed.

The long run over the shared corpus is `python -m tests.corpus.sync`.
"""

from __future__ import annotations

import pytest

from tests.corpus import sync as corpus
from wavecast import isa

pytest.importorskip("triton")

from tests.oracle import sample_kernels

EACH = 12
"""Waits and no-ops of a kernel that are taken out."""
LEAST = 4
"""Deleted waits that must be reported; those of atomics order memory and no register."""

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("name", list(sample_kernels.KERNELS))
def test_mutants_are_reported_or_explained(name: str, target: str) -> None:
    text, _ = sample_kernels.compile_for(name, target)
    (kernel,) = isa.parse(text, target).kernels.values()
    assert corpus.violations(kernel.program) == ()
    verdicts = {
        mutant: corpus.verdict(text, kernel.program, mutant)
        for mutant in corpus.mutants(text, kernel.program, EACH)
    }
    assert "unexplained" not in verdicts.values(), verdicts
    deleted = [became for mutant, became in verdicts.items() if mutant.kind == "delete"]
    assert deleted.count("reported") >= LEAST


def test_a_weaker_wait_is_one_count_higher() -> None:
    assert list(corpus.weakened("s_waitcnt vmcnt(3) lgkmcnt(0)")) == [
        "s_waitcnt vmcnt(4) lgkmcnt(0)",
        "s_waitcnt vmcnt(3) lgkmcnt(1)",
    ]
    assert list(corpus.weakened("s_wait_loadcnt_dscnt 0x102")) == [
        "s_wait_loadcnt_dscnt 0x103",
        "s_wait_loadcnt_dscnt 0x202",
    ]
    assert list(corpus.weakened("s_waitcnt_vscnt null, 0x0")) == ["s_waitcnt_vscnt null, 0x1"]
