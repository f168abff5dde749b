"""Sampling of tokens: greedy, and with top-k and top-p."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor, nn
from vllm.v1.sample.sampler import Sampler

from wavecast.frameworks.vllm.served import serve

_sample: Final = serve("Sampler", "top_k_top_p_sample")
_mask: Final = serve("Sampler", "top_k_top_p_mask")
_SEEDS: Final = 2**62


class WavecastSampler(Sampler):
    """vLLM's sampler whose choice of tokens is `wavecast.ops.top_k_top_p_sample`."""

    def __init__(self, logprobs_mode: Any = "raw_logprobs") -> None:
        super().__init__(logprobs_mode)
        self.topk_topp_sampler = FilteredSampler(logprobs_mode)

    @staticmethod
    def greedy_sample(logits: Tensor) -> Tensor:
        """The first of the largest logits [rows, vocabulary] of every row, int64."""
        return _sample(logits, torch.zeros(logits.shape[0]))


class FilteredSampler(nn.Module):
    """Draws a token per row of logits that are divided by their temperature already."""

    def __init__(self, logprobs_mode: str) -> None:
        super().__init__()
        self.logprobs_mode = logprobs_mode

    def forward(
        self,
        logits: Tensor,
        generators: dict[int, torch.Generator],
        k: Tensor | None,
        p: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Tokens [rows], and the filtered logits [rows, vocabulary], or their logarithmic
        probabilities, where vLLM is to report these. A row with a generator depends on it alone."""
        operands = (logits, torch.ones(logits.shape[0]), _as(k, torch.int32), _as(p, torch.float32))
        tokens = _sample(*operands, seed=_seed(None))
        for row, generator in generators.items():
            row_operands = (None if value is None else value[row : row + 1] for value in operands)
            tokens[row] = _sample(*row_operands, seed=_seed(generator))[0]
        if self.logprobs_mode not in ("processed_logits", "processed_logprobs"):
            return tokens, None
        masked_logits = _mask(*operands)
        if self.logprobs_mode == "processed_logits":
            return tokens, masked_logits
        return tokens, masked_logits.log_softmax(dim=-1, dtype=torch.float32)


def _as(value: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return None if value is None else value.to(dtype)


def _seed(generator: torch.Generator | None) -> int:
    return int(torch.randint(_SEEDS, (), generator=generator))


__all__ = ["FilteredSampler", "WavecastSampler"]
