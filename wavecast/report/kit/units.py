"""Numbers as people read them. None (unknown) prints as an en dash."""

from __future__ import annotations

import math
from collections.abc import Iterable

from wavecast import wording
from wavecast.dtypes import is_dtype, lookup

plural = wording.count
UNKNOWN = "–"

_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def significant(value: float, digits: int = 3) -> str:
    """`value` with three significant digits and no exponent: `0.0123`, `1.25`, `142`, `1,312`."""
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    decimals = max(0, digits - 1 - magnitude)
    if magnitude + 1 < digits and round(abs(value), decimals) >= 10 ** (magnitude + 1):
        decimals = max(0, decimals - 1)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: float | None) -> str:
    """A count: `1,312`; fractions keep three significant digits."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{int(value):,}" if float(value).is_integer() else significant(value)


def amount(number: int, nouns: str) -> str:
    """`1 VGPR`, `3 VGPRs`: a number with a noun given in the plural."""
    return f"{count(number)} {nouns.removesuffix('s') if number == 1 else nouns}"


def operations(dtypes: Iterable[str]) -> str:
    """`FLOP`, or `OP` for work in integers only."""
    names = [name for name in dtypes if name]
    integers = bool(names) and all(is_dtype(name) and lookup(name).is_integer for name in names)
    return "OP" if integers else "FLOP"


def si(value: float | None, unit: str = "") -> str:
    """With an SI prefix: `1.31 PFLOP/s`, `137 G`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    for factor, prefix in _SI:
        if abs(value) >= factor * 0.9995:
            return f"{significant(value / factor)} {prefix}{unit}".rstrip()
    return f"{significant(value)} {unit}".rstrip()


def size(value: float | None) -> str:
    """Bytes with a binary prefix: `64 KiB`, `1.5 GiB`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    for factor, prefix in _BINARY:
        if abs(value) >= factor:
            return f"{significant(value / factor)} {prefix}"
    return f"{count(value)} B"


def seconds(value: float | None) -> str:
    """A time with the fitting unit: `12.3 µs`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    for factor, unit in _SECONDS:
        if abs(value) >= factor * 0.9995:
            return f"{significant(value / factor)} {unit}"
    return f"{significant(value / 1e-9)} ns"


def cycles(value: float | None) -> str:
    """Clock cycles, whole from 10 up."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 10 else significant(value, 2)


def percent(part: float, whole: float) -> str:
    """`part` of `whole` in percent, `–` when `whole` is zero."""
    if not whole:
        return UNKNOWN
    share = 100 * part / whole
    return "<1%" if 0 < share < 1 else f"{share:.0f}%"
