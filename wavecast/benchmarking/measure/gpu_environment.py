"""The GPU of this machine, as records tell it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wavecast import arch
from wavecast.arch import Device
from wavecast.benchmarking.accuracy.cases import device_of
from wavecast.benchmarking.environment import with_software
from wavecast.benchmarking.measure.sensors import Sensors, sensors
from wavecast.benchmarking.records import Environment
from wavecast.runtimes.gpu import LocalGpu, local_gpu


@dataclass(frozen=True, slots=True)
class LocalGpuState:
    """The local GPU; `device` is None for one that `wavecast.arch` does not know: there is no floor
    and no prediction then."""

    local: LocalGpu
    device: Device | None
    sensors: Sensors
    environment: Environment


def here() -> LocalGpuState:
    """The GPU of this machine. Raises MissingTool without torch, NothingAnalysed without a GPU."""
    local = local_gpu()
    name, unsure = device_of(local.target, local.units, local.name)
    reader = sensors(local)
    environment = Environment(
        device=name,
        target=local.target,
        emulated=False,
        board=local.name,
        driver=reader.driver(),
        runtime=local.runtime,
    )
    more = {"compute_units": local.units, **({"device_unsure": unsure} if unsure else {})}
    limit = reader.read().get("power_limit_w")
    more |= {} if limit is None else {"power_limit_w": limit}
    device = arch.load(name) if name else None
    return LocalGpuState(local, device, reader, with_software(replace(environment, more=more)))


__all__ = ["LocalGpuState", "here"]
