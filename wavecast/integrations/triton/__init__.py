"""Triton programs captured on a CPU: `capture_script`, `capture`, `capture_call`."""

from wavecast.integrations.triton.recorder import CaptureFailure
from wavecast.integrations.triton.script import Capture, capture_script
from wavecast.integrations.triton.session import capture, capture_call

__all__ = ["Capture", "CaptureFailure", "capture", "capture_call", "capture_script"]
