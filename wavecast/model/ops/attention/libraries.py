"""The libraries whose attention is modelled: which kernels each has, and their tiles.

`coefficients/attention.toml` has the cost of a kernel beyond its tiles as
`vector_<kernel>_<direction>`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from wavecast.errors import UnknownName
from wavecast.model.ops.attention.sizes import AttentionSizes

CDNA = ("cdna3", "cdna4", "cdna-next")


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile kernel. A workgroup owns `rows` of one side (queries forward, keys backward) and walks
    the other in steps of `columns`; tiles the mask empties are skipped in steps of `mask` columns.

    `lockstep`: consecutive tiles of one head go to the CUs of one die, and a round of workgroups
    lasts as long as its longest. `resident` workgroups share a CU, so that one computes while
    another waits for memory. Heads are padded to a multiple of `grain` elements.
    """

    name: str
    rows: int
    columns: int
    mask: int
    lockstep: bool = False
    resident: int = 1
    grain: int = 32


@dataclass(frozen=True, slots=True)
class Library:
    """A library. `generations` it has kernels for; empty: all. `caller` is whose Python function
    calls its kernels: `call_<caller>_<direction>` in the table."""

    name: str
    generations: tuple[str, ...]
    fused: bool = True
    caller: str = "asm"

    def runs_on(self, generation: str) -> bool:
        return not self.generations or generation in self.generations


ASM = Tile("asm", 256, 64, 64, grain=64)
"""AITER's hand-written kernels: 8 waves of 32 rows."""
ASM_FORWARD = ((128, 128), (192, 128))
ASM_DTYPES = ("bf16", "fp8")
ASM_BACKWARD = 192
"""Heads they have: elements of keys and of values forward, where dtypes are these too; backward
any up to so many (AITER's `hsa/gfx942/fmha_v3_fwd`, `get_padded_hdim` of its backward pass)."""
HIPKITTENS = Tile("hipkittens", 256, 64, 256)
"""HipKittens: 8 waves of 32 rows, two per SIMD that alternate on the matrix pipe."""
CK_FORWARD = (
    Tile("ck", 16, 16, 16, lockstep=True, resident=2),
    Tile("ck", 32, 32, 32, lockstep=True),
    Tile("ck", 64, 64, 64, lockstep=True),
    Tile("ck", 128, 64, 64, lockstep=True),
)
"""CK tile: the smallest tile that holds a sequence, else the largest."""
CK_BACKWARD = (
    Tile("ck", 16, 16, 16, lockstep=True),
    Tile("ck", 128, 64, 64, lockstep=True),
)
TRITON = Tile("triton", 128, 64, 64)

LIBRARIES = {
    "asm": Library("asm", CDNA),
    "hipkittens": Library("hipkittens", CDNA, caller="hipkittens"),
    "ck": Library("ck", (*CDNA, "cdna2", "cdna1")),
    "triton": Library("triton", ()),
    "unfused": Library("unfused", (), fused=False),
}
"""By name; `unfused` writes the scores to memory between separate kernels."""


def library(name: str) -> Library:
    """A library by name. Raises UnknownName."""
    if name not in LIBRARIES:
        raise UnknownName("attention library", name, LIBRARIES)
    return LIBRARIES[name]


def tile(name: str, sizes: AttentionSizes, *, backward: bool) -> Tile | None:
    """The tile kernel a library runs for these sizes; None where it has none.

    AITER uses CK's kernel where it has no assembly kernel, and in the backward pass with fewer
    heads of keys than of queries.
    """
    if sizes.latent:
        return None
    if name == "asm" and _has_assembly(sizes, backward=backward):
        return ASM
    if name == "hipkittens" and sizes.head in (64, 128) and sizes.head == sizes.head_v:
        return HIPKITTENS
    if name in ("asm", "ck"):
        tiles = CK_BACKWARD if backward else CK_FORWARD
        return next((t for t in tiles if t.rows >= max(sizes.longest)), tiles[-1])
    if name == "triton" and not backward:
        return TRITON
    return None


def _has_assembly(sizes: AttentionSizes, *, backward: bool) -> bool:
    if not backward:
        return (sizes.head, sizes.head_v) in ASM_FORWARD and sizes.dtype in ASM_DTYPES
    return sizes.head == sizes.head_v <= ASM_BACKWARD and sizes.group == 1


STREAMING: Collection[str] = ("asm", "triton")
"""Libraries with a kernel that splits the keys of one sequence over workgroups."""

__all__ = ["LIBRARIES", "STREAMING", "Library", "Tile", "library", "tile"]
