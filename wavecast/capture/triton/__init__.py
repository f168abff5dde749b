"""Triton programs on a CPU: captured (`capture_script`, `capture`, `capture_call`) or executed
(`device`)."""

from wavecast.capture.triton.device import device, run_script
from wavecast.capture.triton.recorder import CaptureFailure
from wavecast.capture.triton.script import Capture, capture_script
from wavecast.capture.triton.session import capture, capture_call

__all__ = [
    "Capture",
    "CaptureFailure",
    "capture",
    "capture_call",
    "capture_script",
    "device",
    "run_script",
]
