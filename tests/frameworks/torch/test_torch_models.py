"""Models, functions and compiled graphs that run operators of the library."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402

pytestmark = pytest.mark.torch


class WrittenNorm(nn.Module):
    """An RMS norm as models write it."""

    def __init__(self, width: int, offset: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))
        self.variance_epsilon = 1e-6
        self.offset = offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return (self.weight + self.offset) * (wide * scale).to(x.dtype)


class OtherRMSNorm(WrittenNorm):
    """One that computes something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


class PlainRMSNorm(WrittenNorm):
    """One that does not."""


class Unshifted(nn.LayerNorm):
    """One that has a bias, zero at first, and does not add it."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, None, self.eps)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(32, 48), nn.Linear(32, 48)
        self.down_proj = nn.Linear(48, 32, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = PlainRMSNorm(32)
        self.odd = OtherRMSNorm(32)
        self.shifted = PlainRMSNorm(32, offset=1.0)
        self.last = nn.LayerNorm(32)
        self.mlp = Gated()
        self.conv = nn.Conv2d(1, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.mlp(self.shifted(self.odd(self.norm(x))))
        q = y.view(1, 6, 2, 16).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2).reshape(6, 32)
        return self.last(x + y) + self.conv(y[None, None])[0].sum(0)


@pytest.fixture
def block() -> nn.Module:
    torch.manual_seed(0)
    return Block()


def test_replace_and_undo(block: nn.Module) -> None:
    x = torch.randn(6, 32)
    before = block(x)
    keys = list(block.state_dict())
    replaced = ops.replace(block)
    assert {one.where for one in replaced.done} == {
        *("norm", "shifted", "last", "conv", "mlp"),
        *("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
    }
    assert [(one.where, one.why) for one in replaced.left] == [("odd", "computes something else")]
    assert "3 x Linear -> matmul" in str(replaced)
    torch.testing.assert_close(block(x), before, rtol=1e-4, atol=1e-5)
    assert list(block.state_dict()) == keys
    copy.deepcopy(block)(x)
    replaced.undo()
    assert "forward" not in block.norm.__dict__
    assert torch.equal(block(x), before)


@pytest.mark.operators
def test_replaced_modules_run_machine_code_and_learn(block: nn.Module) -> None:
    x = torch.randn(6, 32)
    block(x).square().sum().backward()
    expected = block.norm.weight.grad.clone()
    block.zero_grad()
    ops.replace(block)
    with wavecast.device("gfx942") as device:
        block(x).square().sum().backward()
    assert device.executed > 20
    torch.testing.assert_close(block.norm.weight.grad, expected, rtol=2e-3, atol=2e-3)


def test_functions_are_answered_wherever_they_are_called(block: nn.Module) -> None:
    x = torch.randn(6, 32)
    before = block(x)
    with ops.substituted() as replaced:
        after = block(x)
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-5)
    answered = {one.operator for one in replaced.done}
    assert answered == {"matmul", "layer_norm", "attention", "convolution", "silu"}
    with ops.substituted() as replaced:
        F.linear(x.double(), torch.randn(4, 32).double())
        F.scaled_dot_product_attention(*[torch.randn(1, 2, 4, 8)] * 3, dropout_p=0.5)
    assert [one.why for one in replaced.left] == ["dtype float64", "dropout"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_graphs(block: nn.Module) -> None:
    x = torch.randn(6, 32)
    rewriting = ops.inductor_pass()
    compiled = torch.compile(block, fullgraph=True, options={"pre_grad_custom_pass": rewriting})
    torch.testing.assert_close(compiled(x), block(x), rtol=1e-4, atol=1e-5)
    done = [one.operator for one in rewriting.replaced.done]
    assert {"rms_norm", "silu_mul", "attention", "layer_norm", "matmul"} <= set(done)
    assert done.count("rms_norm") == 3
    compiled(x).sum().backward()
    assert block.norm.weight.grad is not None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("dtype", "keepdim", "replaced"),
    [(torch.float32, True, 1), (torch.bfloat16, True, 0), (torch.float32, False, 0)],
)
def test_norms_that_are_another_thing_stay(
    dtype: torch.dtype, keepdim: bool, replaced: int
) -> None:
    """One whose weight makes the result wider, one that scales columns by the means of rows."""
    weight, rewriting = torch.rand(8), ops.inductor_pass()

    def program(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=keepdim) + 1e-6)
        return weight * (wide * scale).to(x.dtype)

    def backend(module: Any, given: Any) -> Any:
        rewriting(module.graph)
        module.recompile()
        return module.forward

    x = torch.randn(8, 8).to(dtype)
    found = torch.compile(program, backend=backend, fullgraph=True)(x)
    assert len(rewriting.replaced.done) == replaced
    torch.testing.assert_close(found, program(x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_operators_have_no_graph_breaks() -> None:
    torch.manual_seed(1)
    weight = torch.rand(32)

    def program(x: torch.Tensor) -> torch.Tensor:
        return ops.silu_mul(ops.rms_norm(x, weight) @ torch.ones(32, 64)).sum()

    x = torch.randn(5, 32)
    compiled = torch.compile(program, fullgraph=True)(x)
    torch.testing.assert_close(compiled, program(x), rtol=1e-5, atol=0.0)  # sums in another order


transformers = pytest.importorskip("transformers", reason="needs transformers")

SMALL = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 50, "max_position_embeddings": 64,
    "num_experts_per_tok": 2,
}  # fmt: skip
MODELS = {
    "Llama": {},
    "Qwen3": {"head_dim": 16},
    "Gemma2": {"head_dim": 16},
    "Mixtral": {"num_local_experts": 4},
    "Qwen3Moe": {"num_experts": 4, "moe_intermediate_size": 32, "head_dim": 16},
    "Phi3": {"pad_token_id": 0},
    "GptOss": {"num_local_experts": 4, "head_dim": 16},
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_hugging_face_models(name: str) -> None:
    torch.manual_seed(1)
    config = getattr(transformers, f"{name}Config")(**{**SMALL, **MODELS[name]})
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    tokens = torch.randint(0, 50, (1, 7))
    with torch.no_grad():
        before = model(tokens).logits
        replaced = ops.replace(model)
        after = model(tokens).logits
    torch.testing.assert_close(after, before, rtol=2e-3, atol=2e-3)
    done = {one.operator for one in replaced.done}
    assert {"matmul", "rms_norm", "attention"} <= done
    if name in ("Llama", "Qwen3", "Phi3"):
        assert "silu_mul" in done
    if name in ("Mixtral", "Qwen3Moe", "GptOss"):
        assert "moe_experts" in done
    replaced.undo()
    with torch.no_grad():
        assert torch.equal(model(tokens).logits, before)


@pytest.mark.filterwarnings("ignore")
def test_linear_layers_stored_transposed_and_fused_gates() -> None:
    torch.manual_seed(0)
    sizes = {"n_embd": 64, "n_layer": 1, "n_head": 4, "vocab_size": 50, "n_positions": 64}
    dropped = dict.fromkeys(("attn_pdrop", "resid_pdrop", "embd_pdrop"), 0.0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **dropped))
    tokens = torch.randint(0, 50, (1, 7))
    before = model(tokens).logits
    before.square().mean().backward()
    right = model.transformer.h[0].mlp.c_fc.weight.grad.clone()
    model.zero_grad()
    replaced = ops.replace(model)
    assert [one.what for one in replaced.done].count("Conv1D") == 4
    after = model(tokens).logits
    after.square().mean().backward()
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        model.transformer.h[0].mlp.c_fc.weight.grad, right, rtol=1e-3, atol=1e-6
    )


def test_layer_norms_of_channels_and_kinds_without_a_replacement() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_sizes": [8, 16, 8, 8], "depths": [1, 1, 1, 1], "image_size": 32}
    model = transformers.ConvNextModel(transformers.ConvNextConfig(**sizes)).eval()
    x = torch.randn(1, 3, 32, 32)
    for norm in model.modules():
        if isinstance(norm, nn.LayerNorm):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
    before = model(x).last_hidden_state
    replaced = ops.replace(model)
    assert {one.operator for one in replaced.done} == {"convolution", "matmul", "layer_norm"}
    assert not replaced.pending
    norms = [one.what for one in replaced.done if one.operator == "layer_norm"]
    assert sorted(norms) == 8 * ["ConvNextLayerNorm"] + ["LayerNorm"]
    left = {(one.what, one.why) for one in replaced.left}
    assert left == {("ConvNextLayer", "of no kind that has a replacement")}
    torch.testing.assert_close(model(x).last_hidden_state, before, rtol=1e-4, atol=1e-5)


def test_every_module_with_parameters_is_accounted_for() -> None:
    sizes = {"num_key_value_heads": 4, "first_k_dense_replace": 1, "num_hidden_layers": 2,
        "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 32,
        "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
        "v_head_dim": 16}  # fmt: skip
    config = transformers.DeepseekV3Config(**{**SMALL, **sizes})
    model = transformers.DeepseekV3ForCausalLM(config)
    replaced = ops.replace(model)
    left = {one.where: (one.what, one.why) for one in replaced.left}
    unknown = "of no kind that has a replacement"
    assert left["model.layers.1.mlp.gate"] == ("DeepseekV3TopkRouter", unknown)
    said = {one.where for one in (*replaced.done, *replaced.left, *replaced.pending)}
    own = {path for path, one in model.named_modules() if one._parameters}
    assert own
    assert own <= said
    assert f"1 x DeepseekV3TopkRouter left: {unknown}" in str(replaced)


def test_layer_norms_of_another_kind_are_left() -> None:
    model = nn.Sequential(Unshifted(8), nn.LayerNorm(8))
    values = [one.clone() for one in model.parameters()]
    replaced = ops.replace(model)
    assert [one.where for one in replaced.done] == ["1"]
    assert [(one.where, one.why) for one in replaced.left] == [("0", "computes something else")]
    assert all(map(torch.equal, values, model.parameters()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.operators
@pytest.mark.thorough
def test_gradients_that_are_zero_stay_zero_up_to_rounding() -> None:
    """The bias of keys shifts all logits of a query alike: its gradient is rounding and nothing
    else, so that errors are measured by the largest gradient of the model."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 48, "image_size": 16, "patch_size": 8}  # fmt: skip
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**sizes)).eval()
    x = torch.randn(1, 3, 16, 16)

    def gradients(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        model(x).logits.square().sum().backward()
        found = {name: one.grad for name, one in model.named_parameters()}
        return {name: grad.double() for name, grad in found.items() if grad is not None}

    right = gradients(copy.deepcopy(model).double(), x.double())
    largest = max(float(grad.abs().max()) for grad in right.values())
    (zero,) = (name for name in right if name.endswith(("key.bias", "k_proj.bias")))
    assert right[zero].abs().max() < 1e-15 * largest
    ops.replace(model)
    with wavecast.device("gfx942") as device:
        got = gradients(model, x)
    assert device.executed > 20
    assert got.keys() == right.keys()
    for name, grad in got.items():
        assert (grad - right[name]).abs().max() < 1e-6 * largest, name
