"""Modules, programs and descriptions on GPUs, by the engine that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from wavecast.arch.systems import System
from wavecast.pipeline.models.sources import graph, open_module
from wavecast.systems.sources.answer import ModuleAnswer, answer
from wavecast.systems.sources.framework import framework

if TYPE_CHECKING:
    from wavecast.pipeline.models.replacing import ReplacedModule

_INDUCTOR: Final = "torch.compile"


def module_answers(
    source: Any,
    inputs: Any,
    systems: Sequence[System],
    *,
    engine: str = "eager",
    train: bool = False,
    optimizer: str = "",
    jobs: int = 1,
) -> tuple[tuple[ModuleAnswer, ...], tuple[ReplacedModule, ...]]:
    """The time of a source (`sources.graph`) on each system, and with the engine `wavecast` what
    the kernel library changes, compiled in `jobs` processes.

    Raises UsageError for an engine that cannot compile the source, and as `sources.graph`,
    `answer`, `inductor.compiled` and `replacing.replaced`.
    """
    how = framework(engine)
    if how.name == _INDUCTOR:
        with open_module(source, inputs) as (module, module_inputs, name):
            from wavecast.pipeline.models.inductor import predict_compiled
            from wavecast.runtimes.torch_graph import module_graph

            plain = module_graph(module, module_inputs, train=train, optimizer=optimizer, name=name)
            return tuple(predict_compiled(module, module_inputs, plain, systems, train=train)), ()
    base_graph = graph(source, inputs, train=train, optimizer=optimizer)
    if how.compiled:
        from wavecast.pipeline.models.replacing import replace_calls

        changed = tuple(replace_calls(base_graph, system, jobs=jobs) for system in systems)
        return tuple(replacement.after for replacement in changed), changed
    return tuple(answer(base_graph, system, engine) for system in systems), ()


__all__ = ["module_answers"]
