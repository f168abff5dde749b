"""Operators of the library as layers of a serving engine, with a count of their calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from wavecast.integrations.torch.library import function


class ServedCalls(Counter[tuple[str, str]]):
    """Calls by layer of an engine and operator of the library, since the process began."""

    def serve(self, layer: str, operator: str) -> Callable[..., Any]:
        """The operator, counted as called for `layer`."""
        call = function(operator)
        key = (layer, operator)

        def run(*args: Any, **named: Any) -> Any:
            self[key] += 1
            return call(*args, **named)

        return run


__all__ = ["ServedCalls"]
