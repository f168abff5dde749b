"""Models that vLLM's own engine generates tokens with, against transformers in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

PROMPTS = [[1, 5, 9, 44, 100, 7], [3] * 20, list(range(40, 75))]
AGAIN = [PROMPTS[2] + [9, 8], PROMPTS[2], [17] * 9]
"""After `PROMPTS`: the first two have a prefix in the cache."""
NOISE = 2.0
"""Of two logits each may be off by as much as those of transformers in bfloat16."""
MEAN = 0.1
"""Of the same differences, on average: most tokens are the reference's."""
NEAR_TIES = 0.3
"""The same where scores choose keys: of two that are nearly equal, rounding chooses."""


def generated(vllm: Any, llm: Any, prompts: Sequence[Sequence[int]], **options: Any) -> list[Any]:
    """Greedy continuations."""
    wanted = {"temperature": 0.0, "max_tokens": 5, "ignore_eos": True, "detokenize": False}
    sampling = vllm.SamplingParams(**{**wanted, **options})
    given = [{"prompt_token_ids": list(one)} for one in prompts]
    return llm.generate(given, sampling, use_tqdm=False)


def check(
    reference: Any, prompts: Sequence[Sequence[int]], outputs: Any, mean: float = MEAN
) -> None:
    """Every token is the reference's, but where logits differ by less than bfloat16 is off by."""
    from tests.frameworks.vllm.models import gaps

    found = [
        gap
        for prompt, output in zip(prompts, outputs, strict=True)
        for gap in gaps(reference, prompt, output.outputs[0].token_ids)
    ]
    assert len(found) == 5 * len(prompts)
    assert max(found) <= NOISE
    assert sum(found) <= mean * len(found)


def served() -> dict[tuple[str, str], int]:
    """Calls of operators since the engine began."""
    from wavecast.frameworks.vllm.served import calls

    return dict(calls)


DENSE = {
    ("VocabParallelEmbedding", "embedding"),
    ("RMSNorm", "rms_norm"),
    ("RMSNorm", "rms_norm_residual"),
    ("Linear", "matmul"),
    ("RotaryEmbedding", "rope"),
    ("ParallelLMHead", "matmul"),
    ("Sampler", "top_k_top_p_sample"),
}
GATED = {("SiluAndMul", "silu_mul")}
ATTENTION = {("Attention", "kv_cache_write"), ("Attention", "paged_attention")}
EXPERTS = {("FusedMoE", "moe_route"), ("FusedMoE", "moe_experts")}
LATENT = {("MLAAttention", one) for one in ("mla_cache_write", "mla_prefill", "mla_decode")}


def test_llama(vllm: Any, engine: Callable[..., Any]) -> None:
    """Three sequences at once; all operators of the model are the library's. Then prefixes that are
    in the cache already, in a batch with a new sequence, and sampling that a seed determines."""
    llm, reference = engine("llama")
    check(reference, PROMPTS, generated(vllm, llm, PROMPTS))
    assert set(served()) == DENSE | GATED | ATTENTION
    outputs = generated(vllm, llm, AGAIN)
    check(reference, AGAIN, outputs)
    assert [bool(one.num_cached_tokens) for one in outputs] == [True, True, False]

    options = {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "seed": 3}
    drawn = [
        [tuple(one.outputs[0].token_ids) for one in generated(vllm, llm, PROMPTS, **options)]
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
    greedy = generated(vllm, llm, PROMPTS, **(options | {"top_k": 1}))
    check(reference, PROMPTS, greedy)


def test_prompts_in_chunks_while_others_decode(vllm: Any, engine: Callable[..., Any]) -> None:
    """Steps of at most 16 tokens: a prompt of 50 takes four, while another sequence decodes."""
    llm, reference = engine("llama", max_num_batched_tokens=16)
    prompts = [[2, 4, 6], list(range(100, 150)), [11] * 17]
    check(reference, prompts, generated(vllm, llm, prompts))


def test_sliding_window(vllm: Any, engine: Callable[..., Any]) -> None:
    """Tokens see the last 16."""
    llm, reference = engine("mistral")
    check(reference, PROMPTS, generated(vllm, llm, PROMPTS))


@pytest.mark.parametrize(("name", "dtype"), [("fp8", "float8_e4m3fnuz"), ("fp8_e5m2",) * 2])
def test_cache_of_8_bits(vllm: Any, engine: Callable[..., Any], name: str, dtype: str) -> None:
    """The format of an MI300X is that without infinities and negative zero."""
    import torch

    from tests.frameworks.vllm.models import rounds_cache

    llm, reference = engine("llama", kv_cache_dtype=name)
    rounds_cache(reference, getattr(torch, dtype.replace("fp8", "float8")))
    check(reference, PROMPTS, generated(vllm, llm, PROMPTS))


def test_mixture_of_experts(vllm: Any, engine: Callable[..., Any]) -> None:
    """Qwen3-MoE: routed by softmax. Then prefixes that are in the cache already."""
    llm, reference = engine("qwen3_moe")
    check(reference, PROMPTS, generated(vllm, llm, PROMPTS))
    assert set(served()) == DENSE | ATTENTION | EXPERTS
    outputs = generated(vllm, llm, AGAIN)
    check(reference, AGAIN, outputs)
    assert [bool(one.num_cached_tokens) for one in outputs] == [True, True, False]


def test_latent_attention(vllm: Any, engine: Callable[..., Any]) -> None:
    """DeepSeek-V3: compressed keys, groups of experts, a shared one. Prompts in chunks read their
    context from the cache, and so do prefixes."""
    llm, reference = engine("deepseek", max_num_batched_tokens=32)
    check(reference, PROMPTS, generated(vllm, llm, PROMPTS))
    assert set(served()) == DENSE | GATED | LATENT | EXPERTS
    outputs = generated(vllm, llm, [PROMPTS[2] + [1, 2]])
    check(reference, [PROMPTS[2] + [1, 2]], outputs)
    assert outputs[0].num_cached_tokens


def test_latent_attention_over_chosen_keys(vllm: Any, engine: Callable[..., Any]) -> None:
    """DeepSeek-V3.2: an indexer chooses 16 keys of each token. Prompts in chunks and prefixes score
    keys that are in the cache, and one step has prompts and decoding sequences."""
    llm, reference = engine("deepseek_sparse", max_num_batched_tokens=32)
    check(reference, PROMPTS, generated(vllm, llm, PROMPTS), NEAR_TIES)
    chosen = {("SparseAttnIndexer", one) for one in ("index_scores", "quantise_fp8_group")}
    latent = LATENT - {("MLAAttention", "mla_prefill")}
    assert set(served()) == DENSE | GATED | latent | EXPERTS | chosen
    outputs = generated(vllm, llm, [PROMPTS[2] + [1, 2]])
    check(reference, [PROMPTS[2] + [1, 2]], outputs, NEAR_TIES)
    assert outputs[0].num_cached_tokens
