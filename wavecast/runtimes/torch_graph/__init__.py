"""PyTorch modules and exported programs as graphs of operator calls, without their weights."""

from __future__ import annotations

from wavecast.runtimes.torch_graph.archive import archive_graph
from wavecast.runtimes.torch_graph.compiled import CompiledGraph, compiled_graph
from wavecast.runtimes.torch_graph.exported import exported_graph
from wavecast.runtimes.torch_graph.module import OPTIMIZERS, module_graph
from wavecast.runtimes.torch_graph.script import script_graph, script_module

__all__ = [
    "OPTIMIZERS",
    "CompiledGraph",
    "archive_graph",
    "compiled_graph",
    "exported_graph",
    "module_graph",
    "script_graph",
    "script_module",
]
