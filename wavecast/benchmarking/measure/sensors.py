"""Clocks, power, temperature and throttling of the local GPU, read from its driver's library.

NVIDIA: NVML by nvidia-ml-py (`pynvml`). AMD: `amdsmi`, which ROCm brings. What a library does not
tell is absent; without one there are no readings, and a note says so.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from wavecast.arch import vendor
from wavecast.runtimes.gpu import LocalGpu

UNITS: Final[Mapping[str, str]] = {
    "clock_mhz": "engine clock, MHz",
    "memory_clock_mhz": "memory clock, MHz",
    "power_w": "power of the board or package, W",
    "power_limit_w": "its limit, W",
    "temperature_c": "hottest temperature the driver gives, °C",
}
"""Readings by name; records have each as `NAME before` and `NAME after`."""

_NVML_REASONS: Final = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown by software",
    0x40: "thermal slowdown by hardware",
    0x80: "power brake",
}
"""Bits of nvmlDeviceGetCurrentClocksThrottleReasons that lower clocks for power or heat (NVML API
reference, NvmlClocksThrottleReasons; others are idle, application clocks, sync boost, display)."""


class Sensors(ABC):
    """Reads one GPU. `absent` says why nothing can be read, "" otherwise."""

    absent = ""

    @abstractmethod
    def read(self) -> dict[str, float]:
        """Readings by name (`UNITS`), those the driver gives now."""

    @abstractmethod
    def throttling(self) -> str | None:
        """Why clocks are lowered now, "" when they are not, None where nobody says."""

    @abstractmethod
    def driver(self) -> str:
        """The driver's version, "" where it is not known."""


class Absent(Sensors):
    """No library that reads this GPU."""

    def __init__(self, why: str) -> None:
        self.absent = why

    def read(self) -> dict[str, float]:
        return {}

    def throttling(self) -> str | None:
        return None

    def driver(self) -> str:
        for file in ("/sys/module/nvidia/version", "/sys/module/amdgpu/version"):
            with contextlib.suppress(OSError):
                return Path(file).read_text(encoding="utf-8").strip()
        return ""


class Nvml(Sensors):
    """NVIDIA's, of the GPU with a UUID."""

    def __init__(self, uuid: str, library: Any) -> None:
        self._library = library
        library.nvmlInit()
        name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
        self._handle = library.nvmlDeviceGetHandleByUUID(name)

    def read(self) -> dict[str, float]:
        of, handle = self._library, self._handle
        readers: dict[str, Callable[[], float]] = {
            "clock_mhz": lambda: of.nvmlDeviceGetClockInfo(handle, of.NVML_CLOCK_SM),
            "memory_clock_mhz": lambda: of.nvmlDeviceGetClockInfo(handle, of.NVML_CLOCK_MEM),
            "power_w": lambda: of.nvmlDeviceGetPowerUsage(handle) * 1e-3,
            "power_limit_w": lambda: of.nvmlDeviceGetEnforcedPowerLimit(handle) * 1e-3,
            "temperature_c": lambda: of.nvmlDeviceGetTemperature(handle, of.NVML_TEMPERATURE_GPU),
        }
        readings = {}
        for name, ask in readers.items():
            with contextlib.suppress(of.NVMLError):
                readings[name] = float(ask())
        return readings

    def throttling(self) -> str | None:
        try:
            bits = int(self._library.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))
        except self._library.NVMLError:
            return None
        return ", ".join(name for bit, name in _NVML_REASONS.items() if bits & bit)

    def driver(self) -> str:
        version = self._library.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else str(version)


class AmdSmi(Sensors):
    """AMD's, of the GPU at a place on the PCI bus (`0000:3b:00`)."""

    def __init__(self, bus: str, library: Any) -> None:
        self._library = library
        library.amdsmi_init()
        for handle in library.amdsmi_get_processor_handles():
            if str(library.amdsmi_get_gpu_device_bdf(handle)).lower().startswith(bus):
                self._handle = handle
                return
        raise LookupError(f"amdsmi knows no GPU at {bus}")

    def read(self) -> dict[str, float]:
        of, handle = self._library, self._handle
        clocks, powers = of.amdsmi_get_clock_info, of.amdsmi_get_power_info
        kinds, hottest = of.AmdSmiClkType, of.AmdSmiTemperatureType.HOTSPOT
        readers: dict[str, Callable[[], Any]] = {
            "clock_mhz": lambda: _first(clocks(handle, kinds.GFX), "clk", "cur_clk"),
            "memory_clock_mhz": lambda: _first(clocks(handle, kinds.MEM), "clk", "cur_clk"),
            "power_w": lambda: _first(
                powers(handle), "current_socket_power", "average_socket_power"
            ),
            "temperature_c": lambda: of.amdsmi_get_temp_metric(
                handle, hottest, of.AmdSmiTemperatureMetric.CURRENT
            ),
        }
        readings = {}
        for name, ask in readers.items():
            with contextlib.suppress(of.AmdSmiException, TypeError, ValueError):
                readings[name] = float(ask())  # "N/A" is not a number
        return readings

    def throttling(self) -> str | None:
        try:
            status = self._library.amdsmi_get_gpu_metrics_info(self._handle).get("throttle_status")
        except self._library.AmdSmiException:
            return None
        if not isinstance(status, int):  # "N/A" on chips that do not count it
            return None
        return f"throttle status {status:#x}" if status else ""

    def driver(self) -> str:
        try:
            return str(self._library.amdsmi_get_gpu_driver_info(self._handle)["driver_version"])
        except (self._library.AmdSmiException, KeyError):
            return ""


def sensors(local: LocalGpu) -> Sensors:
    """Those of a GPU, `Absent` with the reason where no library reads it."""
    amd = vendor(local.target) == "amd"
    name, package = ("amdsmi", "amdsmi") if amd else ("pynvml", "nvidia-ml-py")
    identity = local.bus if amd else local.uuid
    if not identity:
        return Absent("clocks, power and temperature are unknown: torch does not say which GPU")
    try:
        library = import_module(name)
    except Exception as error:  # amdsmi raises what its loader does
        why = "is not installed" if isinstance(error, ImportError) else f"does not load: {error}"
        return Absent(f"clocks, power and temperature are unknown: {package} {why}")
    try:
        return AmdSmi(identity, library) if amd else Nvml(identity, library)
    except Exception as error:  # both libraries have their own errors
        return Absent(f"clocks, power and temperature are unknown: {package}: {error}")


class SensorWatch:
    """Readings before and after, and whether clocks were lowered in between."""

    def __init__(self, of: Sensors) -> None:
        self._of = of
        self._before = of.read()
        self._reasons: list[str] = []
        self._known = False
        self.look()

    def look(self) -> None:
        """Notice throttling now."""
        why = self._of.throttling()
        self._known = self._known or why is not None
        if why and why not in self._reasons:
            self._reasons.append(why)

    def finish(self) -> tuple[dict[str, float], tuple[str, ...]]:
        """(readings by name, `throttled` 1 or 0 where the driver tells; notes)."""
        if self._of.absent:
            return {}, (self._of.absent,)
        after = self._of.read()
        self.look()
        readings = {f"{name} before": value for name, value in self._before.items()}
        readings |= {f"{name} after": value for name, value in after.items()}
        if self._known:
            readings["throttled"] = float(bool(self._reasons))
        notes = tuple(f"clocks were lowered: {why}" for why in self._reasons)
        return readings, notes


def _first(info: Mapping[str, Any], *names: str) -> Any:
    """The first entry there is that is a number."""
    return next((info[name] for name in names if _number(info.get(name))), None)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


__all__ = ["UNITS", "Absent", "AmdSmi", "Nvml", "SensorWatch", "Sensors", "sensors"]
