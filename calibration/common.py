"""What the commands share: a robust search for coefficients, scores, and writing the table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from wavecast.perfmodel import coefficients

FOLDER = Path(coefficients.__file__).parent


def bounded(ratio: np.ndarray) -> np.ndarray:
    """|log ratio|, smooth at zero and at most 1.5: near a median, and outliers count no more."""
    return np.sqrt(np.minimum(np.abs(ratio), 1.5) ** 2 + 0.01)


def coordinate_search(
    loss: Callable[[Mapping[str, float]], float],
    start: Mapping[str, float],
    names: Sequence[str],
    rounds: int,
    step: float = 1.3,
    most: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Positive coefficients that make `loss` small, each in turn by factors that get smaller.

    `most` is the largest value a coefficient may have.
    """
    known, least = dict(start), loss(start)
    for _ in range(rounds):
        for name in names:
            for factor in (step, 1 / step):
                while True:
                    value = min(known[name] * factor, (most or {}).get(name, math.inf))
                    if value == known[name]:
                        break
                    trial = {**known, name: value}
                    value = loss(trial)
                    if value >= least - 1e-5:
                        break
                    known, least = trial, value
        step = step**0.5
    return known


def scores(ratio: np.ndarray) -> str:
    """Error of predictions over measurements: median, p90, bias, spread."""
    error, log = np.abs(ratio - 1), np.log(ratio)
    return (
        f"n {len(ratio)}, median {np.median(error):.1%}, p90 {np.quantile(error, 0.9):.0%}, "
        f"bias {np.median(log):+.1%}, spread {np.std(log / np.log(2)):.2f}"
    )


def resolved(known: Mapping[str, float], scopes: Sequence[str]) -> dict[str, float]:
    """Values by name, of `name` and `name@scope`: the later scope wins."""
    found = {name: value for name, value in known.items() if "@" not in name}
    for scope in scopes:
        for name, value in known.items():
            if name.endswith(f"@{scope}"):
                found[name.partition("@")[0]] = value
    return found


def starting(family: str) -> dict[str, float]:
    """The values of the table now: `name`, and `name@scope` for other scopes than default."""
    return {
        name if scope == "default" else f"{name}@{scope}": value
        for name, row in coefficients.family(family).items()
        for scope, value in row.values.items()
    }


def write(family: str, known: Mapping[str, float], folder: Path = FOLDER) -> None:
    """Set the values of `name` and `name@scope` in a family's file, whose rows exist."""
    path = folder / f"{family}.toml"
    head, *rows = re.split(r"(?m)^(?=\[)", path.read_text(encoding="utf-8"))
    names = [row[1 : row.index("]")] for row in rows]
    for key, value in known.items():
        name, _, scope = key.partition("@")
        number = names.index(name)
        key = f'"{scope}"' if "." in scope else scope or "default"
        lines = rows[number].rstrip().splitlines()
        lines = [line for line in lines if not line.startswith(f"{key} =")]
        rows[number] = "\n".join([*lines, f"{key} = {value:.3g}"]) + "\n\n"
    path.write_text(head + "".join(rows).rstrip() + "\n", encoding="utf-8")


__all__ = ["bounded", "coordinate_search", "resolved", "scores", "starting", "write"]
