"""Masks of 32 lanes that HIP source passes to `__shfl_…_sync` and its like.

They leave nothing in LLVM IR: a shuffle needs no mask there. ROCm's headers refuse them: a mask has
64 bits. `-1` and `~0` become 64 ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

from wavecast.analyze.lanes.assumption import Assumption, LaneAssumption
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.kinds import is_cuda
from wavecast.compile.llvm_ir import position_of
from wavecast.isa.program import Program

_ONES: Final = r"(?:0[xX][fF]{8}[uU]?|~0[uU])"
_NAMED = re.compile(
    rf"^\s*#\s*define\s+(\w+)\s+\(?{_ONES}\)?\s*$"
    rf"|\b(?:unsigned(?:\s+int)?|uint32_t|int)\s+(\w+)\s*=\s*{_ONES}\s*;",
    re.M,
)
_PASSED: Final = r"\b__(?:shfl\w*|match_\w+)_sync\s*\(\s*(?:{mask})\s*,"


def mask_sites(code: CodeObject, program: Program) -> Iterator[LaneAssumption]:
    """The lines of a HIP kernel that name 32 lanes in a mask of 32 bits, of waves of 64."""
    text = code.source_text
    if is_cuda(text, PurePath(code.source).suffix):
        return
    names = [name for pair in _NAMED.findall(text) for name in pair if name]
    pattern = re.compile(_PASSED.format(mask="|".join((_ONES, *(rf"{n}\b" for n in names)))))
    lines = {text.count("\n", 0, match.start()) + 1 for match in pattern.finditer(text)}
    source, site_lines = PurePath(code.source).name, set[int]()
    for instruction in program.instructions if lines else ():
        if instruction.location is None:
            continue
        position = position_of(instruction.location)
        name, line, _ = position[0]
        if name == source and line in lines and line not in site_lines:
            site_lines.add(line)
            yield LaneAssumption(Assumption.MASK, position)


__all__ = ["mask_sites"]
