"""What a report says in words, in the terms of the device's vendor."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wavecast.report.explain import summary
from wavecast.report.kit import units

if TYPE_CHECKING:
    from wavecast.analyze.result import LoopAnalysis, NextStep
    from wavecast.arch import Device
    from wavecast.isa.instruction import SourceLocation
    from wavecast.pipeline.explain.result import Explanation

_AMD_PIPES = {"valu": "VALU", "salu": "SALU", "smem": "SMEM", "lds": "LDS", "vmem": "VMEM"}
_NVIDIA_PIPES = {
    "matrix": "tensor",
    "valu": "ALU/FMA",
    "trans": "XU",
    "salu": "uniform",
    "smem": "constant",
    "lds": "shared",
    "vmem": "LSU",
}
_NVIDIA_TERMS = {
    "LDS": "shared memory",
    "vector": "ALU/FMA",
    "transcendental": "XU",
    "scalar memory": "constant cache",
    "waves": "warps",
    "wave": "warp",
    "workgroup": "block",
}
"""Terms of the model, which are AMD's, in NVIDIA's."""


_TERM = re.compile(r"\b(" + "|".join(_NVIDIA_TERMS) + r")\b")


@dataclass(frozen=True, slots=True)
class Words:
    """A vendor's names for things. `residency` is the unit occupancy is counted in."""

    residency: str
    wave: str
    workgroup: str
    unit: str
    lane: str
    lds: str
    scheduler: str
    resources: Mapping[str, str]
    pipes: Mapping[str, str]
    classes: Mapping[str, str]
    terms: Mapping[str, str]

    def pipe(self, name: str) -> str:
        """A pipe, `valu` → `VALU` or `ALU/FMA`."""
        return self.pipes.get(name, name)

    def instruction_class(self, name: str) -> str:
        """A class of instructions of the mix, `lds` → `lds` or `shared memory`."""
        return self.classes.get(name, name)

    def translate(self, text: str) -> str:
        """A text with the model's terms (bounds, stalls, spaces) in the vendor's."""
        if not self.terms:
            return text
        return _TERM.sub(lambda match: self.terms[match[0]], text)

    def resource(self, limiter: str) -> str:
        """Limiting resources in words; names without a wording stay as they are."""
        names = [self.resources.get(name, name) for name in names_of(limiter)]
        return " and ".join(names) if len(names) < 3 else ", ".join(names)


AMD = Words(
    residency="waves/SIMD",
    wave="wave",
    workgroup="workgroup",
    unit="compute unit",
    lane="lane",
    lds="LDS",
    scheduler="SIMD",
    resources={
        "vgpr": "VGPRs",
        "agpr": "AGPRs",
        "sgpr": "SGPRs",
        "lds": "LDS",
        "waves": "wave slots",
        "workgroups": "workgroup slots",
    },
    pipes=_AMD_PIPES,
    classes={},
    terms={},
)
WGP = replace(AMD, unit="WGP")
"""RDNA: a workgroup spreads over the two compute units of a WGP."""

NVIDIA = Words(
    residency="warps/scheduler",
    wave="warp",
    workgroup="block",
    unit="SM",
    lane="thread",
    lds="shared memory",
    scheduler="scheduler",
    resources={
        "vgpr": "registers",
        "lds": "shared memory",
        "waves": "warp slots",
        "workgroups": "block slots",
    },
    pipes=_NVIDIA_PIPES,
    classes={
        **_NVIDIA_PIPES,
        "lds": "shared memory",
        "vmem_load": "global load",
        "vmem_store": "global store",
        "vmem_atomic": "global atomic",
    },
    terms=_NVIDIA_TERMS,
)
_VENDOR = re.compile(r"^(AMD|NVIDIA)\s+(Instinct\s+|Radeon\s+|Ryzen\s+)?")


def of(device: Device) -> Words:
    """The words for a device."""
    if device.vendor == "nvidia":
        return NVIDIA
    return WGP if device.limits().unit == "WGP" else AMD


def names_of(limiter: str) -> list[str]:
    """The resources a limiter names, `lds, vgpr` → `["lds", "vgpr"]`."""
    return [part.strip() for part in limiter.split(",") if part.strip()]


def short_name(device: Device) -> str:
    """The device's marketing name without the vendor: `MI300X`."""
    return _VENDOR.sub("", device.name)


def where(location: SourceLocation | None) -> str:
    """`line 14`, or `line 14 (via standard.py:290)` for code inlined from elsewhere."""
    if location is None:
        return "an unknown line"
    outer = location.outermost
    if outer is location:
        return f"line {outer.line}"
    file = location.file.rsplit("/", 1)[-1]
    return f"line {outer.line} (via {file}:{location.line})"


def headline(explanation: Explanation) -> str:
    """The most important things about one kernel on one device, in plain words."""
    device = explanation.device
    parts = [
        _fit(explanation),
        _time(explanation),
        _bound(explanation),
        _spills(explanation),
        _occupancy(explanation),
    ]
    loop = summary.main_loop(explanation.analysis)
    if loop is not None:
        parts.append(_loop(loop, of(device)))
    sentences = ". ".join(part[:1].upper() + part[1:] for part in parts if part)
    return f"{device.target} ({short_name(device)}): {sentences}."


def limits(explanation: Explanation) -> list[tuple[str, int]]:
    """What each resource the vendor has would allow alone, the tightest first."""
    words, wave_limits = of(explanation.device), explanation.analysis.occupancy.limits
    pairs = [(name, waves) for name, waves in wave_limits.items() if name in words.resources]
    return sorted(pairs, key=lambda item: item[1])


def _fit(explanation: Explanation) -> str:
    occupancy, words = explanation.analysis.occupancy, of(explanation.device)
    if occupancy.fits:
        return ""
    limiter = words.resource(occupancy.limiter)
    return f"cannot launch: one {words.workgroup} does not fit the {words.unit} ({limiter})"


def _time(explanation: Explanation) -> str:
    """The predicted time and what bounds it."""
    prediction = explanation.predicted.prediction
    if prediction is None:
        return ""
    interval = f"{units.seconds(prediction.low)} to {units.seconds(prediction.high)}"
    limiter = of(explanation.device).translate(prediction.limiter)
    return f"{units.seconds(prediction.seconds)} predicted ({interval}), bound by {limiter}"


def _spills(explanation: Explanation) -> str:
    """Spills to memory; scalar registers spill to lanes of vector registers, which is cheap."""
    spilled = explanation.analysis.registers.spilled
    if not spilled:
        return ""
    return f"spills {units.amount(spilled, of(explanation.device).resource('vgpr'))} to memory"


def _occupancy(explanation: Explanation) -> str:
    analysis, words = explanation.analysis, of(explanation.device)
    occupancy, registers = analysis.occupancy, analysis.registers
    if not occupancy.fits:
        return ""
    waves = f"{occupancy.waves_per_simd} of {occupancy.max_waves_per_simd} {words.residency}"
    if occupancy.waves_per_simd >= occupancy.max_waves_per_simd:
        return f"{waves}, the most there can be"
    counts = {
        "vgpr": units.count(registers.vgpr + registers.agpr),
        "sgpr": units.count(registers.sgpr),
        "lds": units.size(analysis.lds_bytes),
    }
    binding = names_of(occupancy.limiter)
    detail = [counts[binding[0]]] if binding and binding[0] in counts else []
    detail += [step] if (step := next_step(explanation)) else []
    note = f" ({'; '.join(detail)})" if detail else ""
    return f"{waves}, limited by {words.resource(occupancy.limiter)}{note}"


def next_step(explanation: Explanation) -> str:
    """`14 VGPRs fewer → 3 waves/SIMD`, "" at the top."""
    step, words = explanation.analysis.occupancy.next, of(explanation.device)
    if step is None:
        return ""
    needs = " and ".join(_need(part, words) for part in (step, *step.also))
    return f"{needs} → {step.waves_per_simd} {words.residency}"


def _need(step: NextStep, words: Words) -> str:
    if step.resource == "lds":
        return f"{units.size(step.delta)} less {words.lds}"
    return f"{units.amount(step.delta, words.resource(step.resource))} fewer"


def _loop(loop: LoopAnalysis, words: Words) -> str:
    at = f" at {where(loop.location)}" if loop.location else ""
    once = loop.trip_count is not None and loop.trip_count <= 1
    subject = f"the loop{at} runs once; it" if once else f"main loop{at}"
    pipes = summary.pipes_by_cost(loop)
    if not pipes:
        return f"{subject} has no modelled cost"
    (pipe, most), rest = pipes[0], pipes[1:3]
    label = words.pipe(pipe)
    if summary.latency_bound(loop):
        chain = units.cycles(loop.critical_path)
        return (
            f"{subject} waits on its own dependency chain: {chain} cycles per iteration, "
            f"the busiest pipe ({label}) needs {units.cycles(most)}"
        )
    others = ", ".join(f"{words.pipe(p)} {units.cycles(c)}" for p, c in rest)
    then = f" (next: {others})" if others else ""
    busy = f"{units.cycles(most)} cycles per iteration{then}"
    return f"{subject} needs the {label} pipe longest: {busy}"


def _bound(explanation: Explanation) -> str:
    roofline = explanation.roofline
    most = "at most " if roofline.work.bytes_at_most else ""
    if roofline.floor_seconds is None or roofline.bound == "unknown":
        alone = roofline.memory_seconds
        return "" if alone is None else f"memory alone needs {most}{units.seconds(alone)}"
    floor = (most if roofline.bound == "memory" else "") + units.seconds(roofline.floor_seconds)
    words = f"floor {floor} ({roofline.bound}"
    if roofline.sustained_seconds is not None:
        words += f"; {units.seconds(roofline.sustained_seconds)} at sustained rates"
    return f"{words})"


def assumptions(values: Mapping[str, object]) -> str:
    """What a prediction assumed: `library blas, splits 1`; floats with three digits."""
    return ", ".join(_assumption(name, value) for name, value in values.items())


def _assumption(name: str, value: object) -> str:
    """`clock 1,512 MHz`, `tile 224x256`; the unit that a key ends in comes after the number."""
    for suffix, unit in (("_mhz", "MHz"), ("_ghz", "GHz")):
        if name.endswith(suffix) and isinstance(value, (int, float)):
            return f"{name.removesuffix(suffix)} {units.count(value)} {unit}"
    return f"{name} {_assumption_text(value)}"


def _assumption_text(value: object) -> str:
    if isinstance(value, (tuple, list)) and all(isinstance(number, int) for number in value):
        return "x".join(map(str, value))
    if isinstance(value, Mapping):
        return assumptions(value)
    return units.si(value) if isinstance(value, float) else str(value)
