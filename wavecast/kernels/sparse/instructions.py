"""The sparse matrix instructions as functions that Triton links: libraries in LLVM IR.

Triton and Gluon have no sparse product. Their `extern_elementwise` calls a function of a library
for every element of tensors, of one element each. A function here takes what one lane holds as such
elements of 64 bits and returns 64 bits of the sum; there is one for each part of the sum. All are
inlined and contain the same instructions, of which LLVM keeps one copy. So the compiler allocates
registers, schedules and waits as for its own products (docs/decisions/0027-sparse-products.md).

A call multiplies 64 bytes of B, of consecutive k of one column, with the 32 bytes of A that are
kept of the same k of one row: the whole index word (16-bit elements) or two of them (8-bit).
Instructions of less depth take them one after the other. The order of k in a sum is the kernel's
own, as A, B and the index agree on it within a lane.

`libraries` has a file per target, which `python -m tests.kernels.sparse_libraries --write` makes of
the instruction table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from wavecast.arch import capabilities
from wavecast.isa import table
from wavecast.isa.opcode import MatrixShape
from wavecast.isa.targets import isa_target

SIDE: Final = 16
"""Rows and columns of the instructions that are used."""
A_WORDS: Final = 4
"""Elements of 64 bits of A in a call."""
B_WORDS: Final = 2 * A_WORDS
LIBRARY: Final = "wavecast"
"""Name of the library, which names of its functions contain: Triton links it by that."""
LINE: Final = 128
"""Bytes that a step has of every row of A."""
_BITS: Final = {"bf16": 16, "f16": 16, "fp8": 8, "bf8": 8, "i8": 8, "iu8": 8}


@dataclass(frozen=True, slots=True)
class SparseProduct:
    """The sparse instruction of a target for two element types: `name` in the instruction table,
    and its shape. Waves have 16 lanes for rows of A (columns of B and of the sum) times `groups`,
    which hold different k."""

    target: str
    name: str
    shape: MatrixShape
    groups: int

    @property
    def element_bits(self) -> int:
        """Bits of an element of A and B."""
        return _BITS[self.shape.a_type]

    @property
    def depth(self) -> int:
        """Dense k that a lane multiplies in a call."""
        return 64 * B_WORDS // self.element_bits

    @property
    def steps(self) -> int:
        """Instructions of a call."""
        return self.depth * self.groups // self.shape.k

    @property
    def calls(self) -> int:
        """Calls for which the lanes of a row load 128 bytes of A, a line of the cache."""
        return LINE // (8 * A_WORDS * self.groups)

    @property
    def sum_words(self) -> int:
        """Elements of 64 bits of a lane's part of the sum."""
        return SIDE // self.groups // 2

    @property
    def index_bits(self) -> int:
        """Bits of the index of a call: 1 per dense k."""
        return self.depth

    @property
    def integer(self) -> bool:
        """Whether sums are integers."""
        return self.shape.cd_type == "i32"

    @property
    def prefix(self) -> str:
        """What the names of its functions begin with."""
        return f"{LIBRARY}_{self.name}"

    def symbol(self, part: int) -> str:
        """The function that returns `part` of the sum."""
        return f"{self.prefix}_{part}"


def library(target: str) -> Path:
    """The library of a target that has sparse instructions."""
    return Path(__file__).parent / "libraries" / f"{isa_target(target)}.ll"


@cache
def sparse_product(target: str, a_type: str, b_type: str) -> SparseProduct | None:
    """The instruction with most depth for element types of the instruction table (`bf16`, `f16`,
    `fp8`, `bf8`, `i8`), summed in 32 bits; None where the target has none."""
    target = isa_target(target)
    shapes = {
        row.name: row.matrix
        for row in table.rows()
        if row.matrix is not None and target in row.mnemonics and row.matrix.sparse
    }
    fitting = {
        name: shape
        for name, shape in shapes.items()
        if shape.m == shape.n == SIDE
        and shape.cd_type in ("f32", "i32")
        and shape.a_type.replace("iu8", "i8") == a_type
        and shape.b_type.replace("iu8", "i8") == b_type
    }
    if not fitting:
        return None
    name = max(fitting, key=lambda name: fitting[name].k)
    lanes = capabilities(target).default_wave_size
    return SparseProduct(target, name, fitting[name], lanes // SIDE)
