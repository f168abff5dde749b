"""What makes vLLM choose the library on the GPU that it finds itself.

With Inductor, its default, vLLM leaves layers to their form in plain PyTorch (`custom_ops` is
`["none"]`), and takes its attention unless another is selected.
"""

# pyright: reportMissingImports=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

from vllm.config import get_cached_compilation_config
from vllm.logger import init_logger
from vllm.utils.import_utils import resolve_obj_by_qualname

ATTENTION: Final = "wavecast.frameworks.vllm.attention.WavecastAttentionBackend"
_LATENT: Final = "wavecast.frameworks.vllm.mla.WavecastMLABackend"
_logger: Final = init_logger("vllm.wavecast")
_preferring: Final[set[type[Any]]] = set()


class OnByDefault:
    """A layer that vLLM's `custom_ops` switches off by name alone, `-rms_norm` or `-RMSNorm`: that
    of vLLM's layer or that of its class. `["none"]`, which vLLM sets itself, does not."""

    @classmethod
    def enabled(cls) -> bool:
        """Whether the layer runs its operator."""
        switches = get_cached_compilation_config().custom_ops
        names = {vars(parent)["name"] for parent in cls.__mro__ if "name" in vars(parent)}
        return not any(f"-{name}" in switches for name in names)


def prefer(platform: type[Any]) -> None:
    """Have a platform of vLLM choose the library's attention where the command line selects none
    and the backend has what a layer needs. What it lacks is a line in vLLM's log, and vLLM chooses.
    A second call does nothing."""
    if platform in _preferring:
        return
    _preferring.add(platform)
    choose, choose_prefill = platform.get_attn_backend_cls, platform.get_mla_prefill_backend_cls

    def get_attn_backend_cls(
        cls: Any, selected_backend: Any, attn_selector_config: Any, num_heads: int | None = None
    ) -> str:
        if selected_backend is None:
            name = _LATENT if attn_selector_config.use_mla else ATTENTION
            reasons = resolve_obj_by_qualname(name).validate_configuration(
                device_capability=cls.get_device_capability(), **attn_selector_config._asdict()
            )
            if not reasons:
                _logger.info_once("Using %s.", name)
                return name
            _logger.warning_once("attention stays vLLM's: %s", ", ".join(reasons))
        return choose(selected_backend, attn_selector_config, num_heads)

    def get_mla_prefill_backend_cls(_: Any, mla_selector_config: Any) -> Any:
        from vllm.config import get_current_vllm_config_or_none

        config = get_current_vllm_config_or_none()
        if config is not None and config.attention_config.backend is not None:
            return choose_prefill(mla_selector_config)
        from wavecast.frameworks.vllm.mla import WavecastMLAPrefill

        return WavecastMLAPrefill

    platform.get_attn_backend_cls = classmethod(get_attn_backend_cls)
    platform.get_mla_prefill_backend_cls = classmethod(get_mla_prefill_backend_cls)


__all__ = ["ATTENTION", "OnByDefault", "prefer"]
