"""What the run of a script depended on, and whether all of it is as it was.

`RunDependencies` are plain values. A path has a state: the digest of a file, `folder`, or "" where
there is nothing; a large file and an installed one have their size and time instead. A folder that
the script listed has its names. Of the folders that modules are imported from only the names count
that an import asked for: another file there changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sysconfig
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

FOLDER: Final = "folder"
_LARGE: Final = 16 << 20
"""Bytes from which a file is known by its size and time."""


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """`paths` and `installed` map absolute paths to states, `listed` folders to digests of their
    names, `imported` folders to those of their names that are among `modules`."""

    paths: Mapping[str, str]
    installed: Mapping[str, str]
    listed: Mapping[str, str]
    imported: Mapping[str, Sequence[str]]
    modules: Collection[str]

    def is_unchanged(self) -> bool:
        """Whether everything is as it was when this was made."""
        modules = frozenset(self.modules)
        return (
            all(state(path) == stamp for path, stamp in self.paths.items())
            and all(size_and_time(path) == stamp for path, stamp in self.installed.items())
            and all(listing(path) == names for path, names in self.listed.items())
            and all(
                importable(path, modules) == tuple(names) for path, names in self.imported.items()
            )
        )

    def pack(self) -> dict[str, Any]:
        """Values that a cache stores."""
        return {
            "paths": dict(self.paths),
            "installed": dict(self.installed),
            "listed": dict(self.listed),
            "imported": dict(self.imported),
            "modules": sorted(self.modules),
        }

    @classmethod
    def unpack(cls, values: object) -> RunDependencies:
        """What `packed` gave. Raises TypeError for anything else."""
        return cls(**cast("dict[str, Any]", values))


def merge_dependencies(several: Sequence[RunDependencies]) -> RunDependencies | None:
    """What several runs of a script depended on; None where a path changed between them."""
    paths: dict[str, str] = {}
    installed: dict[str, str] = {}
    listings: dict[str, str] = {}
    for run in several:
        for all_of_them, some in (
            (paths, run.paths),
            (installed, run.installed),
            (listings, run.listed),
        ):
            for path, stamp in some.items():
                if all_of_them.setdefault(path, stamp) != stamp:
                    return None
    modules = frozenset[str]().union(*(run.modules for run in several))
    folders = {folder for run in several for folder in run.imported}
    imported = {folder: importable(folder, modules) for folder in folders}
    return RunDependencies(paths, installed, listings, imported, modules)


def state(path: str) -> str:
    """The state of a path."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return FOLDER
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGE:
            return f"{status.st_size} {status.st_mtime_ns}"
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""


def size_and_time(path: str) -> str:
    """The state of a file of an installed package."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"


def listing(path: str) -> str:
    """A digest of the names in a folder, "" for none."""
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return ""
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()


def importable(path: str, modules: Collection[str]) -> tuple[str, ...]:
    """The entries of a folder that importing one of `modules` would find."""
    try:
        names = os.listdir(path)
    except OSError:
        return ()
    return tuple(sorted(name for name in names if name.partition(".")[0] in modules))


def package_folders() -> tuple[str, ...]:
    """The folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(dict.fromkeys(os.path.realpath(paths[name]) for name in names))


def lies_in(path: str, folders: Sequence[str]) -> bool:
    """Whether a path is one of `folders` or below it."""
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)


__all__ = [
    "FOLDER",
    "RunDependencies",
    "importable",
    "lies_in",
    "listing",
    "merge_dependencies",
    "package_folders",
    "size_and_time",
    "state",
]
