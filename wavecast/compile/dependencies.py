"""The headers that a compilation has read: its cached result is valid while all are unchanged."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from wavecast import files
from wavecast.compile.cache import DiskCache
from wavecast.errors import InputError

_DEPENDENCY = re.compile(r"(?:\\.|[^\s\\])+")


def read_by(dependency_file: Path, source: Path) -> dict[str, str]:
    """path -> digest of every header that was read, from the compiler's dependency file. Raises
    InputError for one that is not a file."""
    text = dependency_file.read_text(encoding="utf-8") if dependency_file.is_file() else ""
    text = text.replace("\\\n", " ").partition(": ")[2]
    paths = {re.sub(r"\\(.)", r"\1", word) for word in _DEPENDENCY.findall(text)}
    paths.discard(str(source))
    try:
        return {path: hashlib.sha256(files.read(path)).hexdigest() for path in sorted(paths)}
    except InputError as error:
        raise InputError(f"{source} includes {error.message}", hint=error.hint) from None


def lookup(cache: DiskCache, entry: str) -> dict[str, str | bytes] | None:
    """The stages of an earlier compilation whose headers are all unchanged."""
    value: Any = cache.get(entry)
    if not isinstance(value, dict) or value.keys() != {"stages", "dependencies"}:
        return None
    for path, header_digest in value["dependencies"].items():
        if _file_digest(path) != header_digest:
            return None
    return value["stages"]


def store(
    cache: DiskCache, entry: str, stages: dict[str, str | bytes], dependencies: dict[str, str]
) -> None:
    """Keep the stages of a compilation for `cached`."""
    cache.put(entry, {"stages": stages, "dependencies": dependencies})


def _file_digest(path: str) -> str:
    """The digest of a header as it is now; "" where it cannot be read."""
    try:
        return hashlib.sha256(files.read(path)).hexdigest()
    except InputError:
        return ""


__all__ = ["lookup", "read_by", "store"]
