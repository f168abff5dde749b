"""Sampling of tokens with temperature, top-k, top-p and min-p, as a sampling backend of SGLang."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from sglang.srt.layers.sampler import Sampler
from torch import Tensor

from wavecast.frameworks.sglang.served import serve

_sample: Final = serve("Sampler", "top_k_top_p_sample")
_SEEDS: Final = 2**62


class SglangSampler(Sampler):
    """SGLang's sampler whose draw of tokens is `wavecast.ops.top_k_top_p_sample`."""

    def _sample_from_probs(
        self, probs: Tensor, sampling_info: Any, positions: Tensor, simple_sampling_case: bool
    ) -> tuple[Tensor, None]:
        """A token per row of `probs` [rows, vocabulary], float32. The draw is that of PyTorch's
        random generator. Raises NotImplementedError for seeds of requests and for requests that
        ask which tokens could have been drawn."""
        if sampling_info.sampling_seed is not None:
            raise NotImplementedError("seeds of requests: pass --random-seed to the engine")
        if sampling_info.sampling_mask_batch_indices is not None:
            raise NotImplementedError("masks of the tokens that could have been drawn")
        rows, vocabulary = probs.shape
        options: dict[str, Tensor] = {}
        if not simple_sampling_case:
            options = {
                "top_k": sampling_info.top_ks.clamp(max=vocabulary).to(torch.int32),
                "top_p": sampling_info.top_ps.float(),
            }
            if sampling_info.need_min_p_sampling:
                options["min_p"] = sampling_info.min_ps.float()
        seed = int(torch.randint(_SEEDS, ()))
        return _sample(
            probs.log(), torch.ones(rows, device=probs.device), **options, seed=seed
        ), None


__all__ = ["SglangSampler"]
