"""The commands: name -> (module that defines `command`, one line of help)."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "explain": (
        "wavecast.cli.explain",
        "Show the code of a kernel on each GPU, its predicted time, and what limits it.",
    ),
    "model": (
        "wavecast.cli.model",
        "Predict a whole model on a machine: memory, latency and throughput of serving.",
    ),
    "profile": (
        "wavecast.cli.profile",
        "Read profiles of PyTorch, rocprofv3, Nsight and others: where the time went.",
    ),
    "run": (
        "wavecast.cli.run",
        "Run a script or HIP program and execute its kernels on the CPU.",
    ),
    "hipcc": (
        "wavecast.cli.hipcc",
        "Compile and link HIP programs like hipcc, without ROCm.",
    ),
    "tune": (
        "wavecast.cli.tune",
        "Tune the autotuned kernels of a script without a GPU.",
    ),
    "lab": (
        "wavecast.cli.lab",
        "Show what compiler passes do to a kernel, and try other decisions of the compiler.",
    ),
    "bench": (
        "wavecast.cli.bench",
        "Measure operators and functions over axes, with or without a GPU.",
    ),
    "store": ("wavecast.cli.store", "List, export, import and check stored measurements."),
    "compare": ("wavecast.cli.compare", "Compare runs: what changed, and how certain that is."),
    "gate": (
        "wavecast.cli.gate",
        "Check kernels against a committed baseline; fail if one is worse.",
    ),
    "diff": (
        "wavecast.cli.diff",
        "Compare two versions of a kernel, two commits or two compilers.",
    ),
    "history": (
        "wavecast.cli.history",
        "Show figures over commits, and the commits that changed them.",
    ),
    "validate": (
        "wavecast.cli.validate",
        "Score predictions against measurements.",
    ),
    "ops": (
        "wavecast.cli.ops",
        "Show the operators of the kernel library and their code on each GPU.",
    ),
    "vllm-report": (
        "wavecast.cli.vllm_report",
        "List the kernels of a model in vLLM, and which operators of the library serve them.",
    ),
    "export": (
        "wavecast.cli.export",
        "Compile a call of an operator for C and C++ programs: code, header, launcher.",
    ),
    "learn": ("wavecast.cli.learn", "A course in GPU kernels, with goals that are checked."),
    "serve": (
        "wavecast.cli.serve",
        "Edit a kernel in a browser and see its code, time and findings.",
    ),
    "mcp": ("wavecast.cli.mcp", "Serve tools to coding agents (Model Context Protocol)."),
    "lsp": ("wavecast.cli.lsp", "Serve findings and times to editors (Language Server Protocol)."),
    "arch": ("wavecast.cli.arch", "Show the facts about a GPU with their sources; compare GPUs."),
    "rules": ("wavecast.cli.rules", "List the rules behind findings, and what to change for each."),
    "coefficients": (
        "wavecast.cli.coefficients",
        "List the coefficients of predictions: values by chip, status, source.",
    ),
    "schema": (
        "wavecast.cli.schema",
        "Print the JSON Schemas of the documents that wavecast writes.",
    ),
    "cache": ("wavecast.cli.cache", "Show or clear the cache of compiled kernels."),
    "doctor": (
        "wavecast.cli.doctor",
        "Show what works on this machine, and what to install for the rest.",
    ),
}
