"""Attributes replaced for a while and put back, whatever happens in between."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

_ABSENT = object()


class Patches:
    """Replaces attributes and items; `restore` undoes all of them, last first."""

    def __init__(self) -> None:
        self._undo = ExitStack()

    def attribute(self, owner: Any, name: str, value: Any) -> Any:
        """Set `owner.name`; the value before is returned (None when there was none)."""
        before = vars(owner).get(name, _ABSENT) if hasattr(owner, "__dict__") else _ABSENT
        visible = getattr(owner, name, None)
        setattr(owner, name, value)
        if before is _ABSENT:
            self._undo.callback(delattr, owner, name)
        else:
            self._undo.callback(setattr, owner, name, before)
        return visible

    def functions(self, replacements: Mapping[Any, Any]) -> None:
        """Replace functions in all modules that have them by name, also in those that imported them
        from elsewhere; modules that are imported later get the originals back, too."""
        _replace(replacements)
        self._undo.callback(_replace, {new: old for old, new in replacements.items()})

    def callback(self, function: Any, *args: Any) -> None:
        """Call `function(*args)` on restore."""
        self._undo.callback(function, *args)

    def restore(self) -> None:
        self._undo.close()


def _replace(replacements: Mapping[Any, Any]) -> None:
    by_identity = {id(old): new for old, new in replacements.items()}
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if not isinstance(names, dict):
            continue
        for name, value in list(names.items()):
            if id(value) in by_identity:
                names[name] = by_identity[id(value)]
