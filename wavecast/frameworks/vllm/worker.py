"""A worker whose steps run on an emulated GPU."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

import contextlib
import os
from contextlib import AbstractContextManager
from typing import Any

import torch
from vllm.platforms import current_platform
from vllm.utils.torch_utils import set_random_seed
from vllm.v1.worker.cpu_model_runner import CPUModelRunner
from vllm.v1.worker.gpu_worker import Worker, init_worker_distributed_environment
from vllm.v1.worker.worker_base import CompilationTimes

from wavecast.frameworks import serving
from wavecast.frameworks.vllm.plugin import requested_gpu
from wavecast.frameworks.vllm.sampler import WavecastSampler


class WavecastWorker(Worker):
    """Loads a model on the CPU and runs its steps on the GPU that `WAVECAST_VLLM` names, or on the
    one of a `wavecast.device` around the engine."""

    def init_device(self) -> None:
        """Initialise torch.distributed for one process, and make the model runner."""
        self.device = torch.device("cpu")
        os.environ["VLLM_DIST_IDENT"] = self.distributed_init_method.split(":")[-1]
        init_worker_distributed_environment(
            self.vllm_config,
            self.rank,
            self.distributed_init_method,
            self.local_rank,
            current_platform.dist_backend,
        )
        set_random_seed(self.model_config.seed)
        if not torch.accelerator.is_available():
            # vLLM calls it when an engine ends, on every platform but its own of the CPU
            torch.accelerator.empty_host_cache = _nothing
        self.model_runner: Any = CPUModelRunner(self.vllm_config, self.device)
        self.model_runner.sampler = WavecastSampler(self.model_config.logprobs_mode)

    def determine_available_memory(self) -> int:
        """Bytes of the KV cache: what the configuration says, since the platform has set it."""
        return int(self.cache_config.kv_cache_memory_bytes)

    def compile_or_warm_up_model(self) -> CompilationTimes:
        """Nothing is compiled ahead of the first step."""
        set_random_seed(self.model_config.seed)
        return CompilationTimes(language_model=0.0, encoder=0.0)

    def execute_model(self, scheduler_output: Any) -> Any:
        """A step of the model, on the emulated GPU."""
        with emulate_gpu():
            return super().execute_model(scheduler_output)

    def sample_tokens(self, grammar_output: Any) -> Any:
        """The tokens of the step, on the emulated GPU."""
        with emulate_gpu():
            return super().sample_tokens(grammar_output)

    def _maybe_get_memory_pool_context(self, tag: str) -> AbstractContextManager[Any]:
        """Memory is the host's; vLLM gives other platforms than its own a pool of CUDA."""
        return contextlib.nullcontext()


def _nothing() -> None:
    """There is no cache to empty."""


def emulate_gpu() -> AbstractContextManager[Any]:
    """The GPU to emulate, unless one is emulated already."""
    return serving.emulated_gpu(requested_gpu())


__all__ = ["WavecastWorker", "emulate_gpu"]
