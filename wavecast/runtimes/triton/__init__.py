"""Triton programs on a CPU: captured (`capture_script`, `capture`, `capture_call`) or executed
(`device`)."""

from wavecast.runtimes.triton.device import device, run_script
from wavecast.runtimes.triton.recorder import CaptureFailure
from wavecast.runtimes.triton.script import Capture, capture_script
from wavecast.runtimes.triton.session import capture, capture_call

__all__ = [
    "Capture",
    "CaptureFailure",
    "capture",
    "capture_call",
    "capture_script",
    "device",
    "run_script",
]
