"""Element-wise operations on tensors, as PyTorch runs them.

Contiguous operands of one shape take the vectorised kernel: 256 threads, 16 bytes of the narrowest
operand per thread (at least 4 elements). Broadcast, transposed or sliced operands take the indexed
one: 128 threads, 4 elements (8 of 2 bytes and less) per thread, each found through a division by
the size of every dimension left after merging, and a multiplication per tensor
(aten/src/ATen/native/cuda/CUDALoops.cuh, OffsetCalculator.cuh).

Concatenation copies one tensor after another (`launches`). Resizing and padding find the source of
one result at a time. Reading by index is an indexed kernel with one more tensor. `_foreach` calls
put many tensors into a launch, a workgroup for every 65,536 elements of one (MultiTensorApply.cuh).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from wavecast.arch import Device
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.bounds import MemoryFloor, Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import Traffic
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.dtypes import KNOWN, element_bytes
from wavecast.perfmodel.ops.sizes import (
    at_most,
    check_options,
    parse_sizes,
    predict_kernels,
    truth,
    warm_floor,
    whole,
)
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.streaming import Streaming, kernel_parts, lanes
from wavecast.perfmodel.timing import TIMINGS

FAMILY = "elementwise"

FUNCTIONS: Final[dict[str, tuple[int, str]]] = {
    "fill": (0, "arithmetic"),
    "random": (0, "random"),
    "copy": (1, "arithmetic"),
    "abs": (1, "arithmetic"),
    "neg": (1, "arithmetic"),
    "clamp": (1, "arithmetic"),
    "relu": (1, "arithmetic"),
    "square": (1, "arithmetic"),
    "scale": (1, "arithmetic"),
    "add_number": (1, "arithmetic"),
    "compare_number": (1, "arithmetic"),
    "dropout": (1, "random"),
    "exp": (1, "exponential"),
    "log": (1, "special"),
    "rsqrt": (1, "special"),
    "sqrt": (1, "special"),
    "sigmoid": (1, "exponential"),
    "silu": (1, "exponential"),
    "tanh": (1, "special"),
    "gelu": (1, "special"),
    "erf": (1, "special"),
    "elu": (1, "exponential"),
    "sin": (1, "trigonometric"),
    "cos": (1, "trigonometric"),
    "pow_number": (1, "power"),
    "add": (2, "arithmetic"),
    "sub": (2, "arithmetic"),
    "mul": (2, "arithmetic"),
    "maximum": (2, "arithmetic"),
    "compare": (2, "arithmetic"),
    "div": (2, "arithmetic"),
    "masked_fill": (2, "arithmetic"),
    "threshold_backward": (2, "arithmetic"),
    "silu_mul": (2, "exponential"),
    "gelu_mul": (2, "special"),
    "pow": (2, "tensor_power"),
    "where": (3, "arithmetic"),
    "addcmul": (3, "arithmetic"),
    "upsample_nearest": (1, "nearest"),
    "pad": (1, "pad"),
    "index": (2, "arithmetic"),
}
"""Name -> tensors it reads, class of its arithmetic (a coefficient `<class>_instructions`)."""

RESIZING: Final = frozenset({"upsample_nearest", "pad"})
"""Functions whose result has other sizes than the operand, one result per thread at a time."""
SELECTING: Final = frozenset({"index"})
"""Functions that read as much of the first operand as they write, at the places of the second."""
CHUNK: Final = 65536
"""Elements of a tensor that one workgroup of a `_foreach` kernel takes."""
CHUNK_THREADS: Final = 512
LISTED: Final = (110, 64, 48, 36, 30)
"""Tensors of a `_foreach` launch, by the number of lists (depth_to_max_tensors)."""

MOST: Final = 1 << 20
"""Tensors of a call: PyTorch has one Python object for each."""

SHORT_FLOATS: Final = frozenset({"fp32", "fp16", "bf16"})

Operand = tuple[tuple[int, ...], str]
"""Shape and element type of a tensor."""

OPTIONS: Final = (
    *("function", "dtype", "indexed", "in_place", "timing", "source", "tensors", "parts"),
)


@dataclass(frozen=True, slots=True)
class Elementwise(Op):
    """`function` (a key of `FUNCTIONS`) of `operands`, giving `result`.

    `indexed`: some tensor is not contiguous (broadcasting is seen from the shapes). `in_place`: the
    result is the first operand. `launches` kernels share the elements evenly (concatenation copies
    tensor by tensor). `tensors` of these sizes are the lists of one `_foreach` call. `timing` is a
    key of `timing.TIMINGS`.
    """

    kind: ClassVar[str] = "elementwise"
    shape_help: ClassVar[str] = (
        "AxBx…, sizes of the result; --dtype, function (add, gelu, …), indexed=true (not "
        "contiguous), in_place=true, timing (kernel, launch, eager, …); source=AxB… (sizes of the "
        "first operand of upsample_nearest, pad and index), parts (tensors that copy joins), "
        "tensors (of the lists of a _foreach call)"
    )

    function: str
    operands: tuple[Operand, ...]
    result: Operand
    indexed: bool = False
    in_place: bool = False
    launches: int = 1
    timing: str = "kernel"
    tensors: int = 1

    def __post_init__(self) -> None:
        if min(self.launches, self.tensors) < 1:
            raise UsageError("elementwise: launches and tensors are positive")
        at_most(self.kind, {"parts": (self.launches, MOST), "tensors": (self.tensors, MOST)})
        if self.function not in FUNCTIONS:
            raise UnknownName("element-wise function", self.function, FUNCTIONS)
        if self.timing not in TIMINGS:
            raise UnknownName("way of timing", self.timing, TIMINGS)
        for shape, dtype in (*self.operands, self.result):
            element_bytes(dtype)
            if any(size < 1 for size in shape):
                raise UsageError(f"sizes must be positive, not {shape}")

    @classmethod
    def of(
        cls, function: str, shape: tuple[int, ...], dtype: str, *, timing: str = "kernel"
    ) -> Self:
        """The function of contiguous tensors of one shape and type. Raises UnknownName."""
        if function not in FUNCTIONS:
            raise UnknownName("element-wise function", function, FUNCTIONS)
        tensor = (shape, dtype)
        return cls(function, (tensor,) * FUNCTIONS[function][0], tensor, timing=timing)

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        values = check_options(
            cls.kind,
            options,
            OPTIONS,
            required=("function", "dtype"),
            values={"function": FUNCTIONS, "dtype": KNOWN},
        )
        result = parse_sizes(shape)
        op = cls.of(values["function"], result, values["dtype"])
        operands, parts = op.operands, whole(cls.kind, "parts", values.get("parts", "1"))
        if "source" in values:
            if op.function not in RESIZING | SELECTING:
                raise UsageError(f"elementwise: {op.function} has no option source")
            operands = ((parse_sizes(values["source"]), values["dtype"]), *operands[1:])
        elif op.function in RESIZING | SELECTING:
            raise UsageError(f"elementwise: {op.function} needs --set source=…")
        if op.function in SELECTING:
            operands = (operands[0], (result[:1], "int64"))
        if parts > 1 and op.function != "copy":
            raise UsageError("elementwise: parts are those that copy concatenates")
        return cls(
            op.function,
            operands,
            op.result,
            indexed=truth(cls.kind, "indexed", values.get("indexed", str(parts > 1))),
            in_place=truth(cls.kind, "in_place", values.get("in_place", "false")),
            launches=parts,
            timing=values.get("timing", "kernel"),
            tensors=whole(cls.kind, "tensors", values.get("tensors", "1")),
        )

    def work(self) -> Work:
        flops = {"vector_fp32": float(self.elements) * self.tensors}
        written = _bytes(self.result) * self.tensors
        operands = self.operands
        if self.function in SELECTING:
            operands = ((self.result[0], operands[0][1]), *operands[1:])
        read = sum(_bytes(operand) for operand in operands) * self.tensors
        return Work(flops, read, written, "one per element", "derived from the shapes")

    def memory_floor(self, device: Device) -> MemoryFloor:
        work = self.work()
        read, written = work.bytes_read or 0.0, work.bytes_written or 0.0
        footprint = max(read, written) if self.in_place else read + written
        return warm_floor(self, device, footprint, self.streams)

    @property
    def streams(self) -> float:
        """Tensors that are read or written at once."""
        return max(1.0, len(self.operands) + (not self.in_place))

    @property
    def dtype(self) -> str:
        """The dtype of the result."""
        return self.result[1]

    @property
    def elements(self) -> int:
        """Elements of the result, of one of the tensors of a `_foreach` call."""
        return math.prod(self.result[0])

    @property
    def broadcast(self) -> bool:
        """Whether an operand has another shape than the result, and repeats for it."""
        if self.function in RESIZING | SELECTING:
            return False
        return any(
            _trim_leading_ones(shape) != _trim_leading_ones(self.result[0])
            for shape, _ in self.operands
        )

    @property
    def casts(self) -> bool:
        """Whether elements are converted between types that the kernel takes as arguments. Copies
        to floating-point types of 16 bits from short ones have specialised kernels (Copy.cu); masks
        do not count as operands."""
        types = {dtype for _, dtype in self.operands}
        if self.function == "copy":
            types.add(self.result[1])
            special = types <= SHORT_FLOATS and self.result[1] != "fp32"
            return len(types) > 1 and not special
        if self.function in SELECTING:
            return False
        return len(types - {"bool"}) > 1

    @property
    def dimensions(self) -> int:
        """Dimensions left when all that broadcast alike are merged; two where strides are unknown:
        something contiguous, walked in steps."""
        if not self.broadcast:
            return 2 if self.indexed else 1
        result = self.result[0]
        shapes = [(1,) * (len(result) - len(shape)) + shape for shape, _ in self.operands]
        patterns = [
            tuple(shape[dim] == 1 for shape in shapes)
            for dim, size in enumerate(result)
            if size > 1
        ]
        return 1 + sum(a != b for a, b in itertools.pairwise(patterns))

    def predict(self, device: Device) -> Prediction:
        chip = Chip.of(device)
        constants = coefficients.values(FAMILY, device)
        widths = [element_bytes(dtype) for _, dtype in (*self.operands, self.result)]
        indexed = self.indexed or self.broadcast or self.function in SELECTING
        instructions = constants[f"{FUNCTIONS[self.function][1]}_instructions"]
        threads, per_thread = 256, max(4.0, 16 / min(widths))
        if self.function in RESIZING:
            per_thread = 1.0
        elif indexed:
            threads, per_thread = 128, 4.0 if min(widths) >= 4 else 8.0
            offsets = constants["division_instructions"] + constants["offset_instructions"] * len(
                widths
            )
            instructions += offsets * self.dimensions
        workgroups = self.elements / self.launches / (threads * per_thread)
        if self.tensors > 1:
            threads, per_thread = CHUNK_THREADS, min(self.elements, CHUNK) / CHUNK_THREADS
            workgroups = self.tensors * math.ceil(self.elements / CHUNK)
        scattered = indexed or self.function in RESIZING
        chain = constants["index_chain"] if scattered else 0.0
        if self.casts:
            chain += constants["cast_chain"]
        work = self.work()
        assert work.bytes_read is not None
        assert work.bytes_written is not None
        footprint = work.bytes_read + (0.0 if self.in_place else work.bytes_written)
        launches = self.launches
        if self.tensors > 1:
            lists = min(len(self.operands) + (not self.in_place), len(LISTED))
            launches = math.ceil(self.tensors / LISTED[max(lists, 1) - 1])
            workgroups /= launches
        share = 1 / launches
        launch = Streaming(
            traffic=Traffic(
                work.bytes_read * share,
                work.bytes_written * share,
                footprint=footprint * share,
                shared=self.timing == "kernel",
                streams=self.streams,
            ),
            workgroups=math.ceil(workgroups),
            issue=threads * per_thread * instructions / lanes(chip),
            overlap=constants["index_overlap" if scattered else "overlap"],
            chain=chain,
            threads=threads,
            drain=constants["drain"],
        )
        return predict_kernels(
            self,
            device,
            [kernel_parts(chip, launch)] * launches,
            launch.overlap,
            timing=self.timing,
            assumed={
                "kernel": self._kernel(indexed=indexed) + ", casting" * self.casts,
                "threads": threads,
                "elements per thread": max(1, int(per_thread)),
                "launches": launches,
                "timing": self.timing,
            },
        )

    def _kernel(self, *, indexed: bool) -> str:
        if self.tensors > 1:
            return "many tensors"
        if self.function in RESIZING:
            return "one element per thread"
        return "indexed" if indexed else "vectorised"

    def __str__(self) -> str:
        sizes = "x".join(str(size) for size in self.result[0])
        several = f"{self.tensors} tensors of " if self.tensors > 1 else ""
        return f"{self.function} {several}{sizes} {self.result[1]}"


def _bytes(tensor: Operand) -> float:
    return math.prod(tensor[0]) * element_bytes(tensor[1])


def _trim_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without sizes of one in front: they do not broadcast."""
    start = next((dim for dim, size in enumerate(shape) if size != 1), len(shape))
    return shape[start:]


__all__ = ["FUNCTIONS", "Elementwise", "Operand"]
