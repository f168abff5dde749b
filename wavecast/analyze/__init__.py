"""Reading the code of one kernel for one device: registers, occupancy, loops, memory, lines."""

from wavecast.analyze.amd import analyze
from wavecast.analyze.nvidia import analyze_nvidia, sass_program
from wavecast.analyze.result import CodeAnalysis

__all__ = ["CodeAnalysis", "analyze", "analyze_nvidia", "sass_program"]
