"""A GPU that is not there, with a clock that moves as the test says.

Tensors live on the CPU and call themselves `cuda:0` (`emulated_cuda`, as captures do); events,
graphs, the spinning kernel and the allocator's counters of `torch.cuda` are stand-ins written
here. Nothing in it runs on hardware: what it checks is the order of calls and what becomes of
their times.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import wavecast
from wavecast import arch
from wavecast.kernels.operator import Operator
from wavecast.perfmodel.bounds import Work
from wavecast.runtimes.devices import facts_of
from wavecast.runtimes.torch_cpu import emulated_cuda

SLEEP_HZ = 1e9


@dataclass
class FakeGpu:
    """`now` is the GPU's clock in seconds; `allocated` and `free_bytes` are what the allocator
    says; `calls` names what ran, in order; with `no_graphs` a capture fails for that reason.
    `tick` passes at every event, for calls that do not move the clock themselves."""

    now: float = 0.0
    tick: float = 0.0
    allocated: int = 0
    free_bytes: int = 64 << 30
    no_graphs: str = ""
    calls: list[str] = field(default_factory=list)
    replays: int = 0
    random: Any = field(default_factory=lambda: np.random.default_rng(0))

    def spend(self, seconds: float, name: str = "") -> None:
        """The GPU works for so long, ± 1 %."""
        self.calls.append(name)
        self.now += seconds * (1 + 0.01 * float(self.random.standard_normal()))

    @contextlib.contextmanager
    def present(
        self, monkeypatch: Any, device: str = "h200", *, kernels: bool = False
    ) -> Iterator[FakeGpu]:
        """While the block runs, torch has this GPU. With `kernels` Triton's launches are executed
        on the emulator, by the machine code of `device`."""
        facts = facts_of(arch.load(device))
        context: Any = wavecast.device(device) if kernels else None
        with context or emulated_cuda(facts, lambda _: None, executing=True):
            for name, value in self._replacements().items():
                monkeypatch.setattr(torch.cuda, name, value)
            try:
                yield self
            finally:
                monkeypatch.undo()

    def _replacements(self) -> dict[str, Any]:
        gpu = self

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                assert enable_timing
                self.at = float("nan")

            def record(self) -> None:
                gpu.now += gpu.tick
                self.at = gpu.now

            def synchronize(self) -> None:
                pass

            def elapsed_time(self, end: Event) -> float:
                return (end.at - self.at) * 1e3

        class CUDAGraph:
            def __init__(self) -> None:
                self.seconds = 0.0

            def replay(self) -> None:
                gpu.replays += 1
                gpu.spend(self.seconds, "replay")

        @contextlib.contextmanager
        def graph(captured: CUDAGraph) -> Iterator[None]:
            if gpu.no_graphs:
                raise RuntimeError(gpu.no_graphs + "\nmore lines")
            began = gpu.now
            yield
            captured.seconds, gpu.now = gpu.now - began, began

        def sleep(cycles: int) -> None:
            gpu.now += cycles / SLEEP_HZ

        return {
            "Event": Event,
            "CUDAGraph": CUDAGraph,
            "graph": graph,
            "_sleep": sleep,
            "memory_allocated": lambda: gpu.allocated,
            "memory_reserved": lambda: gpu.allocated,
            "mem_get_info": lambda: (gpu.free_bytes, 80 << 30),
        }


def operator(
    gpu: FakeGpu,
    name: str = "twice",
    *,
    seconds: float = 1e-3,
    wrong: Callable[[torch.Tensor], torch.Tensor] | None = None,
    bytes_of_inputs: int = 64 << 20,
    raises: BaseException | None = None,
    work_bytes: float = 2e9,
) -> Operator:
    """2 · x, which takes so long on the fake GPU and claims inputs of so many bytes. `wrong` makes
    its result, where it is not to be right."""

    def reference(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    def call(x: torch.Tensor) -> torch.Tensor:
        if raises is not None:
            raise raises
        gpu.spend(seconds, name)
        return reference(x) if wrong is None else wrong(x)

    def inputs(make: Any, count: int, dtype: str = "float32") -> dict[str, Any]:
        gpu.allocated += bytes_of_inputs
        return {"x": make.normal((count,), dtype)}

    def work(count: int, dtype: str = "float32") -> Work:
        return Work({"vector_fp32": float(count)}, work_bytes / 2, work_bytes / 2, "given", "given")

    return Operator(
        name=name,
        summary="twice x",
        call=call,
        reference=reference,
        inputs=inputs,
        work=work,
        cases=({"count": 8},),
        shapes=({"count": 64, "dtype": "float32"},),
    )
