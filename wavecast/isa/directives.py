"""The `.amdhsa_*` directives of kernels in assembly text."""

from __future__ import annotations

import re

from wavecast.errors import InputError
from wavecast.isa import symbols
from wavecast.isa.quoting import SYMBOL, unquote

_DIRECTIVES = re.compile(rf"\.amdhsa_kernel[ \t]+({SYMBOL})(.*?)\.end_amdhsa_kernel", re.DOTALL)
_FIELD_END = 1 << 32
"""Fields of the kernel descriptor have at most 32 bits."""
_DIRECTIVE = re.compile(r"^[ \t]*\.amdhsa_(\w+)[ \t]+([^;\n]+)", re.MULTILINE)


def kernel_directives(text: str) -> dict[str, dict[str, int]]:
    """Kernel -> directive without `.amdhsa_` -> value, in the order of the text. Raises
    InputError for a value that no field of a kernel descriptor can have."""
    return {unquote(match[1]): _integers(text, match[2]) for match in _DIRECTIVES.finditer(text)}


def _integers(text: str, body: str) -> dict[str, int]:
    """The directives of one kernel whose value is an integer or an expression of `.set` symbols.
    Raises InputError for a value that no field of a kernel descriptor can have."""
    directives = {}
    for match in _DIRECTIVE.finditer(body):
        value = match[2].strip()
        try:
            directives[match[1]] = int(value, 0)
        except ValueError:
            number = symbols.evaluate(value, text)
            if number is not None:
                directives[match[1]] = number
        if not 0 <= directives.get(match[1], 0) < _FIELD_END:
            raise InputError(f".amdhsa_{match[1]} must be from 0 to 2^32 - 1, not {value:.40}")
    return directives


__all__ = ["kernel_directives"]
