"""Whether the embedding of a text is tied to the output projection in a configuration of several
kinds of input, where several levels may say it.

`config_nesting.csv` is measured: `python -m calibration.nested_configs --write` builds every type
with transformers and has what decides. Classes that tie by default keep the output projection of a
checkpoint that has one (transformers, `PreTrainedModel.tie_weights`), and vLLM reads the text:
where `tie_word_embeddings` is absent around the text, both have to say so.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from wavecast.errors import UsageError
from wavecast.systems.config_effects import defaults
from wavecast.systems.config_fields import Values

_FIELD: Final = "tie_word_embeddings"


@dataclass(frozen=True, slots=True)
class Tying:
    """`decides` is `outer`, `inner`, `either`, `never` or `unknown`; `default` is the value of a
    type whose configuration says nothing."""

    decides: str
    default: bool


def is_tied(name: str, around: Sequence[tuple[str, Values]], kind: str, text: Values) -> bool:
    """Whether the embedding is tied, by the types and values of the levels `around` the text, the
    outermost first, and the type and values of the text. Raises UsageError where transformers
    reads another level than the one that says so."""
    wrapper, outer_values = around[-1]
    outer, inner = _said(name, outer_values), _said(name, text)
    tying = tyings().get(wrapper, Tying("unknown", default=False))
    by_text = bool(defaults(kind).get(_FIELD)) if inner is None else inner
    tied = {
        "outer": by_text and tying.default if outer is None else outer,
        "inner": by_text,
        "never": False,
    }.get(tying.decides, by_text or outer is True)
    unread = {
        "text_config": inner not in (None, tied) and tying.decides != "either",
        wrapper: bool(outer) and not tied,
        **{outermost: bool(_said(name, values)) and not tied for outermost, values in around[:-1]},
    }
    for level in (level for level, differs in unread.items() if differs):
        said = inner if level == "text_config" else True
        raise UsageError(
            f"{name}: {_FIELD} is {said} in {level}: transformers reads another level of {wrapper}",
            hint=f"state {_FIELD} with one value in {wrapper} and in text_config",
        )
    return tied


def _said(name: str, values: Values) -> bool | None:
    value = values.get(_FIELD)
    if value is not None and not isinstance(value, bool):
        raise UsageError(f"{name}: {_FIELD} is {value!r}, not true or false")
    return value


@cache
def tyings() -> Mapping[str, Tying]:
    """Model type -> what decides."""
    rows = csv.DictReader(line for line in _lines() if not line.startswith("#"))
    return {row["model_type"]: Tying(row["tied_by"], row["default"] == "true") for row in rows}


def version() -> str:
    """The version of transformers that the table is of."""
    return _lines()[0].split()[2].rstrip(";")


def _lines() -> list[str]:
    path = resources.files("wavecast.systems") / "config_nesting.csv"
    return path.read_text(encoding="utf-8").splitlines()


__all__ = ["Tying", "is_tied", "tyings", "version"]
