"""Triton programs on a CPU: captured (`capture_script`, `capture`, `capture_call`) or executed
(`device`)."""

from wavecast.integrations.triton.device import device, run_script
from wavecast.integrations.triton.recorder import CaptureFailure
from wavecast.integrations.triton.script import Capture, capture_script
from wavecast.integrations.triton.session import capture, capture_call

__all__ = [
    "Capture",
    "CaptureFailure",
    "capture",
    "capture_call",
    "capture_script",
    "device",
    "run_script",
]
