"""Search of the configurations of a served model: every one is predicted, those that cannot run are
counted with their reason, and the others are ranked by output tokens per second and GPU.

Results are lines of a file (`state`), on disk as soon as they are known, each with a digest of
everything that it depends on. A search that is started again, after a kill too, takes from there
what it knows. Several searches may write to one file: a line is one write to its end, and a torn
line is not read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from wavecast import files, processes
from wavecast.errors import InputError, MissingFact, Unpredictable, UsageError
from wavecast.json_objects import checked_object
from wavecast.systems.answer import ModelOnSystem, ServingAnswer
from wavecast.systems.huggingface import ModelConfig
from wavecast.tuning.model_space import ModelConfiguration, Objective
from wavecast.tuning.ray import connect
from wavecast.version import __version__

Progress = Callable[[str], None]
_PARTS: Final = 4
"""Parts of a search per processor of a cluster. Neighbours have kernels in common, which a node
predicts once; a few parts each keep all nodes busy to the end."""


@dataclass(frozen=True, slots=True)
class SearchedModel:
    """A configuration and its prediction. `gpus` is their number, `per_gpu` and `per_user` output
    tokens per second; times in seconds. `meets` is whether it meets all objectives; `why_not` says
    why it cannot run, else it is empty."""

    system: str
    values: dict[str, str]
    parallelism: str
    gpus: int
    concurrency: int
    ttft: float = 0.0
    tpot: float = 0.0
    per_gpu: float = 0.0
    per_gpu_low: float = 0.0
    per_gpu_high: float = 0.0
    per_user: float = 0.0
    meets: bool = False
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class ModelSearch:
    """What a search found: those that meet the objectives by `per_gpu`, the best first (`ranked`);
    the `frontier` of throughput per GPU and speed per user among all that run, by `per_user`;
    `skipped` counts what cannot run by its reason; `known` were in the state."""

    tried: int
    known: int
    ranked: tuple[SearchedModel, ...]
    frontier: tuple[SearchedModel, ...]
    missed: int
    skipped: dict[str, int]


def search(
    config: ModelConfig,
    candidates: Sequence[ModelConfiguration],
    slo: tuple[Objective, ...],
    *,
    state: Path | None = None,
    jobs: int = 1,
    ray: str = "",
    progress: Progress = lambda _: None,
) -> ModelSearch:
    """Predict configurations of the model of `config` in `jobs` processes, or on the Ray cluster at
    `ray` (`local` starts one here).

    Raises UsageError for a configuration of Hugging Face that lacks a
    field, InputError for a state that cannot be read or written and a cluster that is not there,
    MissingTool without Ray.
    """
    model = json.dumps([__version__, config.name, config.values], sort_keys=True, default=str)
    keys = [_key(model, candidate, slo) for candidate in candidates]
    by_key = dict(zip(keys, candidates, strict=True))
    results = _read_state(state, set(keys)) if state else {}
    known_count = len(results)
    groups: dict[Any, list[str]] = defaultdict(list)
    for key, entry in by_key.items():
        if key not in results:
            groups[entry.system.name, entry.deployment].append(key)

    def remaining_work(group: Sequence[str]) -> _Arguments:
        return config, {key: by_key[key] for key in group if key not in results}, slo

    parts = list(groups.values())
    predicted = (
        _on_cluster(ray, parts, remaining_work)
        if ray
        else _here(jobs, [*map(remaining_work, parts)])
    )
    with _open_state(state) as add, contextlib.closing(predicted):
        for key, entry in predicted:
            results[key] = entry
            add(key, entry)
            progress(f"{len(results)} of {len(by_key)} configurations")
    return _rank([results[key] for key in keys], known_count)


_Arguments = tuple[ModelConfig, dict[str, ModelConfiguration], tuple[Objective, ...]]
_Predicted = Generator[tuple[str, SearchedModel], None, None]


def _on_cluster(
    address: str, groups: list[list[str]], arguments: Callable[[list[str]], _Arguments]
) -> _Predicted:
    with connect(address) as cluster:
        size = -(-len(groups) // (_PARTS * sum(cluster.processors)))
        parts = [groups[first : first + size] for first in range(0, len(groups), size or 1)]
        for _, result in cluster.results(_part, parts, lambda part: ([*map(arguments, part)],)):
            yield result


def _part(groups: Sequence[_Arguments]) -> Iterator[tuple[str, SearchedModel]]:
    for group in groups:
        yield from predict_group(*group)


def _here(jobs: int, groups: list[_Arguments]) -> _Predicted:
    """Predictions of groups as they are finished."""
    if jobs == 1 or len(groups) < 2:
        for group in groups:
            yield from predict_group(*group)
        return
    from concurrent.futures import as_completed

    with processes.started_pool(min(jobs, len(groups)), script=False) as pool:
        for future in as_completed([pool.submit(_group, *group) for group in groups]):
            yield from future.result()


def _group(*arguments: Any) -> list[tuple[str, SearchedModel]]:
    return list(predict_group(*arguments))


def predict_group(
    config: ModelConfig,
    group: Mapping[str, ModelConfiguration],
    slo: tuple[Objective, ...],
) -> Iterator[tuple[str, SearchedModel]]:
    """Loads on one deployment, whose kernels are predicted once: each with its key, as soon as it
    is predicted."""
    if not group:
        return
    first = next(iter(group.values()))
    why_not = ""
    try:
        ready = ModelOnSystem(config, first.system, first.deployment)
        if not ready.memory.fits:
            why_not = "does not fit the memory"
    except (UsageError, MissingFact, Unpredictable) as error:
        ready, why_not = None, _reason(error.message)
    for key, point in group.items():
        if ready is None or why_not:
            yield key, _result(point, why_not=why_not)
        else:
            yield key, _evaluate(ready, point, slo)


def _evaluate(
    ready: ModelOnSystem, point: ModelConfiguration, slo: tuple[Objective, ...]
) -> SearchedModel:
    replicas = point.deployment.parallel.data
    if point.load.concurrency < replicas:
        return _result(point, why_not="fewer requests than replicas")
    try:
        answer = ready.serve(point.load)
    except (UsageError, MissingFact) as error:
        return _result(point, why_not=_reason(error.message))
    gpus, rate = point.deployment.parallel.gpus, answer.output_rate
    return _result(
        point,
        ttft=answer.ttft.value,
        tpot=answer.tpot.value,
        per_gpu=rate.value / gpus,
        per_gpu_low=rate.low / gpus,
        per_gpu_high=rate.high / gpus,
        per_user=_per_user(answer),
        meets=all(objective.is_met(answer) for objective in slo),
    )


def _per_user(answer: ServingAnswer) -> float:
    return 1 / answer.tpot.value if answer.tpot.value else 0.0


def _result(point: ModelConfiguration, **figures: Any) -> SearchedModel:
    parallel = point.deployment.parallel
    return SearchedModel(
        point.system.name, dict(point.values), str(parallel), parallel.gpus, point.load.concurrency,
        **figures,
    )  # fmt: skip


def _reason(message: str) -> str:
    """A message without the name of the model, so that equal reasons are counted together."""
    return message.partition(": ")[2] or message


def _rank(results: Sequence[SearchedModel], known_count: int) -> ModelSearch:
    able = [result for result in results if not result.why_not]
    good = sorted((result for result in able if result.meets), key=lambda result: -result.per_gpu)
    frontier: list[SearchedModel] = []
    for result in sorted(able, key=lambda result: (-result.per_gpu, -result.per_user)):
        if not frontier or result.per_user > frontier[-1].per_user:
            frontier.append(result)
    skipped = Counter(result.why_not for result in results if result.why_not)
    return ModelSearch(
        tried=len(results),
        known=known_count,
        ranked=tuple(good),
        frontier=tuple(frontier),
        missed=len(able) - len(good),
        skipped=dict(skipped.most_common()),
    )


# --- the state --------------------------------------------------------------------------------


def _key(model: str, point: ModelConfiguration, slo: tuple[Objective, ...]) -> str:
    """A digest of all that a result depends on."""
    facts = {
        n: str(point.system.device.facts.mapping[n]) for n in point.system.device.facts.names()
    }
    system = (point.system.name, point.system.gpus, point.system.nodes, repr(point.system.fabric),
              repr(point.system.network), sorted(facts.items()))  # fmt: skip
    about = json.dumps([model, system, repr(point.deployment), repr(point.load), repr(slo)])
    return hashlib.sha256(about.encode()).hexdigest()


def _read_state(state: Path, keys: set[str]) -> dict[str, SearchedModel]:
    """The results of a state. Raises InputError for a file that is something else."""
    if not state.exists():
        return {}
    names = {field.name for field in fields(SearchedModel)}
    results: dict[str, SearchedModel] = {}
    whole = 0
    lines = [line for line in files.read_text(state).split("\n") if line]
    for line in lines:
        try:
            entry = files.parse_json(line)
            key, values = entry["key"], entry["result"]
            if set(values) != names:
                continue
            whole += 1
            if key in keys:
                results[key] = checked_object(SearchedModel, values)
        except (ValueError, KeyError, TypeError):
            continue  # torn by a kill
    if lines and not whole:
        raise InputError(f"{state} is not the state of a search", hint="name another file")
    return results


@contextlib.contextmanager
def _open_state(state: Path | None) -> Iterator[Callable[[str, SearchedModel], None]]:
    """A function that appends a result to a state, where there is one."""
    if state is None:
        yield lambda *_: None
        return
    try:
        lines = files.AppendedLines(state)
    except OSError as error:
        raise InputError(f"cannot write {state}: {error.strerror}") from None
    with contextlib.closing(lines):
        yield lambda key, result: lines.append({"key": key, "result": asdict(result)})


__all__ = ["ModelSearch", "SearchedModel", "predict_group", "search"]
