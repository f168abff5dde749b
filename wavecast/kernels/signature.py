"""The tensors of an operator, described once.

    Signature("x: [..., columns] float", "scale?: [columns] float", returns=("y: [...] =x",))

A line is `name: [dimensions] dtypes`; `name?` may be None. A dimension is a name, which stands for
one size wherever it occurs, a number, `_` for any size, or an expression of such names
(`columns / 2`, `cdiv(columns, group)`); `...` stands for any number of dimensions, the same
wherever it occurs, which calls made from sizes have from those that `leading` names, and `_...` for
any number that need not be the same. Dtypes are separated by `|`: names of torch (`int8`), the
classes of `CLASSES`, or `=x` for the dtype of the tensor x. No dtypes: any.

From this follow the checks of arguments, the tensors of a call made from plain sizes, the fake
results, the bytes that a call must move at least, and the table in the operator's page.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from wavecast.errors import ArgumentError
from wavecast.kernels import checks
from wavecast.kernels.expressions import Expression
from wavecast.launch.inputs import FP8, Make, torch_dtype
from wavecast.perfmodel.bounds import Work

CLASSES: Final[Mapping[str, tuple[torch.dtype, ...]]] = {
    "float": checks.FLOATS,
    "half": (torch.float16, torch.bfloat16),
    "fp8": FP8,
    "index": (torch.int64, torch.int32),
}
"""Classes of dtypes, the usual one first where sizes do not name it."""

_LINE = re.compile(r"(?P<name>\w+)(?P<optional>\?)?: \[(?P<shape>.*)\](?: (?P<dtypes>\S+))?")

Values = Callable[[Make, tuple[int, ...], torch.dtype, Mapping[str, Any]], Tensor]
"""(make, shape, dtype, sizes) -> the tensor of a test call."""


def vector_flops(each: float, *names: str) -> Callable[..., Mapping[str, float]]:
    """float32 operations of vector instructions: `each` per element of the product of sizes."""
    return lambda **sizes: {"vector_fp32": each * math.prod(sizes[name] for name in names)}


def streamed(
    read: float, written: float, operations: float, names: str = "rows columns"
) -> Callable[..., Work]:
    """What `Operator.work` takes: so many tensors read and written, of the sizes `names` and the
    dtype among the sizes, and so many float32 operations of vector instructions per element."""

    def case_work(**sizes: Any) -> Work:
        elements = math.prod(sizes[name] for name in names.split())
        size = elements * getattr(torch, sizes["dtype"]).itemsize
        flops = {"vector_fp32": operations * elements}
        return Work(flops, read * size, written * size, "formula", "formula")

    return case_work


def normal(scale: float = 1.0) -> Values:
    """Normally distributed values times `scale`."""
    return lambda make, shape, dtype, sizes: make.normal(shape, dtype, scale)


def uniform(low: float, high: float) -> Values:
    """Evenly distributed values from `low` to `high`."""
    return lambda make, shape, dtype, sizes: make.uniform(shape, dtype, low, high)


def integers(low: int, high: int | str) -> Values:
    """Integers from `low` up to, but not, `high`, a number or the name of a size."""

    def values(
        make: Make, shape: tuple[int, ...], dtype: torch.dtype, sizes: Mapping[str, Any]
    ) -> Tensor:
        return make.integers(shape, low, sizes[high] if isinstance(high, str) else high, dtype)

    return values


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension: `leading` (any number), a `name`, or an `expression` of other names."""

    text: str
    leading: bool
    name: str
    expression: Expression | None

    @staticmethod
    def parse(text: str) -> Dimension:
        """From the text between commas. Raises SyntaxError for text that is not a dimension."""
        if text in ("...", "_...") or text.isidentifier():
            return Dimension(text, text.endswith("..."), text, None)
        return Dimension(text, False, "", Expression.parse(text))

    def size(self, bound: Mapping[str, Any]) -> Any:
        """The size, or sizes of leading dimensions; None where a name is not bound."""
        if self.expression is None:
            return bound.get(self.name)
        is_bound = all(name in bound for name in self.expression.names)
        return int(self.expression.value(bound)) if is_bound else None


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One line of a signature."""

    name: str
    optional: bool
    dimensions: tuple[Dimension, ...]
    dtypes: tuple[str, ...]

    @staticmethod
    def parse(line: str) -> TensorSpec:
        """From `name: [dimensions] dtypes`. Raises ValueError for any other text."""
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{line!r} is not `name: [dimensions] dtypes`")
        shape = re.split(r",\s*(?![^(]*\))", match["shape"]) if match["shape"] else []
        dtypes = tuple(match["dtypes"].split("|")) if match["dtypes"] else ()
        dimensions = tuple(map(Dimension.parse, shape))
        if sum(dimension.leading for dimension in dimensions) > 1:
            raise ValueError(f"{line!r}: only one ... can stand for several dimensions")
        return TensorSpec(match["name"], bool(match["optional"]), dimensions, dtypes)

    @property
    def shape_text(self) -> str:
        """`[..., columns]`."""
        return f"[{', '.join(dimension.text for dimension in self.dimensions)}]"

    def allowed_dtypes(self, arguments: Mapping[str, Any]) -> tuple[torch.dtype, ...]:
        """Dtypes it may have, given the other tensors `arguments`; (): any."""
        dtypes: list[torch.dtype] = []
        for name in self.dtypes:
            if not name.startswith("="):
                dtypes.extend(CLASSES.get(name) or (getattr(torch, name),))
            elif arguments[name[1:]] is not None:
                dtypes.append(arguments[name[1:]].dtype)
        return tuple(dtypes)

    def dtype(self, sizes: Mapping[str, Any], others: Mapping[str, torch.dtype]) -> torch.dtype:
        """The dtype in a call made from sizes: a size named `<tensor>_dtype`, that of the tensor it
        equals, the size `dtype` where the class has it, or the first of its dtypes."""
        dtype_name = sizes.get(f"{self.name}_dtype")
        if dtype_name:
            return torch_dtype(dtype_name)
        first = self.dtypes[0] if self.dtypes else "float"
        if first.startswith("="):
            return others[first[1:]]
        if first in CLASSES and first != "index" and "dtype" in sizes:
            return torch_dtype(sizes["dtype"])
        return CLASSES[first][0] if first in CLASSES else getattr(torch, first)

    def bind(self, operator: str, tensor: Tensor, bound: dict[str, Any]) -> None:
        """Check the shape and add the sizes it names to `bound`. Raises ArgumentError."""
        fixed = sum(not dimension.leading for dimension in self.dimensions)
        several = tensor.dim() - fixed
        if several < 0 and fixed < len(self.dimensions):
            shape = "x".join(map(str, tensor.shape)) or "a scalar"
            message = f"{operator}: {self.name} is {shape}, expected {self.shape_text}"
            raise ArgumentError(message)
        extents: list[int] = []
        axes: list[tuple[str, int]] = []
        for dimension in self.dimensions:
            if dimension.leading:
                sizes = tuple(tensor.shape[len(extents) : len(extents) + several])
                extents.extend(
                    sizes if dimension.text == "_..." else bound.setdefault(dimension.name, sizes)
                )
                continue
            size = None if dimension.text == "_" else dimension.size(bound)
            if dimension.name and dimension.name != "_" and size is None:
                axes.append((dimension.name, len(extents)))
            extents.append(-1 if size is None else size)
        checks.shape_is(operator, self.name, tensor, extents)
        for name, index in axes:
            bound[name] = tensor.shape[index]

    def shape(self, sizes: Mapping[str, Any]) -> tuple[int, ...]:
        """The shape in a call made from sizes. Raises KeyError for a size that is not there."""
        extents: list[int] = []
        for dimension in self.dimensions:
            size = dimension.size(sizes)
            if size is None:
                raise KeyError(f"{self.name}: no size for {dimension.text}")
            extents.extend(size) if isinstance(size, tuple) else extents.append(size)
        return tuple(extents)


class Signature:
    """The tensors an operator takes and returns."""

    def __init__(self, *lines: str, returns: tuple[str, ...] = (), leading: str = "rows") -> None:
        self.arguments = tuple(map(TensorSpec.parse, lines))
        self.results = tuple(map(TensorSpec.parse, returns))
        self.leading = tuple(leading.split())

    @property
    def elementwise(self) -> bool:
        """Whether all tensors are of one shape, whatever it is."""
        specs = (*self.arguments, *self.results)
        return all(spec.shape_text == "[...]" and not spec.optional for spec in specs)

    def checked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, named like its operator, after a check of its arguments; its attribute `tensors`
        is this signature."""
        parameters = inspect.signature(call).parameters
        names = tuple(parameters)
        defaults = {
            name: parameter.default
            for name, parameter in parameters.items()
            if parameter.default is not parameter.empty
        }

        @functools.wraps(call)
        def checking(*args: Any, **keywords: Any) -> Any:
            arguments = {**defaults, **dict(zip(names, args, strict=False)), **keywords}
            self.check(call.__name__, arguments)
            return call(*args, **keywords)

        vars(checking)["tensors"] = self
        return checking

    def check(self, operator: str, arguments: Mapping[str, Any], **sizes: Any) -> dict[str, Any]:
        """The sizes that the tensors of a call bind, and the known `sizes`. Raises
        ArgumentError for a tensor of another dtype or shape, or on another device."""
        bound: dict[str, Any] = dict(sizes)
        for spec in self.arguments:
            tensor = arguments[spec.name]
            if tensor is None:
                checks.require(spec.optional, operator, f"{spec.name} is missing")
                continue
            dtypes = spec.allowed_dtypes(arguments)
            if dtypes:
                checks.dtype_in(operator, spec.name, tensor, dtypes)
            spec.bind(operator, tensor, bound)
        for spec in self.arguments:  # again with the names that later tensors bind
            tensor = arguments[spec.name]
            if tensor is not None and any(dimension.expression for dimension in spec.dimensions):
                spec.bind(operator, tensor, bound)
        checks.same_device(operator, **{spec.name: arguments[spec.name] for spec in self.arguments})
        return bound

    def inputs(
        self, names: tuple[str, ...] = (), absent: tuple[str, ...] = (),
        options: Mapping[str, str] | None = None, **values: Values,
    ) -> Callable[..., dict[str, Any]]:  # fmt: skip
        """What `Operator.inputs` takes. Tensors are normally distributed, or as `values` says; an
        optional one is there unless its name is a size that is false or in `absent` without being
        a true one. Other sizes than dimensions, dtypes and tensors are arguments of the call, as
        are those in `names`; `options` are arguments that are dtypes, by the size that names
        them."""

        def make_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
            arguments: dict[str, Any] = {}
            option_values = {name: sizes.pop(name) for name in options or () if name in sizes}
            option_dtypes = {
                (options or {})[name]: make.dtype(dtype_name)
                for name, dtype_name in option_values.items()
            }
            dtypes: dict[str, torch.dtype] = {}
            for spec in self.arguments:
                there = bool(sizes.get(spec.name, spec.name not in absent))
                if spec.optional and not there:
                    arguments[spec.name] = None
                    continue
                dtype = dtypes[spec.name] = spec.dtype(sizes, dtypes)
                value = values.get(spec.name, normal())
                arguments[spec.name] = value(
                    make, spec.shape(self._with_leading(sizes)), dtype, sizes
                )
            tensor_sizes = self._own_sizes
            rest = {n: v for n, v in sizes.items() if n not in tensor_sizes or n in names}
            return {**arguments, **rest, **option_dtypes}

        return make_inputs

    def work(
        self, flops: Callable[..., Mapping[str, float]], absent: tuple[str, ...] = (),
        mutated: tuple[str, ...] = (),
    ) -> Callable[..., Work]:  # fmt: skip
        """What `Operator.work` takes: each argument read once, each result and each argument in
        `mutated` written once, with `flops(**sizes)` by dtype."""

        def bytes_of(
            specs: tuple[TensorSpec, ...], sizes: Mapping[str, Any], dtypes: dict[str, torch.dtype]
        ) -> float:
            total = 0.0
            for spec in specs:
                dtype = dtypes[spec.name] = spec.dtype(sizes, dtypes)
                if not spec.optional or sizes.get(spec.name, spec.name not in absent):
                    total += math.prod(spec.shape(self._with_leading(sizes))) * dtype.itemsize
            return total

        def case_work(**sizes: Any) -> Work:
            dtypes: dict[str, torch.dtype] = {}
            read = bytes_of(self.arguments, sizes, dtypes)
            changed = tuple(spec for spec in self.arguments if spec.name in mutated)
            written = bytes_of((*self.results, *changed), sizes, dtypes)
            return Work(flops(**sizes), read, written, "formula", "formula")

        return case_work

    def empty(
        self, arguments: Mapping[str, Any], bound: Mapping[str, Any], **dtypes: torch.dtype
    ) -> Any:
        """The results of a call, not filled: one tensor or a tuple. `dtypes` are those of results
        that options of the call decide."""
        device = next(
            argument.device for argument in arguments.values() if isinstance(argument, Tensor)
        )
        outputs = []
        for spec in self.results:
            dtype = dtypes.get(spec.name) or spec.allowed_dtypes(arguments)[0]
            outputs.append(torch.empty(spec.shape(bound), dtype=dtype, device=device))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _with_leading(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Sizes, and the leading dimensions they make."""
        return {**sizes, "...": tuple(sizes[name] for name in self.leading if name in sizes)}

    @functools.cached_property
    def _own_sizes(self) -> frozenset[str]:
        """Sizes that only say what tensors are."""
        specs = (*self.arguments, *self.results)
        names = {spec.name for spec in specs} | {f"{spec.name}_dtype" for spec in specs}
        names |= set(self.leading)
        for spec in specs:
            for dimension in spec.dimensions:
                names |= (
                    set(dimension.expression.names) if dimension.expression else {dimension.name}
                )
        return frozenset(names | {"dtype"})

    def rows(self) -> list[tuple[str, str, str]]:
        """(name, shape, dtypes) of arguments, then results, for the page of an operator."""

        def names(spec: TensorSpec) -> str:
            each = (
                f"that of {dtype_name[1:]}" if dtype_name.startswith("=") else dtype_name
                for dtype_name in spec.dtypes
            )
            return ", ".join(each) or "any"

        return [
            *((s.name + "?" * s.optional, s.shape_text, names(s)) for s in self.arguments),
            *((f"→ {s.name}", s.shape_text, names(s)) for s in self.results),
        ]
