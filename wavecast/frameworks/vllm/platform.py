"""The platform of an emulated GPU: tensors on the CPU, kernels as AMD machine code.

vLLM's own CPU platform needs the extension of its CPU build, which the wheel of PyPI lacks; this
one needs no extension.
"""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from vllm.platforms.interface import Platform, PlatformEnum
from vllm.utils.cpu_resource_utils import get_memory_node_info

from wavecast import arch
from wavecast.frameworks.vllm.plugin import requested_gpu

_KV_CACHE_BYTES: Final = 64 * 2**20
"""The size of a cache that nobody chose: models that an emulator runs are small."""


class WavecastPlatform(Platform):
    """A GPU that is emulated on the CPU, in eager mode."""

    _enum = PlatformEnum.OOT
    device_name = "cpu"  # vLLM makes torch.device of it
    device_type = "cpu"
    dispatch_key = "CPU"
    dist_backend = "gloo"
    device_control_env_var = "WAVECAST_VISIBLE_DEVICES"

    @property
    def supported_dtypes(self) -> list[torch.dtype]:
        """Those of activations; KV caches have float32 in no kernel of attention."""
        return [torch.bfloat16, torch.float16]

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """The marketing name of the emulated GPU, with underscores: vLLM makes file names of it."""
        return arch.load(requested_gpu()).name.replace(" ", "_")

    @classmethod
    def is_fp8_fnuz(cls) -> bool:
        """Whether the GPU's matrix instructions take fp8 without negative zero (gfx942)."""
        return arch.load(requested_gpu()).capabilities.fp8_fnuz

    @classmethod
    def fp8_dtype(cls) -> torch.dtype:
        """e4m3 as the GPU has it."""
        return torch.float8_e4m3fnuz if cls.is_fp8_fnuz() else torch.float8_e4m3fn

    @classmethod
    def supports_fp8(cls) -> bool:
        """Whether the GPU multiplies matrices of fp8."""
        return bool(arch.load(requested_gpu()).capabilities.matrix_fp8)

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Bytes of the host's memory."""
        return int(get_memory_node_info(device_id).total_memory)

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        """Bytes of the host's memory that are in use."""
        status = get_memory_node_info(0)
        return float(status.total_memory - status.available_memory)

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """There is one."""

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        """`torch.manual_seed` is the CPU's."""

    @classmethod
    def inference_mode(cls) -> Any:
        """What steps of the model run under."""
        return torch.no_grad()

    @classmethod
    def is_pin_memory_available(cls) -> bool:
        """No GPU copies from it."""
        return False

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        """Raises ValueError for a dtype that kernels of attention have no cache of."""
        if dtype not in (torch.bfloat16, torch.float16):
            raise ValueError(f"{dtype}: models run in bfloat16 or float16 on wavecast")

    @classmethod
    def check_runner_kv_caches_multi_layer(cls) -> None:
        """Caches are given to layers by name."""

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        """Every group of layers has its own block table."""
        return True

    @classmethod
    def opaque_attention_op(cls) -> bool:
        """Attention is one operator of PyTorch."""
        return True

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """The one over torch.distributed alone."""
        return (
            "vllm.distributed.device_communicators.base_device_communicator.DeviceCommunicatorBase"
        )

    @classmethod
    def import_kernels(cls) -> None:
        """vLLM's compiled kernels are for GPUs of NVIDIA; none is used."""

    @classmethod
    def get_attn_backend_cls(
        cls, selected_backend: Any, attn_selector_config: Any, num_heads: int | None = None
    ) -> str:
        """The class of the attention backend. Raises NotImplementedError for sparse attention that
        is not latent."""
        if attn_selector_config.use_sparse:
            if not attn_selector_config.use_mla:
                raise NotImplementedError("sparse attention that is not latent")
            return "wavecast.frameworks.vllm.sparse_mla.WavecastSparseMLABackend"
        if attn_selector_config.use_mla:
            return "wavecast.frameworks.vllm.mla.WavecastMLABackend"
        return "wavecast.frameworks.vllm.attention.WavecastAttentionBackend"

    @classmethod
    def get_mla_prefill_backend_cls(cls, mla_selector_config: Any) -> Any:
        """The class of the prefill of latent attention."""
        from wavecast.frameworks.vllm.mla import WavecastMLAPrefill

        return WavecastMLAPrefill

    @classmethod
    def register_triton_kernel_overrides(cls) -> None:
        """The slots of tokens are computed by PyTorch, and copies between addresses that a kernel
        would read from memory by the host, whose memory that is.

        vLLM's `register_kernels` reads the attributes of all objects of all modules, and fails at
        those of llvmlite.
        """
        from vllm.triton_utils.dispatcher import KernelOverride
        from vllm.v1.worker import mamba_utils
        from vllm.v1.worker.block_table import ComputeSlotMappingKernel

        from wavecast.frameworks.vllm.host_kernels import copy_memory, slot_mapping

        for owner, name, host in (
            (ComputeSlotMappingKernel, "kernel", slot_mapping),
            (mamba_utils, "batch_memcpy_kernel", copy_memory),
        ):
            kernel = getattr(owner, name)
            if not isinstance(kernel, KernelOverride):
                setattr(owner, name, KernelOverride(kernel, host))

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        """Eager mode, steps in order, a cache that fits the host. Raises ValueError for more than
        one GPU."""
        from vllm.config import CompilationMode, CUDAGraphMode

        parallel = vllm_config.parallel_config
        if parallel.world_size > 1:
            raise ValueError(f"{parallel.world_size} GPUs: wavecast emulates one for vLLM")
        if parallel.worker_cls == "auto":
            parallel.worker_cls = "wavecast.frameworks.vllm.worker.WavecastWorker"
        vllm_config.scheduler_config.async_scheduling = False
        compilation = vllm_config.compilation_config
        compilation.mode = CompilationMode.NONE
        compilation.cudagraph_mode = CUDAGraphMode.NONE
        compilation.cudagraph_capture_sizes = []
        cache = vllm_config.cache_config
        if cache.kv_cache_memory_bytes is None:
            cache.kv_cache_memory_bytes = _KV_CACHE_BYTES
        parallel.disable_custom_all_reduce = True


__all__ = ["WavecastPlatform"]
