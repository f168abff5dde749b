"""A prediction as JSON, and the order and words every view shows it in."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from wavecast.documents.prediction import (
    PartKind,
    PredictionJson,
    TimePartJson,
)
from wavecast.json_objects import plain
from wavecast.report.explain import source

if TYPE_CHECKING:
    from wavecast.compile.codeobject import CodeObject
    from wavecast.perfmodel.prediction import Prediction, Share

KINDS: tuple[str, ...] = get_args(PartKind)
"""Kinds of shares, in the order in which views show them."""


def entry(prediction: Prediction | None) -> PredictionJson | None:
    """The documents' `prediction`, None where there is none."""
    if prediction is None:
        return None
    return PredictionJson.of(
        prediction,
        assumed=plain(dict(prediction.assumed)),
        lines=[TimePartJson.of(share) for kind in KINDS for share in shares(prediction, kind)],
        what_if=list(prediction.what_if),
    )


def shares(prediction: Prediction, kind: str) -> list[Share]:
    """The shares of a kind, the largest first."""
    of_kind = [share for share in prediction.lines if share.kind == kind]
    return sorted(of_kind, key=lambda share: -share.seconds)


def source_line(share: Share) -> tuple[str, int] | None:
    """File and line of a share of a source line; None for other shares."""
    file, _, line = share.name.rpartition(":")
    return (file, int(line)) if share.kind == "line" and file and line.isdigit() else None


def text(share: Share, code: CodeObject) -> str:
    """The source text of a line's share, "" where it cannot be had."""
    position = source_line(share)
    return "" if position is None else source.line_text(code, *position).strip()


def short(share: Share) -> str:
    """A line's share as `line 61`, others by their name."""
    position = source_line(share)
    return share.name if position is None else f"line {position[1]}"


__all__ = ["KINDS", "entry", "shares", "short", "source_line", "text"]
