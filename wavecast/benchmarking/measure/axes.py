"""Values of axes, as a user types them: `M=1,16,4096`, `K=1024:8192:1024`, `N=2^4..2^12`,
`dtype=bf16,fp8`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from wavecast.benchmarking.records import Scalar
from wavecast.dtypes import Spelling, Variant, is_dtype, lookup
from wavecast.errors import UsageError

_RANGE: Final = re.compile(r"(-?\d+):(-?\d+)(?::(\d+))?")
_POWERS: Final = re.compile(r"(\d+)\^(\d+)\.\.(?:(\d+)\^)?(\d+)")
_MOST: Final = 10_000


def parse(texts: Sequence[str]) -> dict[str, tuple[Scalar, ...]]:
    """Axes by name. Ranges hold both ends; powers are those of the base. Raises UsageError."""
    axes: dict[str, tuple[Scalar, ...]] = {}
    for text in texts:
        name, separator, values = text.partition("=")
        name = name.strip()
        if not separator or not name.isidentifier():
            raise UsageError(f"{text!r} is not an axis", hint="-a NAME=VALUE,VALUE,…")
        if name in axes:
            raise UsageError(f"axis {name} is given twice")
        axes[name] = tuple(_values(name, values))
    return axes


def points(axes: Mapping[str, Sequence[Scalar]]) -> Iterator[dict[str, Scalar]]:
    """All combinations, the last axis fastest. Raises UsageError for too many."""
    total = 1
    for values in axes.values():
        total *= len(values)
    if total > _MOST:
        raise UsageError(f"the axes have {total} combinations, at most {_MOST} are measured")
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _values(axis: str, text: str) -> Iterator[Scalar]:
    for part in text.split(","):
        value = part.strip()
        if not value:
            raise UsageError(f"axis {axis} has an empty value")
        if (powers := _POWERS.fullmatch(value)) is not None:
            base, first, again, last = powers.groups()
            if again not in (None, base) or int(first) > int(last) or int(last) > 62:
                raise UsageError(f"axis {axis}: {value} are not powers", hint="2^4..2^12")
            yield from (int(base) ** power for power in range(int(first), int(last) + 1))
        elif (span := _RANGE.fullmatch(value)) is not None:
            first, last, step = int(span[1]), int(span[2]), int(span[3] or 1)
            if first > last or step < 1 or (last - first) // step > _MOST:
                raise UsageError(f"axis {axis}: {value} is not a range", hint="FIRST:LAST:STEP")
            yield from range(first, last + 1, step)
        else:
            yield _scalar(axis, value)


def _scalar(axis: str, text: str) -> Scalar:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return _torch_name(text) if "dtype" in axis and is_dtype(text) else text


def _torch_name(text: str) -> str:
    """PyTorch's name of a dtype, the OCP one for `fp8`; `text` where PyTorch has no such dtype."""
    dtype = lookup(text)
    dtype = dtype if dtype.variant else dtype.in_variant(Variant.OCP)
    return dtype.spelling(Spelling.TORCH) if dtype.spellings[Spelling.TORCH] else text


__all__ = ["parse", "points"]
