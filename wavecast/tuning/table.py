"""Tables of tuned configurations, and their use in programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast import files
from wavecast.errors import InputError, UsageError
from wavecast.json_objects import checked_object, values
from wavecast.json_schema import name_of
from wavecast.tuning.document import (
    RefusedConfigurationJson,
    TunedConfigurationJson,
    TuneDocument,
    TunedProblemJson,
)
from wavecast.tuning.records import Result, TuningProblem

if TYPE_CHECKING:
    from wavecast.compile.configuration import Configuration

SCHEMA = name_of(TuneDocument)


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One problem: its results, the best first, and the refused configurations."""

    problem: TuningProblem
    results: tuple[Result, ...]
    refused: tuple[Result, ...]

    @property
    def best(self) -> Result | None:
        """The first result, None where nothing can run."""
        return self.results[0] if self.results else None


@dataclass(frozen=True, slots=True)
class TuningTable:
    """Entries in order of first appearance."""

    entries: tuple[TableEntry, ...]

    @staticmethod
    def of(pairs: Iterable[tuple[TuningProblem, Result]]) -> TuningTable:
        """A table of results, in order; the last result of a configuration counts."""
        problems: dict[str, TuningProblem] = {}
        results: dict[str, dict[Configuration, Result]] = {}
        for problem, result in pairs:
            problems.setdefault(problem.identity, problem)
            results.setdefault(problem.identity, {})[result.configuration] = result
        return TuningTable(
            tuple(_entry(problem, results[key].values()) for key, problem in problems.items())
        )

    def to_json(self) -> dict[str, Any]:
        """The table as JSON values, schema `wavecast.tune/1`."""
        from wavecast.version import __version__

        return values(
            TuneDocument(wavecast=__version__, entries=[_document(entry) for entry in self.entries])
        )

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> TuningTable:
        """The table that `to_json` was called on. Raises KeyError, TypeError, ValueError."""
        entries = []
        for item in document["entries"]:
            rest = dict(item)
            ranked = [
                Result.from_json({k: v for k, v in row.items() if k != "rank"})
                for row in rest.pop("configurations")
            ]
            refusals = [Result.from_json(row) for row in rest.pop("refused")]
            entries.append(
                TableEntry(checked_object(TuningProblem, rest), tuple(ranked), tuple(refusals))
            )
        return TuningTable(tuple(entries))

    def find(self, kernel: Any, *args: Any, device: str = "", **kwargs: Any) -> TableEntry | None:
        """The entry of the call `kernel[grid](*args, **named)`, None if the table has none.

        The kernel's text, key, argument classes, target and Triton version must match. `device`
        names the GPU (default: the one Triton runs on). Raises UsageError if the table has several
        devices of the target and no `device` is given, UnknownName for an unknown device.
        """
        from wavecast.runtimes.triton import compat
        from wavecast.runtimes.triton.trials import describe_call

        target, name = _here(device)
        call = json.loads(json.dumps(asdict(describe_call(kernel, args, kwargs))))
        compiler = compat.compiler()
        matches = {}
        for entry in self.entries:
            problem = entry.problem
            if all(asdict(problem)[field] == value for field, value in call.items()) and (
                (problem.target, problem.compiler) == (target, compiler)
            ):
                matches[problem.device] = entry
        if name in matches:
            return matches[name]
        if len(matches) > 1:
            raise UsageError(
                f"the table has {kernel.base_fn.__name__} for {', '.join(matches)}",
                hint="choose one with device=",
            )
        return next(iter(matches.values()), None) if not device else None

    def best_config(self, kernel: Any, *args: Any, device: str = "", **kwargs: Any) -> Any:
        """The best `triton.Config` of an autotuned kernel for a call, None if the table has none.

        Raises the errors of `find`.
        """
        from wavecast.runtimes.triton.trials import make_config

        entry = self.find(kernel, *args, device=device, **kwargs)
        if entry is None or entry.best is None:
            return None
        return make_config(kernel, entry.best.configuration.settings)

    def tuned(self, kernel: Any, *, device: str = "") -> Any:
        """A decorator above `@triton.autotune`: configurations come from this table.

        Calls without an entry are autotuned. Raises UsageError for a kernel without
        `@triton.autotune`.
        """
        if not hasattr(kernel, "prune_configs"):
            raise UsageError("tuned() needs a kernel with @triton.autotune")
        before = kernel.early_config_prune

        def from_table(configs: list, arguments: Mapping[str, Any], **kwargs: Any) -> list:
            best = self.best_config(kernel, *arguments.values(), device=device, **kwargs)
            if best is not None:
                return [best]
            return before(configs, arguments, **kwargs) if before else configs

        kernel.early_config_prune = from_table
        if len(kernel.configs) == 1:  # Triton asks only where there is a choice
            kernel.configs = kernel.configs * 2
        return kernel


def load(path: str | Path) -> TuningTable:
    """The table in a file of `wavecast tune --output`. Raises InputError."""
    path = Path(path)
    try:
        document = files.parse_json(files.read(path))
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error})") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(f"{path} is not a table of wavecast tune ({SCHEMA})")
    try:
        return TuningTable.from_json(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is a damaged table ({error!r})") from None


def _entry(problem: TuningProblem, results: Iterable[Result]) -> TableEntry:
    rows = list(results)
    timed = sorted((r for r in rows if r.seconds is not None), key=lambda r: r.rank)
    return TableEntry(problem, tuple(timed), tuple(r for r in rows if r.seconds is None))


def _document(entry: TableEntry) -> TunedProblemJson:
    return TunedProblemJson.of(
        entry.problem,
        configurations=[
            TunedConfigurationJson.of(
                result, rank=rank, configuration=result.configuration.settings
            )
            for rank, result in enumerate(entry.results, 1)
        ],
        refused=[
            RefusedConfigurationJson(
                configuration=refusal.configuration.settings, reason=refusal.reason
            )
            for refusal in entry.refused
        ],
    )


def _here(device: str) -> tuple[str, str]:
    """The target and id of a device by name, or of the GPU that Triton runs on; the id is "" for a
    GPU that is not in the device files."""
    from wavecast import arch
    from wavecast.errors import UnknownName

    if device:
        gpu = arch.load(device)
        return gpu.target, gpu.id
    from wavecast.runtimes.triton.compat import active_device

    target, name = active_device()
    try:
        return target, arch.load(name).id
    except UnknownName:
        return target, ""


__all__ = ["SCHEMA", "TableEntry", "TuningTable", "load"]
