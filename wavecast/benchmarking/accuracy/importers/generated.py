"""Serving runs that aiconfigurator configures and AIPerf measures: their load and their engine.

The generator of ai-dynamo/aiconfigurator (22 November 2026) has an engine for exactly the requests
at once (`rule_plugin/benchmark/*.rule`), and a script of AIPerf (`benchmark/bench_run.sh.j2`): 20
requests per slot after 2 for warm-up, with exact lengths. AIPerf repeats 100 prompts
(`NUM_DATASET_ENTRIES`), and the prefix cache of vLLM is on by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wavecast.systems.engine import Setting
from wavecast.systems.serving import Load

_SOURCE: Final = "ai-dynamo/aiconfigurator"
_UNIT: Final = 1000
"""Tokens that lengths are multiples of; rows of other benchmarks in its tables have 1,024."""
_ROUNDS: Final = 20
_WARM_ROUNDS: Final = 2
_PROMPTS: Final = 100
_LARGEST_SHARE: Final = 0.99
"""The last block of a prompt is computed again."""
_ROOM: Final = 1500
"""Tokens of a step next to those of a prompt."""
_CACHED: Final = ("vllm",)
"""Engines whose runs show the prefix cache: of SGLang, which has one as well, they do not."""
_MIXED: Final = ("sglang",)
"""Engines that the generator tells to mix prompts with decoding sequences."""


def is_generated(row: Mapping[str, Any]) -> bool:
    """Whether the lengths of a row are those of the generator."""
    lengths = float(row["isl"]), float(row["osl"])
    return row.get("source_repo") == _SOURCE and lengths[0] % _UNIT == 0 and lengths[1] % 100 == 0


def generated_load(lengths: tuple[int, int], concurrency: int, engine: str) -> Load:
    """The requests that AIPerf sends."""
    requests = _ROUNDS * concurrency
    unseen = max(0, _PROMPTS - _WARM_ROUNDS * concurrency)
    share = min(_LARGEST_SHARE, 1 - unseen / requests) if engine in _CACHED else 0.0
    return Load(
        *lengths, concurrency=concurrency, requests=requests, shortest=1.0, prefix=max(0.0, share)
    )


def generated_settings(
    prompt: int, concurrency: int, engine: str
) -> tuple[tuple[tuple[str, Setting], ...], tuple[tuple[str, bool | int], ...]]:
    """Settings of the engine, and other fields of its profile."""
    tokens = prompt + _ROOM + (concurrency if engine in _CACHED else 0)
    settings = (("batched_tokens", tokens), ("sequences", concurrency))
    return settings, (("mixed", True),) if engine in _MIXED else ()


__all__ = ["generated_load", "generated_settings", "is_generated"]
