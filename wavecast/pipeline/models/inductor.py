"""A module under `torch.compile`: Inductor's kernels predicted from their machine code, with the
calls of libraries between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from wavecast.arch import Device
from wavecast.arch.systems import System
from wavecast.compile.codeobject import Launch
from wavecast.errors import NothingAnalysed, UsageError, WavecastError
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.sequence import CallSequence
from wavecast.pipeline.explain.result import Explanation
from wavecast.pipeline.explain.steps import Given, explain_launch
from wavecast.runtimes.torch_graph.compiled import CompiledGraph, compiled_graph
from wavecast.runtimes.triton.launches import identity
from wavecast.systems.graph import Node
from wavecast.systems.pricing import Priced
from wavecast.systems.sources.answer import ModuleAnswer, added_up, price_notes
from wavecast.systems.sources.calls import ModuleGraph
from wavecast.systems.sources.framework import framework
from wavecast.systems.sources.kernels import CallKernel, parts_of
from wavecast.systems.sources.memory import module_memory
from wavecast.systems.sources.part import GeneratedKernel, KernelPart
from wavecast.systems.sources.price import CallTime, GraphPrices

ENGINE: Final = "torch.compile"
_RESIDENT_STEPS: Final = 4
"""Shares of a tensor in the memory-side cache that launches are distinguished by."""


def predict_compiled(
    module: Any,
    inputs: Any,
    plain: ModuleGraph,
    systems: Sequence[System],
    *,
    train: bool = False,
) -> list[ModuleAnswer]:
    """What `torch.compile(module)(*inputs)` takes on one GPU of each system; `plain` is the graph
    of the module without compilation.

    Raises UsageError for a system of several GPUs, NothingAnalysed for a module that launches
    nothing, and as `compiled_graph`.
    """
    for system in systems:
        if system.gpus > 1:
            raise UsageError(f"{system}: a module runs on one GPU, the system has {system.gpus}")
    answers = []
    for system in systems:
        module_graph = compiled_graph(module, inputs, plain, system.device, train=train)
        answers.append(_answer(module_graph, system.device))
    return answers


def _answer(module_graph: CompiledGraph, device: Device) -> ModuleAnswer:
    graph = module_graph.graph
    prices, generated = GraphPrices(device), _Generated(device)
    times: list[CallTime] = []
    for number, call in enumerate(graph.calls):
        launch = module_graph.launches.get(number)
        if launch is not None:
            times.append(generated.of(launch, number, call.phase))
        else:
            kernels = (
                CallKernel(part, number, call.name, call.module, call.phase)
                for part in parts_of(call)
            )
            times += prices.of(kernels)
    if not times:
        raise NothingAnalysed(f"{graph.name} launches no kernel")
    notes = [
        f"{len(module_graph.launches)} launches of {generated.kernels} kernels that Inductor "
        "generated "
        "for the GPU, predicted from their code; its timing of configurations is left out",
        *(f"{name}: only a bound, because {why}" for name, why in generated.bounded.items()),
    ]
    answer = added_up(
        graph, device, framework(ENGINE), times, (*graph.notes, *notes, *price_notes(prices))
    )
    return replace(answer, memory=module_memory(module_graph.buffers, device))


class _Generated:
    """Times of generated kernels on a device; equal launches are explained once. `bounded` says why
    the time of a kernel is only a bound, by its name."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.bounded: dict[str, str] = {}
        self._known: dict[tuple[Any, ...], Explanation | str] = {}
        self._sequence = CallSequence(Chip.of(device))

    @property
    def kernels(self) -> int:
        """How many kernels were explained."""
        return len({key[0] for key in self._known})

    def of(self, launch: Launch, number: int, phase: str) -> CallTime:
        """The time of a launch, after those before it."""
        resident = self._sequence.mall_resident(launch)
        steps = tuple(sorted((k, round(v * _RESIDENT_STEPS)) for k, v in resident.items()))
        key = (*identity(launch), steps)
        if key not in self._known:
            conditions = Given(mall_resident=resident, outcomes=False)
            try:
                self._known[key] = explain_launch(launch, self.device, conditions)
            except WavecastError as error:
                self._known[key] = error.message
        explained = self._known[key]
        kernel = launch.code.kernel
        priced = self._price(kernel, launch, explained)
        part = KernelPart("generated", priced.node.op)
        return CallTime(CallKernel(part, number, kernel, "", phase), priced)

    def _price(self, kernel: str, launch: Launch, explained: Explanation | str) -> Priced:
        if isinstance(explained, str):
            return self._bound(kernel, launch, explained)
        self._sequence.ran(launch, explained.analysis.requested_bytes)
        prediction = explained.predicted.prediction
        if prediction is None:
            return self._bound(kernel, launch, explained.predicted.why_not)
        work = explained.roofline.work
        op = GeneratedKernel(
            kernel,
            tuple(sorted((work.flops or {}).items())),
            work.bytes_read or 0.0,
            work.bytes_written or 0.0,
        )
        node = Node("generated", "", op)
        return Priced(
            node, prediction.seconds, prediction.low, prediction.high, prediction.limiter, kernel
        )

    def _bound(self, kernel: str, launch: Launch, why: str) -> Priced:
        """The time of the bytes of the arguments."""
        self.bounded[kernel] = why
        size = float(
            sum({argument.storage: argument.bytes for argument in launch.arguments}.values())
        )
        op = GeneratedKernel(kernel, (), size, 0.0)
        call = CallKernel(KernelPart("generated", op), 0, kernel, "", "")
        (call_time,) = GraphPrices(self.device).of([call])
        return call_time.priced


__all__ = ["ENGINE", "predict_compiled"]
