"""The words of a host thread's context: no two modes that run together share one."""

from __future__ import annotations

from types import ModuleType

from wavecast.emulate.check import log
from wavecast.emulate.lower import state
from wavecast.emulate.trace import layout

CONTEXT = ("RECORDS", "SCRATCH"), ("COUNTERS", "ROOM")
"""The first and the last word of the checks, and of a trace."""


def words(module: ModuleType, first: str, last: str) -> list[int]:
    """The words that a module names, in the order of its text."""
    names = [name for name in vars(module) if name.isupper()]
    return [getattr(module, name) for name in names[names.index(first) : names.index(last) + 1]]


def test_checks_and_traces_have_words_of_one_owner() -> None:
    checks, trace = (words(m, *ends) for m, ends in zip((log, layout), CONTEXT, strict=True))
    assert len(set(checks)) == len(checks)
    assert len(set(trace)) == len(trace)
    assert state.MODE <= min(checks) <= max(checks) < state.TRACE <= min(trace)
    assert max(trace) < state.CONTEXT_WORDS
