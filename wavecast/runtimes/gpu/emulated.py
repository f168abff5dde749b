"""Times where a GPU is emulated or captured: Triton's timers are replaced by predictions there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wavecast.launch import gpu


def emulated_do_bench(fn: Callable[[], Any], **kwargs: Any) -> Any:
    """What `triton.testing.do_bench` says inside `wavecast.device` or a capture; None outside."""
    if gpu.emulated is None:
        return None
    from triton.testing import do_bench

    return do_bench(fn, **kwargs)


__all__ = ["emulated_do_bench"]
