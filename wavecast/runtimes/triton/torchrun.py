"""`torchrun` as a description of ranks: its arguments, read by its own parser."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wavecast.errors import InputError, MissingTool, UsageError
from wavecast.extras import hint_for

NAME: Final = "torchrun"
_OPEN: Final = ("auto", "gpu", "cpu")
"""What its number of ranks may be instead of a number."""


@dataclass(frozen=True, slots=True)
class RankedScript:
    """The script at `path` with its `arguments`, once for each of `ranks` on one node."""

    path: Path
    arguments: tuple[str, ...]
    ranks: int


def read_torchrun(arguments: Sequence[str], gpus: int) -> RankedScript:
    """What `torchrun` with `arguments` starts; `gpus` are as many ranks as it may leave open (1:
    unknown).

    Raises UsageError for arguments that it does not take, and for several nodes; InputError for a
    module that does not exist; MissingTool without PyTorch.
    """
    try:
        from torch.distributed import run as launcher
    except ImportError as error:
        hint = hint_for("torch")
        raise MissingTool(f"{NAME} is a program of PyTorch: {error}", hint=hint) from None
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            stated = launcher.parse_args(list(arguments))
    except SystemExit as end:
        if not end.code:
            raise
        raise UsageError(f"{NAME}: {errors.getvalue().strip().rpartition('error: ')[2]}") from None
    if stated.nnodes not in ("1", "1:1"):
        raise UsageError(f"{NAME}: --nnodes {stated.nnodes}: one node is emulated")
    if stated.no_python:
        raise UsageError(f"{NAME}: --no-python: only Python scripts can be emulated as ranks")
    text = str(stated.nproc_per_node)
    if not text.isdecimal() and text not in _OPEN:
        raise UsageError(f"{NAME}: --nproc-per-node {text} is not a number")
    ranks = int(text) if text.isdecimal() else gpus
    if text.isdecimal() and ranks < 2:
        raise UsageError(
            f"{NAME}: --nproc-per-node {text}: process groups are emulated from two ranks on",
            hint="run the script without torchrun",
        )
    if not text.isdecimal() and gpus == 1:
        raise UsageError(f"{NAME}: --nproc-per-node {text} needs --gpus N")
    if gpus not in (1, ranks):
        raise UsageError(f"{NAME}: --nproc-per-node {text} is not --gpus {gpus}")
    script = stated.training_script
    path = _module(script) if stated.module else Path(script)
    return RankedScript(path, tuple(stated.training_script_args), ranks)


def _module(name: str) -> Path:
    """The file of a module. Raises InputError."""
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None:
        raise InputError(f"{NAME}: no such module: {name}")
    return Path(spec.origin)


__all__ = ["NAME", "RankedScript", "read_torchrun"]
