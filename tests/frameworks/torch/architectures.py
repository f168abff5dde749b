"""Which blocks of the architectures people use are replaced by `ops.replace`: docs/modules.md.

    python -m tests.frameworks.torch.architectures [-k PATTERN] [--write]

Every architecture of transformers is made with random weights from a small configuration, replaced,
called, and compared with itself before.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from wavecast import ops

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
        {"d_model": 32, "d_ff": 48, "d_kv": 16, "num_layers": 2, "num_heads": 2, "vocab_size": 50},
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
    """What became of an architecture: classes of blocks by operator, and what stayed and why."""

    name: str
    done: Mapping[str, Counter[str]]
    left: Counter[tuple[str, str]]
    error: float

    def __str__(self) -> str:
        replaced = [
            f"{operator}: {', '.join(f'{count} {what}' for what, count in sorted(found.items()))}"
            for operator, found in sorted(self.done.items())
        ]
        left = [f"{count} {what}: {why}" for (what, why), count in sorted(self.left.items())]
        return f"| {self.name} | {'; '.join(replaced)} | {'; '.join(left)} |"


def row(architecture: Architecture) -> Row:
    """Replace the blocks of a model and call it. The error is that of its first result, relative to
    the largest value."""
    own = architecture.made()
    replaced, inputs = copy.deepcopy(own), architecture.inputs()
    account = ops.replace(replaced)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, found = (first_tensor(model(**inputs)) for model in (own, replaced))
    done: dict[str, Counter[str]] = {}
    for one in account.done:
        done.setdefault(one.operator, Counter())[one.what] += 1
    left = Counter((one.what, one.why) for one in account.left)
    for one in account.pending:
        left[one.what, "no call came to it"] += 1
    error = float((found - expected).abs().max() / expected.abs().max())
    return Row(architecture.name, done, left, error)


def first_tensor(output: Any) -> torch.Tensor:
    """The first tensor of floats that a model returns."""
    return next(
        one for one in output.values() if isinstance(one, torch.Tensor) and one.is_floating_point()
    )


def table(rows: list[Row]) -> str:
    """The section of the page."""
    lines = [
        HEADING,
        "What `wavecast.ops.replace(model)` replaces in models of transformers of two layers with",
        "random weights, after one call: blocks by operator with their number, and what stays. The",
        "results are those of the model before. The table is made by",
        "`python -m tests.frameworks.torch.architectures --write`, and a test compares it.",
        "",
        "| architecture | replaced | stays |",
        "|---|---|---|",
        *map(str, rows),
    ]
    return "\n".join(lines) + "\n"


def section(page: str) -> str:
    """The section in the text of a page."""
    start = page.index(HEADING)
    end = page.find("\n## ", start + 1)
    return page[start : end + 1 if end >= 0 else len(page)].rstrip("\n") + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="What ops.replace replaces, by architecture.")
    parser.add_argument("-k", "--pattern", default="")
    parser.add_argument("--write", action="store_true", help="put the table into docs/modules.md")
    given = parser.parse_args()
    rows = []
    for architecture in ARCHITECTURES:
        if re.search(given.pattern, architecture.name):
            found = row(architecture)
            print(found, f"(error {found.error:.1e})", file=sys.stderr, flush=True)
            rows.append(found)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page.replace(section(page), table(rows)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
