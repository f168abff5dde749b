"""Which layer of vLLM launches a kernel of a served model, and which operators of the library
compute the same where the plugin is active (`docs/vllm.md`).

`LAYERS` has a row per kernel of `systems.graph`. It needs no vLLM: tests compare it with what the
engine calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wavecast.arch import Device
from wavecast.dtypes import lookup
from wavecast.perfmodel.ops.attention import Attention as AttentionOp
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.moe import FusedMoe
from wavecast.perfmodel.ops.norm import Norm
from wavecast.systems.architecture import (
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
)
from wavecast.systems.graph import Builder, Node, Step

LibraryCall = tuple[str, Mapping[str, Any]]
"""An operator of the library and the sizes of a call."""
_BLOCK_SIZE: Final = 16
"""Tokens of a block of vLLM's cache, its default."""
_LATENTS: Final = (256, 512)
_ROPE: Final = 64
"""Sizes of latent attention that the plugin's backend takes, elements."""
_GROUPS: Final = (128, 64, 32)
"""Inputs that share a scale in experts of four bits, the first that fits."""
_HEAD: Final = 256
"""The largest head of the plugin's attention backend, elements."""


@dataclass(frozen=True, slots=True)
class EngineKernel:
    """A kernel of a step: `layer` is None for those after the last layer; `config` are the values
    of the model's `config.json`."""

    node: Node
    layer: Layer | None
    step: Step
    builder: Builder
    config: Mapping[str, Any]
    device: Device

    @property
    def fp8(self) -> str:
        """e4m3 as PyTorch names the format of the GPU."""
        return f"float8_e4m3fn{'uz' if self.device.capabilities.fp8_fnuz else ''}"

    @property
    def cache(self) -> Mapping[str, Any]:
        """Sizes that say in which dtype keys and values are stored."""
        return {"cache": self.fp8} if self.builder.precision.cache == "fp8" else {}


@dataclass(frozen=True, slots=True)
class Uncovered:
    """The library does not compute a kernel; `why` says why not."""

    why: str


Covered = tuple[LibraryCall, ...]
"""The operators that compute a kernel, in order."""
Rule = Callable[[EngineKernel], Covered | Uncovered]


@dataclass(frozen=True, slots=True)
class EngineLayer:
    """`name` is the class of vLLM's layer. `served` says what computes the kernel: operators by a
    rule, nothing, or, if empty, the operators of another kernel: that of `part_of`, else the
    product after it."""

    name: str
    served: Rule | Uncovered | Covered
    part_of: str = ""


def layer_of(kernel: str) -> EngineLayer:
    """The layer of a kernel by its name in `systems.graph`."""
    name = kernel.removeprefix("shared ")
    return LAYERS.get(name) or EngineLayer("", Uncovered("no layer of the plugin launches it"))


def library_calls(kernel: EngineKernel) -> Covered | Uncovered:
    """The operators that serve a kernel, in order, or why none does."""
    served = layer_of(kernel.node.name).served
    return served(kernel) if callable(served) else served


def _product(kernel: EngineKernel) -> Covered | Uncovered:
    op = kernel.node.op
    assert isinstance(op, Gemm)
    if op.batch > 1:
        return Uncovered("PyTorch multiplies matrices of a batch")
    sizes: dict[str, Any] = {"m": op.m, "n": op.n, "k": op.k}
    rows = {"rows": op.m, "columns": op.k, "dtype": "bfloat16"}
    match op.dtype, op.weight:
        case ("bf16" | "fp16", ""):
            return (("matmul", {**sizes, "dtype": lookup(op.dtype).name}),)
        case "fp8", "" if op.scaling == "block":
            quantise = ("quantise_fp8_group", {**rows, "to": kernel.fp8})
            return quantise, ("matmul_fp8_block", {**sizes, "dtype": kernel.fp8})
        case "fp8", "":
            quantise = ("quantise_fp8_token", {**rows, "to": kernel.fp8})
            return quantise, ("scaled_matmul", {**sizes, "dtype": kernel.fp8})
        case "int8", "":
            return ("quantise_int8_token", rows), ("scaled_matmul", {**sizes, "dtype": "int8"})
        case "bf16", "int4":
            return (("matmul_w4a16", {**sizes, "dtype": "bfloat16"}),)
    stored = op.weight or op.dtype
    return Uncovered(
        f"the plugin has no linear layer of {stored} weights and {op.dtype} activations"
    )


def _experts(kernel: EngineKernel) -> Covered | Uncovered:
    op = kernel.node.op
    assert isinstance(op, FusedMoe)
    if kernel.builder.parallel.expert > 1:
        return Uncovered("experts of several GPUs")
    sizes = {
        "tokens": op.tokens, "experts": op.experts, "model": op.model, "inter": op.inter,
        "top_k": op.topk, "dtype": "bfloat16",
    }  # fmt: skip
    match op.dtype, op.weights:
        case "bf16", "":
            return (("moe_experts", sizes),)
        case "fp8", "":
            return (("moe_experts_fp8", sizes),)
        case "int8", "":
            return (("moe_experts_int8", sizes),)
        case "bf16", "int4":
            group = next(
                (
                    group_size
                    for group_size in _GROUPS
                    if not (op.model % group_size or op.inter % group_size)
                ),
                None,
            )
            if group is None:
                return Uncovered(f"experts of four bits with {op.inter} columns")
            return (("moe_experts_w4a16", {**sizes, "group": group, "zeros": False}),)
        case ("mxfp4", "") | ("bf16", "mxfp4") if kernel.config.get("model_type") != "gpt_oss":
            return (("moe_experts", sizes),)  # widened as they are loaded
    return Uncovered(f"the plugin has no experts of {op.weights or op.dtype} weights")


def _route(kernel: EngineKernel) -> Covered | Uncovered:
    assert kernel.layer is not None
    mlp, config = kernel.layer.mlp, kernel.config
    assert isinstance(mlp, ExpertMlp)
    sizes: dict[str, Any] = {
        "tokens": kernel.step.rows, "experts": mlp.experts, "top_k": mlp.topk, "dtype": "bfloat16"
    }  # fmt: skip
    if config.get("topk_method") == "noaux_tc":
        sizes |= {"scoring": "sigmoid", "bias": True, "dtype": "float32"}
        if (config.get("n_group") or 1) > 1:
            sizes |= {"groups": config["n_group"], "top_groups": config["topk_group"]}
    elif (config.get("n_group") or 1) > 1:
        return Uncovered("PyTorch compares groups of experts by their best expert")
    return (("moe_route", sizes),)


def _norm(kernel: EngineKernel) -> Covered | Uncovered:
    op = kernel.node.op
    assert isinstance(op, Norm)
    if op.function != "rms_norm":
        return Uncovered(f"vLLM runs PyTorch's {op.function}")
    name = "rms_norm_residual" if op.residual else "rms_norm"
    return ((name, {"rows": op.rows, "columns": op.columns, "dtype": "bfloat16"}),)


def _latent_norms(kernel: EngineKernel) -> Covered | Uncovered:
    assert kernel.layer is not None
    attention = kernel.layer.attention
    if not isinstance(attention, LatentAttention):
        return Uncovered("compressed attention")
    columns = (attention.q_rank, attention.kv_rank)
    sizes = {"rows": kernel.step.rows, "dtype": "bfloat16"}
    return tuple(("rms_norm", {**sizes, "columns": width}) for width in columns)


def _head_norm(kernel: EngineKernel) -> Covered | Uncovered:
    """Of queries or keys, over one head."""
    assert kernel.layer is not None
    attention, tensor = kernel.layer.attention, kernel.builder.parallel.attention_tensor
    assert isinstance(attention, GroupedQueryAttention)
    keys = max(1, attention.kv_heads // tensor)
    heads = keys if kernel.node.name == "norm keys" else attention.heads // tensor
    sizes = {"rows": kernel.step.rows * heads, "columns": attention.head_dim}
    return (("rms_norm", {**sizes, "dtype": "bfloat16"}),)


def _activation(kernel: EngineKernel) -> Covered | Uncovered:
    op = kernel.node.op
    assert isinstance(op, Elementwise)
    rows, columns = op.result[0]
    if op.function not in ("silu_mul", "gelu_mul"):
        return Uncovered(f"vLLM's {op.function} without a gate stays PyTorch's")
    sizes = {"rows": rows, "columns": columns, "dtype": "bfloat16"}
    return ((op.function, sizes),)


def _rotate(kernel: EngineKernel) -> Covered | Uncovered:
    """Rotation of queries and keys."""
    assert kernel.layer is not None
    attention, rows = kernel.layer.attention, kernel.step.rows
    tensor = kernel.builder.parallel.attention_tensor
    if isinstance(attention, LatentAttention):
        sizes = {"tokens": rows, "q_heads": attention.heads // tensor, "k_heads": 1}
        return (("rope", {**sizes, "dim": attention.rope, "dtype": "bfloat16"}),)
    if not isinstance(attention, GroupedQueryAttention):
        return Uncovered("compressed attention")
    keys = max(1, attention.kv_heads // tensor)
    sizes = {"tokens": rows, "q_heads": attention.heads // tensor, "k_heads": keys}
    return (("rope", {**sizes, "dim": attention.head_dim, "dtype": "bfloat16"}),)


def _cache_write(kernel: EngineKernel) -> Covered | Uncovered:
    assert kernel.layer is not None
    attention = kernel.layer.attention
    if isinstance(attention, LatentAttention):
        cached = _latent_cache(kernel, attention)
        if isinstance(cached, Uncovered):
            return cached
        return (("mla_cache_write", {"tokens": kernel.step.rows, **cached}),)
    if not isinstance(attention, GroupedQueryAttention):
        return Uncovered("compressed attention")
    keys = max(1, attention.kv_heads // kernel.builder.parallel.attention_tensor)
    sizes = {"tokens": kernel.step.rows, "heads": keys, "head": attention.head_dim}
    scales = {"scales": 1} if kernel.cache else {}
    return (("kv_cache_write", {**sizes, "dtype": "bfloat16", **kernel.cache, **scales}),)


def _latent_cache(
    kernel: EngineKernel, attention: LatentAttention
) -> Mapping[str, Any] | Uncovered:
    if attention.kv_rank not in _LATENTS or attention.rope != _ROPE:
        sizes = f"{attention.kv_rank} + {attention.rope}"
        return Uncovered(f"latent attention of {sizes} elements")
    scaled = {"scaled": True} if kernel.cache else {}
    sizes = {"latent": attention.kv_rank, "rope": attention.rope, "dtype": "bfloat16"}
    return {**sizes, **kernel.cache, **scaled}


def _attention(kernel: EngineKernel) -> Covered | Uncovered:
    assert kernel.layer is not None
    op, step, attention = kernel.node.op, kernel.step, kernel.layer.attention
    if isinstance(attention, LatentAttention):
        return _latent(kernel, attention)
    if not isinstance(attention, GroupedQueryAttention) or not isinstance(op, AttentionOp):
        return Uncovered("compressed attention")
    if attention.head_dim > _HEAD:
        return Uncovered(f"heads of {attention.head_dim} elements")
    if attention.chunked:
        return Uncovered("attention in pieces")
    causal = kernel.node.name == "prefill attention"
    tensor = kernel.builder.parallel.attention_tensor
    sizes: dict[str, Any] = {
        "prefills": step.chunks if causal else 0,
        "new": step.tokens if causal else 0,
        "decodes": 0 if causal else step.decode,
        "length": step.tokens + step.before if causal else max(1, step.context),
        "heads": attention.heads // tensor,
        "kv_heads": max(1, attention.kv_heads // tensor),
        "head": attention.head_dim,
        "block_size": _BLOCK_SIZE,
        "dtype": "bfloat16",
        **kernel.cache,
    }
    if kernel.cache:
        sizes["scales"] = 1
    if attention.window:
        sizes["window"] = attention.window
    return (("paged_attention", sizes),)


def _latent(kernel: EngineKernel, attention: LatentAttention) -> Covered | Uncovered:
    if attention.indexer:
        return Uncovered("sparse attention")
    step = kernel.step
    heads = attention.heads // kernel.builder.parallel.attention_tensor
    if kernel.node.name == "prefill attention":
        length = step.tokens + step.before
        sizes = {"h": heads, "d": attention.nope, "rope": attention.rope, "dv": attention.value}
        rows = {"q": (step.tokens,) * step.chunks, "k": (length,) * step.chunks}
        return (("mla_prefill", {**rows, **sizes, "dtype": "bfloat16", "causal": True}),)
    cached = _latent_cache(kernel, attention)
    if isinstance(cached, Uncovered):
        return cached
    decode_sizes = {"sequences": step.decode, "heads": heads, "length": max(1, step.context)}
    return (("mla_decode", {**decode_sizes, "block_size": _BLOCK_SIZE, **cached}),)


def _sample(kernel: EngineKernel) -> Covered | Uncovered:
    """Without top-k and top-p, as the engine's default is priced."""
    sizes = {"rows": kernel.step.sampled, "vocabulary": kernel.builder.architecture.vocabulary}
    return (("top_k_top_p_sample", {**sizes, "dtype": "float32", "given": ""}),)


_SEND: Final = Uncovered("collectives stay vLLM's")
_ABSORB: Final = Uncovered("PyTorch multiplies by the absorbed weights")
_LINEAR: Final = Uncovered("linear attention stays vLLM's")
_INDEX: Final = Uncovered("sparse attention")
_COMPRESS: Final = Uncovered("compressed attention is not supported")
_STREAMS: Final = Uncovered("hyper-connections stay vLLM's")
_ALL_HEADS: Final = Uncovered("norms over the heads of all GPUs stay vLLM's")

LAYERS: Final[Mapping[str, EngineLayer]] = {
    "input_norm": EngineLayer("RMSNorm", _norm),
    "post_norm": EngineLayer("RMSNorm", _norm),
    "norm": EngineLayer("RMSNorm", _norm),
    "q, kv norm": EngineLayer("RMSNorm", _latent_norms),
    "gated norm": EngineLayer("RMSNormGated", _LINEAR),
    "norm queries": EngineLayer("RMSNorm", _head_norm),
    "norm keys": EngineLayer("RMSNorm", _head_norm),
    "squares of queries, keys": EngineLayer("MiniMaxText01RMSNormTP", _ALL_HEADS),
    "scale queries, keys": EngineLayer("MiniMaxText01RMSNormTP", _ALL_HEADS),
    "reduce squares": EngineLayer("MiniMaxText01RMSNormTP", _SEND),
    "qkv_proj": EngineLayer("QKVParallelLinear", _product),
    "q_proj": EngineLayer("ColumnParallelLinear", _product),
    "kv_a_proj": EngineLayer("ReplicatedLinear", _product),
    "qkv_a_proj": EngineLayer("MergedColumnParallelLinear", _product),
    "q_b_proj": EngineLayer("ColumnParallelLinear", _product),
    "kv_b_proj": EngineLayer("ColumnParallelLinear", _product),
    "o_proj": EngineLayer("RowParallelLinear", _product),
    "o_a_proj": EngineLayer("ColumnParallelLinear", _product),
    "in_proj": EngineLayer("MergedColumnParallelLinear", _product),
    "gates_proj": EngineLayer("MergedColumnParallelLinear", _product),
    "gate_proj": EngineLayer("ReplicatedLinear", _product),
    "gate_up_proj": EngineLayer("MergedColumnParallelLinear", _product),
    "up_proj": EngineLayer("ColumnParallelLinear", _product),
    "down_proj": EngineLayer("RowParallelLinear", _product),
    "activation": EngineLayer("SiluAndMul", _activation),
    "rope": EngineLayer("RotaryEmbedding", _rotate),
    "cache write": EngineLayer("Attention", _cache_write),
    "decode attention": EngineLayer("Attention", _attention),
    "prefill attention": EngineLayer("Attention", _attention),
    "absorb keys": EngineLayer("MLAAttention", _ABSORB),
    "expand values": EngineLayer("MLAAttention", _ABSORB),
    "gate": EngineLayer("Attention", Uncovered("PyTorch multiplies by the gate")),
    "router input": EngineLayer("ReplicatedLinear", Uncovered("PyTorch converts to fp32")),
    "router": EngineLayer("ReplicatedLinear", _product),
    "topk": EngineLayer("FusedMoE", _route),
    "sort tokens": EngineLayer("FusedMoE", (), "experts"),
    "quantise tokens": EngineLayer("FusedMoE", (), "experts"),
    "experts": EngineLayer("FusedMoE", _experts),
    "add shared": EngineLayer("FusedMoE", Uncovered("PyTorch adds the shared expert")),
    "quantise": EngineLayer("QuantFP8", ()),
    "lm_head": EngineLayer("ParallelLMHead", _product),
    "sample": EngineLayer("Sampler", _sample),
    "convolution": EngineLayer("GatedDeltaNet", _LINEAR),
    **dict.fromkeys(("order", "clear result"), EngineLayer("GatedDeltaNet", _LINEAR)),
    "recurrence": EngineLayer("GatedDeltaNet", _LINEAR),
    "chunked recurrence": EngineLayer("GatedDeltaNet", _LINEAR),
    "index_q_proj": EngineLayer("Indexer", _INDEX),
    "index_k_proj": EngineLayer("Indexer", _INDEX),
    "index_weights_proj": EngineLayer("Indexer", _INDEX),
    **dict.fromkeys(
        (
            *("index norm of keys", "index rope of queries, keys", "index join queries"),
            *("index join keys", "index quantise queries", "index scale weights"),
            "index write keys",
        ),
        EngineLayer("Indexer", _INDEX),
    ),
    "index decode attention": EngineLayer("Indexer", _INDEX),
    "index prefill attention": EngineLayer("Indexer", _INDEX),
    "choose keys": EngineLayer("Indexer", _INDEX),
    "compress_proj": EngineLayer("Attention", _COMPRESS),
    "compress": EngineLayer("Attention", _COMPRESS),
    "mixing weights": EngineLayer("HyperConnection", _STREAMS),
    "mix streams": EngineLayer("HyperConnection", _STREAMS),
    "add to streams": EngineLayer("HyperConnection", _STREAMS),
    "all_reduce": EngineLayer("RowParallelLinear", _SEND),
    "gather logits": EngineLayer("LogitsProcessor", _SEND),
    "gather tokens": EngineLayer("FusedMoE", _SEND),
    "scatter tokens": EngineLayer("FusedMoE", _SEND),
    "dispatch": EngineLayer("FusedMoE", _SEND),
    "combine": EngineLayer("FusedMoE", _SEND),
}
"""Rows by the kernel's name in `systems.graph`."""

__all__ = [
    "LAYERS",
    "EngineKernel",
    "EngineLayer",
    "LibraryCall",
    "Rule",
    "Uncovered",
    "layer_of",
    "library_calls",
]
