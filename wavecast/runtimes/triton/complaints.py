"""A compiler's exception in one line, with the line of the program it is about."""

from __future__ import annotations

import re
from typing import Any, Final

from wavecast.runtimes.triton import isolation

_REPR: Final = re.compile(r"(?P<type>\w+)\((?P<quote>['\"])(?P<message>.*)(?P=quote)\)", re.S)


class Refused(Exception):
    """A configuration the compiler refused while an autotuner was choosing."""


def explain(error: BaseException, function: Any) -> str:
    """`message (file.py:12)` for an exception raised while compiling a JITFunction."""
    if isinstance(error, isolation.Crashed):
        return error.reason + _where(error, function)
    innermost = error
    while innermost.__cause__ is not None and hasattr(innermost.__cause__, "src"):
        innermost = innermost.__cause__
    message = getattr(innermost, "error_message", None) or str(innermost)
    if not message.strip() and innermost.__cause__ is not None:
        message = str(innermost.__cause__)
    if match := _REPR.fullmatch(message.strip()):  # Triton gives the `repr` of Python's errors
        message = f"{match['type']}: {match['message']}"
    line = " ".join(message.split()) or type(innermost).__name__
    if not hasattr(innermost, "error_message") and type(innermost) is not RuntimeError:
        line = line if ":" in line else f"{type(innermost).__name__}: {line}"
    printed = isolation.diagnostic(isolation.compiler_output(error))
    diagnostic = f": {printed}" if printed and printed not in line else ""
    return line + diagnostic + _where(error, function)


def _where(error: BaseException, function: Any) -> str:
    node = getattr(error, "node", None)
    file = function.fn.__code__.co_filename
    first = function.starting_line_number
    for text in function.raw_src:
        if text.lstrip().startswith("def "):
            break
        first += 1
    if node is not None and hasattr(node, "lineno"):
        first += node.lineno - 1
    return f" ({file}:{first})"
