"""What was replaced by operators of the library, and what was not, with reasons."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn


@dataclass(frozen=True, slots=True)
class Done:
    """`what` at `where` (a module's path, a line of a graph's module) is now `operator`."""

    where: str
    what: str
    operator: str


@dataclass(frozen=True, slots=True)
class Left:
    """`what` at `where` stayed as it was, and why."""

    where: str
    what: str
    why: str


@dataclass(slots=True, weakref_slot=True)
class Replaced:
    """The account of one replacement; `undo` takes it back, where that can be.

    A module may be called for more than its operator does. Such a call stays as it was; it is in
    `left`, once for each reason, and the module in `done` as well. `pending` is what a model looks
    up at every call, and has not yet: a call that an operator answers moves it to `done`, one that
    stays as it was to `left`.
    """

    done: list[Done] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    pending: list[Done] = field(default_factory=list)
    undoing: list[Callable[[], None]] = field(default_factory=list)
    predicted: object = None
    """Seconds by module before and after, where they were asked for; it prints as a table."""

    def undo(self) -> None:
        """Put everything back."""
        while self.undoing:
            self.undoing.pop()()

    def __str__(self) -> str:
        """Counts by kind, then what is not decided, then what was left, one line each; then what
        was predicted."""
        counts = Counter((entry.what, entry.operator) for entry in self.done)
        lines = [f"{n} x {what} -> {operator}" for (what, operator), n in counts.items()]
        pending = Counter((entry.what, entry.operator) for entry in self.pending)
        lines += [
            f"{n} x {what} -> {operator}, if a call permits; none yet, compiled graphs not counted"
            for (what, operator), n in pending.items()
        ]
        lines += left_lines(self.left)
        lines = lines or ["nothing to replace"]
        if self.predicted is not None:
            lines += ["", str(self.predicted)]
        return "\n".join(lines)


def left_lines(entries: Iterable[Left]) -> list[str]:
    """A line for each kind of call that stayed as it was, for one reason: how many there are, why,
    and where the first is."""
    locations: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        locations.setdefault((entry.what, entry.why), []).append(entry.where)
    lines = []
    for (what, why), where in locations.items():
        others = f" and {len(where) - 1} more" if len(where) > 1 else ""
        location = f" (at {where[0]}{others})" if where[0] else ""
        lines.append(f"{len(where)} x {what} left: {why}{location}")
    return lines


@dataclass(frozen=True, slots=True)
class _Followed:
    path: str
    account: weakref.ref[Replaced]
    noted: set[str | None]


_records: Final[weakref.WeakKeyDictionary[nn.Module, _Followed]] = weakref.WeakKeyDictionary()
"""Modules of replaced models. A copy of a module is not among them, nor does anything come of one
whose account nobody kept."""


def follow(model: nn.Module, account: Replaced) -> None:
    """Have calls of the modules of a model entered into its account from now on."""
    modules = dict(model.named_modules())
    for path, module in modules.items():
        _records[module] = _Followed(path, weakref.ref(account), set())

    def back() -> None:
        for module in modules.values():
            _records.pop(module, None)

    account.undoing.append(back)


def note(module: nn.Module, operator: str, reason: str | None) -> None:
    """Record a call of a module that `operator` replaced, or did not for `reason`: once per module
    and reason. Calls in compiled graphs are not recorded."""
    if torch.compiler.is_compiling() or module not in _records:
        return
    record = _records[module]
    account = record.account()
    if account is None or reason in record.noted:
        return
    record.noted.add(reason)
    name = type(module).__name__
    account.pending = [other for other in account.pending if other.where != record.path]
    replacement = Done(record.path, name, operator)
    entry = replacement if reason is None else Left(record.path, name, reason)
    entries: list[Any] = account.done if reason is None else account.left
    if entry not in entries:
        entries.append(entry)


__all__ = ["Done", "Left", "Replaced", "follow", "left_lines", "note"]
