"""Fits `attention.toml` to published attention times.

`python -m calibration.attention DATA_DIR [--left-out] [--without mi350x] [--folds] [--ablate]
[--write]`

Tile kernels, decoding and unfused attention are fitted one after the other, each to the problems
of its libraries; repeats of a problem count once. `--left-out` leaves out every device, library and
folder of sources in turn and scores each by a fit to the others; `--without` one, by a word of its
name; `--folds` random fifths of the shapes. A library that is left out loses its own coefficients
and is predicted from its schedule, as one that nobody measured.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from calibration import common
from calibration.datasets.attention_published import AttentionPublished
from wavecast import arch
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.ops.attention import libraries
from wavecast.perfmodel.ops.attention.machine import FAMILY, AttentionRates
from wavecast.perfmodel.ops.attention.problem import Attention

TILE = (
    *("vector_power", "latencies_forward", "latencies_backward"),
    *("vector_asm_forward", "vector_hipkittens_forward", "vector_independent_forward"),
    *("vector_triton_forward@gfx942", "vector_asm_backward", "vector_hipkittens_backward"),
    *("vector_independent_backward", "call_asm_forward", "call_hipkittens_forward"),
    *("call_asm_backward", "call_hipkittens_backward", "host@mi350x"),
)
DECODE = (
    *("call_decode", "stream_asm", "bandwidth_asm", "bandwidth_triton", "overlap_decode"),
    *("start_workgroup", "own_traffic", "idle_workgroup", "combine_kernel", "combine_part"),
)
UNFUSED = ("unfused_workgroup", "unfused_launch")
DIRECTIONS = ("forward", "backward")
INTERLEAVED = ("asm", "hipkittens")
"""The measured kernels of this schedule."""
LATENT = "latent"
"""Stands for the decoding of latent keys, which one library was measured with, among libraries."""
FITTED = {name for name, one in libraries.libraries().items() if one.fused and one.measured}
FITTED |= {LATENT}
"""What the coefficients are fitted to. A table of measurements without one of them is a calibration
that does not know it (`calibration.left_out`)."""
HIDDEN = 1.0
"""Lane operations per score of that schedule where none of its kernels was measured."""
UNIT_STREAM = 5.3e10
"""Byte/s that one compute unit streams: kernels of experts on the 80 units of MI308X."""
GUESSES: Mapping[str, Mapping[str, float]] = {
    "ck": {
        "vector_independent_forward": 6.0,
        "vector_independent_backward": 7.0,
        "latencies_forward": 1.0,
        "latencies_backward": 1.0,
    },
    LATENT: {
        "call_decode": 4.2e-6,
        "start_workgroup": 2.15e-6,
        "overlap_decode": 2.0,
        "own_traffic": 1.0,
        "idle_workgroup": 1e-7,
        "combine_kernel": 5.9e-6,
        "combine_part": 4.3e-7,
        "stream_split": UNIT_STREAM,
        "stream_triton": UNIT_STREAM,
        "bandwidth_split": 1.0,
        "stream_asm": UNIT_STREAM,
        "bandwidth_asm": 1.0,
    },
}
"""What documents and counted instructions say of coefficients that one library determines:
operations of the loop of a schedule, launches, latencies of memory, the bandwidth of stream
benchmarks, what a unit streams in other kernels. Latent decoding: AITER's code object waits for
five latencies of 430 ns in a row (arguments, range of the sequence, page, keys; stores at the end),
its second kernel for four."""
PARTS = {"tile": TILE, "decode": DECODE, "unfused": UNFUSED}
LIMITS = {
    "vector_power": (0.05, 2.0),
    "overlap_decode": (1.0, 8.0),
    **{name: (0.1, 300.0) for name in TILE if name.startswith("vector_") and "ward" in name},
    **{name: (1e-6, 3e-4) for name in TILE if name.startswith("call_")},
}
WIDTH = 0.05
"""Residuals of log time beyond this count with their size, not its square."""
PRIOR = 0.02
"""Residual of a coefficient at e times its first value: few problems do not move what they do not
determine."""
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "tile": {
        "vector work beside exponentials": {n: 0.0 for n in TILE if n.startswith("vector_")},
        "power of vector work": {"vector_power": 0.0},
        "latencies of a workgroup": {"latencies_forward": 0.0, "latencies_backward": 0.0},
        "calls": {n: 0.0 for n in TILE if n.startswith("call_")},
    },
    "decode": {
        "rate of one workgroup": {"stream_asm": 1e15, "stream_triton": 1e15},
        "overlap": {"overlap_decode": 20.0},
        "start of a workgroup": {"start_workgroup": 0.0},
        "second kernel": {"combine_kernel": 0.0, "combine_part": 0.0},
        "least part": {"split_tokens": 1.0},
    },
    "unfused": {"workgroups": {"unfused_workgroup": 0.0}, "calls": {"unfused_launch": 0.0}},
}


@dataclass(frozen=True)
class Problem:
    """One problem on a device, with the median of its times in seconds."""

    op: Attention
    device: str
    seconds: float
    part: str
    label: str
    groups: frozenset[str]


def problems(folder: Path) -> list[Problem]:
    """The problems of the file, once each."""
    frame = pd.read_parquet(folder / "attention_published.parquet")
    same: dict[tuple[Attention, str], list[Case]] = {}
    for case in AttentionPublished().cases(frame):
        if isinstance(case, Case) and isinstance(case.op, Attention) and case.device:
            same.setdefault((case.op, case.device), []).append(case)
    return [
        Problem(
            op,
            device,
            median(case.seconds for case in cases),
            part_of(op),
            f"{cases[0].labels['direction']} {op.library or 'best'}",
            frozenset(case.group for case in cases),
        )
        for (op, device), cases in same.items()
    ]


def part_of(op: Attention) -> str:
    """Which coefficients a problem tells of."""
    if op.library == "unfused":
        return "unfused"
    return (
        "decode" if op.latent or (op.heads // op.kv_heads * op.seq_q <= 32 < op.seq_k) else "tile"
    )


def logs(chosen: Sequence[Problem], known: Mapping[str, float]) -> np.ndarray:
    """log(predicted / measured) with coefficients `known`; `name@scope` goes before `name`."""
    machines = {
        name: AttentionRates.of(arch.load(name), _for(known, name)) for name in _devices(chosen)
    }
    return np.array([math.log(p.op.seconds(machines[p.device]) / p.seconds) for p in chosen])


def _devices(chosen: Sequence[Problem]) -> set[str]:
    return {problem.device for problem in chosen}


def _for(known: Mapping[str, float], device: str) -> dict[str, float]:
    return common.resolved(known, coefficients.scopes(arch.load(device))[::-1])


def fit(
    chosen: Sequence[Problem], names: Sequence[str], start: Mapping[str, float]
) -> dict[str, float]:
    """Values of `names`, all positive, that make robust squares of the logs least."""
    first = np.log([start[name] for name in names])
    low, high = np.log([LIMITS.get(name, (start[name] / 30, start[name] * 30)) for name in names]).T

    def residuals(x: np.ndarray) -> np.ndarray:
        off = logs(chosen, {**start, **dict(zip(names, np.exp(x), strict=True))})
        return np.concatenate([off, PRIOR * (x - first)])

    found = least_squares(
        residuals,
        np.clip(first, low + 1e-6, high - 1e-6),
        bounds=(low, high),
        loss="soft_l1",
        f_scale=WIDTH,
        diff_step=1e-3,
        xtol=1e-5,
        ftol=1e-5,
    )
    return {**start, **dict(zip(names, (float(v) for v in np.exp(found.x)), strict=True))}


def fit_all(
    chosen: Sequence[Problem],
    known: Mapping[str, float],
    parts: Collection[str] = PARTS,
    lost: Collection[str] = (),
) -> dict[str, float]:
    """All parts, or those that are given, in the order they need each other; `lost` libraries are
    those that nobody measured."""
    known = without(known, lost)
    fixed = {name for library in lost for name in (*_own(known, library), *_guesses(library))}
    for part, names in PARTS.items():
        own = [problem for problem in chosen if problem.part == part]
        if own and part in parts:
            known = fit(own, [name for name in names if name not in fixed], known)
    return without(known, lost)


def without(known: Mapping[str, float], lost: Collection[str]) -> dict[str, float]:
    """Coefficients as if nobody had measured the libraries `lost`.

    A schedule is the mean of its measured kernels, or a guess; a lost library has the costs of its
    schedule, of libraries with split keys and of calls in general.
    """
    found = dict(known)
    for direction in DIRECTIONS:
        own = [known[f"vector_{n}_{direction}"] for n in INTERLEAVED if n not in lost]
        found[f"vector_interleaved_{direction}"] = sum(own) / len(own) if own else HIDDEN
    for library in lost:
        found |= _guesses(library)
        found |= {name: found[_otherwise(name)] for name in _own(known, library)}
    return found


def _own(known: Mapping[str, float], library: str) -> list[str]:
    """Names of the coefficients of one library."""
    return [name for name in known if f"_{library}" in name.partition("@")[0]]


def _otherwise(name: str) -> str:
    """The coefficient of a library that nobody measured, for one that is a library's own."""
    prefix, _, rest = name.partition("@")[0].partition("_")
    library, _, direction = rest.rpartition("_")
    general = {"vector": f"{_schedule(library)}_{direction}", "call": f"sdpa_{direction}"}
    return f"{prefix}_{general.get(prefix, 'split')}"


def _schedule(library: str) -> str:
    """How the kernels of a library overlap; of a library without tile kernels, as its kind."""
    tiles = libraries.libraries()[library].forward if library in libraries.libraries() else ()
    return tiles[0].schedule if tiles else "interleaved"


def _guesses(library: str) -> Mapping[str, float]:
    return GUESSES.get(library, {})


def report(title: str, chosen: Sequence[Problem], known: Mapping[str, float]) -> None:
    """Scores by direction, library and device, and of all."""
    print(title)
    off = logs(chosen, known)
    print(f"  {'all':32} {common.scores(np.exp(off))}")
    keys = [(p.label, p.device) for p in chosen]
    for key in sorted(set(keys)):
        own = off[[k == key for k in keys]]
        print(f"  {' '.join(key):32} {common.scores(np.exp(own))}")


def folds(chosen: Sequence[Problem], known: Mapping[str, float]) -> None:
    """Every fifth of the shapes predicted by a fit to the others."""
    seen: list[Problem] = []
    off: list[np.ndarray] = []
    numbers = [zlib.crc32(_shape(p.op).encode()) % 5 for p in chosen]
    for number in range(5):
        others = [p for p, n in zip(chosen, numbers, strict=True) if n != number]
        left = [p for p, n in zip(chosen, numbers, strict=True) if n == number]
        off.append(logs(left, fit_all(others, known)))
        seen += left
    ratio = np.exp(np.concatenate(off))
    for label in sorted({p.label for p in seen}):
        print(f"  {label:32} {common.scores(ratio[[p.label == label for p in seen]])}")


def _shape(op: Attention) -> str:
    return f"{op.batch} {op.heads} {op.kv_heads} {op.seq_q} {op.seq_k} {op.head} {op.causal}"


def words(chosen: Sequence[Problem]) -> list[str]:
    """Every device, folder of sources, and library that others share coefficients with."""
    devices = sorted({p.device for p in chosen})
    known = sorted({p.op.library for p in chosen} - {"unfused"})
    folders = sorted({_folder(group) for p in chosen for group in p.groups})
    return [word for word in (*devices, *known, *folders) if word]


def _folder(group: str) -> str:
    return "/".join(group.split("/")[:3])


def _left_out(problem: Problem, word: str) -> bool:
    return word in (problem.device, problem.op.library, arch.load(problem.device).target) or all(
        word in group for group in problem.groups
    )


def leave_out(chosen: Sequence[Problem], known: Mapping[str, float], word: str) -> dict[str, float]:
    """Scores of what `word` names, predicted by a fit to the others, and that fit.

    Parts that nothing else was measured of are not scored: unfused attention.
    """
    used = [p for p in chosen if not _left_out(p, word)]
    left = [p for p in chosen if _left_out(p, word) and p.part != "unfused"]
    lost = _measured(chosen) - _measured(used) - {"unfused"}
    found = fit_all(used, known, PARTS, lost)
    if left:
        report(f"left out: {word}", left, found)
    return found


def _measured(chosen: Sequence[Problem]) -> set[str]:
    return {p.op.library for p in chosen} | {LATENT for p in chosen if p.op.latent}


def _ablate(chosen: Sequence[Problem], known: Mapping[str, float]) -> None:
    print("median error without a term, nothing refitted")
    for part, terms in ABLATIONS.items():
        own = [p for p in chosen if p.part == part]
        for name, zeros in {"—": {}, **terms}.items():
            error = np.median(np.abs(np.exp(logs(own, {**known, **zeros})) - 1))
            print(f"  {part:8} {name:32} {error:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--without", default="")
    parser.add_argument("--left-out", action="store_true")
    parser.add_argument("--folds", action="store_true")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    chosen = problems(given.folder)
    start = common.starting(FAMILY)
    report("before", chosen, start)
    for word in words(chosen) if given.left_out else ():
        leave_out(chosen, start, word)
    if given.without:
        known = leave_out(chosen, start, given.without)
    else:
        known = fit_all(chosen, start, lost=FITTED - _measured(chosen))
        report("in sample", chosen, known)
    if given.folds:
        print("random fifths of the shapes left out")
        folds(chosen, start)
    if given.ablate:
        _ablate(chosen, known)
    for name, value in known.items():
        if value != start[name]:
            print(f"{name} = {value:.3g} (was {start[name]:.3g})")
    if given.write:
        common.write(FAMILY, {n: value for n, value in known.items() if value != start[n]})


if __name__ == "__main__":
    main()
