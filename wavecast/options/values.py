"""The values that options take: how their text is read, and what is refused.

`parse` reads text and raises ValueError with the reason. `take` accepts a value of a program, which
may be that text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

_MOST_COUNTED: Final = 1 << 20


class OptionValues:
    """Any text. `name` stands for a value in help."""

    name: ClassVar[str] = "TEXT"

    def parse(self, text: str) -> Any:
        """The value that a text means. Raises ValueError."""
        return text

    def take(self, value: Any) -> Any:
        """A value that a program passes. Raises ValueError."""
        return self.parse(value) if isinstance(value, str) else value


class Text(OptionValues):
    """Text that does not begin with a dash: where a value is forgotten, the next option is taken
    for it."""

    def parse(self, text: str) -> str:
        if text.startswith("-"):
            raise ValueError(f"a value is missing before {text}")
        return text


class Flag(OptionValues):
    """True or False; on the command line the option alone."""

    name = "FLAG"

    def take(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} is not True or False")
        return value


@dataclass(frozen=True, slots=True)
class Integers(OptionValues):
    """Integers from `least` to `most`."""

    name: ClassVar[str] = "INTEGER"
    least: int = 0
    most: int = (1 << 31) - 1

    def parse(self, text: str) -> int:
        try:
            return self.take(int(text))
        except ValueError:
            raise ValueError(f"{text!r} is not an integer, {self}") from None

    def take(self, value: Any) -> int:
        if isinstance(value, str):
            return self.parse(value)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not self.least <= value <= self.most:
            raise ValueError(f"{value!r} is not an integer, {self}")
        return value

    def __str__(self) -> str:
        return (
            f"{self.least} or more"
            if self.most >= (1 << 31) - 1
            else f"{self.least} to {self.most}"
        )


@dataclass(frozen=True, slots=True)
class Numbers(OptionValues):
    """Numbers from `least` to `most`, without them where `above` and `below` say so. NaN is none
    of them."""

    name: ClassVar[str] = "NUMBER"
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    below: bool = False

    def parse(self, text: str) -> float:
        try:
            return self.take(float(text))
        except ValueError:
            raise ValueError(f"{text!r} is not a number, {self}".removesuffix(", ")) from None

    def take(self, value: Any) -> float:
        if isinstance(value, str):
            return self.parse(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{value!r} is not a number")
        over = value > self.least if self.above else value >= self.least
        under = value < self.most if self.below else value <= self.most
        if not (over and under):
            raise ValueError(f"{value:g} is not a number, {self}".removesuffix(", "))
        return value

    def __str__(self) -> str:
        low = f"above {self.least:g}" if self.above else f"{self.least:g} or more"
        high = f"below {self.most:g}" if self.below else f"{self.most:g} or less"
        return " and ".join(
            end for end, limit in ((low, self.least), (high, self.most)) if math.isfinite(limit)
        )


@dataclass(frozen=True, slots=True)
class OneOf(OptionValues):
    """Some words."""

    words: tuple[str, ...]

    def parse(self, text: str) -> str:
        if text not in self.words:
            raise ValueError(f"{text!r} is not one of {', '.join(self.words)}")
        return text


@dataclass(frozen=True, slots=True)
class NameList(OptionValues):
    """NameList with commas between them, as a tuple."""

    name: ClassVar[str] = "NAME[,NAME]"

    def parse(self, text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        if not names:
            raise ValueError(f"no name in {text!r}")
        return names

    def take(self, value: Any) -> tuple[str, ...]:
        return self.parse(value) if isinstance(value, str) else tuple(map(str, value))


@dataclass(frozen=True, slots=True)
class Files(OptionValues):
    """A path; `folder` says whether it is a folder, where that matters, `written` whether it is
    written, which commands look at before they work."""

    name: ClassVar[str] = "PATH"
    folder: bool | None = None
    written: bool = False

    def parse(self, text: str) -> Path:
        return Path(text)


class Regex(OptionValues):
    """A regular expression, as text."""

    name = "REGEX"

    def parse(self, text: str) -> str:
        try:
            re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            excerpt = text if len(text) <= 60 else f"{text[:60]}…"
            raise ValueError(f"{excerpt!r} is not a regular expression: {error}") from None
        return text


class Counts(OptionValues):
    """`1,4,16` or `4..256`, which doubles; a program may pass a number or several."""

    name = "N[,N…|..N]"

    def parse(self, text: str) -> tuple[int, ...]:
        counts: list[int] = []
        try:
            for part in text.split(","):
                low, dots, high = part.partition("..")
                first, last = int(low), int(high) if dots else int(low)
                if not 0 < first <= last <= _MOST_COUNTED:
                    raise ValueError
                while first < last:
                    counts.append(first)
                    first *= 2
                counts.append(last)
        except ValueError:
            raise ValueError(
                f"{text!r} is not like 1,4,16 or 4..256, up to {_MOST_COUNTED:,}"
            ) from None
        return tuple(dict.fromkeys(counts))

    def take(self, value: Any) -> tuple[int, ...]:
        if isinstance(value, str):
            return self.parse(value)
        numbers = Integers(1, _MOST_COUNTED)
        several = value if isinstance(value, Sequence) else (value,)
        return tuple(dict.fromkeys(map(numbers.take, several)))


class Dimensions(OptionValues):
    """`X[,Y[,Z]]` with positive integers; missing ones are 1."""

    name = "X[,Y[,Z]]"

    def parse(self, text: str) -> tuple[int, int, int]:
        try:
            return self.take(tuple(int(part) for part in text.replace("x", ",").split(",")))
        except ValueError:
            pass
        raise ValueError(f"{text!r} is not one to three positive integers below 2^31")

    def take(self, value: Any) -> tuple[int, int, int]:
        if isinstance(value, str):
            return self.parse(value)
        numbers = (value,) if isinstance(value, int) else tuple(value)
        if not 1 <= len(numbers) <= 3 or not all(0 < number < 1 << 31 for number in numbers):
            raise ValueError(f"{value!r} is not one to three positive integers below 2^31")
        x, y, z = (*numbers, 1, 1)[:3]
        return x, y, z


class ScaledNumber(OptionValues):
    """A positive number with an optional suffix K, M, G, T or P (powers of 1000)."""

    name = "NUMBER[K|M|G|T|P]"
    _SCALE: Final = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}

    def parse(self, text: str) -> float:
        text = text.strip()
        scale = self._SCALE.get(text[-1:].lower(), 1.0)
        try:
            return self.take(float(text[:-1] if scale != 1.0 else text) * scale)
        except ValueError:
            raise ValueError(f"{text!r} is not a positive number") from None

    def take(self, value: Any) -> float:
        if isinstance(value, str):
            return self.parse(value)
        if isinstance(value, bool) or not 0.0 < value < math.inf:
            raise ValueError(f"{value!r} is not a positive number")
        return float(value)


@dataclass(frozen=True, slots=True)
class Several(OptionValues):
    """Values that are stated one by one: an option that is repeated, a list of a program, or one
    value."""

    each: OptionValues

    def parse(self, text: str) -> tuple[Any, ...]:
        return (self.each.parse(text),)

    def take(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, (str, Path)):
            return (self.each.take(value),)
        return tuple(map(self.each.take, value))


PROCESSES: Final = Integers(1, 1024)
"""Processes or threads."""
TEXT: Final = Text()
ANY: Final = OptionValues()
"""Any text, also one that begins with a dash."""
FILE: Final = Files(folder=False)
OUTPUT_FILE: Final = Files(folder=False, written=True)
OUTPUT_FOLDER: Final = Files(folder=True, written=True)

__all__ = [
    "ANY",
    "FILE",
    "PROCESSES",
    "TEXT",
    "Counts",
    "Dimensions",
    "Files",
    "Flag",
    "Integers",
    "NameList",
    "Numbers",
    "OneOf",
    "OptionValues",
    "Regex",
    "ScaledNumber",
    "Several",
    "Text",
]
