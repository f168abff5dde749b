"""How a run ended, and what its command ends with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from wavecast.errors import WavecastError
from wavecast.extras import hint_for

INTERRUPTED: Final = 130
"""128 and SIGINT."""
_INTERNAL_ERROR: Final = 70
"""EX_SOFTWARE: a bug in wavecast."""


RunStatus = Literal["passed", "failed", "exited", "raised", "stopped", "signal", "interrupted"]
"""What ended a run."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What ended a run, the exit code of the command, and why in a line; "" where it passed."""

    status: RunStatus
    code: int = 0
    reason: str = ""


def broken_off(error: BaseException) -> RunOutcome:
    """The outcome of a run that an error ends."""
    code = exit_code_of(error)
    if isinstance(error, KeyboardInterrupt):
        return RunOutcome("interrupted", code, "interrupted")
    text = " ".join(str(error).split())
    if not isinstance(error, WavecastError):
        text = ": ".join(filter(None, (type(error).__name__, text)))
    return RunOutcome("stopped", code, text)


def exit_code_of(error: BaseException) -> int:
    """What a command ends with that an error ends."""
    match error:
        case WavecastError():
            return error.exit_code
        case KeyboardInterrupt():
            return INTERRUPTED
        case ModuleNotFoundError() if hint_for(error.name or ""):
            return WavecastError.exit_code
        case OSError():
            return WavecastError.exit_code
    return _INTERNAL_ERROR


__all__ = [
    "INTERRUPTED",
    "RunOutcome",
    "RunStatus",
    "broken_off",
    "exit_code_of",
]
