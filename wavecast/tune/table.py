"""Tables of tuned configurations, and how programs use them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.errors import InputError, UsageError
from wavecast.tune.records import Problem, Result

if TYPE_CHECKING:
    from wavecast.kernels.configuration import Configuration

SCHEMA = "wavecast.tune/1"


@dataclass(frozen=True, slots=True)
class Entry:
    """One problem: its results, the best first, and what was refused."""

    problem: Problem
    results: tuple[Result, ...]
    refused: tuple[Result, ...]

    @property
    def best(self) -> Result | None:
        """The first result, None where nothing can run."""
        return self.results[0] if self.results else None


@dataclass(frozen=True, slots=True)
class Table:
    """Entries in order of first appearance."""

    entries: tuple[Entry, ...]

    @staticmethod
    def of(found: Iterable[tuple[Problem, Result]]) -> Table:
        """From results as they came; of one configuration the last counts."""
        problems: dict[str, Problem] = {}
        results: dict[str, dict[Configuration, Result]] = {}
        for problem, result in found:
            problems.setdefault(problem.identity, problem)
            results.setdefault(problem.identity, {})[result.configuration] = result
        return Table(
            tuple(_entry(problem, results[key].values()) for key, problem in problems.items())
        )

    def to_json(self) -> dict[str, Any]:
        """The table as JSON-ready values, schema `wavecast.tune/1`."""
        from wavecast.version import __version__

        return {
            "schema": SCHEMA,
            "wavecast": __version__,
            "entries": [
                {
                    **asdict(entry.problem),
                    "configurations": [
                        {"rank": rank, **result.to_json()}
                        for rank, result in enumerate(entry.results, 1)
                    ],
                    "refused": [
                        {"configuration": r.configuration.settings, "reason": r.reason}
                        for r in entry.refused
                    ],
                }
                for entry in self.entries
            ],
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Table:
        """The table that `to_json` was given. Raises KeyError, TypeError for what is none."""
        entries = []
        for item in document["entries"]:
            rest = dict(item)
            ranked = [
                Result.from_json({k: v for k, v in one.items() if k != "rank"})
                for one in rest.pop("configurations")
            ]
            refused = [Result.from_json(one) for one in rest.pop("refused")]
            entries.append(Entry(Problem(**rest), tuple(ranked), tuple(refused)))
        return Table(tuple(entries))

    def find(self, kernel: Any, *args: Any, device: str = "", **named: Any) -> Entry | None:
        """The entry of the call `kernel[grid](*args, **named)`, None where the table has none.

        It must be of the same kernel text, key, classes of arguments, target and Triton version.
        `device` names the GPU (default: the one Triton runs on). Raises UsageError where the table
        has several devices of the target and none is named.
        """
        from wavecast.integrations.triton import compat
        from wavecast.integrations.triton.trials import described

        target, name = _here(device)
        call = json.loads(json.dumps(asdict(described(kernel, args, named))))
        compiler = compat.compiler()
        found = {}
        for entry in self.entries:
            problem = entry.problem
            if all(asdict(problem)[field] == value for field, value in call.items()) and (
                (problem.target, problem.compiler) == (target, compiler)
            ):
                found[problem.device] = entry
        if name in found:
            return found[name]
        if len(found) > 1:
            raise UsageError(
                f"the table has {kernel.base_fn.__name__} for {', '.join(found)}",
                hint="say which with device=",
            )
        return next(iter(found.values()), None) if not device else None

    def best_config(self, kernel: Any, *args: Any, device: str = "", **named: Any) -> Any:
        """The best `triton.Config` of an autotuned kernel for a call, None where the table has
        none. See `find`."""
        from wavecast.integrations.triton.trials import configured

        entry = self.find(kernel, *args, device=device, **named)
        if entry is None or entry.best is None:
            return None
        return configured(kernel, entry.best.configuration.settings)

    def tuned(self, kernel: Any, *, device: str = "") -> Any:
        """Have an autotuned kernel take its configurations from this table: a decorator to stand
        above `@triton.autotune`. Calls that the table has no entry for are tuned as before."""
        if not hasattr(kernel, "prune_configs"):
            raise UsageError("tuned() is for kernels with @triton.autotune")
        before = kernel.early_config_prune

        def from_table(configs: list, arguments: Mapping[str, Any], **named: Any) -> list:
            best = self.best_config(kernel, *arguments.values(), device=device, **named)
            if best is not None:
                return [best]
            return before(configs, arguments, **named) if before else configs

        kernel.early_config_prune = from_table
        if len(kernel.configs) == 1:  # Triton asks only where there is a choice
            kernel.configs = kernel.configs * 2
        return kernel


def load(path: str | Path) -> Table:
    """A table that `wavecast tune --output` wrote. Raises InputError."""
    path = Path(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path} is no JSON ({error})") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(f"{path} is no table of wavecast tune ({SCHEMA})")
    try:
        return Table.from_json(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is a damaged table ({error!r})") from None


def _entry(problem: Problem, results: Iterable[Result]) -> Entry:
    known = list(results)
    timed = sorted((r for r in known if r.seconds is not None), key=lambda r: r.rank)
    return Entry(problem, tuple(timed), tuple(r for r in known if r.seconds is None))


def _here(device: str) -> tuple[str, str]:
    """(target, device) of a name, or of the GPU Triton runs on, whose device "" where its name is
    not known."""
    from wavecast import arch
    from wavecast.errors import UnknownName

    if device:
        known = arch.load(device)
        return known.target, known.id
    from wavecast.integrations.triton.compat import active_device

    target, name = active_device()
    try:
        return target, arch.load(name).id
    except UnknownName:
        return target, ""


__all__ = ["SCHEMA", "Entry", "Table", "load"]
