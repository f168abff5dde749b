"""What other decisions of the compiler, and another order of instructions, gain: a table.

    python benchmarks/lab_table.py FOLDER [-k REGEX] [--arch gfx90a,gfx942,gfx950,gfx1100,gfx1201]
        [--jobs 1] [--work 6] [--verify 2] [--seconds 3600] [--show]

Runs `wavecast lab tune` and `wavecast lab schedule` on every kernel of `lab_kernels.py` and prints
Markdown. Results stay in FOLDER: a run that ends early, or after `--seconds`, goes on when it is
started again; `--show` prints what is there. Kernels of other projects are left out, with a note,
where their packages are not installed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lab_kernels import KERNELS, TableKernel

from wavecast import files

SCRIPT = Path(__file__).with_name("lab_kernels.py")
TARGETS = "gfx90a,gfx942,gfx950,gfx1100,gfx1201"
TAKEN = 0.05
"""Settings that save at least this part are shown."""


def main() -> None:
    parser = argparse.ArgumentParser(description="What the laboratory gains.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("-k", "--kernels", default="", help="regular expression on rows")
    parser.add_argument("--arch", default=TARGETS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--work", type=int, default=6, help="of the scheduler")
    parser.add_argument("--verify", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after these")
    parser.add_argument("--show", action="store_true", help="run nothing")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    chosen = [kernel for name, kernel in KERNELS.items() if re.search(given.kernels, name)]
    end = time.monotonic() + given.seconds
    for kernel in [] if given.show else chosen:
        for target in given.arch.split(","):
            for verb, options in _verbs(given):
                _run(given.folder, kernel, target, verb, options, end - time.monotonic())
    print(_table(given.folder, chosen, given.arch.split(",")))


def _verbs(given: argparse.Namespace) -> list[tuple[str, list[str]]]:
    tune = ["--jobs", str(given.jobs), "--verify", str(given.verify), "--resume"]
    return [("tune", tune), ("schedule", ["--work", str(given.work)])]


def _path(folder: Path, kernel: TableKernel, target: str, verb: str) -> Path:
    return folder / f"{kernel.name.replace(' ', '.')}.{target}.{verb}.json"


def _run(
    folder: Path, kernel: TableKernel, target: str, verb: str, options: Sequence[str], left: float
) -> None:
    """Run a verb of the laboratory on a row and keep its document, or why there is none."""
    path = _path(folder, kernel, target, verb)
    if path.exists() or left <= 0:
        return
    store = path.with_suffix(".results")
    keeping = ["-o", str(store)] if verb == "tune" else ["--journal", str(store)]
    command = [
        sys.executable, "-m", "wavecast", "lab", verb, str(SCRIPT), "--arch", target,
        "-k", kernel.kernels, *options, *keeping, "--format", "json", "--", *kernel.name.split(),
    ]  # fmt: skip
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return
    text = done.stdout
    if done.returncode not in (0, 1) or not text.startswith("{"):
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        none = "kernels" if "no loop that matters" in said[-1] else "refused"
        text = json.dumps({none: [] if none == "kernels" else said[-1]})
    print(f"{kernel.name} {target} {verb}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    files.write_atomic(path, text, durable=True)


def _table(folder: Path, kernels: Sequence[TableKernel], targets: Sequence[str]) -> str:
    """Two tables: the part of the time of all launches that is saved per kernel and target, and the
    best settings of launches; then what was discarded."""
    lines = [
        f"| kernel | of | {' | '.join(f'{target} flags | order' for target in targets)} |",
        f"|---|---|{'---|---|' * len(targets)}",
    ]
    best = ["| kernel | target | saved of the launch | setting |", "|---|---|---|---|"]
    settings = wrong_settings = orders = wrong_orders = 0
    for kernel in kernels:
        cells = []
        for target in targets:
            tuned = _document(_path(folder, kernel, target, "tune")).get("entries")
            ordered = _document(_path(folder, kernel, target, "schedule")).get("kernels")
            cells += [_saved_by_flags(tuned), _saved_by_order(ordered)]
            for entry in tuned or ():
                executed = [row for row in entry["rows"] if row["status"]]
                settings += sum(row["status"] == "same" for row in executed)
                wrong_settings += sum(row["status"].startswith("differs") for row in executed)
                saved = _entry(entry)
                if saved >= TAKEN:
                    shown = ", ".join(f"{key}={value}" for key, value in entry["best"].items())
                    best.append(f"| {kernel.name} | {target} | {saved:.1%} | {shown} |")
            orders += sum(one["after"] is not None for one in ordered or ())
            wrong_orders += sum(bool(one["wrong"]) for one in ordered or ())
        lines.append(f"| {kernel.name} | {kernel.origin} | {' | '.join(cells)} |")
    notes = (
        f"Settings executed next to the original: {settings} with the same results, "
        f"{wrong_settings} discarded. Orders executed: {orders}, {wrong_orders} with other results."
    )
    return "\n".join([*lines, "", *best, "", notes])


def _document(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _saved_by_flags(entries: Sequence[dict[str, Any]] | None) -> str:
    """The part of the time of all launches that the best settings save; "" for no result."""
    if not entries:
        return ""
    times = [_seconds(entry["original"]) for entry in entries]
    saved = sum(time * _entry(entry) for time, entry in zip(times, entries, strict=True))
    return f"{saved / sum(times):.1%}"


def _seconds(row: dict[str, Any]) -> float:
    return row["sampled_seconds"] or row["figures"]["seconds"] or 0.0


def _entry(entry: dict[str, Any]) -> float:
    """What the best setting of a launch saves, 0 where none does."""
    row = next((row for row in entry["rows"] if row["setting"] == entry["best"]), None)
    if row is None:
        return 0.0
    return row["saved"] if row["sampled_saved"] is None else row["sampled_saved"]


def _saved_by_order(kernels: Sequence[dict[str, Any]] | None) -> str:
    """The same for the best orders; "–" for kernels without a loop that matters."""
    if kernels is None:
        return ""
    times = [one["before"]["seconds"] or 0.0 for one in kernels]
    saved = sum(time * one["saved"] for time, one in zip(times, kernels, strict=True))
    return f"{saved / sum(times):.1%}" if kernels else "–"


if __name__ == "__main__":
    main()
