"""What `ops.replace(model, inputs=...)` promises, against the launches of the replaced model.

    python benchmarks/replaced_models.py [SYSTEM] [MODEL ...]

Each model of Hugging Face's classes (two layers, bf16, random weights) is promised times before and
after, from its graph without values. Then it is replaced and called, its launches of Triton are
captured on the way and predicted one by one from their machine code: their sum belongs in the place
of the library's share of the promise. A line per model: promised times, the speedup, the launches,
the total with theirs, and whether it is in the promise's interval.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import transformers

import wavecast
from wavecast.arch.systems import system as find_system
from wavecast.pipeline.explain.steps import Given, explain_launch
from wavecast.pipeline.models.replacing import ReplacedModule
from wavecast.runtimes.triton import capture

TOKENS = 512
BATCH = 2
_SIZES: dict[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 8000,
    "max_position_embeddings": 2048,
}
_EXPERTS: dict[str, Any] = {
    "num_experts": 16,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 512,
}


def _causal(kind: str, config: str = "", **sizes: Any) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        made = getattr(transformers, config or f"{kind}Config")(**{**_SIZES, **sizes})
        return getattr(transformers, f"{kind}ForCausalLM")(made)

    return make


def _encoder(kind: str, **sizes: Any) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        config = getattr(transformers, f"{kind}Config")(**sizes)
        return getattr(transformers, f"{kind}Model")(config)

    return make


_WIDE: dict[str, Any] = {
    name: _SIZES[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")
}
MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "Llama": _causal("Llama"),
    "Mistral": _causal("Mistral", sliding_window=256),
    "Qwen3": _causal("Qwen3", head_dim=64),
    "Gemma3": _causal("Gemma3", "Gemma3TextConfig", head_dim=64, sliding_window=256),
    "Olmo2": _causal("Olmo2"),
    "Phi3": _causal("Phi3", pad_token_id=0),
    "Qwen3Moe": _causal("Qwen3Moe", head_dim=64, **_EXPERTS),
    "GPT2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=1024, n_layer=2, n_head=16, vocab_size=8000)
    ),
    "Bert": _encoder("Bert", **_WIDE, intermediate_size=4096, vocab_size=8000),
    "ViT": _encoder("ViT", **_WIDE, intermediate_size=4096),
}


def _inputs(model: torch.nn.Module) -> Any:
    """What a model is called with; nothing is computed with it before it is replaced."""
    torch.manual_seed(0)
    if isinstance(model, transformers.ViTModel):
        return torch.randn(BATCH, 3, 224, 224, dtype=torch.bfloat16)
    return torch.randint(0, 8000, (BATCH, TOKENS))


def _check(name: str, system: str) -> str:
    """The line of a model."""
    torch.manual_seed(0)
    model = MODELS[name]().bfloat16().eval()
    inputs = _inputs(model)
    account = wavecast.ops.replace(model, inputs=inputs, system=system)
    promise = account.predicted
    assert isinstance(promise, ReplacedModule)
    device = find_system(system).device
    with torch.no_grad(), capture(device) as launches:
        model(inputs)
    given = Given(outcomes=False)
    explained = [explain_launch(launch, device, given) for launch in launches]
    unknown = sum(launch.predicted.prediction is None for launch in explained)
    launched = sum(
        e.predicted.prediction.seconds * (e.launch.count if e.launch else 1)
        for e in explained
        if e.predicted.prediction is not None
    )
    count = sum(e.launch.count if e.launch else 1 for e in explained)
    library = [t for t in promise.after.times if t.kernel.operator.startswith("wavecast.")]
    promised = sum(t.seconds for t in library)
    total, before = promise.after.total, promise.before.total
    again = total.value - promised + launched
    inside = "yes" if total.low <= again <= total.high else "no"
    return (
        f"{name:10} {before.value * 1e6:9.1f} {total.value * 1e6:9.1f} "
        f"[{total.low * 1e6:.1f}, {total.high * 1e6:.1f}] {before.value / total.value:6.2f} "
        f"{len(library):5} {count:5} {unknown:3} {promised * 1e6:9.1f} {launched * 1e6:9.1f} "
        f"{again * 1e6:9.1f} {inside}"
    )


def main() -> None:
    system, *names = sys.argv[1:] or ["mi300x"]
    print(f"{system}: us before, after [interval], speedup, library kernels promised, launched,")
    print("without prediction, us of them promised, launched; total with the launches, in interval")
    for name in names or MODELS:
        print(_check(name, system), flush=True)


if __name__ == "__main__":
    main()
