"""Pools of published disaggregated runs: which GPUs prefill and which decode.

The rows of measurements state the number of GPUs and of requests only; the rest is in the
configurations of SemiAnalysisAI/InferenceX, `.github/configs/nvidia-master.yaml` (December 2025:
`dsr1-fp4-gb200-dynamo-trt`, `dsr1-fp8-gb200-dynamo-sglang`, `dsr1-fp4-gb200-dynamo-sglang`). Some
tables have two pools of as many GPUs for as many requests, which a row does not tell apart: both
are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wavecast.errors import Unpredictable
from wavecast.systems.parallel import Parallelism


@dataclass(frozen=True, slots=True)
class Workers:
    """`count` instances of `gpus` GPUs each; `data`: every GPU has separate sequences and a part
    of the experts. An instance computes at most `tokens` tokens and `sequences` sequences per GPU
    with its own sequences, else in all (0: the engine's)."""

    count: int
    gpus: int
    data: bool
    tokens: int = 0
    sequences: int = 0
    memory: float = 0.0

    @property
    def parallel(self) -> Parallelism:
        """Of one instance; the experts are divided among its GPUs."""
        return Parallelism(tensor=self.gpus, expert=self.gpus, attention_data=self.data)

    @property
    def settings(self) -> tuple[tuple[str, float], ...]:
        """Those of the engine."""
        ranks = self.gpus if self.data else 1
        known = (
            ("batched_tokens", self.tokens * ranks),
            ("sequences", self.sequences * ranks),
            ("memory_fraction", self.memory),
        )
        return tuple((name, value) for name, value in known if value)


@dataclass(frozen=True, slots=True)
class Pools:
    """A configuration: engine, format (the end of its name), lengths of prompt and output,
    `drafted` tokens of a step, requests at once (per instance that decodes where they are
    `each`)."""

    gpu: str
    engine: str
    dtype: str
    lengths: tuple[int, int]
    drafted: int
    requests: tuple[int, ...]
    prefill: Workers
    decode: Workers
    each: bool = True

    @property
    def gpus(self) -> int:
        """Of all instances."""
        return self.prefill.count * self.prefill.gpus + self.decode.count * self.decode.gpus

    def serves(self, concurrency: int) -> bool:
        """Whether a run with so many requests at once is one of this configuration."""
        number = self.decode.count if self.each else 1
        return any(concurrency == number * requests for requests in self.requests)


def _trt(
    lengths: tuple[int, int],
    drafted: int,
    requests: tuple[int, ...],
    prefill: int,
    decode: tuple[int, int],
    sequences: int,
    memory: float,
) -> Pools:
    """TensorRT-LLM on GB200: instances of 4 GPUs prefill; one that decodes alone has its own
    sequences on every GPU, several (`tep`) divide attention."""
    count, gpus = decode
    data = count == 1
    # Prompts of 1k: four at once in a step; of 8k: one.
    tokens, at_once = (4608, 4) if lengths[0] == 1024 else (8448, 1)
    return Pools(
        "gb200",
        "trtllm",
        "fp4",
        lengths,
        drafted,
        requests,
        Workers(prefill, 4, data, tokens, at_once),
        Workers(count, gpus, data, 0, sequences, memory),
    )


def _sglang(
    dtype: str,
    lengths: tuple[int, int],
    requests: tuple[int, ...],
    prefill: tuple[int, int],
    decode: tuple[int, int],
    *,
    data: bool = True,
) -> Pools:
    return Pools(
        "gb200",
        "sglang",
        dtype,
        lengths,
        0,
        requests,
        Workers(*prefill, data),
        Workers(*decode, data=True),
        each=False,
    )


_1K: Final = (1024, 1024)
_8K: Final = (8192, 1024)
POOLS: Final[tuple[Pools, ...]] = (
    _trt(_1K, 3, (1, 2, 4, 8, 16, 36), 1, (4, 8), 32, 0.9),
    _trt(_1K, 3, (512, 1075), 1, (1, 16), 64, 0.7),
    _trt(_1K, 1, (2150,), 2, (1, 16), 128, 0.7),
    _trt(_1K, 3, (512,), 1, (1, 32), 16, 0.6),
    _trt(_1K, 1, (2252,), 1, (1, 8), 256, 0.8),
    _trt(_1K, 0, (1, 2, 4, 8, 16, 32, 64, 141), 1, (4, 8), 128, 0.9),
    _trt(_1K, 0, (1075,), 1, (1, 32), 32, 0.7),
    _trt(_1K, 0, (1075,), 1, (1, 16), 64, 0.75),
    _trt(_1K, 0, (2048, 4300), 2, (1, 16), 256, 0.75),
    _trt(_1K, 0, (4300,), 1, (1, 8), 512, 0.8),
    _trt(_8K, 3, (1, 2, 4, 8, 18), 1, (3, 8), 16, 0.9),
    _trt(_8K, 3, (128, 269), 5, (1, 32), 8, 0.7),
    _trt(_8K, 3, (538,), 8, (1, 32), 16, 0.7),
    _trt(_8K, 2, (1075,), 8, (1, 16), 64, 0.75),
    _trt(_8K, 1, (2150,), 6, (1, 8), 256, 0.8),
    _trt(_8K, 0, (1, 2, 4, 8, 16, 34), 1, (3, 8), 32, 0.9),
    _trt(_8K, 0, (256, 538), 4, (1, 32), 16, 0.7),
    _trt(_8K, 0, (1075,), 6, (1, 16), 64, 0.75),
    _trt(_8K, 0, (2150,), 8, (1, 16), 128, 0.75),
    _trt(_8K, 0, (2150,), 5, (1, 8), 256, 0.8),
    _sglang("fp8", _1K, (4096,), (2, 8), (1, 32)),
    _sglang("fp8", _1K, (2, 4, 8, 16, 64, 128), (1, 4), (4, 4)),
    _sglang("fp8", _1K, (1024, 2048, 4096), (3, 8), (1, 48)),
    _sglang("fp8", _8K, (4, 8, 16, 32, 64, 128, 256, 512), (1, 4), (1, 4)),
    _sglang("fp8", _8K, (512, 1024, 2048, 6144), (5, 8), (1, 32)),
    _sglang("fp4", _1K, (4, 8, 32, 64), (1, 4), (2, 4)),
    _sglang("fp4", _1K, (512, 1024, 2048, 4096, 8192), (4, 4), (1, 48)),
    _sglang("fp4", _1K, (8192, 12000, 15000), (4, 4), (1, 32)),
    _sglang("fp4", _8K, (4, 8, 32, 64), (1, 4), (4, 4), data=False),
    _sglang("fp4", _8K, (512, 1024, 2048, 4096), (6, 4), (1, 48), data=False),
    _sglang("fp4", _8K, (1024, 2048, 8192), (10, 4), (1, 32)),
)


def pools_of(
    gpu: str,
    engine: str,
    dtype: str,
    lengths: tuple[int, int],
    concurrency: int,
    gpus: int,
    *,
    drafts: bool,
) -> Pools:
    """The configuration of a run of DeepSeek-R1. Raises Unpredictable where none is known, or
    several."""
    found = [
        one
        for one in POOLS
        if (one.gpu, one.engine, one.lengths) == (gpu, engine, lengths)
        and dtype.endswith(one.dtype)
        and one.gpus == gpus
        and one.serves(concurrency)
        and (one.drafted > 0) == drafts
    ]
    if len(found) != 1:
        raise Unpredictable(f"disaggregated: the row does not say which of {gpus} GPUs prefill")
    return found[0]


__all__ = ["POOLS", "Pools", "Workers", "pools_of"]
