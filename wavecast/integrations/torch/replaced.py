"""What was replaced by operators of the library, and what was not, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Done:
    """`what` at `where` (a module's path, a node of a graph) is now `operator`."""

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

    `pending` is what a model looks up at every call, and has not yet: a call that an operator
    answers moves it to `done`, one that stays as it was to `left`, and it may be in both.
    """

    done: list[Done] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    pending: list[Done] = field(default_factory=list)
    undoing: list[Callable[[], None]] = field(default_factory=list)

    def undo(self) -> None:
        """Put everything back."""
        while self.undoing:
            self.undoing.pop()()

    def __str__(self) -> str:
        """Counts by kind, then what is not decided, then what was left, one line each."""
        counts = Counter((one.what, one.operator) for one in self.done)
        lines = [f"{n} x {what} -> {operator}" for (what, operator), n in counts.items()]
        asked = Counter((one.what, one.operator) for one in self.pending)
        lines += [
            f"{n} x {what} -> {operator}, if a call permits; none yet, compiled graphs not counted"
            for (what, operator), n in asked.items()
        ]
        kept = Counter((one.what, one.why) for one in self.left)
        lines += [f"{n} x {what} left: {why}" for (what, why), n in kept.items()]
        return "\n".join(lines) or "nothing to replace"


__all__ = ["Done", "Left", "Replaced"]
