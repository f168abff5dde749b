"""`wavecast.api.cache`: what compiled results are kept, and how to clear them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.api.result import ShownResult
from wavecast.compile.cache import KINDS, CacheEntry, DiskCache
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import Numbers, OneOf
from wavecast.wording import count

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class CacheClearOptions(Options):
    """Which entries are deleted."""

    kind: str | None = option(
        None, "Only entries of this kind (see `show`).", values=OneOf(tuple(sorted(KINDS)))
    )
    older_than: float = option(
        0.0,
        "Only entries not used for this many days.",
        values=Numbers(0),
        metavar="DAYS",
        default_text="",
    )


@dataclass(frozen=True, slots=True, repr=False)
class CacheContents(ShownResult):
    """The folder of the cache, and its entries."""

    root: Path
    entries: Sequence[CacheEntry]

    def to_dict(self) -> dict[str, Any]:
        kinds = {
            kind: {"entries": len(entries), "bytes": sum(entry.bytes for entry in entries)}
            for kind, entries in self._by_kind().items()
        }
        return {"root": str(self.root), "kinds": kinds}

    def render(self, console: Console) -> None:
        for line in self._lines():
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    def subject(self) -> str:
        return str(self.root)

    def _by_kind(self) -> dict[str, list[CacheEntry]]:
        kinds: dict[str, list[CacheEntry]] = {}
        for entry in sorted(self.entries, key=lambda entry: entry.kind):
            kinds.setdefault(entry.kind, []).append(entry)
        return kinds

    def _lines(self) -> list[str]:
        kinds = self._by_kind()
        if not kinds:
            return [f"cache: {self.root}", "no entries"]
        width = max(len("kind"), *map(len, kinds))
        head = f"{'kind':<{width}}  {'entries':>7}  {'size':>10}  last used"
        rows = [*kinds.items(), ("total", self.entries)]
        lines = [f"{kind:<{width}}  {_row(entries)}" for kind, entries in rows]
        return [f"cache: {self.root}", head, *lines]


@dataclass(frozen=True, slots=True, repr=False)
class ClearedCache(ShownResult):
    """The entries that were deleted."""

    entries: Sequence[CacheEntry]

    def to_dict(self) -> dict[str, Any]:
        return {"entries": len(self.entries), "bytes": sum(entry.bytes for entry in self.entries)}

    def render(self, console: Console) -> None:
        console.print(self.subject(), markup=False, highlight=False, soft_wrap=True)

    def subject(self) -> str:
        from wavecast.report.kit.units import size

        total = size(sum(entry.bytes for entry in self.entries))
        return f"removed {count(len(self.entries), 'entry', 'entries')}, {total}"


def show(*, progress: Progress = silent) -> CacheContents:  # noqa: ARG001
    """The entries of the cache of compiled kernels: it is in $WAVECAST_CACHE_DIR, else
    $XDG_CACHE_HOME/wavecast, else ~/.cache/wavecast."""
    cache = DiskCache()
    return CacheContents(cache.root, [*cache.entries()])


def clear(
    *,
    progress: Progress = silent,  # noqa: ARG001
    **options: Any,
) -> ClearedCache:
    """Delete entries. `options` are those of `CacheClearOptions`. Files that wavecast did not write
    are never deleted."""
    stated = CacheClearOptions.of(options)
    return ClearedCache(DiskCache().clear(stated.kind or "", stated.older_than))


def _row(entries: Sequence[CacheEntry]) -> str:
    from wavecast.report.kit.units import size

    used = [time.strftime("%Y-%m-%d", time.localtime(entry.used)) for entry in entries]
    span = min(used) if min(used) == max(used) else f"{min(used)} to {max(used)}"
    return f"{len(entries):>7}  {size(sum(entry.bytes for entry in entries)):>10}  {span}"


__all__ = ["CacheClearOptions", "CacheContents", "ClearedCache", "clear", "show"]
