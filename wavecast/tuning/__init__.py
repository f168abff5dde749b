"""Tuning of autotuned kernels without a GPU, and tables of the result.

table = wavecast.tuning.load("table.json")

@table.tuned
@triton.autotune(configs, key=["M", "N", "K"])
@triton.jit
def matmul(…): …
"""

from wavecast.tuning.table import TuningTable, load

__all__ = ["TuningTable", "load"]
