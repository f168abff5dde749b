"""Changes of a deployed model, as a user writes them.

    hbm*1.5; attention free; tp 4; host 0; interconnect*2; dtype fp8

A change names a part of the chip or any of its numeric facts (`NAME*FACTOR`, `NAME/FACTOR`), a
module, a kernel or the host (`NAME*FACTOR`, `NAME free`, `NAME 0`), or a setting of the deployment
with its value (`tp 4`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from wavecast.arch.fields import fields
from wavecast.arch.rates import DTYPES
from wavecast.arch.scaling import scale_device
from wavecast.arch.systems import System
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.ops.gemm.formats import SCALINGS
from wavecast.systems.answer import HOST, Deployment

_FACTOR = re.compile(r"(?P<name>\D.*?)\s*(?P<sign>[*×/])\s*(?P<number>[\d.eE+-]+)\s*%?")
_VALUE = re.compile(r"(?P<name>.+?)\s+(?P<value>\S+)")
_FREE: Final = ("free", "0")
_LARGEST: Final = 1e6

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "hbm": ("mem_bw",),
    "memory": ("mem_size",),
    "clock": ("peak_clock",),
    "matrix": tuple(f"{kind}_mat_{d}" for d in DTYPES for kind in ("ops_clk_cu", "peak")),
    "interconnect": ("xgmi_per_link_dir", "nvlink_total_bidir", "scaleup_bidir", "scaleout"),
}
"""Parts of a chip and the facts that a factor of theirs multiplies, those that the chip has."""


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One change. `facts` has factors by field of the chip, `scale` factors of times by module,
    kernel or `HOST`, `settings` values by name (a key of `SETTINGS`)."""

    text: str
    facts: Mapping[str, float] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, system: System, deployment: Deployment) -> tuple[System, Deployment]:
        """The changed system and deployment. Raises MissingFact where the chip has none of the
        facts, UsageError for a fact out of its bounds."""
        if self.facts:
            links = next((self.facts[n] for n in PARTS["interconnect"] if n in self.facts), 1.0)
            fabric, network = system.fabric, system.network
            system = replace(
                system,
                device=scale_device(system.device, self.facts, self.text),
                fabric=fabric and fabric.scale(links),
                network=network and replace(network, bandwidth=links * network.bandwidth),
            )
        if self.scale:
            scale = dict(deployment.scale)
            for name, factor in self.scale.items():
                scale[name] = scale.get(name, 1.0) * factor
            deployment = replace(deployment, scale=tuple(scale.items()))
        for name, value in self.settings.items():
            deployment = SETTINGS[name].applied(deployment, value)
        return system, deployment


@dataclass(frozen=True, slots=True)
class _Setting:
    read: Callable[[str], Any]
    applied: Callable[[Deployment, Any], Deployment]


def _whole(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1 << 20:
        raise ValueError(f"{text} is not a number from 1 to {1 << 20}")
    return int(text)


def _flag(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError(f"{text} is neither on nor off")
    return text == "on"


def _scalings(text: str) -> tuple[str, ...]:
    return SCALINGS if _flag(text) else ()


def _parallel(name: str) -> Callable[[Deployment, Any], Deployment]:
    def apply(deployment: Deployment, value: Any) -> Deployment:
        return replace(deployment, parallel=replace(deployment.parallel, **{name: value}))

    return apply


def _tensor(deployment: Deployment, value: int) -> Deployment:
    """Experts that all GPUs of a replica divide stay divided among all of them."""
    parallel = deployment.parallel
    expert = value if 1 < parallel.expert == parallel.tensor else parallel.expert
    return replace(deployment, parallel=replace(parallel, tensor=value, expert=expert))


def _text(name: str) -> Callable[[Deployment, Any], Deployment]:
    return lambda deployment, value: replace(deployment, **{name: value})


def _engine(*names: str) -> Callable[[Deployment, Any], Deployment]:
    def apply(deployment: Deployment, value: Any) -> Deployment:
        fields_ = dict(deployment.engine_fields) | dict.fromkeys(names, value)
        return replace(deployment, engine_fields=tuple(fields_.items()))

    return apply


def _number(name: str) -> Callable[[Deployment, Any], Deployment]:
    def apply(deployment: Deployment, value: Any) -> Deployment:
        settings = {**dict(deployment.settings), name: value}
        return replace(deployment, settings=tuple(settings.items()))

    return apply


SETTINGS: Final[Mapping[str, _Setting]] = {
    "tp": _Setting(_whole, _tensor),
    "pp": _Setting(_whole, _parallel("pipeline")),
    "dp": _Setting(_whole, _parallel("data")),
    "ep": _Setting(_whole, _parallel("expert")),
    "dp-attention": _Setting(_flag, _parallel("attention_data")),
    "dtype": _Setting(str, _text("dtype")),
    "kv-dtype": _Setting(str, _text("cache")),
    "attention-dtype": _Setting(str, _text("attention")),
    "engine": _Setting(str, _text("engine")),
    "graphs": _Setting(_flag, _engine("graphs")),
    "captured": _Setting(_whole, _number("captured")),
    "batched-tokens": _Setting(_whole, _number("batched_tokens")),
    "asynchronous": _Setting(_flag, _engine("asynchronous")),
    "fused-reduce-norm": _Setting(_flag, _engine("fused_reduce_norm")),
    "fused-products": _Setting(_flag, _engine("fused_products")),
    "fused-quantisation": _Setting(
        _scalings, _engine("fused_quantisation", "attention_quantisation")
    ),
}
"""Settings of a deployment by the name of their option, and those of the engine."""


def parse(text: str) -> tuple[ModelChange, ...]:
    """The changes that `;` separates. Raises UsageError for what is not a change.

    Names of modules and kernels are not checked: they depend on the model (`check_names`).
    """
    changes = tuple(_change(part.strip()) for part in text.split(";") if part.strip())
    if not changes:
        raise UsageError("no change is named", hint="for example hbm*1.5; attention free; tp 4")
    return changes


def together(changes: Sequence[ModelChange]) -> ModelChange:
    """All changes at once; factors of one thing multiply."""
    facts: dict[str, float] = {}
    scale: dict[str, float] = {}
    settings: dict[str, Any] = {}
    for change in changes:
        for name, factor in change.facts.items():
            facts[name] = facts.get(name, 1.0) * factor
        for name, factor in change.scale.items():
            scale[name] = scale.get(name, 1.0) * factor
        settings |= change.settings
    return ModelChange("; ".join(change.text for change in changes), facts, scale, settings)


def check_names(changes: Sequence[ModelChange], components: Sequence[str]) -> None:
    """Raises UnknownName for a change of what is not one of the `components` modules and
    kernels."""
    names = (*components, HOST, *PARTS, *SETTINGS)
    for change in changes:
        for name in change.scale:
            if name not in (*components, HOST):
                raise UnknownName("part of a model or chip", name, names)


def _change(text: str) -> ModelChange:
    factor = _FACTOR.fullmatch(text)
    if factor is not None:
        return _parse_factor(text, factor["name"], factor["sign"], factor["number"])
    value = _VALUE.fullmatch(text)
    if value is None:
        hint = "hbm*1.5, attention free, tp 4"
        raise UsageError(f"{text!r} is not a change", hint=f"write it like {hint}")
    name = value["name"]
    setting = SETTINGS.get(name.lower())
    if setting is not None:
        try:
            return ModelChange(text, settings={name.lower(): setting.read(value["value"])})
        except ValueError as error:
            raise UsageError(f"{text!r}: {error}") from None
    if value["value"].lower() not in _FREE:
        setting_names = ", ".join(SETTINGS)
        raise UsageError(
            f"{text!r} is not a change", hint=f"settings with a value are {setting_names}"
        )
    if name.lower() in PARTS or name in fields():
        raise UsageError(f"{text!r}: a fact of the chip takes a factor", hint=f"{name}*1.5")
    return ModelChange(text, scale={_scaled_name(name): 0.0})


def _parse_factor(text: str, name: str, sign: str, number: str) -> ModelChange:
    try:
        factor = float(number)
    except ValueError:
        factor = 0.0
    if sign == "/" and factor:
        factor = 1 / factor
    if not 1 / _LARGEST <= factor <= _LARGEST:
        raise UsageError(f"{text!r}: the factor is not a number from 1e-6 to 1e6")
    if name.lower() in SETTINGS:
        raise UsageError(f"{text!r}: {name} takes a value", hint=f"like {name.lower()} 4")
    if name.lower() in PARTS:
        return ModelChange(text, facts=dict.fromkeys(PARTS[name.lower()], factor))
    chip_field = fields().get(name)
    if chip_field is not None:
        if chip_field.unit in ("text", "flag"):
            raise UsageError(f"{text!r}: {name} is not a number")
        return ModelChange(text, facts={name: factor})
    return ModelChange(text, scale={_scaled_name(name): factor})


def _scaled_name(name: str) -> str:
    return HOST if name.lower() == HOST else name


__all__ = ["PARTS", "SETTINGS", "ModelChange", "check_names", "parse", "together"]
