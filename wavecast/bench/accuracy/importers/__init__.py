"""Formats of other projects, brought into the columns of the data sets of their kind."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

BY_COLUMNS: tuple[tuple[frozenset[str], str, str], ...] = (
    (frozenset({"token", "model_dim", "inter_dim", "expert", "topk", "us"}), "aiter", "moe"),
    (frozenset({"M", "N", "K", "us", "cu_num"}), "aiter", "gemm"),
)
"""CSV files: columns they have, module of this package, function (frame, path) -> frame."""

BY_NAME: tuple[tuple[str, str, str], ...] = (
    (".fdb.txt", "miopen", "find_db"),
    (".ufdb.txt", "miopen", "find_db"),
    (".yaml", "tensile", "logic"),
    (".yml", "tensile", "logic"),
)
"""Other files: how their names end, module of this package, function (path) -> frame."""


def of_columns(columns: Collection[Any]) -> Callable[[pd.DataFrame, Path], pd.DataFrame] | None:
    """What brings a CSV file with these columns into known ones, None when it has those already."""
    has = {str(column) for column in columns}
    for needed, module, function in BY_COLUMNS:
        if needed <= has:
            return _load(module, function)
    return None


def of_name(name: str) -> Callable[[Path], pd.DataFrame] | None:
    """What reads a file with this name in lower case, None when nothing does."""
    for ending, module, function in BY_NAME:
        if name.endswith(ending):
            return _load(module, function)
    return None


def _load(module: str, function: str) -> Callable[..., pd.DataFrame]:
    return getattr(import_module(f"{__name__}.{module}"), function)
