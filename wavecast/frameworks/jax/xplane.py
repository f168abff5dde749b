"""Profiles of JAX and XLA (`*.xplane.pb`), read by JAX."""

# pyright: reportMissingImports=false
# JAX is optional.

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wavecast import files
from wavecast.errors import InputError, MissingTool
from wavecast.extras import install_hint


def planes(path: Path) -> Iterable[Any]:
    """The planes of a profile as `jax.profiler.ProfileData` has them: one per device and kind of
    host events, with lines of events.

    Raises MissingTool without JAX, InputError for a file that it cannot read.
    """
    try:
        from jax.profiler import ProfileData
    except ImportError:
        raise MissingTool(
            "JAX reads these profiles, and it is not installed",
            hint=f"{install_hint('jax')}, or give the .trace.json.gz next to the file",
        ) from None
    if path.stat().st_size > files.LARGEST:
        raise InputError(f"{path}: it has more than {files.LARGEST >> 30} GiB")
    try:
        return ProfileData.from_serialized_xspace(path.read_bytes()).planes
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(f"{path}: not a profile of XLA, or it ends early: {error}") from None


__all__ = ["planes"]
