"""What is registered with SGLang."""

# pyright: reportMissingImports=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from sglang.kernels.fused_op import BaseFusedOp
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

from wavecast.frameworks import serving
from wavecast.frameworks.sglang.environment import NAME, requested_gpu

_RUNNER: Final = "sglang.srt.model_executor.model_runner.ModelRunner"
_SCHEDULER: Final = "sglang.srt.managers.scheduler.Scheduler"


def register(*, local: bool = False) -> None:
    """Register what has to be known before an engine starts: the attention backend, the sampler,
    and that steps run on the emulated GPU; with `local`, instead of the last, the layers for the
    GPU that SGLang finds. A second call does nothing."""
    from sglang.srt.layers.attention.attention_registry import (
        ATTENTION_BACKENDS,
        register_attention_backend,
    )
    from sglang.srt.layers.sampler import register_sampler_backend

    if NAME in ATTENTION_BACKENDS:
        return
    register_attention_backend(NAME)(_attention)
    register_sampler_backend(NAME, _sampler)
    HookRegistry.register(f"{_SCHEDULER}.get_internal_state", with_calls, HookType.AFTER)
    if local:
        from wavecast.frameworks.sglang import local as gpu_there

        register_layers()
        gpu_there.register()
        return
    for method in ("forward", "sample"):
        HookRegistry.register(f"{_RUNNER}.{method}", on_emulated_gpu, HookType.AROUND)


def register_layers() -> None:
    """Register a forward for each layer of SGLang that the library covers, and quantised linear
    layers with the loader of weights that those of SGLang have: it goes by their names."""
    from sglang.srt.layers.linear import WEIGHT_LOADER_V2_SUPPORTED

    from wavecast.frameworks.sglang import experts, layers, quantised

    for layer, forward in (layers.FORWARDS | experts.FORWARDS).items():
        BaseFusedOp.register_oot_forward(layer, forward, NAME)
    name = quantised.SglangFp8Linear.__name__
    if name not in WEIGHT_LOADER_V2_SUPPORTED:
        WEIGHT_LOADER_V2_SUPPORTED.append(name)


def on_emulated_gpu(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A step of a model, on the emulated GPU."""
    with emulate_gpu():
        return original(*args, **kwargs)


def with_calls(state: Any, *args: Any, **kwargs: Any) -> Any:
    """What a scheduler tells of its state, with the calls of operators under "wavecast"."""
    from wavecast.frameworks.sglang.served import calls

    counts = {f"{layer} {operator}": count for (layer, operator), count in calls.items()}
    state.internal_state[NAME] = counts
    return state


def emulate_gpu() -> AbstractContextManager[Any]:
    """The GPU that `WAVECAST_SGLANG` names, unless one is emulated already."""
    return serving.emulated_gpu(requested_gpu())


def _attention(model_runner: Any) -> Any:
    if model_runner.use_mla_backend:
        from sglang.srt.models.deepseek_common.attention_backend_handler import (
            AttentionBackendRegistry,
        )

        from wavecast.frameworks.sglang.mla import SglangLatentBackend, forward_method

        AttentionBackendRegistry.register(NAME, forward_method)
        return SglangLatentBackend(model_runner)
    from wavecast.frameworks.sglang.attention import SglangAttentionBackend

    return SglangAttentionBackend(model_runner)


def _sampler() -> Any:
    from wavecast.frameworks.sglang.sampler import SglangSampler

    return SglangSampler()


__all__ = ["emulate_gpu", "on_emulated_gpu", "register", "register_layers", "with_calls"]
