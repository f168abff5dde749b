"""A prediction as plain dicts, and the order and words every view shows it in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wavecast.report import source
from wavecast.report.entry_values import number, plain

if TYPE_CHECKING:
    from wavecast.compile.codeobject import CodeObject
    from wavecast.model.prediction import Prediction, Share

KINDS = ("top-down", "stall", "line", "ir")
"""Kinds of shares, in the order in which views show them."""


def entry(prediction: Prediction | None) -> dict[str, Any] | None:
    """The document's `prediction`, null where there is none."""
    if prediction is None:
        return None
    return {
        "seconds": number(prediction.seconds),
        "low": number(prediction.low),
        "high": number(prediction.high),
        "limiter": prediction.limiter,
        "fidelity": prediction.fidelity,
        "bounds": {name: number(value) for name, value in prediction.bounds.items()},
        "assumed": plain(dict(prediction.assumed)),
        "lines": [
            {"kind": share.kind, "name": share.name, "seconds": number(share.seconds)}
            for kind in KINDS
            for share in shares(prediction, kind)
        ],
        "what_if": [
            {
                "change": change.change,
                "seconds": number(change.seconds),
                "gain": number(change.gain),
            }
            for change in prediction.what_if
        ],
        "not_modelled": list(prediction.not_modelled),
        "notes": list(prediction.notes),
    }


def shares(prediction: Prediction, kind: str) -> list[Share]:
    """The shares of a kind, the largest first."""
    found = [share for share in prediction.lines if share.kind == kind]
    return sorted(found, key=lambda share: -share.seconds)


def place(share: Share) -> tuple[str, int] | None:
    """File and line of a share of a source line; None for one that is none."""
    file, _, line = share.name.rpartition(":")
    return (file, int(line)) if share.kind == "line" and file and line.isdigit() else None


def text(share: Share, code: CodeObject) -> str:
    """The source text of a line's share, "" where it cannot be had."""
    found = place(share)
    return "" if found is None else source.line_text(code, *found).strip()


def short(share: Share) -> str:
    """A line's share as `line 61`, others by their name."""
    found = place(share)
    return share.name if found is None else f"line {found[1]}"


__all__ = ["KINDS", "entry", "place", "shares", "short", "text"]
