"""Operators beside what PyTorch has, on this machine's GPU: medians of one run, in turns.

    python benchmarks/ops.py [-k REGEX] [--seconds 2] [--warm] [--folder results]

Shapes are those the operators are judged on. Writes `ops-DEVICE.md` and `ops-DEVICE.json`: every
time, the ratio to the best alternative, and per family the geometric mean over the shapes beside
its bar. Exits with 1 where a bar is missed, 3 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from wavecast.arch import Device
from wavecast.benchmarking.measure.gpu import cache_bytes, too_fast
from wavecast.benchmarking.measure.gpu_environment import LocalGpuState, here
from wavecast.benchmarking.measure.sampling import SamplingBudget, half_width, sample
from wavecast.benchmarking.records import Scalar
from wavecast.errors import NothingAnalysed, WavecastError
from wavecast.kernels import registry
from wavecast.kernels.operator import Operator
from wavecast.perfmodel.roofline import roofline
from wavecast.runtimes.gpu import timing
from wavecast.runtimes.gpu.inputs import MakeThere

sys.path.insert(0, str(Path(__file__).resolve().parent))

FAR = 0.05
"""Results that lie so far apart, root mean squares, are not of the same computation."""

Times = Callable[[Sequence[timing.Call]], list[list[float]]]
"""Seconds of calls that take turns."""


@dataclass(frozen=True)
class Family:
    """Operators with the same alternatives: `make` names their function in `ops_alternatives`;
    `bar` is what the time of the best over ours must be at least, in the geometric mean; `copy`
    the same for a copy of the bytes the work needs, None for no such bar."""

    name: str
    operators: tuple[str, ...]
    make: str
    bar: float
    copy: float | None = None
    only: Callable[[dict[str, Scalar]], bool] = lambda sizes: True  # noqa: ARG005


FAMILIES = (
    Family("GEMM", ("matmul",), "products", 0.95),
    Family("GEMM, 8 bits", ("scaled_matmul",), "scaled_products", 0.95),
    Family("attention", ("attention",), "attention", 0.9),
    Family("attention, backward", ("attention_backward",), "attention_backward", 0.85),
    Family(
        "norms",
        ("rms_norm", "rms_norm_residual", "layer_norm", "layer_norm_residual"),
        "streaming",
        1.0,
        0.9,
    ),
    Family("RoPE", ("rope",), "streaming", 1.0, 0.9),
    Family(
        "activations",
        ("silu", "gelu", "relu_squared", "silu_mul", "gelu_mul"),
        "streaming",
        1.0,
        0.9,
    ),
    Family(
        "MoE, 128 experts",
        ("moe_experts",),
        "experts",
        5.0,
        only=lambda sizes: sizes["experts"] == 128,
    ),
    Family(
        "MoE, other numbers",
        ("moe_experts",),
        "experts",
        1.0,
        only=lambda sizes: sizes["experts"] != 128,
    ),
    Family("convolution", ("convolution",), "convolution", 0.8),
    Family(
        "convolution, gradient of data", ("convolution_backward_data",), "convolution_data", 0.8
    ),
    Family(
        "convolution, gradient of weights",
        ("convolution_backward_weight",),
        "convolution_weight",
        0.8,
    ),
)


@dataclass
class Row:
    """One shape. Times are median seconds; `why` says why there is no comparison."""

    family: str
    operator: str
    sizes: dict[str, Scalar]
    seconds: float | None = None
    width: float | None = None
    others: dict[str, float] = field(default_factory=dict)
    copy: float | None = None
    floor: float | None = None
    refused: dict[str, str] = field(default_factory=dict)
    why: str = ""

    @property
    def best(self) -> str:
        return min(self.others, key=lambda name: self.others[name], default="")

    @property
    def ratio(self) -> float | None:
        """Time of the best alternative over ours: above 1 we are faster."""
        if self.why or not self.seconds or not self.others:
            return None
        return self.others[self.best] / self.seconds

    @property
    def copy_ratio(self) -> float | None:
        return self.copy / self.seconds if self.copy and self.seconds and not self.why else None


def measured(
    family: Family,
    operator: Operator,
    sizes: dict[str, Any],
    place: str,
    times: Times,
    compiled: Callable[[Any], Any],
    device: Device | None = None,
    cache: int = 0,
    cold: bool = True,
) -> Row:
    """One shape of one operator. What cannot run is told in the row; with a `device`, whose caches
    hold `cache` bytes, times that cannot be true as well."""
    import ops_alternatives

    row = Row(family.name, operator.name, dict(sizes))
    try:
        given = operator.inputs(MakeThere(0, place), **sizes)
        contest = getattr(ops_alternatives, family.make)(operator, given, compiled)
        ours = contest.ours()
        row.refused = dict(contest.refused)
        for name, call in list(contest.others.items()):
            apart = distance(ours, call())
            if not apart <= FAR:
                row.refused[name] = f"its result lies {apart:.2g} apart"
                if name != "torch._scaled_mm fast":
                    row.why = f"the result lies {apart:.2g} apart from that of {name}"
                del contest.others[name]
        del ours
        calls, work = [contest.ours, *contest.others.values()], operator.work(**sizes)
        if family.copy is not None and work.bytes:
            calls.append(copy_of(work.bytes, place))
        samples = times(calls)
    except Exception as error:  # of the GPU's libraries, of many kinds; the others go on
        row.why = row.why or f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
        return row
    middles = [median(one) for one in samples]
    row.seconds, row.width = middles[0], half_width(samples[0])
    row.others = dict(zip(contest.others, middles[1:], strict=False))
    if family.copy is not None and work.bytes:
        row.copy = middles[-1]
    if device is not None:
        row.floor = roofline(work, device).floor_seconds
        row.why = row.why or too_fast(samples[0], work, device, cache, cold)
    return row


def distance(ours: Any, other: Any) -> float:
    """Root mean square of the difference of results over that of the other."""
    pairs = list(zip(_tensors(ours), _tensors(other), strict=False))
    if not pairs or any(a.shape != b.shape for a, b in pairs):
        return math.inf
    apart = 0.0
    for a, b in pairs:
        wide, right = a.float(), b.float()
        scale = float(right.square().mean().sqrt()) or 1.0
        apart = max(apart, float((wide - right).square().mean().sqrt()) / scale)
    return apart


def _tensors(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def copy_of(size: float, place: str) -> timing.Call:
    """A copy that reads and writes so many bytes together."""
    import torch

    source = torch.ones(max(1, int(size / 2)), dtype=torch.int8, device=place)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def gpu_times(local: LocalGpuState, budget: SamplingBudget, *, warm: bool) -> Times:
    """By events, caches flushed before each call unless `warm`."""
    stopwatch = timing.Stopwatch()
    flush = None if warm else timing.Flush(2 * cache_bytes(local))

    def times(calls: Sequence[timing.Call]) -> list[list[float]]:
        found = sample([lambda c=call: stopwatch.seconds(c, flush) for call in calls], budget)
        if any(one.stopped == "interrupted" for one in found):
            raise KeyboardInterrupt
        return [one.samples for one in found]

    return times


def contests(pattern: str) -> Iterator[tuple[Family, Operator, dict[str, Any]]]:
    """Every shape of every family whose operator's line matches."""
    for family in FAMILIES:
        for name in family.operators:
            operator = registry.operator(name)
            for sizes in operator.shapes:
                if family.only(dict(sizes)) and re.search(pattern, operator.describe(sizes)):
                    yield family, operator, dict(sizes)


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Per family: shapes compared, geometric means, bars, whether they are met."""
    found = []
    for family in FAMILIES:
        mine = [row for row in rows if row.family == family.name]
        ratios = [row.ratio for row in mine if row.ratio is not None]
        copies = [row.copy_ratio for row in mine if row.copy_ratio is not None]
        if not mine:
            continue
        mean = geometric_mean(ratios) if ratios else None
        copy = geometric_mean(copies) if copies else None
        met = mean is not None and mean >= family.bar
        if family.copy is not None:
            met = met and copy is not None and copy >= family.copy
        found.append({
            "family": family.name, "shapes": len(mine), "compared": len(ratios),
            "geomean": mean, "bar": family.bar, "copy": copy, "copy_bar": family.copy, "met": met,
        })  # fmt: skip
    return found


def markdown(rows: Sequence[Row], title: str) -> str:
    """The table people read."""
    lines = [f"# {title}", "", "Ratios are the best alternative's time over ours: above 1, ours is faster.", ""]  # noqa: E501  # fmt: skip
    lines += ["| family | shapes | compared | geomean | bar | of a copy | bar | met |"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|---|"]
    for one in summary(rows):
        cells = (one["family"], one["shapes"], one["compared"], _ratio(one["geomean"]),
                 _ratio(one["bar"]), _ratio(one["copy"]), _ratio(one["copy_bar"]),
                 "yes" if one["met"] else "**no**")  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "| operator | µs | ± | of bound | best alternative | µs | ratio | of a copy | others, what is missing |"]  # noqa: E501  # fmt: skip
    lines += ["|---|--:|--:|--:|---|--:|--:|--:|---|"]
    for row in rows:
        share = f"{row.floor / row.seconds:.0%}" if row.floor and row.seconds else ""
        width = f"{row.width:.1%}" if row.width is not None and row.width < 1 else ""
        rest = [f"{name} {1e6 * time:.1f}" for name, time in row.others.items() if name != row.best]
        rest += [f"{name}: {why}" for name, why in row.refused.items()]
        rest += [f"**{row.why}**"] if row.why else []
        sizes = " ".join(f"{name}={value}" for name, value in row.sizes.items())
        cells = (f"{row.operator} {sizes}", _micro(row.seconds), width, share, row.best,
                 _micro(row.others.get(row.best)), _ratio(row.ratio), _ratio(row.copy_ratio),
                 "; ".join(rest).replace("|", "\\|"))  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def document(rows: Sequence[Row], about: dict[str, Any]) -> str:
    """The same for programs; times in seconds."""
    listed = [{**vars(row), "best": row.best, "ratio": row.ratio, "copy_ratio": row.copy_ratio}
              for row in rows]  # fmt: skip
    for one in listed:
        width = one["width"]
        one["width"] = width if width is not None and math.isfinite(width) else None
    return json.dumps({**about, "summary": summary(rows), "rows": listed}, indent=1, default=str)


def _micro(seconds: float | None) -> str:
    return f"{1e6 * seconds:.1f}" if seconds else ""


def _ratio(value: float | None) -> str:
    return f"{value:.2f}" if value is not None else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Operators beside what PyTorch has, on this GPU.")
    parser.add_argument("-k", "--pattern", default="", help="only operators and sizes that match")
    parser.add_argument("--seconds", type=float, default=2.0, help="per call and shape")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--warm", action="store_true", help="do not flush caches before each call")
    parser.add_argument("--folder", type=Path, default=Path("results"))
    given = parser.parse_args(arguments)
    try:
        local = here()
    except WavecastError as error:
        print(f"ops: {error.message}: nothing was measured", file=sys.stderr)
        return NothingAnalysed.exit_code
    import torch

    torch.backends.cudnn.benchmark = True
    budget = SamplingBudget(given.seconds, given.samples)
    times, rows = gpu_times(local, budget, warm=given.warm), []
    name = local.environment.device or local.environment.target
    title = f"Operators beside PyTorch on {local.environment.board}"
    about = {"environment": vars_of(local), "cache": "warm" if given.warm else "cold"}
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        for family, operator, sizes in contests(given.pattern):
            print(operator.describe(sizes), file=sys.stderr, flush=True)
            if family.make == "streaming":
                torch._dynamo.reset()  # every shape is compiled for itself
            about_device = local.device, cache_bytes(local), not given.warm
            rows.append(
                measured(family, operator, sizes, "cuda", times, torch.compile, *about_device)
            )
            timing.release()
            (given.folder / f"ops-{name}.md").write_text(markdown(rows, title), encoding="utf-8")
            (given.folder / f"ops-{name}.json").write_text(document(rows, about), encoding="utf-8")
    except KeyboardInterrupt:
        print("ops: interrupted, what was measured is kept", file=sys.stderr)
        return 130
    if not any(row.seconds for row in rows):
        print("ops: nothing was measured", file=sys.stderr)
        return NothingAnalysed.exit_code
    print(markdown(rows, title))
    return 0 if all(one["met"] for one in summary(rows)) else 1


def vars_of(local: LocalGpuState) -> dict[str, Any]:
    """The environment of the run in plain values."""
    from dataclasses import asdict

    return asdict(local.environment)


if __name__ == "__main__":
    sys.exit(main())
