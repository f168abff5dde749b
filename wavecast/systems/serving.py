"""Serving: requests that arrive, wait, are prefilled and decoded, step by step.

`event_loop` simulates, as compiled code; `scheduler` chooses the steps of one engine. With
`Disaggregation`, some instances prefill and others decode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray

from wavecast.errors import UsageError
from wavecast.json_objects import JsonObject, NonNegative, doc
from wavecast.systems.disaggregation import SETUP, Disaggregation
from wavecast.systems.event_loop import ENDED, GROW, run
from wavecast.systems.memory import MemoryUse
from wavecast.systems.serving_state import ServingState, empty_state
from wavecast.systems.step import StepModel
from wavecast.systems.workload import Load

_QUANTILES: Final = (0.5, 0.9, 0.99)


class Latencies(JsonObject):
    """A time in seconds over all requests."""

    mean: Annotated[NonNegative, doc("mean")]
    p50: Annotated[NonNegative, doc("median")]
    p90: Annotated[NonNegative, doc("90 % quantile")]
    p99: Annotated[NonNegative, doc("99 % quantile")]


@dataclass(frozen=True, slots=True)
class Served:
    """A simulated run: time to first token (`ttft`), time per output token after it (`tpot`), time
    between tokens of a request as the client receives them (`itl`), whole requests (`end_to_end`);
    `seconds` from the first arrival to the last token; tokens that were read and written; `steps`;
    the most sequences that ran at once on an instance, the share of time in steps that had prompts,
    and how often a sequence lost its cache and was computed again."""

    ttft: Latencies
    tpot: Latencies
    itl: Latencies
    end_to_end: Latencies
    seconds: float
    prompt_tokens: int
    output_tokens: int
    requests: int
    steps: int
    running: int
    prefill_share: float
    preemptions: int

    @property
    def output_rate(self) -> float:
        """Output tokens per second."""
        return self.output_tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Instance:
    """An engine on its GPUs: the times of its steps, and its memory."""

    model: StepModel
    memory: MemoryUse

    @property
    def pool(self) -> float:
        """Bytes of its cache. With data-parallel attention a sequence is cached by one GPU."""
        return self.memory.pool * self.model.builder.parallel.ranks


def serve(
    model: StepModel,
    memory: MemoryUse,
    load: Load,
    pools: Disaggregation | None = None,
    prefill: Instance | None = None,
) -> Served:
    """Simulate a load. With `pools`, instances that prefill are like those that decode, or like
    `prefill`. Raises UsageError where not even one request fits the memory."""
    decode = Instance(model, memory)
    prefill = prefill or decode
    state = _state(decode, prefill, load, pools)
    while (why := run(state, model.grids, prefill.model.grids)) != ENDED:
        if why == GROW:
            state = state._replace(gaps=np.concatenate([state.gaps, np.zeros_like(state.gaps)]))
        else:
            pending = state.instances[int(state.client["pending"][0])]
            (prefill if pending["profile"] else decode).model.fill()
    return _result(state)


def _state(
    decode: Instance, prefill: Instance, load: Load, pools: Disaggregation | None
) -> ServingState:
    """Before the first event."""
    arrivals, prompts, outputs = load.sample()
    speculation = decode.model.speculation
    kinds = [decode] if prefill is decode else [decode, prefill]
    engines = [kind.model.builder.engine for kind in kinds]
    state = empty_state(engines, prompts.size, pools.instances if pools else 1)
    requests, instances = state.requests, state.instances
    requests["arrival"], requests["prompt"], requests["output"] = arrivals, prompts, outputs
    requests["hits"] = np.floor(load.prefix * prompts).astype(np.int64)
    requests["need"] = prompts - requests["hits"]
    if speculation:
        random = np.random.default_rng([load.seed, 1])
        requests["acceptance"] = speculation.sample(random, prompts.size)
    _check(decode, requests, requests["need"] + requests["output"])
    _check(prefill, requests, requests["need"])

    entries = pools.prefill if pools else 1
    instances["prefills"], instances["decodes"] = 1, pools is None
    if pools:
        instances["prefills"][entries:], instances["decodes"][entries:] = 0, 1
    for instance, part in ((prefill, instances[:entries]), (decode, instances[entries:])):
        hits = float(requests["hits"].max()) * instance.memory.token
        part["profile"] = int(instance is not decode)
        part["pool"] = instance.pool - hits
        part["token"], part["sequence"] = instance.memory.token, instance.memory.sequence
    for name, value in (
        ("concurrency", load.concurrency),
        ("drafted", speculation.tokens if speculation else 0),
        ("entries", entries),
        ("first_decoder", entries if pools else 0),
        ("seed", load.seed),
        ("setup", SETUP),
        ("bandwidth", pools.bandwidth if pools else math.inf),
    ):
        state.load[name] = value
    return state


def _check(instance: Instance, requests: NDArray[np.void], demand: NDArray[np.int64]) -> None:
    """Raises UsageError where the `demand` tokens of a request do not fit."""
    memory, pool = instance.memory, instance.pool
    number = int(demand.argmax())
    if demand[number] * memory.token + memory.sequence > pool:
        tokens = int(requests["prompt"][number] + requests["output"][number])
        raise UsageError(
            f"a request of {tokens:,} tokens does not fit: the cache holds "
            f"{max(0, int(pool / max(1.0, memory.token))):,}"
        )


def _result(state: ServingState) -> Served:
    requests, instances, client = state.requests, state.instances, state.client[0]
    outputs, first, arrival = requests["output"], requests["first"], requests["arrival"]
    several = outputs > 1
    tpot = (requests["end"] - first)[several] / (outputs[several] - 1)
    gaps = state.gaps[: client["gaps"]]
    decoders = instances[int(state.load["first_decoder"][0]) :]
    return Served(
        ttft=_latencies(first - arrival),
        tpot=_latencies(tpot if tpot.size else np.zeros(1)),
        itl=_weighted_latencies(gaps[:, 0], gaps[:, 1]) if len(gaps) else _latencies(np.zeros(1)),
        end_to_end=_latencies(requests["end"] - arrival),
        seconds=float(client["now"] - arrival.min()),
        prompt_tokens=int(requests["prompt"].sum()),
        output_tokens=int(outputs.sum()),
        requests=outputs.size,
        steps=int(instances["steps"].sum()),
        running=int(decoders["most"].max()),
        prefill_share=float(instances["prefill_seconds"].sum() / instances["seconds"].sum()),
        preemptions=int(instances["preemptions"].sum()),
    )


def _latencies(values: NDArray[np.float64]) -> Latencies:
    p50, p90, p99 = np.quantile(values, _QUANTILES)
    return Latencies(float(values.mean()), float(p50), float(p90), float(p99))


def _weighted_latencies(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Latencies:
    """Latencies of values that occurred `weights` times."""
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    p50, p90, p99 = (float(values[order][np.searchsorted(share, q)]) for q in _QUANTILES)
    return Latencies(float(np.average(values, weights=weights)), p50, p90, p99)


__all__ = ["Disaggregation", "Instance", "Latencies", "Load", "Served", "serve"]
