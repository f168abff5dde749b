"""The files that a distribution is built from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.structure.sources import ROOT

REPOSITORY = ROOT.parent


def tracked(folder: str) -> set[str]:
    """The files of a folder that git knows, those that are not committed yet included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", folder]
    listing = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return {name for name in listing.stdout.splitlines() if (REPOSITORY / name).is_file()}


def copy_sources(folder: Path) -> None:
    """Copy what wheel and sdist are built from."""
    for name in tracked("."):
        if name.startswith("wavecast/") or "/" not in name:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, target)
