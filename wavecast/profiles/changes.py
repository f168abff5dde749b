"""Changes of a profiled run, as a user writes them.

    batch*2; attention=flash3; gemm*0.8; host*0.5; graphs

`batch*F` multiplies the sequences, `CLASS=LIBRARY` takes the kernels of another library, `NAME*F`
multiplies the times of a category of kernels or of an operator, `host*F` those of the host, and
`graphs` launches everything between two waits of the host at once.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.ops.attention import libraries as attention
from wavecast.perfmodel.ops.gemm import libraries as gemm
from wavecast.profiles.kernel_names import categories
from wavecast.profiles.profile import NONE, Profile, ProfiledOp

OWN: Final = "wavecast"
"""Library name of the kernels of this package."""
BATCH, HOST, GRAPHS = "batch", "host", "graphs"
_FACTOR: Final = re.compile(r"(?P<name>[^*/=]+?)\s*(?P<sign>[*/])\s*(?P<number>[\d.eE+-]+)")
_LIBRARY: Final = re.compile(r"(?P<name>[^*/=]+?)\s*=\s*(?P<value>\S+)")
_LIBRARIES: Final = {"attention": attention.names, "gemm": gemm.libraries}
_LARGEST: Final = 1e6


@dataclass(frozen=True, slots=True)
class ProfileChanges:
    """All changes at once. `libraries` by class of operations, `factors` of times by category or
    operator."""

    text: str = ""
    batch: float = 1.0
    host: float = 1.0
    graphs: bool = False
    libraries: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)

    def factor(self, operator: str, category: str) -> float:
        """What the time of an operator is multiplied by."""
        return self.factors.get(operator, 1.0) * self.factors.get(category, 1.0)

    def batch_of(self, profile: Profile) -> BatchSizes:
        """How the sizes of a profile's operators change.

        Raises UsageError where the file does not show the batch.
        """
        if self.batch == 1:
            return BatchSizes(1.0, 0, 0)
        return batch_sizes(profile, self.batch)


UNCHANGED: Final = ProfileChanges()


def parse(text: str, profile_ops: frozenset[str] = frozenset()) -> ProfileChanges:
    """Changes separated by semicolons; `profile_ops` are the operators that can be named.

    Raises UsageError for what is not a change, UnknownName for a class, library or operator.
    """
    changes = ProfileChanges(text)
    for part in filter(None, (clause.strip() for clause in text.split(";"))):
        changes = _with(changes, part, profile_ops)
    return changes


def _with(changes: ProfileChanges, part: str, operators: frozenset[str]) -> ProfileChanges:
    if part == GRAPHS:
        return replace(changes, graphs=True)
    library = _LIBRARY.fullmatch(part)
    if library:
        name, value = library["name"], library["value"]
        if name not in _LIBRARIES:
            raise UnknownName("class with libraries", name, _LIBRARIES)
        choices = (OWN, *_LIBRARIES[name]())
        if value not in choices:
            raise UnknownName(f"library of {name}", value, choices)
        return replace(changes, libraries={**changes.libraries, name: value})
    factor = _FACTOR.fullmatch(part)
    if not factor:
        raise UsageError(
            f"{part!r} is not a change of a profile",
            hint="batch*2, attention=wavecast, gemm*0.8, host*0.5, graphs; separated by ';'",
        )
    name, number = factor["name"], _number(part, factor["number"])
    number = number if factor["sign"] == "*" else 1 / number
    if name == BATCH:
        return replace(changes, batch=changes.batch * number)
    if name == HOST:
        return replace(changes, host=changes.host * number)
    if name not in categories() and name not in operators:
        raise UnknownName("category or operator", name, (*categories(), *operators))
    return replace(changes, factors={**changes.factors, name: number})


def _number(part: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 / _LARGEST <= value <= _LARGEST:
        raise UsageError(f"{part!r}: the factor is not a positive number up to {_LARGEST:g}")
    return value


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """The sequences and tokens of a profile, and the factor of both."""

    factor: float
    batch: int
    tokens: int

    def change(self, op: ProfiledOp) -> ProfiledOp:
        """The operator with its sizes of the changed batch: the first dimension where it is the
        batch, and every dimension that is the number of tokens. Weights keep their sizes."""
        if self.factor == 1 or not op.sizes:
            return op
        sizes, strides = _parse_list(op.sizes), _parse_list(op.strides) if op.strides else None
        weights = 1 if "convolution" in op.name else len(sizes)
        for number, shape in enumerate(sizes[:weights]):
            if isinstance(shape, list):
                self._change(shape, strides[number] if strides else None)
        return replace(op, sizes=json.dumps(sizes), strides=json.dumps(strides) if strides else "")

    def _change(self, shape: list[Any], strides: Any) -> None:
        if shape and isinstance(shape[0], list):
            for number, element in enumerate(shape):
                self._change(element, strides[number] if strides else None)
            return
        for dim, size in enumerate(shape):
            if not self._varies(shape, dim, size):
                continue
            shape[dim] = self._times(size)
            for other in range(dim):
                if isinstance(strides, list) and len(strides) == len(shape):
                    strides[other] = self._times(strides[other])

    def _varies(self, shape: list[Any], dim: int, size: object) -> bool:
        if size == self.tokens and self.tokens > 1:
            return True
        return dim == 0 and size == self.batch and len(shape) > 1

    def _times(self, size: int) -> int:
        return max(1, round(size * self.factor))

    @property
    def notes(self) -> list[str]:
        """What was inferred."""
        if self.factor == 1:
            return []
        return [
            f"the batch is taken to be {self.batch}, with {self.tokens:,} tokens in all, and is "
            f"{self._times(self.batch)} after the change"
        ]


def batch_sizes(profile: Profile, factor: float) -> BatchSizes:
    """The batch sizes of the activations: the first two dimensions of most tensors with three or
    more, by the time of their kernels.

    Raises UsageError where there are none, or the factor does not give a whole batch.
    """
    weights: defaultdict[tuple[int, int], int] = defaultdict(int)
    for op, duration in zip(profile.launches.op, profile.launches.duration, strict=True):
        if op == NONE:
            continue
        info = profile.op_infos[profile.ops.info[op]]
        for shape in _parse_list(info.sizes) if info.sizes else ():
            if isinstance(shape, list) and len(shape) == 3 and all(_positive(n) for n in shape):
                weights[shape[0], shape[1]] += duration
                break
    if not weights:
        raise UsageError("the operators do not show the batch: no tensor has three dimensions")
    batch, length = max(weights, key=lambda key: weights[key])
    if batch * factor < 1 or (batch * factor) % 1:
        raise UsageError(f"a batch of {batch} times {factor:g} is not a whole number")
    return BatchSizes(factor, batch, batch * length)


def _parse_list(text: str) -> list[Any]:
    try:
        values = json.loads(text)
    except ValueError:
        return []
    return values if isinstance(values, list) else []


def _positive(size: object) -> bool:
    return isinstance(size, int) and size > 0


__all__ = [
    "GRAPHS",
    "OWN",
    "UNCHANGED",
    "BatchSizes",
    "ProfileChanges",
    "batch_sizes",
    "parse",
]
