"""The description of an operator. Tests, benchmarks, tuning, docs and PyTorch read nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wavecast.errors import UsageError, WavecastError
from wavecast.kernels.sizes import expectation, value_text
from wavecast.perfmodel.bounds import Work

if TYPE_CHECKING:
    from wavecast.kernels.signature import Signature

Sizes = Mapping[str, Any]
"""What one call is about, in plain values: `{"rows": 8, "columns": 300, "dtype": "bfloat16"}`."""


def sizes(names: str, *rows: tuple[Any, ...]) -> tuple[Sizes, ...]:
    """Sizes of several calls as a table: `names` separated by spaces, then a row of values per
    call; the last values of a row may be left out."""
    return tuple(dict(zip(names.split(), row, strict=False)) for row in rows)


Compare = Callable[[Any, Any, Sizes], str]
"""(got, expected, sizes) -> what is wrong, "" when nothing is."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a result may be from the float64 reference.

        |got - expected| <= (ulps · eps(dtype of the result) + accumulated) · (|expected| + rms)

    with rms that of all expected values: `ulps` for the rounding of the result, `accumulated` for
    sums in float32. Integers and booleans must be equal.
    """

    ulps: float = 1.0
    accumulated: float = 2e-6


@dataclass(frozen=True, slots=True)
class Gradient:
    """The derivative, in the terms of `torch.library.register_autograd`.

    `setup(ctx, inputs, output)` saves what `backward(ctx, *grads)` needs, which returns one
    gradient (or None) per input. Both call operators (`torch.ops.wavecast.…`) and plain torch only,
    so that they can be traced and differentiated.

    None for an argument that requires a gradient is an error, but for `constants`: arguments of
    floats on which results do not depend, but at jumps (what only chooses among experts).
    """

    setup: Callable[..., None]
    backward: Callable[..., Any]
    constants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """How `torch.vmap` runs an operator in one call.

    The batch is one more leading dimension of the arguments `along` and of all results, or, with
    `merged`, a factor of their first dimension. All others must be the same for the whole batch,
    and `unless(**arguments)` false; where that does not hold, there is one call for each.
    """

    along: tuple[str, ...]
    merged: bool = False
    unless: Callable[..., bool] = field(default=lambda **_: False)


_DERIVED = Batch(())
"""Stands for a batch that follows from the tensors: all of them, where they are of one shape."""


_REFUSED = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
            ValueError)  # fmt: skip
"""What PyTorch raises for tensors that cannot be: too large, of a name that is not a dtype."""


def _sentinel(*args: Any, **sizes: Any) -> Any:
    """Stands for inputs and work that follow from the tensors of an operator."""
    raise AssertionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator, `torch.ops.wavecast.<name>`.

    `call` runs it on the GPU at hand (`wavecast.kernels.choice`); its annotations are the schema
    (those `torch.library.infer_schema` knows) and its docstring the documentation: semantics,
    shapes, dtypes, errors. `reference` has the same signature, is plain torch that works in any
    floating dtype, float64 included, and defines what is right; it also serves CPU tensors and,
    unless `fake` is given, finds shapes and dtypes of results under `torch.compile`.

    Unless they are given, `name` is that of `call`, `reference` the function `<name>_reference` of
    its module, and `tensors`, the arguments and results, the signature that checks the call
    (`Signature.checked`). With it and `flops(**sizes)`, useful operations by dtype, the next two
    need not be given.
    `inputs(make, **sizes)` gives the keyword arguments of a call (`inputs.Make`); `work(**sizes)`
    what it must compute and move. `cases` are the few small and ragged sizes it is tested with in
    CI, `thorough` further ones (dtypes, flags) for `python -m tests.kernels.everything`, `shapes`
    the ones it is judged on. With a gradient, `cases[0]` must also do with `dtype="float64"` on the
    references: it is what finite differences are taken of.

    `exact` names arguments that the float64 reference gets as they are, not widened (quantised
    data whose dtype matters); `batch` is how `torch.vmap` does it in one call instead of a loop;
    `compare` replaces the usual comparison. `needs_values` says that floating-point data decides
    how long kernels take, so that samples of them are taken with real data, after all before them.
    `mutates` names arguments written in place. For DTensors, `independent` are dimensions of the
    signature whose elements are computed apart, and `summed(name -> unless)` those that results are
    sums over, unless `unless(**arguments)`. `targets` are the compiler targets it runs on (():
    all) and `notes` what users should know: that results are not reproducible bit by bit, say.
    """

    summary: str
    call: Callable[..., Any]
    reference: Callable[..., Any] = _sentinel
    cases: tuple[Sizes, ...]
    shapes: tuple[Sizes, ...]
    name: str = ""
    tensors: Signature | None = None
    flops: Callable[..., Mapping[str, float]] | None = None
    inputs: Callable[..., dict[str, Any]] = _sentinel
    work: Callable[..., Work] = _sentinel
    thorough: tuple[Sizes, ...] = ()
    tolerance: Tolerance = field(default_factory=Tolerance)
    gradient: Gradient | None = None
    fake: Callable[..., Any] | None = None
    batch: Batch | None = _DERIVED
    compare: Compare | None = None
    needs_values: bool = False
    exact: tuple[str, ...] = ()
    mutates: tuple[str, ...] = ()
    independent: tuple[str, ...] = ()
    summed: Mapping[str, Callable[..., bool]] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    notes: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.call.__name__)
        if self.reference is _sentinel:
            reference = inspect.unwrap(self.call).__globals__.get(f"{self.name}_reference")
            if reference is None:
                raise UsageError(f"operator {self.name} has no function {self.name}_reference")
            object.__setattr__(self, "reference", reference)
        if self.tensors is None:
            object.__setattr__(self, "tensors", getattr(self.call, "tensors", None))
        if self.tensors is not None and self.inputs is _sentinel:
            object.__setattr__(self, "inputs", self.tensors.inputs())
        if self.tensors is not None and self.flops is not None and self.work is _sentinel:
            object.__setattr__(self, "work", self.tensors.work(self.flops, mutated=self.mutates))
        if self.batch is _DERIVED:
            same = self.tensors is not None and self.tensors.elementwise
            names = (
                tuple(argument.name for argument in self.tensors.arguments) if self.tensors else ()
            )
            object.__setattr__(self, "batch", Batch(names) if same else None)
        if self.inputs is _sentinel or self.work is _sentinel:
            raise UsageError(
                f"operator {self.name} says neither its tensors and flops nor its work"
            )

    def describe(self, sizes: Sizes) -> str:
        """A call in one line: `rms_norm rows=8 columns=300 dtype=bfloat16`."""
        return " ".join([self.name, *(f"{name}={value}" for name, value in sizes.items())])

    def size_names(self) -> list[str]:
        """The sizes that a call can be given."""
        parameters = list(inspect.signature(self.inputs).parameters.values())[1:]
        names = [
            parameter.name
            for parameter in parameters
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        if len(names) < len(parameters):  # it takes any: those its cases have
            for sizes in self._rows():
                names += [name for name in sizes if name not in names]
        return names

    def complete_sizes(self, sizes: Sizes) -> dict[str, Any]:
        """Sizes that are not given are their defaults, or, without one, those of the first shape it
        is judged on; without any given, all of them are."""
        first = dict(self.shapes[0]) if self.shapes else {}
        if not sizes:
            return first
        defaults = {
            parameter.name: parameter.default
            for parameter in inspect.signature(self.inputs).parameters.values()
            if parameter.default is not inspect.Parameter.empty
        }
        mandatory = {name: value for name, value in first.items() if name not in defaults}
        stated = {name: value for name, value in defaults.items() if value is not None}
        return {**stated, **mandatory, **sizes}

    def check_sizes(self, sizes: Sizes) -> None:
        """Compare `sizes` with those of the operator's own calls. Raises UsageError for a name that
        it does not have, and a value of another type or outside of the range of the type."""
        accepted = self.size_names()
        for name, value in sizes.items():
            if name not in accepted:
                axis_names = ", ".join(accepted)
                raise UsageError(f"{self.name} has no axis {name!r}", hint=f"it has {axis_names}")
            if value is None and any(name in row and row[name] is None for row in self._rows()):
                continue
            requirement = expectation(tuple(self._case_values(name)), value)
            if requirement:
                raise UsageError(
                    f"{self.name}: {name} must be {requirement}, not {value_text(value)}"
                )

    def call_inputs(self, make: Any, sizes: Sizes) -> dict[str, Any]:
        """The arguments of a call with `sizes`, whose tensors `make` makes (`inputs.Make`). Raises
        UsageError where there are none: too large, of an unknown dtype, of sizes that do not
        belong together."""
        try:
            return self.inputs(make, **sizes)
        except WavecastError:
            raise
        except _REFUSED as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise UsageError(f"no inputs of {self.describe(sizes)}: {reason}") from error

    def _case_values(self, name: str) -> Iterator[Any]:
        """The values that a size has in the operator's own calls."""
        parameter = inspect.signature(self.inputs).parameters.get(name)
        if parameter is not None and parameter.default not in (inspect.Parameter.empty, None):
            yield parameter.default
        for sizes in self._rows():
            if sizes.get(name) is not None:
                yield sizes[name]

    def _rows(self) -> tuple[Sizes, ...]:
        """The operator's own calls."""
        return (*self.shapes, *self.cases, *self.thorough)
