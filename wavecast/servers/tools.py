"""Tools for coding agents: what verbs do, with results small enough for a conversation.

Each returns JSON-ready values and raises a WavecastError with one line where it cannot.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from wavecast.report.explain import brief
from wavecast.servers import verbs

_LAST = 40
"""Lines of a script's output that are returned."""


def explain(
    path: str, arch: str = "gfx942", kernels: str = "", arguments: list[str] | None = None
) -> dict[str, Any]:
    """Explain the kernels of a Triton script, HIP file, assembly or code object, with no GPU.

    Returns predicted time with interval, what bounds it, registers, spills, occupancy, and findings
    with source lines, the time their fix saves, and what to change. `arch` is a list of targets or
    chips, such as "gfx942,mi355x,gfx1100,sm_90"; `kernels` a regular expression on kernel names;
    `arguments` those of the script. The script runs; its launches are recorded, not executed.
    """
    options = ["--format", "json", "--arch", arch, *(["-k", kernels] if kernels else [])]
    document = verbs.document(
        ["explain", verbs.file(path), *options, *_of_script(arguments)], accepted=(0,)
    )
    return {
        "kernels": brief.kernels(document),
        "not_explained": [failure["message"] for failure in document["failures"]],
    }


def run(
    path: str, arch: str = "gfx942", check: bool = True, arguments: list[str] | None = None
) -> dict[str, Any]:
    """Execute the Triton kernels of a script as AMD machine code on this machine's processor.

    Returns the exit code, the end of its output, and with `check` the mistakes found: races,
    missing waits, accesses out of bounds, reads of memory that nothing wrote, with their lines.
    """
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder) / "reports.json"
        checked = ["--check", "--check-format", "json", "--check-output", str(reports)]
        options = ["--arch", arch, *(checked if check else [])]
        code, output, log = verbs.text(
            ["run", verbs.file(path), *options, *_of_script(arguments)], accepted=range(256)
        )
        text = reports.read_text("utf-8") if check and reports.exists() else ""
    return {
        "exit_code": code,
        "output": _end(output),
        "errors": _end(log),
        "reports": _reports(text) if check else None,
    }


def predict(
    operation: str, shape: str, dtype: str = "bf16", arch: str = "gfx942"
) -> dict[str, Any]:
    """Predict the time a good library reaches for an operation, with no code.

    `operation` is attention, collective, context_attention, conv, elementwise, gemm,
    gemm_collective, moe, norm, reduction or softmax;
    `shape` as in `wavecast explain OPERATION --shape`, such as "4096x4096x4096" for gemm.
    """
    options = ["--shape", shape, "--dtype", dtype, "--arch", arch, "--format", "json"]
    return verbs.document(["explain", verbs.name(operation), *options], accepted=(0,))


def diff(before: str, after: str, arch: str = "gfx942") -> dict[str, Any]:
    """Compare two versions of a kernel file: figures before and after, findings gone and new."""
    document = verbs.document(
        ["diff", verbs.file(before), verbs.file(after), "--arch", arch, "--format", "json"]
    )
    fields = ("kernel", "arch", "in", "same_code", "figures", "findings")
    return {
        "kernels": [
            {name: entry[name] for name in fields if name in entry} for entry in document["kernels"]
        ]
    }


def tune(path: str, arch: str = "gfx942", kernels: str = "", budget: str = "60s") -> dict[str, Any]:
    """Search configurations of the autotuned kernels of a script by predicted time, with no GPU.

    `budget` is a number of configurations or a time, such as "100" or "2m".
    """
    options = ["--arch", arch, "--budget", budget, "--format", "json"]
    filters = ["-k", kernels] if kernels else []
    return verbs.document(["tune", verbs.file(path), *options, *filters], accepted=(0,))


def model(name: str, system: str = "8xMI300X", options: list[str] | None = None) -> dict[str, Any]:
    """Predict a model on a machine: memory, latency and throughput of serving, or a training step.

    `name` is a model of transformers, a folder or a config.json; `system` is a list of machines,
    such as "8xMI355X,8xH200"; `options` those of `wavecast model`, such as ["--dtype", "fp8",
    "--concurrency", "1..64"].
    """
    flags = options or []
    return verbs.document(
        ["model", verbs.name(name), "--system", system, *flags, "--format", "json"]
    )


def arch(names: str = "") -> dict[str, Any]:
    """The facts about GPUs, such as "mi300x,mi355x"; without names the list of GPUs."""
    selectors = [verbs.name(name.strip()) for name in names.split(",") if name.strip()]
    code, output, _ = verbs.text(["arch", *selectors], accepted=(0,))
    return {"exit_code": code, "text": output}


TOOLS = (explain, run, predict, diff, tune, model, arch)


def _of_script(arguments: list[str] | None) -> list[str]:
    return ["--", *arguments] if arguments else []


def _end(text: str) -> str:
    return "\n".join(text.splitlines()[-_LAST:])


def _reports(text: str) -> list[dict[str, Any]]:
    import json

    return json.loads(text)["reports"] if text else []


__all__ = ["TOOLS", "arch", "diff", "explain", "model", "predict", "run", "tune"]
