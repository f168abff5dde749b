"""Attention of Hugging Face models: which calls run the library's kernel, what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.kernels import choice  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

WINDOW = 4
TOKENS = 11
SMALL = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 50, "max_position_embeddings": 64, "pad_token_id": 0,
    "num_experts_per_tok": 2, "sliding_window": WINDOW,
}  # fmt: skip
MIXED = {"use_sliding_window": True, "max_window_layers": 1}
MODELS = {
    "Mistral": {},
    "Gemma2": {"head_dim": 16},  # caps logits
    "Gemma3": {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]},
    "Qwen2": MIXED,
    "Qwen2Moe": {  # its layers do not say their windows
        **MIXED, "num_experts": 4, "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32,
    },
    "GptOss": {"head_dim": 16, "num_local_experts": 4},  # has sinks
}  # fmt: skip


def made(name: str, **other: Any) -> Any:
    torch.manual_seed(0)
    kind = getattr(transformers, f"{name}TextConfig", None) or getattr(
        transformers, f"{name}Config"
    )
    config = kind(**{**SMALL, **MODELS[name], **other})
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()


def some_tokens() -> torch.Tensor:
    return torch.randint(1, 50, (2, TOKENS), generator=torch.Generator().manual_seed(0))


def plain(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    return model(tokens).logits


def in_two_parts(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """The second after keys that the window does not reach."""
    first = model(tokens[:, :6], use_cache=True)
    return model(tokens[:, 6:], past_key_values=first.past_key_values).logits


def one_by_one(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    return model.generate(tokens, max_new_tokens=6, do_sample=False).float()


def padded(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    seen = torch.ones_like(tokens)
    seen[1, :3] = 0
    logits = model(tokens, attention_mask=seen).logits
    return torch.cat([logits[0], logits[1, 3:]])


def packed(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    places = torch.tensor([[*range(6), *range(TOKENS - 6)]] * 2)
    return model(tokens, position_ids=places, use_cache=False).logits


def in_a_cache_of_fixed_length(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    static = {"cache_implementation": "static", "disable_compile": True}
    return model.generate(tokens, max_new_tokens=6, do_sample=False, **static).float()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("use", [plain, in_two_parts, one_by_one], ids=lambda use: use.__name__)
@torch.no_grad()
def test_windows_are_answered_by_the_operator(name: str, use: Any) -> None:
    model, tokens = made(name), some_tokens()
    before = use(model, tokens)
    replaced = ops.replace(model)
    assert [one.operator for one in replaced.pending] == ["attention", "attention"]
    assert "attention" not in {one.operator for one in replaced.done}
    assert "if a call permits; none yet" in str(replaced)
    torch.testing.assert_close(use(model, tokens), before, rtol=1e-4, atol=1e-5)
    done = [one.where for one in replaced.done if one.operator == "attention"]
    assert sorted(done) == ["model.layers.0.self_attn", "model.layers.1.self_attn"]
    assert not replaced.pending
    assert not [one for one in replaced.left if "Attention" in one.what]
    replaced.undo()
    assert torch.equal(use(model, tokens), before)


@pytest.mark.parametrize(
    ("use", "name"),
    [(padded, name) for name in MODELS] + [(packed, name) for name in ("Mistral", "Qwen2")],
    ids=lambda value: getattr(value, "__name__", value),
)
@torch.no_grad()
def test_masks_are_answered_by_the_operator(use: Any, name: str) -> None:
    model, tokens = made(name), some_tokens()
    before = use(model, tokens)
    replaced = ops.replace(model)
    torch.testing.assert_close(use(model, tokens), before, rtol=1e-4, atol=1e-5)
    done = [one.where for one in replaced.done if one.operator == "attention"]
    assert sorted(done) == ["model.layers.0.self_attn", "model.layers.1.self_attn"]
    assert not [one for one in replaced.left if "Attention" in one.what]


@torch.no_grad()
def test_masks_of_numbers_are_left_and_said_to_be() -> None:
    model, tokens = made("Mistral"), some_tokens()
    numbers = torch.zeros(2, 1, TOKENS, TOKENS).masked_fill(
        torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1), float("-inf")
    )
    before = model(tokens, attention_mask=numbers).logits
    replaced = ops.replace(model)
    after = model(tokens, attention_mask=numbers).logits
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-5)
    assert "attention" not in {one.operator for one in replaced.done}
    why = "Attention left: a mask of numbers (at model.layers.0.self_attn and 1 more)"
    assert why in str(replaced)


@torch.no_grad()
def test_caches_of_fixed_length_are_right() -> None:
    model, tokens = made("Mistral"), some_tokens()
    before = in_a_cache_of_fixed_length(model, tokens)
    replaced = ops.replace(model)
    assert torch.equal(in_a_cache_of_fixed_length(model, tokens), before)
    assert "attention" in {one.operator for one in replaced.done}


@torch.no_grad()
def test_windows_that_layers_may_not_say_stay_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers.MistralPreTrainedModel, "_supports_flash_attn", False)
    model, tokens = made("Mistral"), some_tokens()
    few = tokens[:, : WINDOW - 1]
    before = model(tokens).logits, model(few).logits, in_a_cache_of_fixed_length(model, few)
    replaced = ops.replace(model)
    torch.testing.assert_close(model(tokens).logits, before[0], rtol=1e-4, atol=1e-5)
    assert not [one for one in replaced.left if "Attention" in one.what]
    torch.testing.assert_close(model(few).logits, before[1], rtol=1e-4, atol=1e-5)
    assert "attention" in {one.operator for one in replaced.done}
    assert torch.equal(in_a_cache_of_fixed_length(model, few), before[2])


def test_attention_that_is_not_looked_up_is_left() -> None:
    sizes = {"num_attention_heads": 4, "hidden_size": 64, "n_layer": 1, "vocab_size": 50}
    model = transformers.BloomModel(transformers.BloomConfig(**sizes))
    replaced = ops.replace(model)
    left = [(one.what, one.why) for one in replaced.left if "Attention" in one.what]
    assert left == [("BloomAttention", "does not look its attention up")]
    assert not replaced.pending


@torch.no_grad()
@pytest.mark.operators
def test_the_window_reaches_the_kernel() -> None:
    model, tokens = made("Qwen2"), some_tokens()
    before = model(tokens).logits
    whole = made("Qwen2", use_sliding_window=False)(tokens).logits
    assert not torch.allclose(before, whole, rtol=1e-3, atol=1e-3)
    ops.replace(model)
    with wavecast.device("gfx942"), choice.record_decisions() as decisions:
        after = model(tokens).logits
    kernels = [one.spec.name for one in decisions if "attention" in one.spec.name]
    assert kernels == ["attention_kernel"] * 2
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_other_dtypes_are_left_with_their_windows() -> None:
    model, tokens = made("Mistral").double(), some_tokens()
    before = model(tokens).logits
    replaced = ops.replace(model)
    torch.testing.assert_close(model(tokens).logits, before, rtol=1e-5, atol=1e-6)
    assert {one.why for one in replaced.left if "Attention" in one.what} == {"dtype float64"}


def test_dropout_differs_from_call_to_call() -> None:
    model, tokens = made("Mistral", attention_dropout=0.5).train(), some_tokens()
    ops.replace(model)
    torch.manual_seed(1)
    first, second = (model(tokens).logits for _ in range(2))
    torch.manual_seed(1)
    assert torch.equal(model(tokens).logits, first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("use", [plain, one_by_one, padded], ids=lambda use: use.__name__)
def test_models_take_the_implementation_by_name(name: str, use: Any) -> None:
    expected = use(made(name), some_tokens())
    model = made(name, attn_implementation="wavecast")
    assert model.config._attn_implementation == "wavecast"
    torch.testing.assert_close(use(model, some_tokens()), expected, rtol=1e-3, atol=1e-4)
