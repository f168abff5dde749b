"""The key of the installed Triton, which its cache of kernels depends on.

Triton makes it from the content of its files, among them its compiler of half a gigabyte, in every
process. Here it is made once per installation: Wavecast's cache has it under the paths, sizes and
times of those files.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from wavecast.compile.cache import DiskCache
from wavecast.compile.digest import digest, key
from wavecast.runtimes.patching import Patches


def install(patches: Patches) -> None:
    """Take Triton's key from the cache until `patches` are undone."""
    from triton.runtime import cache

    original = cache.triton_key
    folder = Path(cache.__file__).parents[1]
    patches.attribute(cache, "triton_key", functools.cache(lambda: stored_key(original, folder)))


def stored_key(make: Callable[[], str], folder: Path) -> str:
    """The result of `make` for the installation in `folder`, from the cache where it is there."""
    store = DiskCache()
    entry = key("triton", list(_files(str(folder))))
    hit = store.get(entry)
    if isinstance(hit, str):
        return hit
    result = make()
    store.put(entry, result)
    return result


@functools.cache
def identity(package: str = "triton") -> str:
    """A digest of an installed package's files by path, size and time, without importing it; ""
    where there is none."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    return digest(list(_files(str(Path(spec.origin).parent))))


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Path, bytes and time of change of every file of an installation, but compiled Python."""
    for item in sorted(os.scandir(folder), key=lambda item: item.name):
        if item.is_dir():
            if item.name != "__pycache__":
                yield from _files(item.path)
        else:
            status = item.stat()
            yield item.path, status.st_size, status.st_mtime_ns


__all__ = ["identity", "install", "stored_key"]
