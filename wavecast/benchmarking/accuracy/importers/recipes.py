"""Settings of engines in published serving benchmarks: what their scripts pass to the engine.

The rows of measurements do not repeat these settings; they follow from GPU, engine, model, format,
lengths and concurrency. Scripts are those of SemiAnalysisAI/InferenceX, `benchmarks/` (21 August
2026; for MI300X, MI325X and DeepSeek with TensorRT-LLM December 2025; for Llama 70B before its
removal in commit 2582bce).
`--num-continuous-decode-steps` has no effect: no scheduler of SGLang reads it (sgl-project/sglang
pull request 23131).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

Settings = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Settings of a script for rows that match; empty fields match all. `lengths` are pairs of
    prompt and output, `tensor` and `concurrency` the smallest and largest value, `attention_data`
    is whether the attention is data-parallel. `one_prompt`: a step of a GPU with its own sequences
    has room for all decoding sequences and one prompt (`_one_prompt`)."""

    script: str
    settings: Settings = ()
    gpus: Sequence[str] = ()
    engine: str = ""
    model: str = ""
    dtypes: Sequence[str] = ()
    lengths: Sequence[tuple[int, int]] = ()
    tensor: tuple[int, int] = (1, 1 << 20)
    concurrency: tuple[int, int] = (1, 1 << 20)
    attention_data: bool | None = None
    one_prompt: bool = False


def _poll_recipes(few: int, **fields: object) -> tuple[Recipe, Recipe]:
    """SGLang reads new requests every 10 decode steps below a concurrency, every 30 from it."""
    settings = fields.pop("settings")
    assert isinstance(settings, tuple)
    return (
        Recipe(settings=(*settings, ("poll", 10)), concurrency=(1, few - 1), **fields),  # type: ignore[arg-type]
        Recipe(settings=(*settings, ("poll", 30)), concurrency=(few, 1 << 20), **fields),  # type: ignore[arg-type]
    )


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(
        script="dsr1_fp8_b200.sh",
        gpus=("b200",),
        engine="sglang",
        model="DeepSeek-R1",
        dtypes=("", "fp8"),
        tensor=(4, 4),
        settings=(
            ("batched_tokens", 8192),
            ("captured", 32),
            ("poll", 10),
            ("memory_fraction", 0.95),
        ),
    ),
    *_poll_recipes(
        16,
        script="dsr1_fp8_b200.sh",
        gpus=("b200",),
        engine="sglang",
        model="DeepSeek-R1",
        dtypes=("", "fp8"),
        settings=(("batched_tokens", 32768), ("captured", 128)),
    ),
    *_poll_recipes(
        16,
        script="dsr1_fp4_b200.sh",
        gpus=("b200",),
        engine="sglang",
        model="DeepSeek-R1",
        dtypes=("nvfp4", "mxfp4"),
        settings=(("batched_tokens", 16384), ("captured", 256)),
    ),
    *_poll_recipes(
        16,
        script="qwen3.5_bf16_b200.sh",
        gpus=("b200",),
        engine="sglang",
        model="Qwen3.5-397B-A17B",
        dtypes=("", "bf16", "fp8"),
        settings=(("batched_tokens", 32768),),
    ),
    *_poll_recipes(
        5,
        script="qwen3.5_fp4_b200.sh",
        gpus=("b200",),
        engine="sglang",
        model="Qwen3.5-397B-A17B",
        dtypes=("nvfp4", "mxfp4"),
        settings=(("batched_tokens", 16384),),
    ),
    Recipe(
        script="glm5_fp8_b200.sh",
        gpus=("b200",),
        engine="sglang",
        model="GLM-5",
        dtypes=("", "fp8"),
        settings=(("batched_tokens", 32768),),
    ),
    Recipe(
        script="glm5_fp4_b200.sh",
        gpus=("b200",),
        engine="sglang",
        model="GLM-5",
        dtypes=("nvfp4", "mxfp4"),
        settings=(("batched_tokens", 32768), ("captured", 256), ("poll", 10)),
    ),
    Recipe(
        # attention_dp_config waits 60 steps until every GPU has a prompt.
        script="dsr1_fp{4,8}_{b200,h200}_trt_slurm.sh",
        gpus=("b200", "h200"),
        engine="trtllm",
        model="DeepSeek-R1",
        attention_data=True,
        settings=(("wait_steps", 60), ("wait_share", 0.8)),
        one_prompt=True,
    ),
    Recipe(
        script="dsr1_fp{4,8}_{b200,h200}_trt_slurm.sh",
        gpus=("b200", "h200"),
        engine="trtllm",
        model="DeepSeek-R1",
        one_prompt=True,
    ),
    Recipe(
        script="70b_fp8_b200_trt_slurm.sh",
        gpus=("b200", "h200"),
        engine="trtllm",
        model="Llama-3.3-70B",
        lengths=((1024, 1024),),
        tensor=(1, 7),
        settings=(("batched_tokens", 16384), ("wait_steps", 20), ("wait_share", 0.9)),
    ),
    Recipe(
        script="70b_fp8_b200_trt_slurm.sh",
        gpus=("b200", "h200"),
        engine="trtllm",
        model="Llama-3.3-70B",
        settings=(("batched_tokens", 16384),),
    ),
    Recipe(
        script="dsr1_fp8_h200.sh",
        gpus=("h200",),
        engine="sglang",
        model="DeepSeek-R1",
        settings=(("batched_tokens", 32768),),
    ),
    Recipe(
        script="dsr1_fp8_mi355x.sh",
        gpus=("mi355x",),
        engine="sglang",
        model="DeepSeek-R1",
        dtypes=("", "fp8"),
        settings=(("batched_tokens", 196608),),
    ),
    Recipe(
        script="dsr1_fp4_mi355x.sh",
        gpus=("mi355x",),
        engine="sglang",
        model="DeepSeek-R1",
        dtypes=("nvfp4", "mxfp4"),
        settings=(("batched_tokens", 196608), ("captured", 128)),
    ),
    Recipe(
        script="dsr1_fp8_mi300x.sh",
        gpus=("mi300x", "mi325x"),
        engine="sglang",
        model="DeepSeek-R1",
        # December 2025, lmsysorg/sglang:v0.5.5.post3-rocm700-mi30x.
        settings=(("batched_tokens", 196608), ("captured", 128)),
    ),
    Recipe(
        # AMD's pages of vLLM's performance run its ROCm image with AITER (assumed).
        script="VLLM_ROCM_USE_AITER=1",
        gpus=("mi300x", "mi325x", "mi355x"),
        engine="vllm",
        settings=(("aiter", 1),),
    ),
)
"""The first that matches counts."""


def settings_of(
    gpu: str,
    engine: str,
    model: str,
    dtype: str,
    tensor: int,
    lengths: tuple[int, int],
    concurrency: int,
    attention_data: bool = False,
) -> Settings:
    """The settings of a measured configuration; none where no script is known."""
    for recipe in RECIPES:
        if (
            (not recipe.gpus or gpu in recipe.gpus)
            and recipe.engine in ("", engine)
            and recipe.model in ("", model)
            and (not recipe.dtypes or dtype in recipe.dtypes)
            and (not recipe.lengths or lengths in recipe.lengths)
            and recipe.tensor[0] <= tensor <= recipe.tensor[1]
            and recipe.concurrency[0] <= concurrency <= recipe.concurrency[1]
            and recipe.attention_data in (None, attention_data)
        ):
            budget = _one_prompt(lengths[0], concurrency, tensor if attention_data else 1)
            return (*recipe.settings, *((("batched_tokens", budget),) * recipe.one_prompt))
    return ()


def _one_prompt(prompt: int, concurrency: int, ranks: int) -> int:
    """Tokens of a step of all `ranks` that schedule their own sequences:
    `(CONC + ISL + 64 + 63) / 64 * 64` of each."""
    return (concurrency + prompt + 127) // 64 * 64 * ranks


__all__ = ["RECIPES", "Recipe", "settings_of"]
