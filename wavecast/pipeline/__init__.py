"""The steps from an input to an `ExplainReport`, for every launch and every device.

They are imported on first use: what executes a script needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wavecast.pipeline.explain.run import SourceOptions, explain_launches, explain_path
    from wavecast.pipeline.explain.selection import DEFAULT, Selection, select, selectors
    from wavecast.pipeline.explain.steps import Given

_LAZY = {
    "DEFAULT": "explain.selection",
    "SourceOptions": "explain.run",
    "Given": "explain.steps",
    "Selection": "explain.selection",
    "explain_launches": "explain.run",
    "explain_path": "explain.run",
    "select": "explain.selection",
    "selectors": "explain.selection",
}

__all__ = [
    "DEFAULT",
    "Given",
    "Selection",
    "SourceOptions",
    "explain_launches",
    "explain_path",
    "select",
    "selectors",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'wavecast.pipeline' has no attribute {name!r}")
    return getattr(import_module(f"wavecast.pipeline.{_LAZY[name]}"), name)
