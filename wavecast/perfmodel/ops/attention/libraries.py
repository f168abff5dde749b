"""The libraries whose attention is modelled: which kernel each runs, and how it works.

`libraries.toml` has the facts of their code and where each is from. `coefficients/attention.toml`
has the costs: `vector_<kernel>_<direction>` of a kernel that was measured, `vector_<schedule>_
<direction>` of the others.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from wavecast.errors import UnknownName
from wavecast.perfmodel.ops.attention.sizes import AttentionSizes

Schedule = Literal["interleaved", "independent", "serial", "asynchronous"]
BEST = "best"
"""Library name of the fastest fused library a device has."""
MASKED = "sdpa_masked"
"""Choice whose mask is a tensor, which kernels read with the scores."""
TRAINING, SERVING = "sdpa", "vllm"
"""Choices that are the default for tile kernels, and for decoding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A tile kernel, and the sizes it is for; `libraries.toml` has the meaning of every field."""

    kernel: str
    rows: int
    columns: int
    mask: int
    schedule: Schedule
    heads: tuple[tuple[int, int], ...] = ()
    most_head: int = 0
    equal_heads: bool = False
    dtypes: tuple[str, ...] = ()
    generations: tuple[str, ...] = ()
    causal: bool | None = None
    longest: int = 0
    most_queries: int = 0
    grouped: bool | None = None
    ascending: bool = False
    lockstep: bool = False
    resident: int = 1
    counter: bool = False
    products: int = 5
    warp_level: bool = False
    lds_bytes: float = 0.0
    mask_operations: float = 0.0
    setup_clocks: float = 0.0
    waves: int = 0
    loads: int = 2
    exchanges: int = 2
    mask_tensor: bool = False
    assumed: bool = False
    widths: tuple[int, ...] = ()

    def fits(self, sizes: AttentionSizes, generation: str) -> bool:
        """Whether the library runs this kernel for these sizes."""
        return (
            (not self.heads or (sizes.head, sizes.head_v) in self.heads)
            and (not self.most_head or max(sizes.head, sizes.head_v) <= self.most_head)
            and (not self.dtypes or sizes.dtype in self.dtypes)
            and (not self.generations or generation in self.generations)
            and (self.causal is None or self.causal == sizes.causal)
            and (not self.longest or max(sizes.longest) <= self.longest)
            and (not self.most_queries or sizes.longest[0] <= self.most_queries)
            and (self.grouped is None or self.grouped == (sizes.group > 1))
        )

    def padded_elements(self, sizes: AttentionSizes) -> tuple[int, int]:
        """Elements of a key and of a value that the kernel computes with."""
        head, head_v = sizes.head, sizes.head_v
        if self.equal_heads:
            head = head_v = max(head, head_v)
        return self._width(head), self._width(head_v)

    def _width(self, elements: int) -> int:
        return next((width for width in self.widths if width >= elements), -(-elements // 16) * 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library. `generations` it has kernels for; empty: all. `caller` is whose function calls its
    kernels: `call_<caller>_<direction>` in the table."""

    name: str
    about: str
    source: str
    aliases: tuple[str, ...] = ()
    generations: tuple[str, ...] = ()
    fused: bool = True
    widened: bool = False
    caller: str = "python"
    falls_back: str = ""
    split_keys: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    forward: tuple[Tile, ...] = ()
    backward: tuple[Tile, ...] = ()

    def runs_on(self, generation: str) -> bool:
        """Whether it has kernels for a generation of chips."""
        return not self.generations or generation in self.generations

    def tile(self, sizes: AttentionSizes, generation: str, *, backward: bool) -> Tile | None:
        """The tile kernel it runs for these sizes, its own or that of `falls_back`; None where
        there is none."""
        if sizes.latent:
            return None
        rows = self.backward if backward else self.forward
        tile = next((row for row in rows if row.fits(sizes, generation)), None)
        other = libraries().get(self.falls_back)
        if tile is None and other and other.runs_on(generation):
            return other.tile(sizes, generation, backward=backward)
        return tile


@dataclass(frozen=True, slots=True)
class LibraryChoice:
    """What a program runs on each generation of chips, in the order in which it tries them."""

    name: str
    about: str
    source: str
    libraries: Mapping[str, tuple[str, ...]]


@cache
def libraries() -> Mapping[str, Library]:
    """All libraries by name."""
    return {name: _library(name, row) for name, row in _table()["libraries"].items()}


@cache
def choices() -> Mapping[str, LibraryChoice]:
    """What programs run, by the name of the program."""
    programs = {}
    for name, row in _table()["choices"].items():
        row = dict(row)
        about, source = row.pop("about"), row.pop("source")
        programs[name] = LibraryChoice(
            name, about, source, {key: tuple(v) for key, v in row.items()}
        )
    return programs


def resolve_libraries(name: str, generation: str) -> tuple[Library, ...]:
    """The libraries a name stands for on a generation of chips, in the order they are tried.

    A name is that of a library, an alias of one, several of these by commas, a choice (`sdpa`,
    `vllm`), or `best`: all fused libraries. Raises UnknownName.
    """
    if "," in name:
        return tuple(
            library for part in name.split(",") for library in resolve_libraries(part, generation)
        )
    by_name = libraries()
    if name == BEST:
        return tuple(library for library in by_name.values() if library.fused)
    if name in choices():
        return tuple(
            by_name[library_name] for library_name in choices()[name].libraries.get(generation, ())
        )
    match = by_name.get(name) or next(
        (row for row in by_name.values() if name in row.aliases), None
    )
    if match is None:
        raise UnknownName("attention library", name, names())
    return (match,)


def names() -> tuple[str, ...]:
    """Every name a user can give, without aliases."""
    return (*libraries(), *choices(), BEST)


def _library(name: str, row: Mapping[str, Any]) -> Library:
    fields: dict[str, Any] = {key: _frozen(v) for key, v in row.items() if key not in _DIRECTIONS}
    fields |= {key: tuple(map(_tile, row.get(key, ()))) for key in _DIRECTIONS}
    return Library(name=name, **fields)


def _tile(row: Mapping[str, Any]) -> Tile:
    return Tile(**{key: _frozen(value) for key, value in row.items()})


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@cache
def _table() -> Mapping[str, Any]:
    path = resources.files("wavecast.perfmodel.ops.attention") / "libraries.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


_DIRECTIONS = ("forward", "backward")

__all__ = [
    "BEST",
    "MASKED",
    "SERVING",
    "TRAINING",
    "Library",
    "LibraryChoice",
    "Schedule",
    "Tile",
    "choices",
    "libraries",
    "names",
    "resolve_libraries",
]
