"""Finished results, and the journal they are kept in: one JSON line each, on disk when written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from wavecast.errors import InputError
from wavecast.kernels.configuration import Configuration


@dataclass(frozen=True, slots=True)
class Problem:
    """One autotuned kernel for one class of arguments on one device.

    `key` are the values of the autotuner's key by name, `arguments` what the compiler specialises
    on, `source` names the kernel's text, `compiler` is as `triton 3.9.0`.
    """

    kernel: str
    key: Mapping[str, Any]
    arguments: Mapping[str, str]
    source: str
    target: str
    device: str
    compiler: str

    @property
    def identity(self) -> str:
        """Equal for equal problems."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Result:
    """What one configuration gives. Times in seconds, None where `reason` says why; `low` and
    `high` as in `Prediction`; `registers` and `spills` per lane, `lds_bytes` per workgroup, `waves`
    resident per SIMD, None for code that was not made."""

    configuration: Configuration
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    limiter: str = ""
    fidelity: str = ""
    registers: int | None = None
    spills: int | None = None
    lds_bytes: int | None = None
    waves: float | None = None
    matrix: bool = False
    reason: str = ""

    @property
    def rank(self) -> tuple[bool, float]:
        """Order of results: what was simulated before what is only estimated, then by time."""
        return self.fidelity != "executed", self.seconds or float("inf")

    def to_json(self) -> dict[str, Any]:
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "configuration"}
        return {"configuration": self.configuration.settings, **found}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Result:
        rest = {name: value for name, value in document.items() if name != "configuration"}
        return Result(Configuration.of(document["configuration"]), **rest)


class Journal:
    """Appends results to a file. What `add` has returned from survives any end of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._repair()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def add(self, problem: Problem, result: Result) -> None:
        """Write one result."""
        line = json.dumps({"problem": asdict(problem), "result": result.to_json()}) + "\n"
        data = line.encode()
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)

    def _repair(self) -> None:
        """Cut off a line that was not finished, or the next one would continue it."""
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)


def read(path: Path) -> Iterator[tuple[Problem, Result]]:
    """The results in a journal, in order; a last line that was not finished is passed over.

    Raises InputError for a file that is no journal.
    """
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], 1):
        try:
            document = json.loads(line)
            yield Problem(**document["problem"]), Result.from_json(document["result"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}:{number}: no journal of wavecast tune ({error})") from None


__all__ = ["Journal", "Problem", "Result", "read"]
