"""Option values that several verbs take."""

from __future__ import annotations

import math
from typing import Any, Final

import click

from wavecast.patterns import regex

PROCESSES: Final = click.IntRange(1, 1024)
"""Of processes or threads."""
_MOST_COUNTED: Final = 1 << 20


def count(least: int = 0, most: int = (1 << 31) - 1) -> click.IntRange:
    """A number of things."""
    return click.IntRange(least, most)


def not_an_option(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """For a text option whose value may be forgotten: click takes the next option for it."""
    if value.startswith("-"):
        raise click.BadParameter(f"a value is missing before {value}", ctx, param)
    return value


class NumberRange(click.FloatRange):
    """Numbers of a range, which NaN is not in: no comparison refuses it."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class RegexParam(click.ParamType):
    """A regular expression, as text. One that does not compile is refused before any work."""

    name = "REGEX"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,  # noqa: ARG002
    ) -> str:
        regex(value, param.opts[0] if param is not None else "")
        return value


class Counts(click.ParamType):
    """`1,4,16` or `4..256`, which doubles."""

    name = "N[,N…|..N]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found: list[int] = []
        try:
            for part in str(value).split(","):
                low, dots, high = part.partition("..")
                first, last = int(low), int(high) if dots else int(low)
                if not 0 < first <= last <= _MOST_COUNTED:
                    raise ValueError
                while first < last:
                    found.append(first)
                    first *= 2
                found.append(last)
        except ValueError:
            self.fail(
                f"{value!r} is not like 1,4,16 or 4..256, up to {_MOST_COUNTED:,}", param, ctx
            )
        return tuple(dict.fromkeys(found))


class Dimensions(click.ParamType):
    """`X[,Y[,Z]]` with positive integers; missing ones are 1."""

    name = "X[,Y[,Z]]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int, int]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = [int(part) for part in str(value).replace("x", ",").split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3 or not all(0 < number < 1 << 31 for number in numbers):
            self.fail(f"{value!r} is not one to three positive integers below 2^31", param, ctx)
        x, y, z = (*numbers, 1, 1)[:3]
        return x, y, z


class QuantityParam(click.ParamType):
    """A positive number with an optional K, M, G, T, P suffix (powers of 1000)."""

    name = "NUMBER[K|M|G|T|P]"
    _SCALE = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}  # noqa: RUF012

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        scale = self._SCALE.get(text[-1:].lower(), 1.0)
        try:
            number = float(text[:-1] if scale != 1.0 else text) * scale
        except ValueError:
            number = 0.0
        if not 0.0 < number < float("inf"):
            self.fail(f"{value!r} is not a positive number", param, ctx)
        return number
