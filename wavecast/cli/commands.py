"""The verbs: name -> (module that defines `command`, one line of help)."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "explain": (
        "wavecast.cli.explain",
        "What the compiler made of a kernel on each GPU, how long it takes, and why.",
    ),
    "run": (
        "wavecast.cli.run",
        "Run a script with its Triton kernels executed on this machine's processor.",
    ),
    "tune": (
        "wavecast.cli.tune",
        "Search configurations of a script's autotuned kernels with no GPU.",
    ),
    "bench": (
        "wavecast.cli.bench",
        "Measure operators and functions over axes, on a GPU or without one.",
    ),
    "store": ("wavecast.cli.store", "Measurements on disk: list, export, import, check."),
    "compare": ("wavecast.cli.compare", "What changed between runs, and how sure that is."),
    "gate": (
        "wavecast.cli.gate",
        "Kernels under guard against their committed baseline; red when one became worse.",
    ),
    "diff": (
        "wavecast.cli.diff",
        "Two versions of a kernel, two commits or two compilers: what changed, and where.",
    ),
    "history": ("wavecast.cli.history", "Figures over commits, and where they changed."),
    "validate": (
        "wavecast.cli.validate",
        "Score predictions against measurements.",
    ),
    "ops": (
        "wavecast.cli.ops",
        "The kernel library: its operators, and what they become on each GPU.",
    ),
    "arch": ("wavecast.cli.arch", "What is known about a GPU, with sources; compare GPUs."),
    "rules": ("wavecast.cli.rules", "The findings wavecast looks for, and what to do about them."),
    "coefficients": (
        "wavecast.cli.coefficients",
        "The numbers predictions rest on: values by chip, status, source.",
    ),
    "schema": ("wavecast.cli.schema", "JSON Schemas of the documents wavecast writes."),
    "cache": ("wavecast.cli.cache", "Show or clear the cache of compiled kernels."),
    "doctor": (
        "wavecast.cli.doctor",
        "What works on this machine and what to install for the rest.",
    ),
}
