"""Which blocks of the architectures people use are operators of the library: docs/modules.md.

    python -m tests.frameworks.torch.architectures [-k PATTERN] [--rows FILE] [--write] \\
        [--backend wavecast] [--device gfx942]

Every architecture of transformers is made with random weights from a small configuration, replaced
by `ops.replace` and by the graph pass of `torch.compile`, called, and compared with itself before:
results, tokens that it generates, and the logits of each. Rows that FILE has are not run again.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

import wavecast
from wavecast import ops
from wavecast.frameworks.torch import inductor
from wavecast.frameworks.torch.replaced import Replaced

PAGE: Final = Path(__file__).parents[3] / "docs" / "modules.md"
HEADING: Final = "## Architectures of transformers\n"

_DECODER: Final[Mapping[str, Any]] = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 50, "max_position_embeddings": 64, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_HEADS: Final = {"head_dim": 16}
_EXPERTS: Final = {"moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_tok": 2}
_ENCODER: Final = {key: value for key, value in _DECODER.items() if "key_value" not in key}
_OLD: Final = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 64}


def _tokens() -> dict[str, Any]:
    return {"input_ids": torch.randint(3, 50, (2, 9))}


def _both() -> dict[str, Any]:
    return {**_tokens(), "decoder_input_ids": torch.randint(3, 50, (2, 5))}


def _image() -> dict[str, Any]:
    return {"pixel_values": torch.randn(1, 3, 16, 16)}


def _image_and_tokens() -> dict[str, Any]:
    return {**_image(), **_tokens()}


def _spectrum() -> dict[str, Any]:
    return {
        "input_features": torch.randn(1, 8, 40),
        "decoder_input_ids": torch.randint(3, 50, (1, 5)),
    }


@dataclass(frozen=True)
class Architecture:
    """A model class of transformers, the values of its small configuration, and what it is called
    with."""

    model: str
    config: str
    values: Mapping[str, Any] = field(default_factory=dict)
    inputs: Callable[[], dict[str, Any]] = _tokens

    @property
    def name(self) -> str:
        """`Llama` of LlamaForCausalLM."""
        return re.sub(r"(For\w+|LMHeadModel|Model)$", "", self.model)

    def made(self) -> Any:
        """The model with random weights, for inference."""
        import transformers

        torch.manual_seed(0)
        config = getattr(transformers, self.config)(**self.values)
        return getattr(transformers, self.model)(config).eval()


def _causal(name: str, **values: Any) -> Architecture:
    return Architecture(f"{name}ForCausalLM", f"{name}Config", {**_DECODER, **values})


def _encoder(name: str, model: str = "ForMaskedLM", **values: Any) -> Architecture:
    return Architecture(f"{name}{model}", f"{name}Config", {**_ENCODER, **values})


_SEQ2SEQ: Final = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "vocab_size": 50,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1,
}  # fmt: skip
_IMAGE: Final = {"image_size": 16, "patch_size": 8}
_MLA: Final = {
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
    "v_head_dim": 8, "n_routed_experts": 4, "n_group": 1, "topk_group": 1,
    "first_k_dense_replace": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
    "num_key_value_heads": 2,
}  # fmt: skip

_INDEXER: Final = ("index_n_heads", "index_head_dim", "index_topk")
_SPARSE_MLA: Final = {**_MLA, **dict(zip(_INDEXER, (2, 16, 4), strict=True))}
_ROUTED: Final = (
    "n_routed_experts", "n_group", "topk_group", "first_k_dense_replace", "num_experts_per_tok",
    "moe_intermediate_size",
)  # fmt: skip
_LATENT: Final = (
    "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "num_key_value_heads",
)  # fmt: skip
_MAMBA: Final = {
    "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8,
    "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 8,
}  # fmt: skip

ARCHITECTURES: Final = (
    _causal("Llama"),
    _causal("Mistral", **_HEADS, sliding_window=4),
    _causal("Mixtral", num_local_experts=4),
    _causal("Qwen2"),
    _causal("Qwen2Moe", **_EXPERTS, shared_expert_intermediate_size=24),
    _causal("Qwen3", **_HEADS),
    _causal("Qwen3Moe", **_HEADS, **_EXPERTS),
    _causal("Gemma", **_HEADS),
    _causal("Gemma2", **_HEADS, sliding_window=4),
    Architecture(
        "Gemma3ForCausalLM", "Gemma3TextConfig", {**_DECODER, **_HEADS, "sliding_window": 4}
    ),
    _causal("DeepseekV3", **_MLA),
    _causal("GptOss", **_HEADS, num_local_experts=4, num_experts_per_tok=2, sliding_window=4),
    _causal("DeepseekV32", **_SPARSE_MLA),
    _causal(
        "DeepseekV4",
        **{key: _SPARSE_MLA[key] for key in _INDEXER},
        head_dim=32,
        q_lora_rank=16,
        o_lora_rank=16,
        o_groups=2,
        hc_mult=2,
        moe_intermediate_size=24,
        n_routed_experts=4,
        num_experts_per_tok=2,
        sliding_window=4,
        partial_rotary_factor=0.25,
        compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": 8},
        layer_types=["heavily_compressed_attention", "compressed_sparse_attention"],
        mlp_layer_types=["hash_moe", "moe"],
    ),
    _causal("Glm4Moe", **_HEADS, **{key: _MLA[key] for key in _ROUTED}),
    _causal("GlmMoeDsa", **_SPARSE_MLA),
    _causal("MiniMaxM2", **_HEADS, num_local_experts=4, num_experts_per_tok=2),
    Architecture(
        "MiniMaxM3VLForCausalLM",
        "MiniMaxM3VLTextConfig",
        {
            **_DECODER,
            **_HEADS,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "dense_intermediate_size": 48,
            "shared_intermediate_size": 24,
            "rotary_dim": 8,
            "index_n_heads": 1,
            "index_head_dim": 16,
            "index_block_size": 4,
            "index_topk_blocks": 2,
            "mlp_layer_types": ["dense", "sparse"],
        },
    ),
    _causal(
        "Qwen3Next",
        **_HEADS,
        **_EXPERTS,
        shared_expert_intermediate_size=24,
        linear_key_head_dim=16,
        linear_value_head_dim=16,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        layer_types=["linear_attention", "full_attention"],
    ),
    _causal(
        "KimiLinear",
        **{key: _MLA[key] for key in _LATENT},
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=24,
        linear_head_dim=16,
        linear_num_heads=2,
        layer_types=["linear_attention", "full_attention"],
    ),
    _causal("Mamba2", num_heads=4, head_dim=16, state_size=8, n_groups=1, chunk_size=8),
    _causal("Bamba", **_MAMBA, attn_layer_indices=[1]),
    _causal("FalconH1", **_MAMBA, mamba_d_ssm=64),
    _causal(
        "GraniteMoeHybrid",
        **_MAMBA,
        num_local_experts=4,
        num_experts_per_tok=2,
        shared_intermediate_size=24,
        layer_types=["mamba", "attention"],
    ),
    _causal(
        "NemotronH",
        **_HEADS,
        layers_block_type=["linear_attention", "full_attention", "moe", "mlp"],
        ssm_state_size=8,
        mamba_num_heads=4,
        mamba_head_dim=16,
        n_groups=1,
        chunk_size=8,
        n_routed_experts=4,
        moe_intermediate_size=24,
        moe_shared_expert_intermediate_size=24,
    ),
    _causal("Phi"),
    _causal("Phi3"),
    _causal("Cohere2", **_HEADS, sliding_window=4),
    _causal("Glm4", **_HEADS),
    _causal("Granite"),
    _causal("Olmo2"),
    _causal("SmolLM3", **_HEADS),
    _causal("StableLm"),
    _causal("Starcoder2"),
    _causal("GPTNeoX"),
    _causal("Falcon", num_kv_heads=1),
    Architecture("GPT2LMHeadModel", "GPT2Config", _OLD),
    _causal("OPT", ffn_dim=48, word_embed_proj_dim=32),
    _encoder("Bert"),
    _encoder("Roberta", max_position_embeddings=66),
    _encoder("ModernBert", pad_token_id=0, cls_token_id=1, sep_token_id=2, local_attention=8),
    Architecture(
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "d_model": 32,
            "d_ff": 48,
            "d_kv": 16,
            "num_layers": 2,
            "num_heads": 2,
            "vocab_size": 50,
            "decoder_start_token_id": 0,
        },
        _both,
    ),
    Architecture("BartForConditionalGeneration", "BartConfig", _SEQ2SEQ, _both),
    Architecture(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {**_SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20},
        _spectrum,
    ),
    Architecture("ViTModel", "ViTConfig", {**_ENCODER, **_IMAGE}, _image),
    Architecture("Dinov2Model", "Dinov2Config", {**_ENCODER, **_IMAGE}, _image),
    Architecture(
        "CLIPModel",
        "CLIPConfig",
        {
            "text_config": {**_ENCODER, "projection_dim": 16},
            "vision_config": {**_ENCODER, **_IMAGE, "projection_dim": 16},
            "projection_dim": 16,
        },
        _image_and_tokens,
    ),
)


@dataclass(frozen=True)
class Row:
    """What became of an architecture: the cells of its line, the largest error of a result relative
    to the largest value, and whether all tokens are the same."""

    name: str
    replaced: str
    in_graphs: str
    stays: str
    error: float
    same_tokens: bool

    def __str__(self) -> str:
        return f"| {self.name} | {self.replaced} | {self.in_graphs} | {self.stays} |"


_NEW_TOKENS: Final = 3
_BACKENDS: Final = ("graphs", "wavecast")
"""The graph pass alone, whose graphs are run node by node; and Inductor after it."""


def row(architecture: Architecture, backend: str = "graphs", device: str = "") -> Row:
    """Replace the blocks of a model and call it, then put operators into its graphs; on an emulated
    GPU if one is named."""
    own = architecture.made()
    replaced, compiled = copy.deepcopy(own), copy.deepcopy(own)
    torch.manual_seed(1)
    inputs = architecture.inputs()
    account, in_graphs = ops.replace(replaced), Replaced()
    torch._dynamo.reset()
    compiled.forward = torch.compile(compiled.forward, backend=_backend(backend, in_graphs))
    error, same = 0.0, True
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, tokens = results(own, inputs), generated(own, inputs)
        for model in (replaced, compiled):
            with wavecast.device(device) if device else contextlib.nullcontext():
                others = results(model, inputs)
                if model is compiled:
                    in_graphs = copy.copy(in_graphs)
                    in_graphs.done, in_graphs.left = [*in_graphs.done], [*in_graphs.left]
                also = generated(model, inputs)
            pairs = zip((expected, *tokens[1]), (others, *also[1]), strict=True)
            error = max(error, *(_difference(one, other) for one, other in pairs))
            same = same and torch.equal(tokens[0], also[0])
    left = Counter((one.what, one.why) for one in account.left)
    for one in account.pending:
        left[one.what, "no call came to it"] += 1
    return Row(
        architecture.name,
        "; ".join(_blocks(account)),
        _counted(Counter(one.operator for one in in_graphs.done)),
        "; ".join(f"{count} {what}: {why}" for (what, why), count in sorted(left.items())),
        error,
        same,
    )


def _blocks(account: Replaced) -> list[str]:
    """`matmul: 15 Linear`, by operator."""
    done: dict[str, Counter[str]] = {}
    for one in account.done:
        done.setdefault(one.operator, Counter())[one.what] += 1
    return [f"{operator}: {_counted(classes)}" for operator, classes in sorted(done.items())]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


def _backend(name: str, account: Replaced) -> Any:
    """A backend of `torch.compile` that enters what it does into an account."""

    def compile_graph(graph: Any, inputs: Any) -> Any:
        rewriting = ops.inductor_pass()
        rewriting.replaced = account
        if name == "graphs":
            rewriting(graph.graph)
            graph.recompile()
            return graph.forward
        rewriting(copy.deepcopy(graph.graph))
        return inductor.compile_graph(graph, inputs)

    return compile_graph


def _difference(expected: torch.Tensor, other: torch.Tensor) -> float:
    return float((other - expected).abs().max() / expected.abs().max())


def results(model: Any, inputs: Mapping[str, Any]) -> torch.Tensor:
    """The first result of a call."""
    return first_tensor(model(**inputs))


def generated(model: Any, inputs: Mapping[str, Any]) -> tuple[torch.Tensor, tuple[Any, ...]]:
    """Greedy tokens of a model that generates any, and the logits of each."""
    if not model.can_generate():
        return torch.empty(0), ()
    start = {key: one for key, one in inputs.items() if key != "decoder_input_ids"}
    options = {"max_new_tokens": _NEW_TOKENS, "min_new_tokens": _NEW_TOKENS, "pad_token_id": 0}
    output = model.generate(
        **start, do_sample=False, return_dict_in_generate=True, output_logits=True, **options
    )
    return output.sequences, output.logits


def first_tensor(output: Any) -> torch.Tensor:
    """The first tensor of floats that a model returns."""
    return next(
        one for one in output.values() if isinstance(one, torch.Tensor) and one.is_floating_point()
    )


def table(rows: list[Row]) -> str:
    """The section of the page."""
    lines = [
        HEADING,
        "What becomes of models of transformers of two layers with random weights: the blocks that",
        "`wavecast.ops.replace(model)` replaces, by operator with their number; the operators that",
        '`torch.compile(model, backend="wavecast")` puts into graphs of a call without a cache;',
        "and the blocks that `replace` leaves. Results and three generated tokens are those of the",
        "model before, and so are the logits of each. The table is made by",
        "`python -m tests.frameworks.torch.architectures --rows FILE --write`, which continues",
        "where it was interrupted, and a test compares it.",
        "",
        "| architecture | replaced | in graphs | stays |",
        "|---|---|---|---|",
        *map(str, rows),
    ]
    return "\n".join(lines) + "\n"


def section(page: str) -> str:
    """The section in the text of a page."""
    start = page.index(HEADING)
    end = page.find("\n## ", start + 1)
    return page[start : end + 1 if end >= 0 else len(page)].rstrip("\n") + "\n"


def stored(file: Path | None) -> dict[str, Row]:
    """The rows of a file, a JSON object in each line, by name."""
    if file is None or not file.exists():
        return {}
    lines = file.read_text(encoding="utf-8").splitlines()
    return {one.name: one for one in (Row(**json.loads(line)) for line in lines)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Operators by architecture.")
    parser.add_argument("-k", "--pattern", default="")
    parser.add_argument("--rows", type=Path, help="a file that rows are added to")
    parser.add_argument("--backend", choices=_BACKENDS, default="graphs")
    parser.add_argument("--device", default="", help="an emulated GPU that runs the operators")
    parser.add_argument("--write", action="store_true", help="put the table into docs/modules.md")
    options = parser.parse_args()
    rows = stored(options.rows)
    chosen = [one for one in ARCHITECTURES if re.search(options.pattern, one.name)]
    for architecture in chosen:
        if architecture.name not in rows:
            result = row(architecture, options.backend, options.device)
            rows[result.name] = result
            if options.rows is not None:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(result)) + "\n")
        result = rows[architecture.name]
        tokens = "same tokens" if result.same_tokens else "OTHER TOKENS"
        print(result, f"(error {result.error:.1e}, {tokens})", file=sys.stderr, flush=True)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        text = table([rows[one.name] for one in ARCHITECTURES])
        PAGE.write_text(page.replace(section(page), text), encoding="utf-8")
    return 0 if all(rows[one.name].same_tokens for one in chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
