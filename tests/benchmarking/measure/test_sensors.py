"""Sensors, with libraries of the same form that answer as a test says; no driver is here."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from wavecast.benchmarking.measure.sensors import AmdSmi, Nvml, SensorWatch, sensors
from wavecast.runtimes.gpu import LocalGpu

H200 = LocalGpu("NVIDIA H200", "sm_90", 132, "torch", uuid="7f3e", bus="0000:3b:00")
MI300X = LocalGpu("AMD Instinct MI300X", "gfx942", 304, "torch", bus="0000:3b:00")


class NVMLError(Exception):
    pass


class AmdSmiException(Exception):
    pass


def nvml(reasons: list[int]) -> Any:
    """`reasons` are what throttling says, one after the other."""
    library = types.ModuleType("pynvml")

    def unsupported(*_: Any) -> Any:
        raise NVMLError("Not Supported")

    def found(uuid: str) -> str:
        if uuid != "GPU-7f3e":
            raise NVMLError("Not Found")
        return uuid

    answers = {
        "NVMLError": NVMLError,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": found,
        "nvmlDeviceGetClockInfo": lambda _, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetPowerUsage": lambda _: 350_000,
        "nvmlDeviceGetEnforcedPowerLimit": unsupported,
        "nvmlDeviceGetTemperature": lambda *_: 41,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda _: reasons.pop(0),
        "nvmlSystemGetDriverVersion": lambda: b"580.65",
    }
    library.__dict__.update(answers)
    return library


def amdsmi(status: object) -> Any:
    library = types.ModuleType("amdsmi")
    answers = {
        "AmdSmiException": AmdSmiException,
        "AmdSmiClkType": types.SimpleNamespace(GFX=0, MEM=4),
        "AmdSmiTemperatureType": types.SimpleNamespace(HOTSPOT=1),
        "AmdSmiTemperatureMetric": types.SimpleNamespace(CURRENT=0),
        "amdsmi_init": lambda: None,
        "amdsmi_get_processor_handles": lambda: ["other", "mine"],
        "amdsmi_get_gpu_device_bdf": lambda h: f"0000:{'3B' if h == 'mine' else '1A'}:00.0",
        "amdsmi_get_clock_info": lambda _, kind: {"clk": "N/A"} if kind else {"clk": 2100},
        "amdsmi_get_power_info": lambda _: {
            "current_socket_power": "N/A",
            "average_socket_power": 700,
        },
        "amdsmi_get_temp_metric": lambda *_: 55,
        "amdsmi_get_gpu_metrics_info": lambda _: {"throttle_status": status},
        "amdsmi_get_gpu_driver_info": lambda _: {"driver_version": "6.12.12"},
    }
    library.__dict__.update(answers)
    return library


def test_nvidia(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml([0x1, 0x1 | 0x4, 0x4 | 0x40]))
    found = sensors(H200)
    assert isinstance(found, Nvml)
    assert found.driver() == "580.65"
    watch = SensorWatch(found)
    watch.look()
    readings, notes = watch.finish()
    assert readings == {
        "clock_mhz before": 1980.0,
        "memory_clock_mhz before": 3201.0,
        "power_w before": 350.0,
        "temperature_c before": 41.0,
        "clock_mhz after": 1980.0,
        "memory_clock_mhz after": 3201.0,
        "power_w after": 350.0,
        "temperature_c after": 41.0,
        "throttled": 1.0,
    }  # the power limit is not supported: it is absent
    assert notes == (
        "clocks were lowered: power cap",
        "clocks were lowered: power cap, thermal slowdown by hardware",
    )


def test_idle_clocks_are_no_throttling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml([0x1, 0x2 | 0x100]))
    readings, notes = SensorWatch(sensors(H200)).finish()
    assert readings["throttled"] == 0.0
    assert notes == ()


@pytest.mark.parametrize(("status", "throttled"), [(0, 0.0), (0x20, 1.0), ("N/A", None)])
def test_amd(monkeypatch: pytest.MonkeyPatch, status: object, throttled: float | None) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", amdsmi(status))
    found = sensors(MI300X)
    assert isinstance(found, AmdSmi)
    assert found.driver() == "6.12.12"
    assert found.read() == {"clock_mhz": 2100.0, "power_w": 700.0, "temperature_c": 55.0}
    readings, _ = SensorWatch(found).finish()
    assert readings.get("throttled") == throttled


def test_absence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setitem(sys.modules, "amdsmi", amdsmi(0))
    readings, notes = SensorWatch(sensors(H200)).finish()
    assert readings == {}
    assert "nvidia-ml-py is not installed" in notes[0]
    elsewhere = LocalGpu("MI300X", "gfx942", 304, "torch", bus="0000:99:00")
    assert "amdsmi knows no GPU at 0000:99:00" in sensors(elsewhere).absent
    assert "does not say which GPU" in sensors(LocalGpu("X", "sm_90", 1, "torch")).absent
    other = LocalGpu("X", "sm_90", 1, "torch", uuid="other")
    monkeypatch.setitem(sys.modules, "pynvml", nvml([]))
    assert "Not Found" in sensors(other).absent
