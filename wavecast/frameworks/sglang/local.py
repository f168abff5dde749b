"""SGLang on the GPU that it finds: its platform stays, its layers run the library.

SGLang asks an out-of-tree platform for forwards, methods and formats, and none of its platforms: so
these come through its hooks.
"""

# pyright: reportMissingImports=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from sglang.kernels.fused_op import BaseFusedOp
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

from wavecast.frameworks.sglang import compressed, linear, quantised
from wavecast.frameworks.sglang.environment import NAME

OPTIONS: Final = f"--attention-backend {NAME} --page-size 16 --disable-cuda-graph"
"""What SGLang has to be started with to run the library's attention: pages of one token, its
default, are none that the kernels take."""
_logger: Final = logging.getLogger("sglang.wavecast")
_RUNNER: Final = "sglang.srt.model_executor.model_runner.ModelRunner"
_ARGUMENTS: Final = "sglang.srt.arg_groups.model_override_base"


def register() -> None:
    """Register hooks, and the name of the attention backend for the command line."""
    from sglang.srt.arg_groups.choices import ATTENTION_BACKEND_CHOICES

    if NAME in ATTENTION_BACKEND_CHOICES:
        return
    ATTENTION_BACKEND_CHOICES.append(NAME)
    hooks: dict[str, tuple[Callable[..., Any], HookType]] = {
        "sglang.kernels.fused_op.BaseFusedOp._resolve_forward_method": (
            resolve_forward,
            HookType.AROUND,
        ),
        f"{_RUNNER}.load_model": (convert_loaded, HookType.AFTER),
        "sglang.srt.layers.quantization.get_quantization_config": (
            choose_format,
            HookType.AROUND,
        ),
        f"{_ARGUMENTS}.get_default_attn_backend": (say_default, HookType.AFTER),
    }
    for target, (hook, kind) in hooks.items():
        HookRegistry.register(target, hook, kind)


def resolve_forward(original: Callable[..., Any], layer: Any) -> Callable[..., Any]:
    """The library's forward of a layer of exactly a class that it covers, else SGLang's."""
    forward = BaseFusedOp._oot_forward_registry.get(NAME, {}).get(type(layer))
    return original(layer) if forward is None else forward.__get__(layer)


def convert_loaded(result: Any, runner: Any, *args: Any, **kwargs: Any) -> Any:
    """What `load_model` returns, after layers of the loaded model have the library's products."""
    del args, kwargs
    count = linear.convert(runner.model)
    _logger.info("%d linear layers and embeddings run wavecast's products", count)
    return result


def choose_format(original: Callable[..., Any], quantization: str) -> Any:
    """The library's methods of a format of checkpoints, else SGLang's."""
    config = (quantised.CONFIGS | compressed.CONFIGS).get(quantization)
    return original(quantization) if config is None else config


def say_default(result: str, *args: Any, **kwargs: Any) -> str:
    """The attention backend that SGLang takes by itself, with what would choose the library's."""
    del args, kwargs
    if result != NAME:
        _logger.warning("attention stays SGLang's (%s); wavecast's needs %s", result, OPTIONS)
    return result


__all__ = [
    "OPTIONS",
    "choose_format",
    "convert_loaded",
    "register",
    "resolve_forward",
    "say_default",
]
