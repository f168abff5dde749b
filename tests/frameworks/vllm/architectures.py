"""What serves the architectures that vLLM generates tokens with: docs/vllm.md.

    python -m tests.frameworks.vllm.architectures [-k PATTERN] [--rows FILE] [--write]

Every architecture is made by transformers with random weights from a small configuration, saved,
and generates tokens through vLLM's engine on an emulated MI300X; its tokens and the logarithms of
their probabilities are compared with those of transformers in float32. Rows that FILE has are not
run again. An engine, and the model it is compared with, have a process for themselves.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

ENVIRONMENT: Final = {
    "WAVECAST_VLLM": "gfx942",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
os.environ.update(ENVIRONMENT)  # vLLM reads it as it is imported

import torch  # noqa: E402

PAGE: Final = Path(__file__).parents[3] / "docs" / "vllm.md"
HEADING: Final = "## Architectures\n"
GPU: Final = "gfx942"
PROMPTS: Final = ([1, 5, 9, 44, 100, 7], list(range(40, 75)))
NEW_TOKENS: Final = 5
NOISE: Final = 2.0
"""How far logarithms of probabilities may be off, as a multiple of how far those of transformers in
bfloat16 are."""
_LIMIT: Final = 900.0
"""Seconds for a process."""

_SIZES: Final[Mapping[str, Any]] = {
    "vocab_size": 512, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
    "initializer_range": 0.2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "tie_word_embeddings": False,
}  # fmt: skip
_TIED: Final = {"tie_word_embeddings": True}
_HEADS: Final = {"head_dim": 32}
_WINDOW: Final = {"sliding_window": 16}
_EXPERTS: Final = {"moe_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 2}
_LOCAL_EXPERTS: Final = {"num_local_experts": 4, "num_experts_per_tok": 2}
_SHARED: Final = {"shared_expert_intermediate_size": 64}
_LATENT: Final = {
    "num_key_value_heads": 4, "q_lora_rank": 64, "kv_lora_rank": 256, "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 64, "v_head_dim": 32, "initializer_range": 0.1,
}  # fmt: skip
_ROUTED: Final = {
    "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "moe_intermediate_size": 64, "num_experts_per_tok": 2,
}  # fmt: skip
_MLA: Final = {**_LATENT, **_ROUTED}
_INDEXER: Final = {"index_n_heads": 64, "index_head_dim": 128, "index_topk": 16}
_SOFTMAX: Final = {"scoring_func": "softmax", "moe_layer_freq": 1}
_SIGMOID: Final = {"scoring_func": "sigmoid", "topk_method": "noaux_tc", "moe_layer_freq": 1}
_MIXED: Final = ["linear_attention", "full_attention"]
_DELTA: Final = {
    "linear_key_head_dim": 32, "linear_value_head_dim": 32, "linear_num_key_heads": 2,
    "linear_num_value_heads": 4, "linear_conv_kernel_dim": 4, "layer_types": _MIXED,
}  # fmt: skip
_MAMBA: Final = {
    "mamba_n_heads": 8, "mamba_d_head": 32, "mamba_n_groups": 1, "mamba_d_state": 16,
    "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 16,
}  # fmt: skip
_OLD: Final = {"n_embd": 128, "n_layer": 2, "n_head": 4, "n_positions": 256, "n_inner": 256}


@dataclass(frozen=True)
class EngineModel:
    """A model class of transformers and the values of its small configuration; `written` has what
    vLLM reads of a configuration and that of transformers lacks."""

    model: str
    config: str
    values: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def also(self, **written: Any) -> EngineModel:
        """The model with more in its file of the configuration, which vLLM reads."""
        return replace(self, written=written)

    def seeded(self, seed: int) -> EngineModel:
        """The model with other random weights: of some, two experts are as good for a token."""
        return replace(self, seed=seed)

    @property
    def name(self) -> str:
        """`Llama` of LlamaForCausalLM."""
        return re.sub(r"(For\w+|LMHeadModel|Model)$", "", self.model)

    def made(self) -> Any:
        """The model in float32 with random weights that bfloat16 has, for inference."""
        import transformers

        torch.manual_seed(self.seed)
        config = getattr(transformers, self.config)(**{**_SIZES, **self.values})
        model = getattr(transformers, self.model)(config).eval().float()
        _round(model)
        return model

    def save(self, folder: Path) -> None:
        """Write the checkpoint that the engine loads."""
        from tests.frameworks.vllm.models import cast_parameters

        model = self.made()
        cast_parameters(model, torch.bfloat16)
        model.save_pretrained(folder)
        path = folder / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**config, **self.written}), encoding="utf-8")


def _round(model: Any) -> None:
    """Have parameters be values of bfloat16, and matrices no constants."""
    for one in model.parameters():
        if one.ndim > 1 and float(one.detach().std()) == 0:  # routers that would choose by chance
            one.data.normal_(std=0.2)
        one.data = one.data.to(torch.bfloat16).float()


def _causal(kind: str, settings: str = "", /, **values: Any) -> EngineModel:
    return EngineModel(f"{kind}ForCausalLM", settings or f"{kind}Config", values)


MODELS: Final = (
    _causal("Llama"),
    _causal("Mistral", **_HEADS, **_WINDOW),
    _causal("Ministral3", **_HEADS),
    _causal("Mixtral", **_LOCAL_EXPERTS),
    _causal("Qwen2"),
    _causal("Qwen2Moe", **_EXPERTS, **_SHARED),
    _causal("Qwen3", **_HEADS),
    _causal("Qwen3Moe", **_HEADS, **_EXPERTS),
    _causal("Qwen3Next", **_HEADS, **_EXPERTS, **_SHARED, **_DELTA),
    _causal("Qwen3_5", "Qwen3_5TextConfig", **_HEADS, **_DELTA),
    _causal("Gemma", **_HEADS),
    _causal("Gemma2", **_HEADS, **_WINDOW, **_TIED),
    _causal("Gemma3", "Gemma3TextConfig", **_HEADS, **_WINDOW),
    _causal("Gemma4", "Gemma4TextConfig", **_HEADS, **_WINDOW),
    _causal("DeepseekV2", **_MLA, topk_method="group_limited_greedy").also(**_SOFTMAX),
    _causal("DeepseekV3", **_MLA).also(**_SIGMOID),
    _causal("DeepseekV32", **_MLA, **_INDEXER).also(**_SIGMOID),
    _causal("DeepseekV4"),
    _causal("GptOss", **_HEADS, **_WINDOW, **_LOCAL_EXPERTS),
    _causal("Glm", **_HEADS),
    _causal("Glm4", **_HEADS),
    _causal("Glm4Moe", **_HEADS, **_ROUTED),
    _causal("Glm4MoeLite", **_MLA),
    _causal("GlmMoeDsa", **_MLA, **_INDEXER)
    .also(**_SIGMOID, indexer_rope_interleave=True)
    .seeded(3),
    _causal("MiniMaxM2", **_HEADS, **_LOCAL_EXPERTS, rotary_dim=16).also(
        scoring_func="sigmoid", use_routing_bias=True
    ),
    _causal(
        "KimiLinear",
        **{key: value for key, value in _LATENT.items() if key != "q_lora_rank"},
        **_EXPERTS,
        linear_head_dim=32,
        linear_num_heads=4,
        layer_types=_MIXED,
        mlp_layer_types=["sparse", "sparse"],
    ).also(
        mla_use_nope=True,
        max_position_embeddings=256,
        first_k_dense_replace=0,
        linear_attn_config={
            "kda_layers": [1],
            "full_attn_layers": [2],
            "head_dim": 32,
            "num_heads": 4,
            "short_conv_kernel_size": 4,
        },
    ),
    _causal("Mamba", state_size=16),
    _causal("FalconMamba", state_size=16),
    _causal("Mamba2", num_heads=8, head_dim=32, state_size=16, n_groups=1, chunk_size=16),
    _causal("Bamba", **_MAMBA, attn_layer_indices=[1]),
    _causal("FalconH1", **_MAMBA, mamba_d_ssm=256),
    _causal(
        "GraniteMoeHybrid",
        **_MAMBA,
        **_LOCAL_EXPERTS,
        shared_intermediate_size=64,
        layer_types=["mamba", "attention"],
    ),
    _causal(
        "NemotronH",
        **_HEADS,
        layers_block_type=["linear_attention", "full_attention", "moe", "mlp"],
        ssm_state_size=16,
        mamba_num_heads=8,
        mamba_head_dim=32,
        n_groups=1,
        chunk_size=16,
        n_routed_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=64,
        moe_shared_expert_intermediate_size=64,
    ),
    _causal(
        "Jamba",
        num_experts=4,
        num_experts_per_tok=2,
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        mamba_d_state=16,
        mamba_dt_rank=8,
        use_mamba_kernels=False,
    ),
    _causal(
        "Lfm2",
        layer_types=["conv", "full_attention"],
        block_auto_adjust_ff_dim=False,
        **_TIED,
    ).also(conv_dim=128, block_dim=128),
    _causal(
        "Lfm2Moe",
        layer_types=["conv", "full_attention"],
        moe_intermediate_size=64,
        num_experts=4,
        num_experts_per_tok=2,
        num_dense_layers=1,
        **_TIED,
    ).seeded(1),
    _causal("OlmoHybrid", **_DELTA),
    _causal("Phi"),
    _causal("Phi3"),
    _causal("Phimoe", **_LOCAL_EXPERTS),
    _causal("Cohere", **_TIED),
    # vLLM's windows of this model hold one token more than transformers'
    _causal("Cohere2", **_HEADS, **_WINDOW, **_TIED).also(sliding_window=15),
    _causal("Granite"),
    _causal("GraniteMoe", **_LOCAL_EXPERTS),
    _causal("GraniteMoeShared", **_LOCAL_EXPERTS, shared_intermediate_size=64),
    _causal("Olmo"),
    _causal("Olmo2"),
    _causal("Olmo3", **_WINDOW),
    _causal("Olmoe", num_experts=4, num_experts_per_tok=2),
    _causal("FlexOlmo", num_experts=4, num_experts_per_tok=2),
    _causal("SmolLM3", **_HEADS),
    _causal("StableLm"),
    _causal("Starcoder2"),
    _causal("GPTNeoX"),
    _causal("Falcon", num_kv_heads=1),
    EngineModel("GPT2LMHeadModel", "GPT2Config", _OLD),
    EngineModel("GPTBigCodeForCausalLM", "GPTBigCodeConfig", _OLD),
    EngineModel("GPTJForCausalLM", "GPTJConfig", {**_OLD, "rotary_dim": 16}),
    _causal("OPT", ffn_dim=256, word_embed_proj_dim=128),
    _causal("Bloom", n_layer=2, n_head=4, **_TIED),
    _causal("Nemotron"),
    _causal("Ernie4_5", **_HEADS),
    _causal(
        "Ernie4_5_Moe",
        moe_num_experts=4,
        moe_k=2,
        moe_intermediate_size=64,
        moe_layer_start_index=1,
        moe_layer_end_index=1,
    ),
    _causal("HunYuanDenseV1", **_HEADS),
    _causal("HunYuanMoEV1", **_HEADS, num_experts=4, moe_topk=2),
    _causal("Exaone4", **_HEADS, **_WINDOW, layer_types=["sliding_attention", "full_attention"]),
    _causal("ExaoneMoe", **_HEADS, **_EXPERTS, **_WINDOW),
    _causal("Apertus"),
    _causal("Arcee"),
    _causal("SeedOss", **_HEADS),
    _causal("Dots1", **_HEADS, **_ROUTED),
    _causal(
        "Llama4",
        "Llama4TextConfig",
        **_HEADS,
        num_local_experts=4,
        num_experts_per_tok=1,
        intermediate_size_mlp=256,
    ),
    _causal("Helium", **_HEADS),
    _causal("VaultGemma", **_HEADS, **_WINDOW, **_TIED),
)


@dataclass(frozen=True)
class EngineRow:
    """What became of an architecture: operators of the library by layer, Triton kernels of vLLM,
    what PyTorch computed, tokens that are those of transformers of all, the largest error of a
    logarithm of a probability as a multiple of bfloat16's; or why there is none."""

    name: str
    operators: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    torch: tuple[str, ...] = ()
    same: int = 0
    error: float = math.inf
    through: str = ""
    why: str = ""
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the tokens were generated and are right."""
        return not self.why and self.error <= NOISE

    def __str__(self) -> str:
        if not self.right:
            return f"| {self.name} | – | {REASONS.get(self.name) or self.why} | | |"
        name = f"{self.name} ({self.through})" if self.through else self.name
        operators = [one for one in self.operators if one not in _ALWAYS]
        cells = (operators, self.kernels, self.torch)
        tokens = f"{self.same}, {self.error:.1f}"
        return " | ".join((f"| {name}", tokens, *map(", ".join, cells))) + " |"


_ALWAYS: Final = ("embedding", "matmul", "top_k_top_p_sample")
"""Operators of every architecture."""
REASONS: Final = {
    "Qwen3_5": (
        "vLLM needs torchvision for it, which the installation for CPUs lacks; with all of vLLM's "
        "dependencies its tokens are right (10, 0.6)"
    ),
    "DeepseekV4": "vLLM's model makes CUDA streams; its form for AMD needs AITER",
    "Bamba": "vLLM 0.33 has no layers for it, and cannot run those of transformers",
    "NemotronH": "vLLM refuses experts without a gate on platforms that are not its own",
    "OlmoHybrid": "names of weights that transformers 5.20 writes are not those vLLM reads",
    "Phimoe": "transformers 5.20 fails in its own model: no reference",
    "GPTNeoX": "vLLM's form of it, through transformers, is wrong with vLLM's own layers, too",
    "GPTBigCode": "vLLM runs it through transformers and takes its one head of keys for two",
}
"""Why an architecture does not generate tokens."""
_COMPUTED: Final = {
    "mm": "products", "addmm": "products", "bmm": "products", "baddbmm": "products",
    "convolution": "convolutions", "native_layer_norm": "layer_norm", "rsqrt": "norms",
    "_softmax": "softmax", "_log_softmax": "softmax", "gelu": "gelu", "silu": "silu",
    "relu": "relu", "relu_": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "softplus": "softplus",
    "exp": "exp", "topk": "topk", "cumsum": "cumsum", "embedding": "embedding", "cos": "rotations",
}  # fmt: skip
"""What operators of PyTorch are called in the table; elementwise sums and products are left out."""


def _computed(events: Iterable[Any]) -> set[str]:
    """What PyTorch computed in the events of a profile, but for what operators of the library do
    (their checks of values)."""
    names = set()
    for event in events:
        name, parent = event.name.removeprefix("aten::"), event
        while parent is not None and not parent.name.startswith("wavecast::"):
            parent = parent.cpu_parent
        if parent is None and name in _COMPUTED:
            names.add(_COMPUTED[name])
    return names


def _generate(folder: Path) -> dict[str, Any]:
    """Tokens that the engine generates with the checkpoint of a folder, logarithms of probabilities
    of these and others, and what served."""
    import vllm
    from triton.runtime.jit import JITFunction

    from wavecast.frameworks.vllm import served, worker

    kernels: Counter[str] = Counter()
    run = JITFunction.run

    def counted(function: Any, *args: Any, **kwargs: Any) -> Any:
        if function.fn.__module__.startswith("vllm"):
            kernels[function.fn.__name__] += 1
        return run(function, *args, **kwargs)

    llm = vllm.LLM(
        str(folder),
        skip_tokenizer_init=True,
        dtype="bfloat16",
        max_model_len=128,
        max_num_seqs=4,
        enforce_eager=True,
    )
    executor = llm.llm_engine.engine_core.engine_core.model_executor
    model = executor.driver_worker.worker.model_runner.model
    sampling = vllm.SamplingParams(
        temperature=0.0, max_tokens=NEW_TOKENS, ignore_eos=True, detokenize=False, logprobs=5
    )
    served.calls.clear()
    JITFunction.run = counted
    forward, profiles = model.forward, []

    def watched_forward(*args: Any, **kwargs: Any) -> Any:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            result = forward(*args, **kwargs)
        profiles.append(profile.events())
        return result

    model.forward = watched_forward
    with worker.emulate_gpu():
        prompts = [{"prompt_token_ids": one} for one in PROMPTS]
        outputs = [one.outputs[0] for one in llm.generate(prompts, sampling, use_tqdm=False)]
    return {
        "tokens": [list(one.token_ids) for one in outputs],
        "logarithms": [
            [{key: value.logprob for key, value in step.items()} for step in one.logprobs]
            for one in outputs
        ],
        "operators": sorted({operator for _, operator in served.calls}),
        "kernels": sorted(kernels),
        "torch": sorted(set().union(*map(_computed, profiles))),
        "through": "transformers" if type(model).__name__.startswith("Transformers") else "",
    }


def _compared(architecture: EngineModel, found: Mapping[str, Any]) -> tuple[int, float]:
    """Tokens that are those of transformers in float32, and the largest error of a logarithm of a
    probability, as a multiple of that of transformers in bfloat16 for the same tokens."""
    from tests.frameworks.vllm.models import cast_parameters

    model, same, error, noise = architecture.made(), 0, 0.0, 0.0
    for prompt, tokens, steps in zip(PROMPTS, found["tokens"], found["logarithms"], strict=True):
        text = torch.tensor([[*prompt, *tokens]])
        rows = slice(len(prompt) - 1, -1)
        exact, rough = [], []
        for dtype, results in ((torch.float32, exact), (torch.bfloat16, rough)):
            cast_parameters(model, dtype)
            with torch.no_grad():
                logits = model(text, use_cache=False).logits[0, rows]
            results.extend(logits.float().log_softmax(-1))
        for row, other, token, step in zip(exact, rough, tokens, steps, strict=True):
            same += int(row.argmax()) == token
            places = torch.tensor([int(key) for key in step])
            values = torch.tensor(list(step.values()))
            error = max(error, float((row[places] - values).abs().max()))
            noise = max(noise, float((row - other).abs().max()))
        cast_parameters(model, torch.float32)
    return same, error / noise


def row(architecture: EngineModel) -> EngineRow:
    """Make a model, generate tokens with it, and compare them."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            _apart(architecture.save, folder)
            found = _apart(_generate, folder)
            same, error = _apart(_compared, architecture, found)
        except RuntimeError as failure:
            return EngineRow(architecture.name, why=str(failure))
    return EngineRow(
        architecture.name,
        *(tuple(found[key]) for key in ("operators", "kernels", "torch")),
        same,
        error,
        found["through"],
        seconds=time.monotonic() - start,
    )


def _apart(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call in a process for itself. Raises RuntimeError with what it raised."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(there, call, args))
    process.start()
    there.close()
    try:
        failed, result = here.recv() if here.poll(_LIMIT) else (True, f"takes over {_LIMIT:.0f} s")
    except EOFError:
        failed, result = True, "its process died"
    process.kill()
    process.join()
    if failed:
        raise RuntimeError(result)
    return result


def _send(there: Any, call: Callable[..., Any], args: Sequence[Any]) -> None:
    try:
        there.send((False, call(*args)))
    except Exception as error:  # whatever it is becomes the row's text
        if os.environ.get("TRACEBACK"):
            import traceback

            traceback.print_exc()
        there.send((True, f"{type(error).__name__}: {error}"))
    there.close()
    os._exit(0)  # engines have threads


def table(rows: Sequence[EngineRow]) -> str:
    """The section of the page."""
    tokens = len(PROMPTS) * NEW_TOKENS
    lines = [
        HEADING,
        "Models of two layers with random weights from small configurations generate",
        f"{tokens} tokens of two prompts through `vllm.LLM` on an emulated MI300X, in bfloat16.",
        "How many are those of transformers in float32, and the largest error of a logarithm of a",
        "probability, as a multiple of that of transformers in bfloat16, are in the second column;",
        f"errors above {NOISE:.0f} count as failures. The others say what served: operators of",
        "the library (next to those of all: " + ", ".join(f"`{one}`" for one in _ALWAYS) + "),",
        "Triton kernels of vLLM, which the emulator runs too, and what PyTorch computes on the",
        "CPU, elementwise sums and products aside. Models that vLLM runs in the form of",
        "transformers say so: of those the library has what vLLM's layers replace. The table is",
        "made by `python -m tests.frameworks.vllm.architectures --rows FILE --write`, which",
        "continues where it was interrupted; a row takes 10 to 60 seconds, most of them for",
        "compilers.",
        "",
        "| architecture | tokens, error | operators | kernels of vLLM | PyTorch |",
        "|---|---|---|---|---|",
        *map(str, rows),
    ]
    return "\n".join(lines) + "\n"


def section(page: str) -> str:
    """The section in the text of a page."""
    start = page.index(HEADING)
    end = page.find("\n## ", start + 1)
    return page[start : end + 1 if end >= 0 else len(page)].rstrip("\n") + "\n"


def stored(file: Path | None) -> dict[str, EngineRow]:
    """The rows of a file, a JSON object in each line, by name."""
    if file is None or not file.exists():
        return {}
    lines = file.read_text(encoding="utf-8").splitlines()
    return {one.name: one for one in (EngineRow(**json.loads(line)) for line in lines)}


def main() -> int:
    parser = argparse.ArgumentParser(description="What serves the architectures of vLLM.")
    parser.add_argument("-k", "--pattern", default="", help="of the names to run")
    parser.add_argument("--rows", type=Path, help="a file that rows are added to")
    parser.add_argument("--write", action="store_true", help="put the table into docs/vllm.md")
    options = parser.parse_args()
    rows = stored(options.rows)
    chosen = [one for one in MODELS if re.search(options.pattern, one.name)]
    for architecture in chosen:
        if architecture.name not in rows:
            rows[architecture.name] = row(architecture)
            if options.rows is not None:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(rows[architecture.name])) + "\n")
        result = rows[architecture.name]
        print(result, "" if result.right else f"({result.why}, error {result.error})", flush=True)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        text = table([rows[one.name] for one in MODELS])
        PAGE.write_text(page.replace(section(page), text), encoding="utf-8")
    return 0 if all(rows[one.name].right or one.name in REASONS for one in chosen) else 1


if __name__ == "__main__":
    import vllm.v1.engine.core
    import vllm.v1.worker.gpu_model_runner  # noqa: F401

    sys.exit(main())
