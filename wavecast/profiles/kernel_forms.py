"""What the name of a kernel says: tile, layout, dtype, division of the reduction, target.

`kernel_forms.toml` has the rules. The name never has the sizes of the problem; some have them
together with the grid (`kernel_sizes`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_TARGET: Final = re.compile(r"_ISA([0-9a-f]{3,4})_")
"""Tensile's target: `ISA942` is gfx942."""


@dataclass(frozen=True, slots=True)
class KernelForm:
    """How a kernel works, as its name says it; 0 and "" mean that the name does not.

    `tile` is M, N and K of a macro tile (queries and keys for attention), `layout` `TN` as BLAS
    writes it, `split` the parts that the reduction is divided into, `head` the elements of an
    attention head, `columns` the longest row of a norm, `ops` what Inductor fused.
    """

    library: str = ""
    tile: tuple[int, ...] = ()
    layout: str = ""
    dtype: str = ""
    split: int = 0
    marks: tuple[str, ...] = ()
    head: int = 0
    columns: int = 0
    causal: bool | None = None
    ops: str = ""

    @property
    def text(self) -> str:
        """In one line: `128x128x64 bf16 TN split-K 4`."""
        parts = ["x".join(map(str, self.tile)), self.dtype, self.layout]
        if self.split > 1:
            parts.append(f"split-K {self.split}")
        parts += [mark for mark in self.marks if self.split <= 1 or mark != "split-K"]
        if self.head:
            parts.append(f"head {self.head}")
        if self.columns:
            parts.append(f"rows up to {self.columns}")
        if self.causal:
            parts.append("causal")
        parts.append(self.ops.replace("_", " ").strip())
        return " ".join(filter(None, parts))


@cache
def form(name: str) -> KernelForm:
    """What a kernel's demangled or mangled name says; an empty form if no rule knows it."""
    rules, marks = _rules()
    for rule, pattern in rules:
        match = pattern.search(name)
        if match:
            divided = tuple(text for text, mark in marks if mark.search(name))
            return _form(rule, match.groupdict(), divided)
    return KernelForm()


@cache
def target(name: str) -> str:
    """The target that a library's name of a kernel contains, such as gfx942; else empty."""
    match = _TARGET.search(name)
    return f"gfx{match[1]}" if match else ""


def _form(
    rule: Mapping[str, Any], groups: Mapping[str, str | None], marks: tuple[str, ...]
) -> KernelForm:
    def number(name: str) -> int:
        return int(groups.get(name) or 0)

    dtype, layout = groups.get("dtype") or "", groups.get("layout") or ""
    return KernelForm(
        library=rule["library"],
        tile=tuple(size for size in map(number, "mnk") if size),
        layout=rule.get("layouts", {}).get(layout, layout.upper()),
        dtype=rule.get("dtypes", {}).get(dtype, dtype),
        split=number("split"),
        marks=marks,
        head=number("head"),
        columns=number("columns"),
        causal=groups["causal"] not in (None, "false") if "causal" in groups else None,
        ops=groups.get("ops") or "",
    )


@cache
def _rules() -> tuple[
    tuple[tuple[Mapping[str, Any], re.Pattern[str]], ...], tuple[tuple[str, re.Pattern[str]], ...]
]:
    text = Path(__file__).with_name("kernel_forms.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return (
        tuple((rule, re.compile(rule["pattern"])) for rule in data["rule"]),
        tuple((mark["text"], re.compile(mark["pattern"])) for mark in data["mark"]),
    )


__all__ = ["KernelForm", "form", "target"]
