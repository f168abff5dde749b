"""Searching configurations of autotuned kernels with no GPU, and using what was found.

table = wavecast.tune.load("table.json")

@table.tuned
@triton.autotune(configs, key=["M", "N", "K"])
@triton.jit
def matmul(…): …
"""

from wavecast.tune.table import Table, load

__all__ = ["Table", "load"]
