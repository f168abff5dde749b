"""A model as the calls of PyTorch's operators that it makes, with sizes and without values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wavecast.dtypes import element_bytes

PHASES: Final = ("forward", "backward", "optimizer")


@dataclass(frozen=True, slots=True)
class TensorSizes:
    """A tensor without values: `shape`, `dtype` (a short name of `dtypes.csv`), `strides` in
    elements, and `storage`, a number that tensors share which share memory."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    storage: int = -1

    @classmethod
    def contiguous(cls, shape: tuple[int, ...], dtype: str, storage: int = -1) -> TensorSizes:
        """A tensor of rows."""
        strides = tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
        return cls(shape, dtype, strides, storage)

    @property
    def elements(self) -> int:
        """Elements, repeated ones included."""
        return math.prod(self.shape)

    @property
    def distinct(self) -> tuple[int, ...]:
        """The shape with 1 for dimensions that repeat the same elements (stride 0)."""
        return tuple(
            1 if stride == 0 else size
            for size, stride in zip(self.shape, self.strides, strict=True)
        )

    @property
    def bytes(self) -> float:
        """Bytes of the distinct elements."""
        return math.prod(self.distinct) * element_bytes(self.dtype)

    @property
    def channels_last(self) -> bool:
        """Whether dimension 1 is the innermost in memory, as `torch.channels_last` has it."""
        sizes, strides = self.shape, self.strides
        return len(sizes) > 3 and sizes[1] > 1 and strides[1] == 1 and math.prod(sizes[2:]) > 1


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call of an operator, such as `aten.addmm`.

    `inputs` and `outputs` are tensors, those of lists one by one. `arguments` has the arguments by
    their names in the operator's schema: a `TensorSizes` for a tensor, else numbers, texts and
    lists. `module` is the path of the module that made the call; `after` are the numbers of the
    calls whose results it reads. `view`: it moves nothing. `pointwise`: PyTorch tags it so.
    `flops` is PyTorch's own count, None where it has none.
    """

    name: str
    inputs: tuple[TensorSizes, ...]
    outputs: tuple[TensorSizes, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    module: str = ""
    phase: str = "forward"
    after: tuple[int, ...] = ()
    view: bool = False
    pointwise: bool = False
    flops: float | None = None

    @property
    def bytes_read(self) -> float:
        """Bytes of the inputs, each piece of memory once."""
        return sum({spec.storage: spec.bytes for spec in self.inputs}.values())

    @property
    def bytes_written(self) -> float:
        """Bytes of the outputs."""
        return sum(spec.bytes for spec in self.outputs)


@dataclass(frozen=True, slots=True)
class GraphLibraryCall:
    """A call of an operator by code that `torch.compile` generated: `lines` (`path:line`) of the
    model that it comes from, and how often it was made."""

    call: OperatorCall
    lines: tuple[str, ...]
    count: int = 1


@dataclass(frozen=True, slots=True)
class ModuleGraph:
    """The calls of a model in the order they are made.

    `parameters` counts elements; `parameter_bytes`, `input_bytes` and `state_bytes` are what
    weights, inputs and the states of an optimizer take, `stored` the numbers of their storages.
    `classes` has the class of every module by its path. `notes` say what the recorder assumed.
    """

    name: str
    calls: tuple[OperatorCall, ...]
    parameters: int = 0
    parameter_bytes: float = 0.0
    input_bytes: float = 0.0
    state_bytes: float = 0.0
    stored: frozenset[int] = frozenset()
    classes: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases that have calls."""
        names = {call.phase for call in self.calls}
        return tuple(phase for phase in PHASES if phase in names)


__all__ = ["PHASES", "GraphLibraryCall", "ModuleGraph", "OperatorCall", "TensorSizes"]
