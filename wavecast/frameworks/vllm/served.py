"""Which operators of the library answered for which of vLLM's layers, and how often."""

from __future__ import annotations

from typing import Final

from wavecast.frameworks.serving import ServedCalls

calls: Final = ServedCalls()
serve: Final = calls.serve

__all__ = ["calls", "serve"]
