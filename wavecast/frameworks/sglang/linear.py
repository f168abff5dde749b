"""Linear layers and embeddings without quantisation, by SGLang's methods of layers."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from sglang.srt.layers.quantization import unquant
from torch import Tensor

from wavecast.frameworks.sglang.served import serve

_matmul: Final = serve("Linear", "matmul")
_logits: Final = serve("ParallelLMHead", "matmul")
_embedding: Final = serve("VocabParallelEmbedding", "embedding")


class SglangLinear(unquant.UnquantizedLinearMethod):
    """`wavecast.ops.matmul`."""

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """`x` [..., inputs] times the layer's weight [outputs, inputs] transposed, plus `bias`."""
        return _matmul(x, layer.weight.t(), bias)

    def apply_into(
        self, layer: Any, x: Tensor, output: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """The same, written to `output` [rows, outputs]."""
        return output.copy_(self.apply(layer, x, bias))


class SglangEmbedding(unquant.UnquantizedEmbeddingMethod):
    """`wavecast.ops.embedding`, and `matmul` for the logits."""

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Logits [rows, vocabulary] of `x` [rows, hidden]."""
        return _logits(x, layer.weight.t(), bias)

    def embedding(self, layer: Any, input_: Tensor) -> Tensor:
        """Rows of the table by index."""
        return _embedding(layer.weight, input_)


METHODS: Final[dict[type[Any], type[Any]]] = {
    unquant.UnquantizedLinearMethod: SglangLinear,
    unquant.UnquantizedEmbeddingMethod: SglangEmbedding,
}
"""What answers instead of a method of SGLang."""


def convert(model: torch.nn.Module) -> int:
    """Replace the methods of a model's layers that the library covers; how many there were."""
    count = 0
    for layer in model.modules():
        method = METHODS.get(type(getattr(layer, "quant_method", None)))
        if method is not None:
            layer.quant_method = method()
            count += 1
    return count


__all__ = ["METHODS", "SglangEmbedding", "SglangLinear", "convert"]
