"""The libraries whose matrix products are modelled, and the configurations each can choose from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from wavecast.errors import UnknownName

LAYOUTS = ("plain", "preshuffled")
"""Layouts of B: as it is, or in the order in which lanes load it, past the LDS."""

Column = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels of one library: `tiles` are rows of A, columns of B, bytes of K per step.

    `usual`: the best library is looked for among these. `readers` is how many waves read a row of A
    and a column of B from the LDS (0: what a square of the workgroup's waves reads).
    `asynchronous`: copies to the LDS run ahead of the products, as many steps as it has space for,
    and pass no registers.
    """

    library: str
    dtypes: frozenset[str]
    scaling: frozenset[str]
    layouts: frozenset[str]
    generations: frozenset[str]
    splits: tuple[int, ...]
    usual: bool
    tiles: tuple[tuple[int, int, int], ...]
    readers: tuple[int, int] = (0, 0)
    asynchronous: bool = False

    def applies(self, dtype: str, scaling: str, layout: str, generation: str) -> bool:
        """Whether a chip of a generation runs them on operands like these."""
        return (
            dtype in self.dtypes
            and scaling in self.scaling
            and layout in self.layouts
            and bool({generation, "*"} & self.generations)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Configurations as columns: rows and columns of a tile, bytes of K per step, parts of K.

    `names` are the libraries, `library` the index of each configuration's in them; `readers` (a
    column per operand) and `asynchronous` as in `Kernels`.
    """

    rows: Column
    columns: Column
    depth: Column
    splits: Column
    library: Column
    names: tuple[str, ...]
    readers: tuple[Column, Column]
    asynchronous: Column

    def __len__(self) -> int:
        return len(self.rows)

    def per_library(self, values: Mapping[str, float], prefix: str) -> Column:
        """A coefficient of every configuration's library, `<prefix>_<library>`."""
        return np.array([values[f"{prefix}_{name}"] for name in self.names])[self.library]

    def filled(self, values: Mapping[str, float]) -> Column:
        """`filled` of the chip over that of the main loops of every configuration's library, where
        the library has its own (`filled_<name>`)."""
        usual = values["filled"]
        shares = [usual / values.get(f"filled_{name}", usual) for name in self.names]
        return np.array(shares)[self.library]


@cache
def candidates(
    dtype: str, scaling: str, layout: str, generation: str, library: str = ""
) -> Candidates | None:
    """What the library named, or the usual ones, can choose from; None where there is no kernel.

    Where a chip has none of the usual ones, every library counts. Rows that name the generation
    replace those of the same library for every one.
    """
    rows = [row for row in kernels() if row.applies(dtype, scaling, layout, generation)]
    native_libraries = {row.library for row in rows if generation in row.generations}
    rows = [
        row for row in rows if row.library not in native_libraries or generation in row.generations
    ]
    if library:
        rows = [row for row in rows if row.library == library]
    elif any(row.usual for row in rows):
        rows = [row for row in rows if row.usual]
    configurations = {
        (r.library, *tile, s, *r.readers, r.asynchronous): None
        for r in rows
        for tile in r.tiles
        for s in r.splits
    }
    return _columns(list(configurations)) if configurations else None


def fixed_configuration(
    library: str, tile: tuple[int, int, int], splits: int, generation: str
) -> Candidates:
    """The one configuration a caller states: rows, columns and bytes of K per step."""
    rows = [row for row in kernels() if row.library == library]
    kernel = next((row for row in rows if generation in row.generations), rows[0])
    return _columns([(library, *tile, splits, *kernel.readers, kernel.asynchronous)])


@cache
def kernels() -> tuple[Kernels, ...]:
    """All rows of `libraries.toml`."""
    path = resources.files("wavecast.perfmodel.ops.gemm") / "libraries.toml"
    text = path.read_text(encoding="utf-8")
    return tuple(
        Kernels(
            row["library"],
            frozenset(row["dtypes"]),
            frozenset(row["scaling"]),
            frozenset(row["layouts"]),
            frozenset(row["generations"]),
            tuple(row["splits"]),
            row["usual"],
            tuple(_tile(tile) for tile in row["tiles"].split()),
            tuple(row.get("readers", (0, 0))),
            row.get("asynchronous", False),
        )
        for row in tomllib.loads(text)["kernels"]
    )


def libraries() -> tuple[str, ...]:
    """The names of the libraries."""
    return tuple(sorted({row.library for row in kernels()}))


def check(library: str) -> None:
    """Raises UnknownName for a library that is not modelled."""
    if library not in libraries():
        raise UnknownName("GEMM library", library, libraries())


def _tile(text: str) -> tuple[int, int, int]:
    rows, columns, depth = (int(size) for size in text.split("x"))
    return rows, columns, depth


def _columns(configurations: list[tuple[Any, ...]]) -> Candidates:
    names = tuple(sorted({row[0] for row in configurations}))
    table = np.array([row[1:] for row in configurations], float).T
    rows, columns, depth, splits, of_a, of_b, asynchronous = table
    library = np.array([names.index(row[0]) for row in configurations])
    return Candidates(
        rows, columns, depth, splits, library, names, (of_a, of_b), asynchronous.astype(bool)
    )


__all__ = [
    "LAYOUTS",
    "Candidates",
    "candidates",
    "check",
    "fixed_configuration",
    "kernels",
    "libraries",
]
