"""A file as it is at a commit: a temporary Git worktree, removed afterwards.

The user's checkout is only read. Git's hooks do not run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wavecast.errors import InputError, MissingTool


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit checked out in `root`; `path` is the file in it, `top` the user's own checkout."""

    revision: str
    commit: str
    root: Path
    path: Path
    top: Path

    @property
    def label(self) -> str:
        """`main (1a2b3c4d5e)`, or only the beginning of the commit where that was asked for."""
        short = self.commit[:10]
        return short if self.commit.startswith(self.revision) else f"{self.revision} ({short})"

    def import_path(self) -> list[str]:
        """The folders of packages of the user's checkout, as they are in this one. Not the one
        wavecast itself runs from."""
        wavecast_root = Path(__file__).resolve().parents[3]
        folders = []
        for entry in sys.path:
            folder = Path(entry).resolve()
            if not entry or folder == wavecast_root or not folder.is_relative_to(self.top):
                continue
            if _has_code(folder):
                own_folder = self.root / folder.relative_to(self.top)
                if own_folder.is_dir():
                    folders.append(str(own_folder))
        return list(dict.fromkeys(folders))

    def check_sources(self, files: Iterable[str]) -> None:
        """Refuse code that comes from the user's checkout. Raises InputError."""
        outside = sorted({file for file in files if self._outside(file)})
        if not outside:
            return
        tracked = _git(self.top, "ls-files", "--", *outside).stdout.splitlines()
        if tracked:
            raise InputError(
                f"{tracked[0]} was imported from the checkout, not from {self.revision}",
                hint="an editable installation points there; import it from the script's folder",
            )

    def _outside(self, file: str) -> bool:
        source = Path(file)
        if not source.is_absolute():
            return False
        source = source.resolve()
        return source.is_relative_to(self.top) and not source.is_relative_to(self.root)


@contextmanager
def checked_out(path: Path, revision: str) -> Iterator[Checkout]:
    """`path` at `revision` in a temporary worktree.

    Raises InputError for a file outside of Git, an unknown revision, or a file not in it.
    """
    file = path.resolve()
    folder = next(parent for parent in file.parents if parent.is_dir())
    toplevel = _git(folder, "rev-parse", "--show-toplevel")
    if toplevel.returncode:
        raise InputError(f"{path} is not in a Git checkout")
    top = Path(toplevel.stdout.rstrip("\n")).resolve()
    rev_parse = _git(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if rev_parse.returncode:
        raise InputError(f"{revision!r} is not a commit of {top}")
    commit = rev_parse.stdout.strip()
    root = Path(tempfile.mkdtemp(prefix="wavecast-commit-")).resolve()
    try:
        worktree = _git(top, "worktree", "add", "--detach", "--force", str(root), commit)
        if worktree.returncode:
            raise InputError(f"cannot check out {revision}: {worktree.stderr.strip()}")
        there = root / file.relative_to(top)
        if not there.is_file():
            raise InputError(f"{file.relative_to(top)} is not in {revision}")
        yield Checkout(revision, commit, root, there, top)
    finally:
        _git(top, "worktree", "remove", "--force", "--force", str(root))
        shutil.rmtree(root, ignore_errors=True)


def _has_code(folder: Path) -> bool:
    """A folder of the project's own packages, not of installed ones."""
    return not {"site-packages", "dist-packages"} & set(folder.parts)


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise MissingTool("git is not installed", hint="--commit needs it") from None


__all__ = ["Checkout", "checked_out"]
