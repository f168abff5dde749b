"""Compares how a model is divided here with the plans of its configuration class in transformers.

`base_model_tp_plan` names the modules that tensor parallelism divides, `base_model_ep_plan` those
that expert parallelism does. Engines divide more than some plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from wavecast.errors import MissingTool, Unpredictable
from wavecast.extras import install_hint
from wavecast.systems.architecture import DenseMlp, ExpertMlp, LinearAttention, ModelArchitecture
from wavecast.systems.config_fields import TEXT_CONFIGS
from wavecast.systems.parallel import Parallelism

_WHOLE: Final = "replicated"
"""How the styles begin that keep a module whole on every GPU."""
_EXPERTS: Final = ("experts", "shared_experts", "shared_expert")


def replication_notes(
    values: Mapping[str, Any], architecture: ModelArchitecture, parallel: Parallelism
) -> tuple[str, ...]:
    """A line for every module that is divided here and that the plan keeps whole; () where the
    plans agree. `values` is the configuration.

    Raises MissingTool without transformers, Unpredictable for a model type it does not know.
    """
    try:
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    except ImportError:
        raise MissingTool("transformers is not installed", hint=install_hint("models")) from None
    kind = values["model_type"]
    if kind not in CONFIG_MAPPING:
        raise Unpredictable(f"transformers has no model type {kind!r}, so no plan to compare with")
    config = CONFIG_MAPPING[kind]
    sizes = config
    while nested := [
        parts[key] for key in TEXT_CONFIGS if key in (parts := getattr(sizes, "sub_configs", {}))
    ]:
        sizes = nested[0]
    tensor, expert = (
        _modules(getattr(sizes, f"base_model_{name}_plan", None) or {}) for name in ("tp", "ep")
    )
    return tuple(
        f"the plan of transformers for {kind} does not divide {module}: here it is divided among "
        f"{gpus} GPUs ({name})"
        for module, gpus, name in _sharded_modules(architecture, parallel)
        if module not in (expert if name == "EP" else tensor)
    )


def _sharded_modules(
    architecture: ModelArchitecture, parallel: Parallelism
) -> Iterator[tuple[str, int, str]]:
    """Modules that are divided, among how many GPUs, by which parallelism."""
    layers = [layer for layer, _ in architecture.layers]
    heads, tensor = parallel.attention_tensor, parallel.tensor
    if heads > 1:
        if any(isinstance(layer.attention, LinearAttention) for layer in layers):
            yield "linear_attn", heads, "TP"
        if any(not isinstance(layer.attention, LinearAttention) for layer in layers):
            yield "self_attn", heads, "TP"
    if tensor > 1 and any(isinstance(layer.mlp, DenseMlp) for layer in layers):
        yield "mlp", tensor, "TP"
    sparse = [layer.mlp for layer in layers if isinstance(layer.mlp, ExpertMlp)]
    if sparse and parallel.expert > 1:
        yield "mlp.experts", parallel.expert, "EP"
    elif sparse and tensor > 1:
        yield "mlp.experts", tensor, "TP"
    if tensor > 1 and not parallel.wide and any(mlp.shared for mlp in sparse):
        yield "mlp.shared_experts", tensor, "TP"


def _modules(plan: Mapping[str, str]) -> set[str]:
    """The modules of a layer that a plan divides: `self_attn`, `mlp`, `mlp.experts` …"""
    modules = set()
    for path, style in plan.items():
        _, _, module = path.partition("layers.*.")
        if not module or style.startswith(_WHOLE):
            continue
        parts = module.split(".")
        if len(parts) > 1 and parts[1] in _EXPERTS:
            name = "experts" if parts[1] == "experts" else "shared_experts"
            modules.add(f"{parts[0]}.{name}")
        else:
            modules.add(parts[0])
    return modules


__all__ = ["replication_notes"]
