"""Tuning on a Ray cluster: every task runs the script on its node for a part of the configurations.

Nodes need this package, PyTorch, Triton, and the script at the same path.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wavecast.errors import InputError, MissingTool, WavecastError
from wavecast.integrations.triton import CaptureFailure
from wavecast.pipeline.selection import Selection, select
from wavecast.tune import records
from wavecast.tune.records import Journal, Result, TuningProblem
from wavecast.tune.script import TuneScript, capture
from wavecast.tune.settings import TuneSettings

if TYPE_CHECKING:
    from types import ModuleType

_Key = TypeVar("_Key")
_Result = TypeVar("_Result")
_SHARDS_PER_SLOT = 2
"""Parts per slot of the cluster: parts differ in time, and finished ones are in the journal."""

Answer = tuple[
    list[tuple[TuningProblem, Result]],
    tuple[CaptureFailure, ...],
    tuple[str, ...],
    WavecastError | None,
]


def distribute(
    address: str,
    script: TuneScript,
    selection: Selection,
    settings: TuneSettings,
    progress: Callable[[str], None],
) -> tuple[tuple[CaptureFailure, ...], tuple[str, ...]]:
    """Tune on the cluster at `address` (`local` starts one here); returns failures and notes.

    Results go to the journal when a part finishes. Raises MissingTool without Ray, InputError if
    there is no cluster, and the error of the first part if every part failed.
    """
    with _cluster(address) as ray:
        return _gathered(ray, script, selection, settings, progress)


def on_cluster(
    address: str,
    function: Callable[..., _Result],
    keys: Sequence[_Key],
    arguments: Sequence[tuple[Any, ...]],
) -> Iterator[tuple[_Key, _Result]]:
    """`function` of every tuple of arguments on the cluster at `address` (`local` starts one here):
    keys and results as they are finished. A lost task is started once more.

    Raises MissingTool without Ray, InputError if there is no cluster or it loses a task twice.
    """
    with _cluster(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=1)(function)
        waiting = {task.remote(*one): key for key, one in zip(keys, arguments, strict=True)}
        while waiting:
            for done in ray.wait(list(waiting))[0]:
                key = waiting.pop(done)
                try:
                    yield key, ray.get(done)
                except ray.exceptions.WorkerCrashedError as lost:
                    raise InputError(f"the Ray cluster lost a task: {lost}") from None


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Any]:
    ray = _ray()
    try:
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"no Ray cluster at {address!r}: {first}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _gathered(
    ray: ModuleType,
    script: TuneScript,
    selection: Selection,
    settings: TuneSettings,
    progress: Callable[[str], None],
) -> tuple[tuple[CaptureFailure, ...], tuple[str, ...]]:
    jobs = max(1, min(settings.jobs, int(max(n["Resources"].get("CPU", 0) for n in ray.nodes()))))
    slots = max(1, int(ray.cluster_resources().get("CPU", 1)) // jobs)
    shards = _SHARDS_PER_SLOT * slots
    part = replace(settings, jobs=jobs, shards=shards, simulate=-(-settings.simulate // shards))
    journal = Journal(Path(settings.journal))
    before = list(records.read(journal.path))
    task = ray.remote(num_cpus=jobs, max_retries=1)(_shard)
    names = tuple(device.id for device in selection.devices)
    here = replace(script, path=script.path.absolute())
    waiting = [
        task.remote(here, names, replace(part, shard=number), before) for number in range(shards)
    ]
    failures: dict[CaptureFailure, None] = {}
    notes: dict[str, None] = {}
    errors: list[WavecastError] = []
    while waiting:
        done, waiting = ray.wait(waiting)
        try:
            found, failed, told, error = ray.get(done[0])
        except ray.exceptions.RayError as lost:
            notes.setdefault(f"a part was lost: {str(lost).partition(chr(10))[0]}")
            continue
        for problem, result in found:
            journal.add(problem, result)
        failures |= dict.fromkeys(failed)
        notes |= dict.fromkeys(told)
        errors += [error] if error else []
        progress(f"{shards - len(waiting)} of {shards} parts")
    journal.close()
    if len(errors) == shards:
        raise errors[0]
    return tuple(failures), tuple(notes)


def _shard(
    script: TuneScript,
    names: tuple[str, ...],
    settings: TuneSettings,
    before: list[tuple[TuningProblem, Result]],
) -> Answer:
    """The new results of one part. Runs on a node of the cluster."""
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        path = Path(folder) / "journal"
        journal = Journal(path)
        for problem, result in before:
            journal.add(problem, result)
        journal.close()
        selection = select(names, settings.device_files)
        try:
            failures, notes = capture(script, selection, replace(settings, journal=str(path)))
        except WavecastError as error:
            return [], (), (), error
        return list(records.read(path))[len(before) :], failures, notes, None


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingTool("Ray is not installed", hint="pip install 'wavecast[ray]'") from None
    return ray


__all__ = ["distribute", "on_cluster"]
