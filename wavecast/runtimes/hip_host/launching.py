"""Launches of a HIP program: executed, and predicted where asked."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wavecast.arch import Device
from wavecast.compile.codeobject import Argument, Launch, Parameter, integers_of, member_name
from wavecast.compile.names import readable
from wavecast.compile.parsing import parse_descriptor
from wavecast.emulate import clusters
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.hostmemory import PAGE
from wavecast.emulate.launch import AddressRange, Emulator
from wavecast.emulate.tensors import CANARY
from wavecast.errors import WavecastError
from wavecast.isa.program import KernelArgument
from wavecast.launch import graph_capture
from wavecast.runtimes.hip_host.arena import SYSTEM, ArenaPart
from wavecast.runtimes.hip_host.modules import LoadedModule, ModuleKernel
from wavecast.runtimes.hip_host.tensors import AddressedTensors
from wavecast.runtimes.module.types import element_dtype, itemsize

_OUTPUT = ("__wc_output", "__wc_heap")
"""Variables of device code that uses the start of the arena (`wavecast/program.h`)."""
_ON_HOST = "calls of libraries, which the host computes"

Grid = tuple[int, ...]


def _pages(allocation: AddressRange) -> AddressRange:
    """The pages of an allocation: a GPU faults only outside of them, as `hipMalloc` gives whole
    pages of 4 KiB. Checks know the bytes that were asked for."""
    first, end = allocation
    return first, -(-end // PAGE) * PAGE


@dataclass
class LaunchedKernel:
    """The launches of one kernel with one grid and block: how many, and their predicted time; or
    the calls of a function of a library, which has neither grid nor block.

    `symbol` is its name in the code of `target`, "" for a function. `seconds` is the sum, None
    where a prediction is not possible; `why` says why then.
    """

    kernel: str
    grid: Grid
    block: Grid
    symbol: str = ""
    target: str = ""
    launches: int = 0
    seconds: float | None = 0.0
    why: str = ""

    @property
    def library(self) -> str:
        """The library whose function it is, which the host computes; "" for a kernel."""
        return "" if self.block else self.kernel.split()[0]


@dataclass
class Launcher:
    """Executes launches on `emulator`. With `predicts` each has a predicted time for `device`: one
    sample per kernel, grid, block and arguments. `checks` says whether the emulator checks.
    `tensors` are memory that kernels may use besides allocations."""

    emulator: Emulator
    device: Device
    arena: ArenaPart
    checks: bool = False
    predicts: bool = False
    tensors: AddressedTensors | None = None
    allocations: list[AddressRange] = field(default_factory=list)
    kernels: dict[tuple[str, Grid, Grid], LaunchedKernel] = field(default_factory=dict)
    _predicted: dict[tuple[str, Grid, Grid, int, bytes], tuple[float | None, str]] = field(
        default_factory=dict
    )
    _measured: list[float] | None = None
    _estimated: dict[tuple[object, ...], float] = field(default_factory=dict)

    def facts(self) -> dict[str, int]:
        """What the runtime must know of how launches are executed."""
        return {"canary": CANARY if self.checks else 0, "predicts": int(self.predicts)}

    def on_event(self) -> None:
        """The program has recorded an event."""

    def on_device(self, number: int) -> None:
        """The calling thread has chosen a device."""

    def launch(
        self,
        module: LoadedModule,
        kernel: ModuleKernel,
        grid: Grid,
        block: Grid,
        dynamic_lds: int,
        segment: bytes,
        data: Sequence[AddressRange],
        cluster: Grid = (0, 0, 0),
    ) -> float:
        """Execute a launch that may touch all allocations and the `data` of modules; its predicted
        seconds, 0 without a prediction. Raises Unsupported, ExecutionError."""
        code = kernel.code
        ranges = self._ranges(data, segment)
        if any(module.has(name) for name in _OUTPUT):
            ranges.append((self.arena.base, self.arena.base + SYSTEM))
        arguments = self._arguments(kernel, segment) if self.describes else ()
        members = self._members(kernel, segment) if self.describes else ()
        launch = Launch(
            code, (*grid,), (*block,), arguments, segment, dynamic_lds,  # type: ignore[arg-type]
            cluster=(*cluster,) if any(cluster) else parse_descriptor(code).cluster,  # type: ignore[arg-type]
            members=members,
        )  # fmt: skip
        clusters.check(launch)
        if self._measured is not None:
            self._measured.append(self._estimate(module, launch, ranges))
            return 0.0
        launched = LaunchedKernel(
            readable(code.kernel), grid, block, symbol=code.kernel, target=code.target
        )
        entry = self.kernels.setdefault((code.kernel, grid, block), launched)
        entry.launches += 1
        calls = graph_capture.current()
        if calls is not None and self.keeps_for_replay:
            calls.append(lambda: self.perform(module, launch, ranges, entry))
            return 0.0
        return self.perform(module, launch, ranges, entry)

    @property
    def keeps_for_replay(self) -> bool:
        """Whether a launch in the capture of PyTorch's graph waits for its replay."""
        return True

    @property
    def describes(self) -> bool:
        """Whether arguments of launches are described."""
        capturing = graph_capture.current() is not None
        return self.checks or self.predicts or capturing or self._measured is not None

    def measure(self, call: Callable[[], object]) -> float:
        """The predicted seconds of the launches of a call, which are not executed: infinite where
        one has no prediction."""
        before, self._measured = self._measured, []
        try:
            call()
            return sum(self._measured)
        finally:
            self._measured = before

    def _estimate(
        self, module: LoadedModule, launch: Launch, ranges: Sequence[AddressRange]
    ) -> float:
        from wavecast.sampling.estimate import estimate

        key = launch.code.digest, launch.grid, launch.block, launch.dynamic_lds, launch.kernarg
        if key not in self._estimated:
            self.share_with_sample(module, launch)
            with self.arena.private():
                prediction = estimate(launch, ranges, self.device).prediction
            self._estimated[key] = math.inf if prediction is None else prediction.seconds
        return self._estimated[key]

    def perform(
        self,
        module: LoadedModule,
        launch: Launch,
        ranges: Sequence[AddressRange],
        entry: LaunchedKernel,
    ) -> float:
        """Execute a launch that may touch `ranges`; its predicted seconds. Raises as `launch`."""
        module.share_data(self.emulator.translate(launch.code))
        seconds = self._seconds(module, launch, ranges, entry) if self.predicts else 0.0
        self.execute(launch, ranges)
        return seconds

    def _ranges(self, data: Sequence[AddressRange], arguments: bytes) -> list[AddressRange]:
        """The memory that a launch or a call with these arguments may touch: `data` of modules,
        allocations, and tensors that the arguments point to."""
        ranges = [*(self.allocations if self.checks else map(_pages, self.allocations)), *data]
        if self.tensors is not None:
            ranges += self.tensors.ranges(arguments)
        return ranges

    def execute(self, launch: Launch, ranges: Sequence[AddressRange]) -> None:
        """Execute a launch that may touch `ranges`. Raises as `launch`."""
        self.emulator.run(launch, ranges)

    def call_library(
        self, name: str, words: Sequence[int], data: Sequence[AddressRange]
    ) -> tuple[int, bytes]:
        """Execute a call of a library: its status, and what it returns. Raises Unsupported for a
        function that is not known, or memory that is not the program's."""
        from wavecast.runtimes.hip_host.libraries import CalledFunction, functions
        from wavecast.runtimes.hip_host.libraries.call import (
            INTERNAL_ERROR,
            INVALID_VALUE,
            InvalidCall,
        )

        function = functions().get(".".join(name.split(".")[:2]))
        ranges = self._ranges(data, struct.pack(f"<{len(words)}Q", *words))
        call = CalledFunction(name, words, ranges)
        if function is None:
            raise Unsupported(f"{call.readable} is not supported (docs/hip.md lists what is)")
        try:
            with np.errstate(all="ignore"):
                status, result = 0, function(call) or b""
        except InvalidCall as error:
            status, result = error.status, b""
        except np.linalg.LinAlgError:
            status, result = INTERNAL_ERROR, b""
        except (ValueError, IndexError, OverflowError):  # sizes that numpy refuses
            status, result = INVALID_VALUE, b""
        key = f"{call.readable} {call.described}".rstrip(), (), ()
        entry = self.kernels.setdefault(key, LaunchedKernel(*key, seconds=None, why=_ON_HOST))
        entry.launches += 1
        return status, result

    def _seconds(
        self,
        module: LoadedModule,
        launch: Launch,
        ranges: Sequence[AddressRange],
        entry: LaunchedKernel,
    ) -> float:
        key = launch.code.digest, entry.grid, entry.block, launch.dynamic_lds, launch.kernarg
        if key not in self._predicted:
            self._predicted[key] = self._predict(module, launch, ranges)
        seconds, why = self._predicted[key]
        if seconds is None:
            entry.seconds, entry.why = None, why
            return 0.0
        if entry.seconds is not None:
            entry.seconds += seconds
        return seconds

    def _predict(
        self, module: LoadedModule, launch: Launch, ranges: Sequence[AddressRange]
    ) -> tuple[float | None, str]:
        from wavecast.perfmodel.predict import predict
        from wavecast.sampling.executed import profile_of_sample

        try:
            self.share_with_sample(module, launch)
            with self.arena.private():
                profile = profile_of_sample(launch, ranges, self.device)
            return predict(profile, self.device).seconds, ""
        except WavecastError as error:
            return None, str(error)

    @staticmethod
    def share_with_sample(module: LoadedModule, launch: Launch) -> None:
        """Make samples of a launch use the module's data."""
        from wavecast.sampling.sample import translate

        module.share_data(translate(launch.code))

    def _arguments(self, kernel: ModuleKernel, segment: bytes) -> tuple[Argument, ...]:
        """The arguments as checks and predictions name them."""
        arguments = []
        for parameter, argument in _parameters(kernel):
            raw = segment[argument.offset : argument.offset + argument.size]
            if argument.kind == "global_buffer" and argument.size == 8:
                arguments.append(self._pointer(parameter, struct.unpack("<Q", raw)[0]))
            else:
                small = argument.size <= 8
                value = int.from_bytes(raw, "little") if small else integers_of(raw)
                arguments.append(Argument(parameter.name, "scalar", parameter.type, value=value))
        return tuple(arguments)

    def _members(self, kernel: ModuleKernel, segment: bytes) -> tuple[Argument, ...]:
        """The tensors that structures passed by value point to."""
        members = []
        for parameter, argument in _parameters(kernel):
            if argument.kind != "by_value":
                continue
            for start in range(0, argument.size - 7, 8):
                slot = argument.offset + start
                (address,) = struct.unpack_from("<Q", segment, slot)
                name = member_name(parameter.name, start)
                item = self._pointer(replace(parameter, name=name, type=""), address)
                if item.kind == "tensor":
                    members.append(replace(item, slot=slot))
        return tuple(members)

    def _pointer(self, parameter: Parameter, address: int) -> Argument:
        tensor = self.tensors.at(address) if self.tensors is not None else None
        if tensor is not None:
            return tensor.argument(parameter.name, address)
        for first, end in self.allocations:
            if first <= address < end:
                dtype = element_dtype(parameter.type) or "uint8"
                elements = (end - address) // max(1, itemsize(dtype))
                return Argument(
                    parameter.name, "tensor", dtype, (elements,), (1,), end - first, first
                )
        return Argument(parameter.name, "pointer", value=address)


def _parameters(kernel: ModuleKernel) -> Iterator[tuple[Parameter, KernelArgument]]:
    """The parameters of a kernel with their places in the argument segment."""
    parameters = {parameter.offset: parameter for parameter in kernel.code.parameters}
    for number, argument in enumerate(kernel.arguments, 1):
        parameter = parameters.get(argument.offset) or Parameter(
            argument.name, argument.type_name, argument.offset, argument.size
        )
        if not parameter.name:
            parameter = replace(parameter, name=f"argument {number}")
        yield parameter, argument


__all__ = ["LaunchedKernel", "Launcher"]
