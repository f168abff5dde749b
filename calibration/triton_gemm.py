"""Predictions from code of a Triton product beside measured sweeps of its settings (MI300X).

    python -m calibration.triton_gemm DATA [--waves-per-eu 0] [--print]

The sweeps are ROCm/tritonBLAS's (`results/autoresearch` in `gemm_published`): tiles, warps, `kpack`
and `matrix_instr_nonkdim` of a persistent kernel in bf16 (`kloop_sweep.json`: 12288³ and 16384³),
and the same of one tile with numbers of warps and stages, 4096³ to 16384³ (`phase4_mfma.json`,
`phase5*.json`). Its kernel takes tiles from counters in memory; the one here has the same loop over
K and takes every 304th tile. A file is a session of one GPU, whose clock at the power limit differs
from day to day and from GPU to GPU: hipBLASLt at 16384³ takes 5 % longer in one file than in
another. The errors are given per file, with and without its median.

The compiler matters: kernels of four warps spend their time in copies between accumulation and
vector registers, which Triton 3.9 no longer writes; run it with the Triton of that time (3.6). Rows
that another process disturbed, several times slower than their neighbours, are left out of the
error (`DISTURBED`), and so are cache modifiers, which no prediction from code knows.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from wavecast import arch
from wavecast.perfmodel.launches import launch_timing
from wavecast.perfmodel.static import profile_of_code
from wavecast.pipeline.explain.reading import read_launch

Array = np.ndarray[Any, Any]

_FEW: Final = 4
DEVICE: Final = arch.load("mi300x")
PROGRAMS: Final = 304
DISTURBED: Final = 2.2
"""Measured over predicted from which on a row counts as disturbed."""
_SWEEP: Final = re.compile(
    r"all_results (\d+)x(\d+)x(\d+) GM(\d+) warps(\d+) wpe(\d+) kpack(\d+) mfma(\d+) cachenone"
)
_OPTION: Final = re.compile(r"(mfma|kp|gm|wpe=?|warps=|w|BK=|(?:num_)?stages=)(\d+)")
_FILES: Final = ("phase4_mfma", "phase5b_results", "phase5c_results")
_FIELDS: Final = {
    "mfma": "instruction", "kp": "kpack", "gm": "group", "wpe": "waves_per_eu", "w": "warps",
    "warps": "warps", "stages": "stages", "num_stages": "stages",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One setting: sizes of the tile, rows of tiles in a group, options of the compiler."""

    file: str
    size: int
    seconds: float
    tile: tuple[int, int, int] = (256, 256, 64)
    group: int = 4
    warps: int = 8
    waves_per_eu: int = 0
    kpack: int = 1
    instruction: int = 16
    stages: int = 2


def rows(data: Path) -> Iterator[Row]:
    """The settings without cache modifiers."""
    frame = pd.read_parquet(data / "gemm_published.parquet")
    for record in frame[frame["source_repo"] == "ROCm/tritonBLAS"].to_dict("records"):
        name, file = str(record["kernel"]), Path(str(record["source_path"])).stem
        measured = file, int(record["M"]), float(record["time_us"]) * 1e-6
        sweep = _SWEEP.fullmatch(name)
        if sweep and file == "kloop_sweep":
            m, n, k, group, warps, waves, kpack, instruction = map(int, sweep.groups())
            yield Row(*measured, (m, n, k), group, warps, waves, kpack, instruction)
        elif file in _FILES:
            yield from _of_one_tile(Row(*measured), name)


def _of_one_tile(row: Row, name: str) -> Iterator[Row]:
    """The setting that a row of the files with one tile names; none for how tiles are shared."""
    options = {key.rstrip("="): int(number) for key, number in _OPTION.findall(name)}
    if not options or ("split" in name and "BK" not in options):
        return
    depth = options.pop("BK", row.tile[2])
    changes = {_FIELDS[key]: number for key, number in options.items()}
    yield replace(row, tile=(*row.tile[:2], depth), **changes)


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
        "num_stages": row.stages,
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
    for file in dict.fromkeys(row.file for row in chosen):
        of_file = np.array([row.file == file for row in chosen])
        part = of_file & (measured < DISTURBED * predicted)
        ratios = predicted[part] / measured[part]
        print(
            f"{file}: {part.sum()} of {of_file.sum()} rows, median error "
            f"{np.median(np.abs(ratios - 1)):.1%}, bias {np.median(ratios) - 1:+.1%}, median error "
            f"without it {np.median(np.abs(ratios / np.median(ratios) - 1)):.1%}"
        )
        for size in sorted({row.size for row in chosen}):
            same = part & np.array([row.size == size for row in chosen])
            if same.sum() > _FEW:
                _print_order(size, predicted[same], measured[same])


def _print_order(size: int, predicted: Array, measured: Array) -> None:
    ranks = np.corrcoef(predicted.argsort().argsort(), measured.argsort().argsort())
    regret = measured[predicted.argmin()] / measured.min()
    print(
        f"  {size}: {len(predicted)} settings, rank correlation {ranks[0, 1]:.2f}, the setting "
        f"predicted fastest takes {regret:.2f} of the fastest"
    )


if __name__ == "__main__":
    main()
