"""SGLang's layers and backends by their own interfaces, each against SGLang's PyTorch code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def emulated(sglang: Any) -> Any:
    """Counts of calls begin with the test, which is on the emulated GPU."""
    from wavecast.frameworks.sglang import registration, served

    served.calls.clear()
    torch.manual_seed(0)
    with registration.emulate_gpu():
        yield


def served() -> set[tuple[str, str]]:
    from wavecast.frameworks.sglang.served import calls

    return set(calls)


def close(found: Any, expected: Any, tolerance: float = 0.02) -> None:
    torch.testing.assert_close(found.float(), expected.float(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["RMSNorm", "GemmaRMSNorm"])
def test_norms(name: str) -> None:
    """With a residual, and without."""
    from sglang.srt.layers import layernorm

    layer = getattr(layernorm, name)(64)
    layer.weight.data = torch.rand(64).to(torch.bfloat16)
    x, residual = torch.randn(2, 7, 64, dtype=torch.bfloat16)
    close(layer(x), layer.forward_native(x))
    for found, expected in zip(
        layer(x, residual.clone()), layer.forward_native(x, residual.clone()), strict=True
    ):
        close(found, expected, 0.05)
    assert served() == {(name, "rms_norm"), (name, "rms_norm_residual")}


def test_norms_that_are_refused() -> None:
    """A kernel that lacks something is never replaced in silence."""
    from sglang.srt.layers.layernorm import RMSNorm

    with pytest.raises(NotImplementedError, match="a part of the columns"):
        RMSNorm(64, var_hidden_size=32)(torch.randn(2, 64))


def test_gated_activations() -> None:
    from sglang.srt.layers.activation import GeluAndMul, SiluAndMul

    x = torch.randn(5, 128, dtype=torch.float16)
    for layer in (SiluAndMul(), GeluAndMul("tanh"), GeluAndMul("none")):
        close(layer(x), layer.forward_native(x), 0.005)
    assert served() == {("SiluAndMul", "silu_mul"), ("GeluAndMul", "gelu_mul")}


@pytest.mark.parametrize("neox", [True, False])
def test_rotary_embeddings(neox: bool) -> None:
    """A part of the head is rotated, by halves or by pairs."""
    from sglang.srt.layers.rotary_embedding.base import RotaryEmbedding

    layer = RotaryEmbedding(64, 32, 128, 10000, neox, torch.float32)
    positions = torch.tensor([0, 5, 127])
    query, key = torch.randn(3, 4 * 64), torch.randn(3, 2 * 64)
    for found, expected in zip(
        layer(positions, query, key), layer.forward_native(positions, query, key), strict=True
    ):
        close(found, expected, 1e-5)
    assert served() == {("RotaryEmbedding", "rope")}


@pytest.mark.parametrize("rocm", [False, True])
def test_rotary_embeddings_that_write_the_cache(rocm: bool) -> None:
    """SGLang's models ask for both at once on GPUs: on ROCm with a mapping, whose caches have pages
    and may be fp8."""
    from sglang.kernels.ops.attention.rope import FusedSetKVBufferArg
    from sglang.srt.layers.rotary_embedding.base import RotaryEmbedding

    layer = RotaryEmbedding(64, 64, 128, 10000, True, torch.bfloat16)
    positions, slots = torch.tensor([0, 5, 127]), torch.tensor([3, 17, 30])
    query = torch.randn(3, 4 * 64, dtype=torch.bfloat16)
    key, value = torch.randn(2, 3, 2 * 64, dtype=torch.bfloat16)
    dtype = torch.float8_e4m3fnuz if rocm else torch.bfloat16
    keys, values = torch.zeros(2, 32, 2 * 64, dtype=dtype)
    argument: Any = FusedSetKVBufferArg(value, keys, values, slots)
    if rocm:
        paged = {"key_cache": keys.view(2, 16, 2, 64), "value_cache": values.view(2, 16, 2, 64)}
        argument = {"v": value.view(3, 2, 64), "k_scale": None, "v_scale": None, **paged}
        argument |= {"slot_mapping": slots, "swa_slot_mapping": None}
    expected = layer.forward_native(positions, query, key)
    found = layer(positions, query, key, fused_set_kv_buffer_arg=argument)
    for result, right in zip(found, expected, strict=True):
        close(result, right)
    close(keys[slots], found[1], 0.07 if rocm else 0.0)
    close(values[slots], value, 0.07 if rocm else 0.0)
    assert served() == {("RotaryEmbedding", "rope"), ("RotaryEmbedding", "kv_cache_write")}


def test_linear_layers() -> None:
    """Methods are replaced by their exact class; a bias is added."""
    from sglang.srt.layers.quantization import unquant

    from wavecast.frameworks.sglang import linear

    model = torch.nn.ModuleList([torch.nn.Linear(64, 48), torch.nn.Embedding(32, 64)])
    model[0].quant_method = unquant.UnquantizedLinearMethod()
    model[1].quant_method = unquant.UnquantizedEmbeddingMethod()
    assert linear.convert(model) == 2
    assert linear.convert(model) == 0
    product, table = model
    x = torch.randn(5, 64)
    close(product.quant_method.apply(product, x, product.bias), product(x), 1e-4)
    close(table.quant_method.apply(table, x), x @ table.weight.T, 1e-4)
    rows = torch.tensor([3, 31, 0])
    assert torch.equal(table.quant_method.embedding(table, rows), table(rows))
    assert {("Linear", "matmul"), ("VocabParallelEmbedding", "embedding")} < served()


@pytest.mark.parametrize(("window", "dtype"), [(-1, torch.bfloat16), (20, torch.float8_e5m2)])
def test_attention(window: int, dtype: torch.dtype) -> None:
    """Sequences of which parts are in the cache already are extended, then one token is decoded;
    pages of 16 tokens in any order."""
    from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
    from sglang.srt.layers.radix_attention import RadixAttention
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    from wavecast.frameworks.sglang.attention import SglangAttentionBackend

    heads, kv_heads, width, pages = 4, 2, 32, 12
    cache = [torch.randn(pages * 16, kv_heads, width).to(dtype) for _ in range(2)]
    pool = SimpleNamespace(
        get_key_buffer=lambda layer: cache[0], get_value_buffer=lambda layer: cache[1], dtype=dtype
    )
    table = torch.zeros(3, 64, dtype=torch.int32)
    order = torch.randperm(pages - 1) + 1
    for row, own in enumerate(order[:8].view(2, 4)):
        table[row + 1] = (own[:, None] * 16 + torch.arange(16)).flatten()
    runner = SimpleNamespace(
        page_size=16,
        req_to_token_pool=SimpleNamespace(req_to_token=table),
        token_to_kv_pool=pool,
        use_mla_backend=False,
    )
    layer = RadixAttention(heads, width, 0.2, kv_heads, 0, sliding_window_size=window)
    backend = SglangAttentionBackend(runner)
    reference = object.__new__(TorchNativeAttnBackend)
    sequences = torch.tensor([1, 2])
    for mode, before, new in (
        (ForwardMode.EXTEND, [32, 0], [7, 50]),
        (ForwardMode.DECODE, [39, 50], [1, 1]),
    ):
        prefix, rows = torch.tensor(before), torch.tensor(new)
        slots = torch.cat(
            [table[s, b : b + n] for s, b, n in zip([1, 2], before, new, strict=True)]
        )
        total = int(rows.sum())
        q = torch.randn(total, heads * width, dtype=torch.bfloat16)
        k, v = torch.randn(2, total, kv_heads * width, dtype=torch.bfloat16)
        batch = SimpleNamespace(
            forward_mode=mode,
            req_pool_indices=sequences,
            seq_lens=prefix + rows,
            extend_seq_lens=rows,
            out_cache_loc=slots.long(),
        )
        backend.init_forward_metadata(batch)
        run = backend.forward_extend if mode == ForwardMode.EXTEND else backend.forward_decode
        found = run(q, k, v, layer, batch)
        assert torch.equal(
            cache[0][slots.long()].float(), k.view(total, kv_heads, width).to(dtype).float()
        )
        expected = reference._run_sdpa_forward_extend(
            q.view(total, heads, width).float(),
            torch.empty(total, heads, width),
            *(one.float() for one in cache),
            table,
            sequences,
            prefix + rows,
            prefix,
            rows,
            scaling=0.2,
            enable_gqa=True,
            causal=True,
            sliding_window_size=window,
        )
        close(found, expected.reshape(total, -1), 0.03)
    assert served() == {("RadixAttention", one) for one in ("paged_attention", "kv_cache_write")}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"is_cross_attention": True}, "cross attention"),
        ({"v_head_dim": 16}, "another width"),
    ],
)
def test_attention_that_is_refused(changed: dict[str, Any], reason: str) -> None:
    from sglang.srt.layers.radix_attention import RadixAttention

    from wavecast.frameworks.sglang import attention

    layer = RadixAttention(4, 32, 0.2, 2, 0)
    for name, value in changed.items():
        setattr(layer, name, value)
    with pytest.raises(NotImplementedError, match=reason):
        attention._refuse(layer, {})
    with pytest.raises(NotImplementedError, match="the argument k_rope"):
        attention._refuse(RadixAttention(4, 32, 0.2, 2, 0), {"k_rope": torch.ones(1)})


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e5m2])
def test_latent_attention(dtype: torch.dtype) -> None:
    """A sequence of which a part is in the cache already is extended, then one token is decoded:
    whole heads and absorbed weights give the same as float32."""
    from sglang.srt.layers.radix_attention import RadixAttention
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    from wavecast.frameworks.sglang.mla import SglangLatentBackend

    heads, nope, rope, latent, value, before, new = 2, 32, 64, 256, 48, 20, 5
    cache = torch.randn(6 * 16, 1, latent + rope).to(dtype)
    table = torch.zeros(2, 64, dtype=torch.int32)
    table[1] = (torch.tensor([3, 1, 5, 2])[:, None] * 16 + torch.arange(16)).flatten()
    pool = SimpleNamespace(get_key_buffer=lambda layer: cache, dtype=dtype)
    sizes = {"kv_lora_rank": latent, "qk_nope_head_dim": nope, "qk_rope_head_dim": rope}
    runner = SimpleNamespace(
        page_size=16,
        req_to_token_pool=SimpleNamespace(req_to_token=table),
        token_to_kv_pool=pool,
        use_mla_backend=True,
        model_config=SimpleNamespace(**sizes),
    )
    backend = SglangLatentBackend(runner)
    weight = (torch.randn(heads, nope + value, latent) / 16).to(torch.bfloat16)
    whole = RadixAttention(heads, nope + rope, 0.1, heads, 0, v_head_dim=value)
    absorbed = RadixAttention(heads, latent + rope, 0.1, 1, 0, v_head_dim=latent)
    layer = SimpleNamespace(
        rotary_emb=None,
        attn_mha=whole,
        kv_b_proj=lambda x: ((x.float() @ weight.float().flatten(0, 1).T).to(x.dtype), None),
    )
    for mode, rows, length in ((ForwardMode.EXTEND, new, 25), (ForwardMode.DECODE, 1, 26)):
        slots = table[1, length - rows : length].long()
        batch = SimpleNamespace(
            forward_mode=mode,
            req_pool_indices=torch.tensor([1]),
            seq_lens=torch.tensor([length]),
            extend_seq_lens=torch.tensor([rows]),
            out_cache_loc=slots,
        )
        backend.init_forward_metadata(batch)
        q = torch.randn(rows, heads, nope + rope, dtype=torch.bfloat16)
        kv_a, k_pe = (torch.randn(rows, one, dtype=torch.bfloat16) for one in (latent, rope))
        if mode == ForwardMode.EXTEND:
            given = backend.prepare_prefill_qkv(
                q=q, q_pe=q[..., nope:], kv_a=kv_a, k_pe=k_pe[:, None],
                positions=torch.arange(before, length), layer=layer, forward_batch=batch,
            )  # fmt: skip
            found = backend.forward_extend(*given, whole, batch, save_kv_cache=False)
        else:
            compressed = torch.einsum(
                "qhn,hnl->qhl", q[..., :nope].float(), weight[:, :nope].float()
            )
            query = torch.cat([compressed.to(q.dtype), q[..., nope:]], -1)
            keys = torch.cat([kv_a, k_pe], -1)[:, None]
            found = backend.forward_decode(query, keys, kv_a, absorbed, batch)
            found = torch.einsum(
                "qhl,hvl->qhv", found.view(rows, heads, latent).float(), weight[:, nope:].float()
            ).flatten(1)
        assert torch.equal(cache[slots, 0].float(), torch.cat([kv_a, k_pe], -1).to(dtype).float())
        tokens = cache[table[1, :length].long(), 0].float()
        expanded = torch.einsum("tl,hol->hto", tokens[:, :latent], weight.float())
        keys = torch.cat([expanded[..., :nope], tokens[None, :, latent:].expand(heads, -1, -1)], -1)
        logits = torch.einsum("qhd,htd->hqt", q.float(), keys) * 0.1
        hidden = torch.arange(length) > torch.arange(length - rows, length)[:, None]
        shares = logits.masked_fill(hidden, float("-inf")).softmax(-1)
        close(found, (shares @ expanded[..., nope:]).transpose(0, 1).flatten(1), 0.03)
    assert served() == {
        ("MLAAttention", one) for one in ("mla_prefill", "mla_decode", "mla_cache_write")
    }
    with pytest.raises(NotImplementedError, match="absorbed weights"):
        backend.forward_extend(q, q, q, whole, batch)
    with pytest.raises(NotImplementedError, match="with sinks"):
        backend.forward_decode(query, q, q, absorbed, batch, sinks=q)


@pytest.mark.parametrize("scoring", ["softmax", "sigmoid"])
def test_experts(scoring: str) -> None:
    """Chosen and multiplied."""
    from sglang.srt.layers.moe.fused_moe_native import moe_forward_native
    from sglang.srt.layers.moe.moe_runner import MoeRunnerConfig
    from sglang.srt.layers.moe.topk import TopKConfig, fused_topk_native

    from wavecast.frameworks.sglang import experts

    count, hidden, inner, top = 8, 64, 32, 2
    x = torch.randn(9, hidden)
    logits = torch.randn(9, count)
    chosen = experts.route(
        SimpleNamespace(topk_config=TopKConfig(top, scoring_func=scoring)), x, logits
    )
    weights, ids = fused_topk_native(
        hidden_states=x, gating_output=logits, topk=top, renormalize=True, scoring_func=scoring
    )
    rows = torch.zeros(2, 9, count)
    for row, (one, where) in zip(rows, ((chosen[0], chosen[1]), (weights, ids)), strict=True):
        row.scatter_(1, where.long(), one.float())
    close(rows[0], rows[1], 1e-5)
    layer = SimpleNamespace(
        num_experts=count,
        w13_weight=torch.randn(count, 2 * inner, hidden) / 8,
        w2_weight=torch.randn(count, hidden, inner) / 8,
    )
    config = MoeRunnerConfig(num_experts=count, num_local_experts=count)
    dispatched = SimpleNamespace(hidden_states=x, topk_output=chosen)
    found = experts.multiply(SimpleNamespace(moe_runner_config=config), layer, dispatched)
    assert served() == {("TopK", "moe_route"), ("FusedMoE", "moe_experts")}
    close(found.hidden_states, moe_forward_native(layer, x, chosen, config), 1e-3)


def test_experts_that_are_refused() -> None:
    from sglang.srt.layers.moe.moe_runner import MoeRunnerConfig
    from sglang.srt.layers.moe.topk import TopKConfig

    from wavecast.frameworks.sglang import experts

    x = torch.randn(2, 8)
    grouped = TopKConfig(2, use_grouped_topk=True, topk_group=1, num_expert_group=2)
    with pytest.raises(NotImplementedError, match="by their best expert"):
        experts.route(SimpleNamespace(topk_config=grouped), x, x)
    config = MoeRunnerConfig(num_experts=8, num_local_experts=4)
    dispatched = SimpleNamespace(hidden_states=x, topk_output=(x, x, x))
    with pytest.raises(NotImplementedError, match="several GPUs"):
        experts.multiply(SimpleNamespace(moe_runner_config=config), SimpleNamespace(), dispatched)


def test_sampler() -> None:
    """The likeliest token where top-k is 1, one of two where it is 2."""
    from wavecast.frameworks.sglang.sampler import SglangSampler

    sampler = object.__new__(SglangSampler)
    probs = torch.rand(3, 64).softmax(-1)
    given = {
        "sampling_seed": None,
        "sampling_mask_batch_indices": None,
        "need_min_p_sampling": False,
        "top_ks": torch.tensor([1, 2, 1 << 30]),
        "top_ps": torch.tensor([1.0, 1.0, 1e-6]),
    }
    tokens, _ = sampler._sample_from_probs(probs, SimpleNamespace(**given), None, False)
    best = probs.topk(2).indices
    assert tokens[0] == best[0, 0]
    assert tokens[1] in best[1]
    assert tokens[2] == best[2, 0]
    given["sampling_seed"] = torch.zeros(3)
    with pytest.raises(NotImplementedError, match="seeds of requests"):
        sampler._sample_from_probs(probs, SimpleNamespace(**given), None, False)


def test_weights_rounded_as_they_are_loaded() -> None:
    """To fp8 with a scale per row; a static scale of activations; a bias."""
    from wavecast.frameworks.sglang.quantised import SglangFp8Config, SglangFp8Linear

    method = SglangFp8Linear(SglangFp8Config())
    layer = torch.nn.Linear(64, 48)
    weight, x = layer.weight.detach().clone(), torch.randn(2, 5, 64, dtype=torch.bfloat16)
    layer.input_scale = torch.nn.Parameter(x.abs().max().float() / 448, requires_grad=False)
    method.process_weights_after_loading(layer)
    assert layer.weight.dtype == torch.float8_e4m3fnuz
    bias = layer.bias.detach().to(torch.bfloat16)
    close(method.apply(layer, x, bias), x.float() @ weight.T + bias, 0.1)
    layer.input_scale = None
    close(method.apply(layer, x, bias), x.float() @ weight.T + bias, 0.1)
    assert served() == {
        ("Linear", one) for one in ("quantise_fp8_tensor", "quantise_fp8_token", "scaled_matmul")
    }
    with pytest.raises(NotImplementedError, match="quantised already"):
        method.apply(layer, (x, layer.weight_scale))


def test_fp8_that_is_refused() -> None:
    """Other blocks, experts without codes, and scales that were not read."""
    from wavecast.frameworks.sglang import quantised

    config = quantised.SglangFp8Config(True, weight_block_size=[64, 64])
    with pytest.raises(NotImplementedError, match=r"scales by \[64, 64\]"):
        quantised.SglangFp8Linear(config)
    with pytest.raises(NotImplementedError, match="not of fp8 in the checkpoint"):
        quantised.SglangFp8MoE(quantised.SglangFp8Config())
    layer = torch.nn.Linear(128, 128)
    layer.weight = torch.nn.Parameter(layer.weight.to(torch.float8_e4m3fn), requires_grad=False)
    layer.weight_scale_inv = torch.nn.Parameter(torch.full((1, 1), -1.0), requires_grad=False)
    method = quantised.SglangFp8Linear(quantised.SglangFp8Config(True, weight_block_size=[128] * 2))
    with pytest.raises(ValueError, match="has not read"):
        method.process_weights_after_loading(layer)


def test_int8_linear() -> None:
    """Codes with a scale per row, or per tensor of joined layers; activations are rounded."""
    from sglang.srt.layers.quantization.compressed_tensors.schemes import (
        CompressedTensorsW8A8Int8 as Scheme,
    )

    from wavecast.frameworks.sglang.compressed import SglangInt8Linear

    codes = torch.randint(-127, 128, (48, 64), dtype=torch.int8)
    x, bias = torch.randn(5, 64, dtype=torch.bfloat16), torch.randn(48, dtype=torch.bfloat16)
    for strategy, scale in (("channel", torch.rand(48, 1)), ("tensor", torch.rand(2))):
        layer = torch.nn.Module()
        layer.weight = torch.nn.Parameter(codes, False)
        layer.weight_scale = torch.nn.Parameter(scale, False)
        layer.logical_widths = [16, 32]
        linear = SglangInt8Linear(Scheme(strategy, False, True))
        linear.process_weights_after_loading(layer)
        rows = scale if strategy == "channel" else scale.repeat_interleave(torch.tensor([16, 32]))
        step = x.float().abs().amax(1, keepdim=True) / 127
        rounded = (x.float() / step).round() * step
        expected = rounded @ (codes.float() * rows.reshape(48, 1)).T + bias.float()
        torch.testing.assert_close(
            linear.apply_weights(layer, x, bias).float(), expected, rtol=0.02, atol=2.0
        )
    assert served() == {("Linear", "quantise_int8_token"), ("Linear", "scaled_matmul")}


def test_linear_of_four_bits() -> None:
    """Eight codes of a row to an int32, the first in the low bits."""
    from sglang.srt.layers.quantization.compressed_tensors.schemes import (
        CompressedTensorsWNA16 as Scheme,
    )

    from wavecast.frameworks.sglang.compressed import SglangInt4Linear

    codes = torch.randint(0, 16, (48, 64))
    packed = (codes.view(48, 8, 8) << 4 * torch.arange(8)).sum(-1).to(torch.uint32)
    scale = torch.rand(48, 2, dtype=torch.bfloat16)
    layer = torch.nn.Module()
    layer.weight_packed = torch.nn.Parameter(packed.view(torch.int32), False)
    layer.weight_scale = torch.nn.Parameter(scale, False)
    linear = SglangInt4Linear(Scheme("group", 4, 32))
    linear.process_weights_after_loading(layer)
    weight = (codes - 8) * scale.float().repeat_interleave(32, 1)
    x, bias = torch.randn(5, 64, dtype=torch.bfloat16), torch.randn(48, dtype=torch.bfloat16)
    expected = x.float() @ weight.T + bias.float()
    torch.testing.assert_close(
        linear.apply_weights(layer, x, bias).float(), expected, rtol=0.02, atol=0.5
    )
    assert served() == {("Linear", "matmul_w4a16")}


def test_integers_that_are_refused() -> None:
    from sglang.srt.layers.quantization.compressed_tensors import schemes

    from wavecast.frameworks.sglang import compressed

    int8, int4 = schemes.CompressedTensorsW8A8Int8, schemes.CompressedTensorsWNA16
    for scheme in (int8("channel", True, True), int8("channel", False, False)):
        with pytest.raises(NotImplementedError, match="given scale or a zero point"):
            compressed.SglangInt8Linear(scheme)
    for scheme in (int4("group", 8, 32), int4("group", 4, 32, symmetric=False)):
        with pytest.raises(NotImplementedError, match="zero points or reordered inputs"):
            compressed.SglangInt4Linear(scheme)
    with pytest.raises(NotImplementedError, match="groups of 16 inputs"):
        compressed.SglangInt4Linear(int4("group", 4, 16))
    weights = SimpleNamespace(num_bits=4, group_size=32, actorder=None, symmetric=False)
    with pytest.raises(NotImplementedError, match="zero points, which SGLang does not load"):
        compressed.SglangInt4MoE(None, weights)
    with pytest.raises(NotImplementedError, match="layers of SimpleNamespace"):
        compressed._left(SimpleNamespace())
