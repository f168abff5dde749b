"""Predictions from code of a Triton product beside a measured sweep of its settings (MI300X).

    python -m calibration.triton_gemm DATA [--waves-per-eu 0] [--print]

The sweep is ROCm/tritonBLAS's (`results/autoresearch/kloop_sweep.json` in `gemm_published`): tiles,
warps, `kpack` and `matrix_instr_nonkdim` of a persistent kernel, 12288³ and 16384³ in bf16. Its
kernel takes tiles from counters in memory; the one here has the same loop over K and takes every
304th tile. The compiler matters: those of four warps spend their time in copies between
accumulation and vector registers, which Triton 3.9 no longer writes; run it with the Triton of that
time (3.6). Rows that another process disturbed, several times slower than their neighbours, are
left out of the error (`DISTURBED`).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from wavecast import arch
from wavecast.perfmodel.launches import launch_timing
from wavecast.perfmodel.static import profile_of_code
from wavecast.pipeline.explain.reading import read_launch

DEVICE: Final = arch.load("mi300x")
PROGRAMS: Final = 304
DISTURBED: Final = 2.2
"""Measured over predicted from which on a row counts as disturbed."""
_SETTING: Final = re.compile(
    r"all_results (\d+)x(\d+)x(\d+) GM(\d+) warps(\d+) wpe(\d+) kpack(\d+) mfma(\d+) cachenone"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One setting: sizes of the tile, rows of tiles in a group, options of the compiler."""

    size: int
    tile: tuple[int, int, int]
    group: int
    warps: int
    waves_per_eu: int
    kpack: int
    instruction: int
    seconds: float


def rows(data: Path) -> Iterator[Row]:
    """The settings without cache modifiers."""
    frame = pd.read_parquet(data / "gemm_published.parquet")
    for record in frame.to_dict("records"):
        found = _SETTING.fullmatch(str(record["kernel"]))
        if found and "kloop_sweep" in str(record["source_path"]):
            m, n, k, group, warps, waves, kpack, instruction = map(int, found.groups())
            seconds = float(record["time_us"]) * 1e-6
            yield Row(record["M"], (m, n, k), group, warps, waves, kpack, instruction, seconds)


def predict(row: Row) -> float:
    """Predicted seconds. Raises WavecastError as captures and predictions do."""
    import torch

    from calibration.triton_kernels import persistent_product
    from wavecast.runtimes.triton import capture_call

    a, b, c = (torch.empty((row.size, row.size), dtype=torch.bfloat16) for _ in range(3))
    m, n, k = row.tile
    options: dict[str, Any] = {
        "BLOCK_M": m,
        "BLOCK_N": n,
        "BLOCK_K": k,
        "GROUP": row.group,
        "PROGRAMS": PROGRAMS,
        "DIES": DEVICE.dies,
        "PER_DIE": -(-(-(-row.size // m) * -(-row.size // n)) // DEVICE.dies),
        "num_warps": row.warps,
        "num_stages": 2,
        "waves_per_eu": row.waves_per_eu,
        "kpack": row.kpack,
        "matrix_instr_nonkdim": row.instruction,
    }
    arguments = (a, b, c, *[row.size] * 6)
    (launch,) = capture_call(
        persistent_product, arguments, options, grid=(PROGRAMS,), device=DEVICE
    )
    read = read_launch(launch, DEVICE)
    profile = profile_of_code(read.launch, read.analysis, read.kernel, DEVICE)  # type: ignore[arg-type]
    return launch_timing(profile, DEVICE).seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--waves-per-eu", type=int, default=0)
    parser.add_argument("--print", action="store_true", help="every setting")
    given = parser.parse_args()
    chosen = [row for row in rows(given.data) if row.waves_per_eu == given.waves_per_eu]
    predicted = np.array([predict(row) for row in chosen])
    measured = np.array([row.seconds for row in chosen])
    if given.print:
        for row, seconds in zip(chosen, predicted, strict=True):
            print(row, f"predicted {seconds * 1e3:.2f} ms, {seconds / row.seconds:.2f}")
    for size in sorted({row.size for row in chosen}):
        part = np.array([row.size == size for row in chosen]) & (measured < DISTURBED * predicted)
        ours, theirs = predicted[part], measured[part]
        ranks = np.corrcoef(ours.argsort().argsort(), theirs.argsort().argsort())
        print(
            f"{size}: {part.sum()} settings, "
            f"median error {np.median(np.abs(ours / theirs - 1)):.1%}, "
            f"bias {np.median(ours / theirs) - 1:+.1%}, rank correlation "
            f"{ranks[0, 1]:.2f}, the setting predicted fastest takes "
            f"{theirs[ours.argmin()] / theirs.min():.2f} of the fastest"
        )


if __name__ == "__main__":
    main()
