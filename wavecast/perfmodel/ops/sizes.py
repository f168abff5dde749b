"""What ops that stream tensors share: shapes and options from text, predictions from parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from wavecast.arch import Device
from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.bounds import MemoryFloor
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import Amount
from wavecast.perfmodel.intervals import with_interval
from wavecast.perfmodel.memory import Traffic, transfer
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.streaming import kernel_seconds
from wavecast.perfmodel.timing import measurement_time

WORKGROUP_WAVES = 32
"""Waves of a workgroup: 1,024 threads in waves of 32 lanes, the most that any GPU here takes."""
TILE = 1 << 17
"""Sums that a workgroup accumulates: fp32 in the 512 KiB of registers of a CU."""
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
NOT_MODELLED = (
    "translation misses",
    "what other kernels left in the caches, beyond the operands themselves",
)


def parse_sizes(shape: str, count: int = 0) -> tuple[int, ...]:
    """Positive sizes of `AxBxC`. Raises UsageError, also where there are not `count` of them."""
    try:
        sizes = tuple(int(size) for size in shape.lower().split("x"))
    except ValueError:
        raise UsageError(f"{shape!r} is not a shape", hint="sizes joined by x") from None
    if any(size < 1 for size in sizes) or (count and len(sizes) != count):
        requirement = f"{count} positive sizes" if count else "positive sizes"
        raise UsageError(f"{shape!r} is not a shape: it needs {requirement} joined by x")
    return sizes


def check_options(
    kind: str,
    options: Mapping[str, str],
    names: Sequence[str],
    required: Sequence[str] = (),
    *,
    values: Mapping[str, Iterable[str]],
) -> Mapping[str, str]:
    """The options, checked; `values` are what a required option can be, by its name.

    Raises UnknownName for an option the op lacks and for a value of `function` that it lacks,
    UsageError for what is missing, all of it with its values.
    """
    for name in options:
        if name not in names:
            raise UnknownName(f"option of {kind}", name, names)
    functions = values.get("function")
    if functions is not None and "function" in options and options["function"] not in functions:
        raise UnknownName(f"{kind} function", options["function"], functions)
    missing = [name for name in required if name not in options]
    if missing:
        raise UsageError(
            f"{kind} needs {' and '.join(map(_as_option, missing))}",
            hint="; ".join(f"{n}: {', '.join(values[n])}" for n in missing if n in values),
        )
    return options


def whole(kind: str, name: str, text: str) -> int:
    """A whole number from an option, 0 or more. Raises UsageError."""
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{kind}: {name} is a whole number, 0 or more, not {text!r}")
    return int(text)


def at_most(kind: str, limits: Mapping[str, tuple[int, int]]) -> None:
    """Checks values by what they are: (value, the most that hardware or the problem has). Raises
    UsageError."""
    for name, (value, most) in limits.items():
        if value > most:
            raise UsageError(f"{kind}: {name} is {value}, at most {most:,} are possible")


def truth(kind: str, name: str, text: str) -> bool:
    """True or false from an option. Raises UsageError."""
    if text.lower() not in _TRUTH:
        raise UsageError(f"{kind}: {name} is true or false, not {text!r}")
    return _TRUTH[text.lower()]


def _as_option(name: str) -> str:
    """How the command line gives an option of an op."""
    return f"--{name}" if name == "dtype" else f"--set {name}=…"


def warm_floor(op: Op, device: Device, footprint: float, streams: float = 2.0) -> MemoryFloor:
    """The least time of an op's bytes when all `footprint` distinct bytes, of `streams` tensors,
    were touched just before and caches have what fits. Raises MissingFact."""
    chip, work = Chip.of(device), op.work()
    read, written = work.bytes_read or 0.0, work.bytes_written or 0.0
    peak, sustained = (
        float(max(map(float, transfer(rates, Traffic(read, written, footprint, tensors)).values())))
        for rates, tensors in ((replace(chip, hbm=chip.hbm_peak), 2.0), (chip, streams))
    )
    return MemoryFloor(peak, sustained)


def predict_kernels(
    op: Op,
    device: Device,
    kernels: Sequence[Mapping[str, Amount]],
    overlap: float,
    *,
    timing: str,
    assumed: Mapping[str, object],
    notes: tuple[str, ...] = (),
    not_modelled: tuple[str, ...] = NOT_MODELLED,
) -> Prediction:
    """The prediction of kernels one after another, from their parts (`streaming.kernel_parts`)."""
    chip = Chip.of(device)
    times = [
        float(measurement_time(chip, timing, kernel_seconds(chip, parts, overlap)))
        for parts in kernels
    ]
    bounds: dict[str, float] = {}
    for parts in kernels:
        for name, part in parts.items():
            bounds[name] = bounds.get(name, 0.0) + float(part)
    seconds = sum(times)
    bounds["launch"] = sum(float(measurement_time(chip, timing, 0.0)) for _ in kernels)
    limiter = max(bounds, key=lambda name: bounds[name])
    return with_interval(
        Prediction(
            device=device.id,
            seconds=seconds,
            low=seconds,
            high=seconds,
            limiter=limiter,
            fidelity="formula",
            bounds=bounds,
            assumed={**assumed, "operands": "touched just before; caches have what fits"},
            not_modelled=not_modelled,
            notes=notes,
        ),
        op.subject,
        device,
    )


__all__ = [
    "NOT_MODELLED",
    "TILE",
    "WORKGROUP_WAVES",
    "at_most",
    "check_options",
    "parse_sizes",
    "predict_kernels",
    "truth",
    "warm_floor",
    "whole",
]
