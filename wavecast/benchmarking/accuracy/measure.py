"""Times on the local GPU with predictions, as JSON lines in the general format.

Operations run through PyTorch; kernels are those that Triton scripts launch, whose device times
come from torch's profiler. A record without a prediction has the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from wavecast import arch
from wavecast.arch import Device
from wavecast.benchmarking.accuracy.cases import device_of
from wavecast.errors import UsageError, WavecastError
from wavecast.perfmodel import ops
from wavecast.perfmodel.prediction import Prediction
from wavecast.pipeline import Given, SourceOptions, explain_path, select
from wavecast.runtimes import gpu
from wavecast.runtimes.gpu import KernelRun, LocalGpu
from wavecast.version import __version__

PROBLEMS: tuple[tuple[str, str, dict[str, str]], ...] = (
    *(
        ("gemm", shape, {"dtype": "bf16"})
        for shape in ("16x4096x4096", "1024x4096x4096", "4096x4096x4096", "8192x8192x8192")
    ),
    ("gemm", "4096x4096x4096", {"dtype": "fp16"}),
    *(
        ("attention", shape, {"dtype": "bf16", "causal": causal})
        for shape in ("1x32x2048x128", "2x32x8192x128")
        for causal in ("no", "yes")
    ),
    ("conv", "32x64x56x56,64x3x3", {"dtype": "fp16", "padding": "1"}),
    ("conv", "32x256x28x28,512x1x1", {"dtype": "fp16"}),
    ("softmax", "8192x4096", {"dtype": "bf16"}),
    *(
        ("norm", "8192x4096", {"function": function, "dtype": "bf16"})
        for function in ("layer_norm", "rms_norm")
    ),
    *(
        ("elementwise", shape, {"function": function, "dtype": "bf16"})
        for function in ("add", "gelu")
        for shape in ("1048576", "134217728")
    ),
)
"""Measured operations: kind, `--shape` and options of the command line."""

Record = dict[str, Any]


def measure(
    scripts: Sequence[Path], results: Path, progress: Callable[[str], None] = lambda _: None
) -> tuple[Path, tuple[Record, ...]]:
    """Measure `PROBLEMS` and the kernels of `scripts`, and append them to a file in `results`.

    Returns the file and its new records. Raises NothingAnalysed without a GPU, UsageError for a
    GPU that is not known.
    """
    local = gpu.local_gpu()
    name, _ = device_of(local.target, local.units, local.name)
    if not name:
        raise UsageError(f"{local.name} ({local.target}) is not a known device")
    device = arch.load(name)
    records: list[Record] = []
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{device.id}.jsonl"
    with path.open("a", encoding="utf-8") as file:
        for record in (*_ops(local, device, progress), *_scripts(scripts, device, progress)):
            full = {**_about(local, device), **record}
            file.write(json.dumps(full, ensure_ascii=False, allow_nan=False) + "\n")
            records.append(full)
    return path, tuple(records)


def _ops(local: LocalGpu, device: Device, progress: Callable[[str], None]) -> Iterator[Record]:
    for kind, shape, options in PROBLEMS:
        progress(f"{kind} {shape}")
        problem = ops.op(kind).parse(shape, options)
        seconds = local.seconds(gpu.program(problem))
        try:
            predicted = _prediction(problem.predict(device))
        except WavecastError as error:
            predicted = {"not_predicted": str(error)}
        yield {"op": kind, "shape": shape, **options, "time_us": seconds * 1e6, **predicted}


def _scripts(
    scripts: Sequence[Path], device: Device, progress: Callable[[str], None]
) -> Iterator[Record]:
    for script in scripts:
        progress(script.name)
        runs = gpu.profile_script(script)
        predictions = _of_script(script, device)
        for run in runs:
            if run.kernel in {kernel for kernel, _ in predictions}:
                yield _kernel(script, run, predictions)


def _of_script(
    script: Path, device: Device
) -> dict[tuple[str, tuple[int, int, int]], Prediction | str]:
    """Predictions of a script's launches by kernel and grid, or why there is none."""
    options = SourceOptions(configs="all", given=Given(outcomes=False))
    report = explain_path(script, select([device.id]), options)
    predictions: dict[tuple[str, tuple[int, int, int]], Prediction | str] = {}
    for explanation in report.explanations:
        if explanation.launch is None:
            continue
        key = explanation.code.kernel, explanation.launch.grid
        if key in predictions:
            predictions[key] = "launches of several configurations have this grid"
        else:
            predictions[key] = explanation.predicted.prediction or explanation.predicted.why_not
    return predictions


def _kernel(
    script: Path,
    run: KernelRun,
    predictions: dict[tuple[str, tuple[int, int, int]], Prediction | str],
) -> Record:
    prediction = predictions.get((run.kernel, run.grid), "no launch with this grid was captured")
    predicted = (
        {"not_predicted": prediction} if isinstance(prediction, str) else _prediction(prediction)
    )
    return {
        "op": "kernel",
        "shape": "x".join(map(str, run.grid)),
        "kernel": run.kernel,
        "source": script.name,
        "launches": run.launches,
        "time_us": run.seconds * 1e6,
        **predicted,
    }


def _prediction(prediction: Prediction) -> Record:
    return {
        "predicted_us": prediction.seconds * 1e6,
        "low_us": prediction.low * 1e6,
        "high_us": prediction.high * 1e6,
        "limiter": prediction.limiter,
        "fidelity": prediction.fidelity,
    }


def _about(local: LocalGpu, device: Device) -> Record:
    return {
        "device": device.id,
        "arch": device.target,
        "cu_count": local.units,
        "measured_with": local.library,
        "wavecast": __version__,
    }
