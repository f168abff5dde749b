"""What an engine does around the kernels: fusions, scheduling, graphs, and host time.

`engines.toml` has a profile per engine with its version, its source and the status of every number.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources

from wavecast.errors import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A profile.

    `fused_reduce_norm`: all-reduce, residual and norm are one kernel. `fused_quantisation`:
    activations are quantised in the kernel before the product. `batched_tokens`: the most tokens of
    a step; `sequences`: the most sequences; `memory_fraction`: the share of the GPU's memory the
    engine takes. `mixed`: a step may have decoding sequences and chunks of prompts. `graphs`: steps
    of up to `captured` decoding sequences are captured graphs. `cache`: dtype of keys and values.

    Times in seconds: `host_step` of a step, `host_sequence` for each of its sequences, and
    `request` from the arrival of a request to its first step. `asynchronous`: the host prepares a
    step while the GPU runs the one before. `launch` is what every kernel of a step without a graph
    takes on the host, `gap` the time between two kernels of a graph that no kernel covers.
    """

    name: str
    version: str
    fused_reduce_norm: bool
    fused_quantisation: bool
    batched_tokens: int
    sequences: int
    memory_fraction: float
    mixed: bool
    asynchronous: bool
    graphs: bool
    captured: int
    cache: str
    host_step: float
    host_sequence: float
    request: float
    launch: float
    gap: float

    def scaled(self, factor: float) -> Engine:
        """With `factor` times the work of the CPU."""
        if factor == 1.0:
            return self
        host = ("host_step", "host_sequence", "request", "launch")
        return replace(self, **{name: factor * getattr(self, name) for name in host})


@cache
def engines() -> Mapping[str, Engine]:
    """Every profile by name."""
    text = (resources.files("wavecast.systems") / "engines.toml").read_text(encoding="utf-8")
    names = {field.name for field in fields(Engine)} - {"name", "version"}
    found = {}
    for name, table in tomllib.loads(text).items():
        values = {key: table[key]["value"] for key in names}
        found[name] = Engine(name=name, version=table["version"], **values)
    return found


def engine(name: str) -> Engine:
    """The profile of an engine. Raises UnknownName."""
    known = engines()
    if name.lower() not in known:
        raise UnknownName("engine", name, known)
    return known[name.lower()]


__all__ = ["Engine", "engine", "engines"]
