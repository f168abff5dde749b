"""Golden files: values that tests found before, by key, in one JSON file for several tests.

`pytest --update-golden` rewrites the entries of the tests that run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest


class GoldenFile:
    """The golden file at `path`, which need not exist when it is updated."""

    def __init__(self, path: Path, config: pytest.Config) -> None:
        self.path = path
        self.update = bool(config.getoption("--update-golden"))

    def check(self, key: str, found: Any, relative: float) -> None:
        """Fails where `found`, a JSON value, differs from the golden value of `key`.

        Numbers that are floats may differ by `relative` of the golden value; anything else must be
        equal.
        """
        values = self.read()
        if self.update:
            values[key] = found
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False)
            self.path.write_text(text + "\n", encoding="utf-8")
            return
        assert key in values, f"{self.path.name} has no {key!r}: run pytest --update-golden"
        # the found value goes through JSON as the golden one did
        different = list(differences(values[key], json.loads(json.dumps(found)), relative, key))
        assert not different, "\n".join(
            [*different, "if that is intended: pytest --update-golden, and say why in the commit"]
        )

    def read(self) -> dict[str, Any]:
        """The golden values by key; none where the file is absent."""
        if not self.path.exists():
            return {}
        return json.loads(self.path.read_text(encoding="utf-8"))


def differences(golden: Any, found: Any, relative: float, where: str) -> Iterator[str]:
    """One line for every value that differs, with its path."""
    if isinstance(golden, Mapping) and isinstance(found, Mapping):
        for name in sorted({*golden, *found}):
            if name not in golden or name not in found:
                yield f"{where} {name}: {'unexpected' if name in found else 'missing'}"
            else:
                yield from differences(golden[name], found[name], relative, f"{where} {name}")
    elif _is_list(golden) and _is_list(found) and len(golden) == len(found):
        for index, (one, other) in enumerate(zip(golden, found, strict=True)):
            yield from differences(one, other, relative, f"{where}[{index}]")
    elif isinstance(golden, float) and isinstance(found, float):
        if not math.isclose(golden, found, rel_tol=relative, abs_tol=0.0):
            change = found / golden - 1 if golden else math.inf
            yield f"{where}: {found!r}, golden {golden!r} ({change:+.3%})"
    elif golden != found or type(golden) is not type(found):
        yield f"{where}: {found!r}, golden {golden!r}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
