"""Attributes replaced for a while and put back, whatever happens in between."""

from __future__ import annotations

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

    def callback(self, function: Any, *args: Any) -> None:
        """Call `function(*args)` on restore."""
        self._undo.callback(function, *args)

    def restore(self) -> None:
        self._undo.close()
