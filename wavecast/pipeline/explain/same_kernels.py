"""The kernels of one source that several compilers have compiled, matched.

Compilers mangle their built-in types differently: a kernel with 16-bit floats has one symbol for
AMD GPUs and another for NVIDIA's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wavecast.compile.codeobject import CodeObject
from wavecast.compile.names import readable


def match_kernels(codes: Mapping[str, Sequence[CodeObject]]) -> dict[str, list[CodeObject]]:
    """The kernels by target, with the `alias` of each whose symbol differs from that of the only
    kernel of its declaration for the first target."""
    first = next(iter(codes.values()), ())
    symbols = {code.kernel for code in first}
    number = Counter(map(_declaration, first))
    kernel_names = {at: code.kernel for code in first if number[at := _declaration(code)] == 1}
    by_target: dict[str, list[CodeObject]] = {}
    for target, of_target in codes.items():
        number = Counter(map(_declaration, of_target))
        by_target[target] = [
            replace(code, alias=kernel_names[at])
            if code.kernel not in symbols
            and number[at := _declaration(code)] == 1
            and at in kernel_names
            else code
            for code in of_target
        ]
    return by_target


def _declaration(code: CodeObject) -> tuple[str, int]:
    """The name and the line of a kernel; no two kernels of unknown lines are the same."""
    return readable(code.kernel) if code.source_line else code.kernel, code.source_line


__all__ = ["match_kernels"]
