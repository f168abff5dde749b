"""Know how a GPU kernel will run before it runs::

    import wavecast

    report = wavecast.explain(kernel, x, y, n, grid=(64,), arch="gfx942")
    best = wavecast.estimate("gemm", shape="4096x4096x4096", dtype="fp8", arch="mi300x,mi355x")
    with wavecast.capture(arch="gfx942") as launches:
        kernel[grid](x, y, n)
    with wavecast.device("gfx942"):
        kernel[grid](x, y, n)  # executed: results are in the tensors
    saxpy = wavecast.load("saxpy.hip", arch="gfx942")["saxpy"]
    saxpy(grid, block, 2.0, x, y, n)  # executed on numpy arrays or tensors
    milliseconds = wavecast.testing.do_bench(lambda: kernel[grid](x, y, n))
    y = wavecast.ops.rms_norm(x, weight)  # of the kernel library
    answer = wavecast.model("Llama-3.3-70B", system="8xMI300X", dtype="fp8")
    served = wavecast.serve("Llama-3.3-70B", system="8xMI300X", dtype="fp8", rate=4)
    changed = wavecast.diff("before.py", "after.py", arch="gfx942")
    measured = wavecast.profile("trace.json.gz", on="mi355x")
    ran = wavecast.run("reduction.hip", plan_file="launch.toml", check=True)

Importing wavecast is cheap: everything else is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast import ops, testing
    from wavecast.api.bench import bench
    from wavecast.api.compare import compare
    from wavecast.api.diff import diff
    from wavecast.api.estimate import estimate
    from wavecast.api.explain import explain
    from wavecast.api.export import export
    from wavecast.api.gate import gate
    from wavecast.api.history import history
    from wavecast.api.model import model, serve
    from wavecast.api.profile import profile
    from wavecast.api.run import run
    from wavecast.api.tune import tune
    from wavecast.api.validate import validate
    from wavecast.api.vllm_report import vllm_report
    from wavecast.runtimes.module import load
    from wavecast.runtimes.triton import capture, device

_MODULES = ("ops", "testing")
_LAZY = {
    "bench": "wavecast.api.bench",
    "estimate": "wavecast.api.estimate",
    "explain": "wavecast.api.explain",
    "export": "wavecast.api.export",
    "capture": "wavecast.runtimes.triton",
    "compare": "wavecast.api.compare",
    "device": "wavecast.runtimes.triton",
    "diff": "wavecast.api.diff",
    "gate": "wavecast.api.gate",
    "history": "wavecast.api.history",
    "load": "wavecast.runtimes.module",
    "model": "wavecast.api.model",
    "profile": "wavecast.api.profile",
    "run": "wavecast.api.run",
    "serve": "wavecast.api.model",
    "tune": "wavecast.api.tune",
    "validate": "wavecast.api.validate",
    "vllm_report": "wavecast.api.vllm_report",
}

__all__ = [
    "__version__",
    "bench",
    "capture",
    "compare",
    "device",
    "diff",
    "estimate",
    "explain",
    "export",
    "gate",
    "history",
    "load",
    "model",
    "ops",
    "profile",
    "run",
    "serve",
    "testing",
    "tune",
    "validate",
    "vllm_report",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"wavecast.{name}")
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'wavecast' has no attribute {name!r}")
    return getattr(import_module(module), name)
