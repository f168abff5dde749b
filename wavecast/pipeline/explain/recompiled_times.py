"""The predicted time of a kernel that was compiled again, and what its code takes: once per kernel,
launch and device, from the cache (kind `times`) in later processes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from msgspec import ValidationError, convert

from wavecast.analyze.result import CodeAnalysis
from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import Launch
from wavecast.errors import WavecastError
from wavecast.packing import pack
from wavecast.perfmodel.atomics import CACHED, executions_of
from wavecast.pipeline.explain.prediction import predict_launch
from wavecast.pipeline.explain.reading import ReadLaunch, read_launch
from wavecast.rules.fix import ResourceUse
from wavecast.runtimes.triton import installation, wire


@dataclass(frozen=True, slots=True)
class LaunchWork:
    """FLOPs of matrix instructions, and bytes that lanes store."""

    flops: float
    stored: float


@dataclass(frozen=True, slots=True)
class RecompiledTime:
    """The seconds of a launch with their interval, what its code takes, and its work."""

    seconds: float
    low: float
    high: float
    resources: ResourceUse
    work: LaunchWork


def recompiled_time(
    launch: Launch, device: Device, mall_resident: Mapping[str, float]
) -> RecompiledTime | None:
    """The predicted time of a launch; None where there is none. `mall_resident` is that of
    `predict_launch`."""
    store, key = DiskCache(), _key(launch, device, mall_resident)
    entry = store.get(key)
    if isinstance(entry, dict):
        try:
            return convert(entry["time"], RecompiledTime | None)
        except (KeyError, ValidationError):
            pass
    result = _predicted(launch, device, mall_resident)
    store.put(key, {"time": asdict(result) if result is not None else None})
    return result


def _key(launch: Launch, device: Device, mall_resident: Mapping[str, float]) -> str:
    """The entry of a time: the sources and tables of Wavecast decide it too."""
    facts = pack([device.identity, dict(device.facts.mapping)])
    code = pack(wire.encode_code(launch.code))
    about_launch = pack(wire.encode_launch(launch))
    sources = installation.identity("wavecast")
    return digest.key("times", sources, facts, code, about_launch, mall_resident)


def _predicted(
    launch: Launch, device: Device, mall_resident: Mapping[str, float]
) -> RecompiledTime | None:
    try:
        read = read_launch(launch, device)
        predicted = predict_launch(
            read.launch, read.analysis, read.kernel, device, mall_resident=mall_resident
        )
    except WavecastError:
        return None
    prediction = predicted.prediction
    if prediction is None:
        return None
    use, work = resources(read.analysis), work_of(read)
    return RecompiledTime(prediction.seconds, prediction.low, prediction.high, use, work)


def work_of(read: ReadLaunch) -> LaunchWork:
    """The work of a launch."""
    analysis, launch = read.analysis, read.launch
    times = executions_of(read.program, analysis)
    waves = math.prod(launch.grid) * analysis.occupancy.waves_per_workgroup
    stored = sum(
        item.bytes_per_lane * times.get(item.index, 0.0) * (item.lanes or 0)
        for item in analysis.memory
        if item.kind == "store" and item.space in CACHED
    )
    return LaunchWork(sum((analysis.executed_flops or {}).values()), stored * waves)


def resources(analysis: CodeAnalysis) -> ResourceUse:
    """What the code of a kernel takes."""
    registers, occupancy = analysis.registers, analysis.occupancy
    return ResourceUse(
        vgpr=registers.vgpr + registers.agpr,
        spilled=registers.spilled,
        lds_bytes=analysis.lds_bytes,
        waves_per_simd=occupancy.waves_per_simd,
        workgroups=occupancy.workgroups,
    )


__all__ = ["LaunchWork", "RecompiledTime", "recompiled_time", "resources", "work_of"]
