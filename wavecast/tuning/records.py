"""Results, and the journal of results: one JSON line each, on disk as soon as it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from wavecast import files
from wavecast.compile.configuration import Configuration
from wavecast.errors import InputError
from wavecast.json_objects import checked_object


@dataclass(frozen=True, slots=True)
class TuningProblem:
    """One autotuned kernel for one class of arguments on one device.

    `key` is the autotuner's key (name -> value), `arguments` what the compiler specialises on,
    `source` a digest of the kernel's text, `compiler` its name and version (`triton 3.9.0`).
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
        """A string that is equal for equal problems."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one configuration.

    Times are in seconds, None with a `reason`; `low` and `high` are as in `Prediction`. `registers`
    and `spills` are per lane, `lds_bytes` per workgroup, `waves` resident per SIMD; they are None
    where there is no code.
    """

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
        """Sort key: simulated results before estimated ones, then by time."""
        return self.fidelity != "executed", self.seconds or float("inf")

    def to_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        document = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name != "configuration"
        }
        return {"configuration": self.configuration.settings, **document}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Result:
        """The result that `to_json` was called on. Raises KeyError, TypeError, ValueError."""
        configuration = Configuration.of(document["configuration"])
        hash(configuration)  # values that are lists or tables are none of a configuration
        return checked_object(Result, {**document, "configuration": configuration})


class Journal(files.AppendedLines):
    """A file of results, one per line."""

    def add(self, problem: TuningProblem, result: Result) -> None:
        """Append one result. Raises OSError when the disk is full."""
        self.append({"problem": asdict(problem), "result": result.to_json()})


def read(path: Path) -> Iterator[tuple[TuningProblem, Result]]:
    """The results of a journal, in order, without an unfinished last line.

    Raises InputError for a file that is not a journal.
    """
    for number, line in enumerate(files.read_text(path).split("\n")[:-1], 1):
        try:
            document = files.parse_json(line)
            yield (
                checked_object(TuningProblem, document["problem"]),
                Result.from_json(document["result"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}:{number}: not a journal of wavecast tune ({error})") from None


__all__ = ["Journal", "Result", "TuningProblem", "read"]
