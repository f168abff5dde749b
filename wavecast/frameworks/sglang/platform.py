"""A platform of SGLang: the CPU, whose kernels are a GPU's machine code on the emulator."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from sglang.srt.platforms.cpu import CpuDeviceMixin
from sglang.srt.platforms.device_mixin import PlatformEnum
from sglang.srt.platforms.interface import PlatformCapabilities, SRTPlatform

from wavecast.frameworks.sglang.environment import NAME

PAGE_SIZE: Final = 16
"""Tokens of a page of the KV cache: the kernels' least."""
_TOKENS: Final = 4096
"""Tokens of a KV cache whose size nobody gave."""


class SglangPlatform(CpuDeviceMixin, SRTPlatform):
    """An out-of-tree platform. SGLang asks it for its attention backend, and its layers look for
    forwards under its dispatch key."""

    _enum = PlatformEnum.OOT
    device_name = "cpu"
    device_type = "cpu"
    capabilities = PlatformCapabilities()

    def apply_server_args_defaults(self, server_args: Any) -> None:
        """Eager mode, pages of 16 tokens, a cache that fits the host. Raises ValueError for more
        than one GPU."""
        if server_args.tp_size * server_args.pp_size * server_args.dp_size > 1:
            raise ValueError("several GPUs: wavecast emulates one for SGLang")
        server_args.device = "cpu"
        server_args.page_size = PAGE_SIZE
        server_args.disable_cuda_graph = True
        server_args.disable_overlap_schedule = True
        server_args.sampling_backend = NAME
        # SGLang gives every device named "cpu" its own backend, unless there is one
        server_args.attention_backend = NAME
        if server_args.max_total_tokens is None:
            server_args.max_total_tokens = _TOKENS

    def get_device(self, device_id: int = 0) -> str:
        """The name of the device that tensors are on."""
        return "cpu"

    def get_default_attention_backend(self) -> str:
        """The library's."""
        return NAME

    def get_dispatch_key_name(self) -> str:
        """Layers run what was registered under it."""
        return NAME

    def get_group_coordinator_device(self, local_rank: int) -> torch.device:
        """The host's memory is the GPU's."""
        return torch.device("cpu")

    def get_quantization_config(self, quantization: str) -> type[Any] | None:
        """The library's methods of a format of checkpoints; None where it has none."""
        from wavecast.frameworks.sglang import compressed, quantised

        return (quantised.CONFIGS | compressed.CONFIGS).get(quantization)

    def init_backend(self) -> None:
        """Register forwards of layers. SGLang calls it in each process that runs models."""
        from wavecast.frameworks.sglang import registration

        registration.register_layers()

    def post_load_model(self, model: torch.nn.Module) -> None:
        """Give linear layers and embeddings of a loaded model the library's products."""
        from wavecast.frameworks.sglang import linear

        linear.convert(model)


__all__ = ["PAGE_SIZE", "SglangPlatform"]
