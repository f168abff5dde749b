"""Launches by CUDA's driver of programs whose Triton launches are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from wavecast.compile.codeobject import Argument, Launch, Parameter, integers_of
from wavecast.launch import graph_capture
from wavecast.runtimes.hip_host.tensors import AddressedTensors
from wavecast.runtimes.languages.cuda_driver import CudaLaunch
from wavecast.runtimes.model_lines import model_lines
from wavecast.runtimes.triton.recorder import Recorder


@dataclass
class CudaLaunchRecorder:
    """Records launches; `tensors` are those whose memory they get."""

    recorder: Recorder
    tensors: AddressedTensors
    names: list[str] = field(default_factory=list)

    def on_names(self, names: list[str]) -> None:
        """The names of the parameters of the next launch."""
        self.names = names

    def on_launch(self, asked: CudaLaunch) -> None:
        """Record a launch. Raises what the recorder raises."""
        name = asked.code.kernel
        if not self.recorder.wants(name):
            self.recorder.filtered[name] = None
            return
        self.tensors.ranges(asked.segment)  # finds tensors whose address came another way
        arguments = tuple(self._arguments(asked))
        parameters = tuple(
            Parameter(argument.name, "", offset, size)
            for argument, (offset, size) in zip(arguments, asked.parameters, strict=True)
        )
        launch = Launch(
            replace(asked.code, parameters=parameters), asked.grid, asked.block, arguments,
            asked.segment, asked.shared_bytes, cluster=asked.cluster, model_lines=model_lines(),
        )  # fmt: skip
        self.recorder.record(launch)
        if (calls := graph_capture.current()) is not None:
            calls.append(lambda: self.recorder.record(launch))

    def _arguments(self, asked: CudaLaunch) -> Iterator[Argument]:
        names = self.names if len(self.names) == len(asked.parameters) else []
        for index, (offset, size) in enumerate(asked.parameters):
            name = names[index] if names else f"argument {index + 1}"
            raw = asked.segment[offset : offset + size]
            value = int.from_bytes(raw, "little") if size <= 8 else integers_of(raw)
            tensor = self.tensors.at(value) if size == 8 and isinstance(value, int) else None
            if tensor is not None and isinstance(value, int):
                yield tensor.argument(name, value)
            else:
                kind = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}.get(size, "")
                yield Argument(name, "scalar", kind, value=value)


__all__ = ["CudaLaunchRecorder"]
