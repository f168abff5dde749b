"""Layers whose weights PyTorch compressed (`torch.sparse.to_sparse_semi_structured`)."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from torch import nn  # noqa: E402

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.frameworks.torch import semi_structured  # noqa: E402
from wavecast.frameworks.torch.substitutes import why_not  # noqa: E402
from wavecast.kernels import choice  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
SPARSE = torch.sparse.SparseSemiStructuredTensor


def sparse_model() -> tuple[nn.Sequential, torch.Tensor, torch.Tensor]:
    """A model with PyTorch's semi-structured sparse weights, an input, and what a dense model with
    the same weights returns."""
    torch.manual_seed(5)
    layers = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 64, bias=False)).bfloat16()
    dense = [layer for layer in layers if isinstance(layer, nn.Linear)]
    for layer in dense:
        layer.weight.data = ops.prune_sparse24(layer.weight.data)
    x = torch.randn(5, 128).bfloat16()
    expected = layers(x).detach()
    for layer in dense:
        weight = torch.sparse.to_sparse_semi_structured(layer.weight.data.cuda())
        layer.weight = nn.Parameter(weight, requires_grad=False)
    return layers, x, expected


def test_semi_structured_sparse_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """By `replace`, inside `substituted`, and in a compiled graph, on machine code."""
    monkeypatch.setattr(SPARSE, "_FORCE_CUTLASS", True)
    with wavecast.device("gfx942"), torch.no_grad():
        layers, x, expected = sparse_model()
        account = ops.replace(layers)
        assert [done.operator for done in account.done] == ["matmul_sparse24"] * 2
        with choice.record_decisions() as decisions:
            assert torch.equal(layers(x), expected)
        assert [one.spec.name for one in decisions] == ["matmul_sparse24_kernel"] * 2
        assert torch.equal(torch.compile(layers, fullgraph=True, backend="eager")(x), expected)
        account.undo()
        assert not vars(layers[0]).keys() & {"forward", "_sparse24"}
        with ops.substituted() as answered:
            assert torch.equal(layers(x), expected)
        assert [done.operator for done in answered.done] == ["matmul_sparse24"] * 2
        made = ops.inductor_pass()
        options = {"pre_grad_custom_pass": made}
        compiled = torch.compile(layers, fullgraph=True, options=options)
        with choice.record_decisions() as decisions:
            assert torch.equal(compiled(x), expected)
        assert [done.operator for done in made.replaced.done] == ["matmul_sparse24"] * 2
        assert [one.spec.name for one in decisions] == ["matmul_sparse24_kernel"] * 2


def test_semi_structured_sparse_layers_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SPARSE, "_FORCE_CUTLASS", True)
    with wavecast.device("gfx90a"):
        layers, x, _ = sparse_model()
    weight = layers[0].weight
    with wavecast.device("gfx90a"):
        assert "no sparse matrix" in (why_not(torch.nn.functional.linear, (x, weight), {}) or "")
    with wavecast.device("gfx942"):
        linear = torch.nn.functional.linear
        assert why_not(linear, (x, weight), {}) is None
        assert why_not(linear, (x.float(), weight), {}) == "dtypes bfloat16, float32"
        assert why_not(torch.matmul, (x, weight.t()), {}) == "a semi-structured sparse tensor"
        weight.requires_grad_()
        assert why_not(linear, (x, weight), {}) == "the weight requires a gradient"


class Opaque:
    """As torch compresses for cuSPARSELt and hipSPARSELt: without an index that could be read."""

    meta = None

    def __init__(self, weight: torch.Tensor) -> None:
        self.packed, self.shape, self.dtype = weight.flatten(), weight.shape, weight.dtype
        self.weight, self.requires_grad = weight, False

    def to_dense(self) -> torch.Tensor:
        return self.weight


def test_weights_of_an_opaque_form_are_expanded_outside_of_graphs() -> None:
    weight = ops.prune_sparse24(torch.randn(32, 64)).bfloat16()
    values, index = semi_structured.compressed(Opaque(weight))
    assert torch.equal(ops.expand_sparse24(values, index), weight)
    x = torch.ones(2, 64).bfloat16()
    assert semi_structured.why_not_linear(x, Opaque(weight), in_graph=False) is None
    reason = "compressed for another library: ops.replace before torch.compile"
    assert semi_structured.why_not_linear(x, Opaque(weight)) == reason
