"""Numbers with their nouns, for messages of every floor."""

from __future__ import annotations


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 load`, `3 loads`, `1,024 loads`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


__all__ = ["count"]
