"""Pools of published disaggregated runs: which GPUs prefill and which decode.

The rows of measurements state few of these facts; the rest is in `pools.csv`, from public
configurations of DeepSeek-R1. `december`: SemiAnalysisAI/InferenceX of December 2025
(`.github/configs/nvidia-master.yaml`), with the settings of SGLang of NVIDIA/srt-slurm
(`slurm_runner/scripts`, `recipes`). `february`: InferenceX of 20 February 2026 and the recipes of
NVIDIA/srt-slurm that it names, which count where the two differ. Of several configurations that a
row could be, none is taken.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from wavecast.errors import Unpredictable
from wavecast.systems.parallel import Parallelism


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """`count` instances of `gpus` GPUs each; `data`: every GPU has separate sequences. `expert`
    GPUs divide the experts, of which `redundant` are copies. An instance computes at most `tokens`
    tokens and `sequences` sequences, in graphs of at most `captured`; `share` is what the engine
    may take of the memory, `poll` the decode steps between looks at new requests (0: the
    engine's)."""

    count: int
    gpus: int
    data: bool
    expert: int
    redundant: int = 0
    tokens: int = 0
    sequences: int = 0
    share: float = 0.0
    captured: int = 0
    poll: int = 0

    @property
    def parallel(self) -> Parallelism:
        """The parallelism of one instance."""
        redundant = self.redundant if self.expert > 1 else 0
        return Parallelism(
            tensor=self.gpus, expert=self.expert, attention_data=self.data, redundant=redundant
        )

    @property
    def settings(self) -> tuple[tuple[str, float], ...]:
        """Those of the engine."""
        options = (
            ("batched_tokens", self.tokens),
            ("sequences", self.sequences),
            ("memory_fraction", self.share),
            ("captured", self.captured),
            ("poll", self.poll),
        )
        return tuple((name, value) for name, value in options if value)


@dataclass(frozen=True, slots=True)
class Pools:
    """A configuration of the repositories at `date`: engine, format (the end of its name), lengths
    of prompt and output, `drafted` tokens of a step, requests at once, dtype of keys and values
    ("": the engine's)."""

    date: str
    gpu: str
    engine: str
    dtype: str
    lengths: tuple[int, int]
    drafted: int
    requests: tuple[int, ...]
    prefill: Workers
    decode: Workers
    cache: str = ""

    @property
    def gpus(self) -> int:
        """GPUs of all instances."""
        return self.prefill.count * self.prefill.gpus + self.decode.count * self.decode.gpus


_EACH: Final = ("trtllm",)
"""Engines whose limits are those of a GPU with its own sequences; of others of all GPUs."""


@cache
def load_pools() -> tuple[Pools, ...]:
    """The configurations of `pools.csv`."""
    path = resources.files("wavecast.benchmarking.accuracy.importers") / "pools.csv"
    text = path.read_text(encoding="utf-8")
    return tuple(map(_pools, csv.DictReader(text.splitlines())))


def _pools(row: dict[str, str]) -> Pools:
    def workers(count: str, letter: str) -> Workers:
        def number(name: str) -> int:
            return int(row.get(f"{letter}_{name}") or 0)

        gpus, data = number("gpus"), bool(number("data"))
        each = gpus if data and row["engine"] in _EACH else 1
        return Workers(
            count=int(row[count]),
            gpus=gpus,
            data=data,
            expert=number("expert") or 1,
            redundant=int(row["redundant"] or 0),
            tokens=number("tokens") * each,
            sequences=number("sequences") * each,
            share=float(row[f"{letter}_memory"] or 0),
            captured=number("captured") * (gpus if data else 1),
            poll=int(row["poll"] or 0),
        )

    return Pools(
        row["date"],
        row["gpu"],
        row["engine"],
        row["dtype"],
        (int(row["prompt"]), int(row["output"])),
        int(row["drafted"]),
        tuple(map(int, row["requests"].split())),
        workers("prefill", "p"),
        workers("decode", "d"),
        row["cache"],
    )


def pools_of(
    gpu: str,
    engine: str,
    dtype: str,
    lengths: tuple[int, int],
    concurrency: int,
    gpus: int,
    *,
    drafts: bool | None,
    tensor: int = 0,
    date: str = "",
) -> Pools:
    """The configuration of a run of DeepSeek-R1, of a `date` where it is known. A row without its
    GPUs (0) may state those of an instance that decodes, or of all, as `tensor`; `drafts` is None
    where it does not say. Raises Unpredictable where none is known, or several."""
    candidates = {
        pools
        for pools in load_pools()
        if (pools.gpu, pools.engine, pools.lengths) == (gpu, engine, lengths)
        and dtype.endswith(pools.dtype)
        and concurrency in pools.requests
        and date in ("", pools.date)
        and (pools.gpus == gpus if gpus else tensor in (0, 1, pools.decode.gpus, pools.gpus))
        and (drafts is None or (pools.drafted > 0) == drafts)
    }
    if len(candidates) != 1:
        which = f"{gpus} GPUs" if gpus else "its GPUs"
        raise Unpredictable(f"disaggregated: the row does not say which of {which} prefill")
    return candidates.pop()


__all__ = ["Pools", "Workers", "load_pools", "pools_of"]
