"""Linear layers and embeddings without quantisation."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

from torch import Tensor
from vllm.model_executor.layers import linear, vocab_parallel_embedding
from vllm.model_executor.layers.fused_moe.router.gate_linear import GateLinear

from wavecast.frameworks.vllm.served import serve

_matmul: Final = serve("Linear", "matmul")
_logits: Final = serve("ParallelLMHead", "matmul")
_embedding: Final = serve("VocabParallelEmbedding", "embedding")


class WavecastLinear(linear.UnquantizedLinearMethod):
    """`wavecast.ops.matmul`."""

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """`x` [..., inputs] times the layer's weight [outputs, inputs] transposed, plus `bias`."""
        return _matmul(x, layer.weight.t(), bias)


class WavecastEmbedding(vocab_parallel_embedding.UnquantizedEmbeddingMethod):
    """`wavecast.ops.embedding`, and `matmul` for the logits."""

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Logits [rows, vocabulary] of `x` [rows, hidden]."""
        return _logits(x, layer.weight.t(), bias)

    def embedding(self, layer: Any, input_: Tensor) -> Tensor:
        """Rows of the table by index."""
        return _embedding(layer.weight, input_)


_METHODS: Final = {
    linear.UnquantizedLinearMethod: WavecastLinear,
    vocab_parallel_embedding.UnquantizedEmbeddingMethod: WavecastEmbedding,
}
"""What answers instead of a method of vLLM."""


def _with_method(base: type[Any]) -> type[Any]:
    """A layer of vLLM whose unquantised method is the library's; others remain."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        base.__init__(self, *args, **kwargs)
        method = _METHODS.get(type(self.quant_method))
        if method is not None:
            self.quant_method = method()

    methods = {"__module__": __name__, "__init__": __init__}
    return type(f"Wavecast{base.__name__}", (base,), methods)


LAYERS: Final = tuple(
    _with_method(base)
    for base in (
        linear.ReplicatedLinear,
        linear.ColumnParallelLinear,
        linear.MergedColumnParallelLinear,
        linear.QKVParallelLinear,
        linear.RowParallelLinear,
        GateLinear,
        vocab_parallel_embedding.VocabParallelEmbedding,
        vocab_parallel_embedding.ParallelLMHead,
    )
)

__all__ = ["LAYERS", "WavecastEmbedding", "WavecastLinear"]
