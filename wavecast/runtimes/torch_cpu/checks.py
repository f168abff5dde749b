"""Comparisons of numbers nobody computed, passed over so that a script reaches its next launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wavecast.runtimes.patching import Patches

SKIPPED = (
    "comparisons (assert_close, allclose) after the first launch were taken as passed, "
    "because launches are not executed"
)


def install(patches: Patches, in_doubt: Callable[[], bool], note: Callable[[str], None]) -> None:
    """Make comparisons succeed while `in_doubt()`, that is once a launch was not executed."""
    import numpy.testing
    import torch
    import triton.testing

    def lenient(owner: Any, name: str, answer: Any) -> None:
        original = getattr(owner, name)

        def compare(*args: Any, **kwargs: Any) -> Any:
            if not in_doubt():
                return original(*args, **kwargs)
            note(SKIPPED)
            return answer

        patches.attribute(owner, name, compare)

    for owner in (torch.testing, triton.testing):
        lenient(owner, "assert_close", None)
    for name in ("assert_allclose", "assert_array_almost_equal", "assert_almost_equal"):
        lenient(numpy.testing, name, None)
    lenient(numpy, "allclose", True)
    lenient(torch, "allclose", True)
    lenient(torch.Tensor, "allclose", True)
