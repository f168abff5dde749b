"""Regular expressions that users give."""

from __future__ import annotations

import re
from typing import Final

from wavecast.errors import UsageError

_LONGEST: Final = 60
"""Characters of an expression that a message repeats."""


def regex(text: str, what: str) -> re.Pattern[str]:
    """The compiled expression; `what` names the option or setting. Raises UsageError for one that
    does not compile."""
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        excerpt = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        raise UsageError(f"{what} {excerpt!r} is not a regular expression: {error}") from None


__all__ = ["regex"]
