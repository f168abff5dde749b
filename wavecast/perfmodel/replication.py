"""How often the waves of a workgroup compute the same products of a `tl.dot`.

Triton spreads a tile over all waves. Where the tile holds fewer matrix instructions than there are
waves, several waves compute the same ones: a 32×32 tile of 16×16 instructions on 8 waves is
computed twice. The matrix pipe pays for all of them; useful work counts once.
"""

from __future__ import annotations

import math
import re

from wavecast.compile import ttgir
from wavecast.compile.codeobject import CodeObject

_NUMBERS = r"\[(?P<numbers>[\d, ]+)\]"
_WARPS = re.compile(r"warpsPerCTA = " + _NUMBERS)
_TILES = re.compile(r"tilesPerWarp = " + _NUMBERS)
_INSTRUCTION = re.compile(r"instrShape = " + _NUMBERS)
_WARP_BASES = re.compile(r"ctaLayout = \{[^}]*?\bwarp = \[(?P<bases>[\[\]\d, ]*)\]")
_BASIS = re.compile(r"\[([\d, ]+)\]")
_WMMA_TILE = (16, 16)
"""Rows and columns of every WMMA instruction; printed only where K is not the default."""


def replication(code: CodeObject) -> float:
    """Times each product of the kernel's dots is computed, the least over its dots; 1 if unknown.

    Read from the layout of the dots' results in TTGIR, so 1 for code without that stage.
    """
    text = code.stages.get("ttgir")
    if not code.is_amd or not isinstance(text, str):
        return 1.0
    module = ttgir.parse(text)
    factors = []
    for dot in module.operations_named(*ttgir.DOTS):
        operands = ttgir.dot_operands(dot)
        if operands is not None:
            result = operands[2]
            factors.append(_of_layout(module.layout(result), result.shape))
    return min(factors, default=1.0)


def _of_layout(layout: str, shape: tuple[int, ...]) -> float:
    instruction = _numbers(_INSTRUCTION, layout)[:2] or _WMMA_TILE
    rank = len(shape)
    tile = (1,) * (rank - 2) + instruction
    if "amd_" not in layout or len(tile) != rank:
        return 1.0
    tiles = _numbers(_TILES, layout) or (1,) * rank
    if warps := _numbers(_WARPS, layout):
        return math.prod(
            min(count, max(1.0, count * size * repeat / length))
            for count, size, repeat, length in zip(warps, tile, tiles, shape, strict=True)
        )
    match = _WARP_BASES.search(layout)
    bases = [_split(basis) for basis in _BASIS.findall(match["bases"])] if match else []
    return float(2 ** sum(_outside(basis, tile, shape) for basis in bases))


def _outside(basis: tuple[int, ...], tile: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """The waves that differ in this bit compute the same tile: the step leads nowhere, or back."""
    steps = zip(basis, tile, shape, strict=True)
    return all(step == 0 or step * size >= length for step, size, length in steps)


def _numbers(pattern: re.Pattern[str], layout: str) -> tuple[int, ...]:
    match = pattern.search(layout)
    return _split(match["numbers"]) if match else ()


def _split(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))
