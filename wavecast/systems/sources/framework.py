"""How PyTorch runs the calls of a module: fused or not, and the time of the host for each.

`frameworks.toml` has a profile per engine with its version, its source and the status of every
number.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Final

from wavecast.errors import UnknownName

_OTHER_NAMES: Final = {"compile": "torch.compile", "inductor": "torch.compile", "pytorch": "eager"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """A profile. `fuse`: element-wise calls and reductions become common kernels. `compiled`: a
    compiler makes kernels for the device, which are predicted from their code.

    Seconds of the host: `call` for an operator of the forward pass and of the optimizer,
    `backward_call` for one of the backward pass, `view` for one that launches nothing, and `launch`
    for every kernel of a call after its first.
    """

    name: str
    version: str
    fuse: bool
    compiled: bool
    call: float
    backward_call: float
    view: float
    launch: float


@cache
def frameworks() -> Mapping[str, Framework]:
    """Every profile by name."""
    file = resources.files("wavecast.systems.sources") / "frameworks.toml"
    names = {field.name for field in fields(Framework)} - {"name", "version"}
    profiles = {}
    for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items():
        values = {key: table[key]["value"] for key in names}
        profiles[name] = Framework(name=name, version=table["version"], **values)
    return profiles


def framework(name: str) -> Framework:
    """The profile of an engine, a key of `frameworks`. Raises UnknownName."""
    profiles = frameworks()
    plain = _OTHER_NAMES.get(name.lower(), name.lower())
    if plain not in profiles:
        raise UnknownName("engine of modules", name, profiles)
    return profiles[plain]


__all__ = ["Framework", "framework", "frameworks"]
