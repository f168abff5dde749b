"""Which operators the modules of a plugin call for which layers, without the engine."""

from __future__ import annotations

import ast
from pathlib import Path

import wavecast

_FRAMEWORKS = Path(wavecast.__file__).parent / "frameworks"


def served_calls(engine: str) -> set[tuple[str, str]]:
    """Arguments (layer, operator) of every `serve` in the package of an engine."""
    found = set()
    for path in (_FRAMEWORKS / engine).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id="serve"),
                    args=[ast.Constant(value=str(layer)), ast.Constant(value=str(operator))],
                ):
                    found.add((layer, operator))
    return found
