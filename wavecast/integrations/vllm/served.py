"""Which operators of the library answered for which of vLLM's layers, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from wavecast.integrations.torch.library import function

calls: Final[Counter[tuple[str, str]]] = Counter()
"""Calls by layer of vLLM and operator of the library, since the process began."""


def serve(layer: str, operator: str) -> Callable[..., Any]:
    """The operator, counted as called for `layer`."""
    call = function(operator)
    key = (layer, operator)

    def run(*args: Any, **named: Any) -> Any:
        calls[key] += 1
        return call(*args, **named)

    return run


__all__ = ["calls", "serve"]
