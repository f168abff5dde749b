"""The emulator's speed, of this tree and of a commit in turns, as ratios with their spread.

    python benchmarks/emulate_speed.py [--against COMMIT] [-k REGEX] [--rounds 15] [--markdown]

Every case (`emulate_cases.py`) runs on one thread: this tree, the commit, and numpy's or PyTorch's
CPU take turns, each in a process of its own; caches of the trees are empty at first. Printed are
medians of processor time in milliseconds, the ratio of the reference to this tree and of the commit
to this tree (median over the rounds, and the middle half of them), and their geometric means per
group. Ratios above 1 mean that this tree is faster. The first lines name the host, the features
that native code uses, and the kernel of numpy's BLAS, which chooses it by the host: what the
environment says of OpenBLAS is taken away.

Without `--against` only the reference runs beside this tree. `WAVECAST_HOST_CPU` limits native
code of the emulator to fewer features; `--blas-core Haswell` does the same to numpy (AVX2).
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from emulate_cases import BLAS, CASES

from wavecast.compile.processor import VARIABLE, processor

HERE = Path(__file__).resolve().parent
REFERENCE = "reference"
WARM_SECONDS = 4.0
"""Of calls before those that count."""


class Tree:
    """A process that makes calls with the package of one tree."""

    def __init__(self, root: Path, cache: Path, blas_core: str = "") -> None:
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("OPENBLAS")},
            "PYTHONPATH": str(root),
            "WAVECAST_CACHE_DIR": str(cache),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        if blas_core:
            environment["OPENBLAS_CORETYPE"] = blas_core
        command = [sys.executable, str(HERE / "emulate_cases.py")]
        self._process = subprocess.Popen(
            command,
            env=environment,
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def blas(self) -> str:
        """numpy's release, its BLAS, and the kernel that this chose."""
        return self._answer(BLAS)

    def seconds(self, name: str, which: str) -> float:
        """Processor time of one call. Raises RuntimeError with what the process says."""
        return float(self._answer(f"{name}\t{which}"))

    def _answer(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer or answer.startswith("error"):
            raise RuntimeError(answer.strip() or "the process ended")
        return answer.strip()

    def warm(self, name: str) -> None:
        """Call until code that is slow to run has run long enough to be compiled well."""
        start = time.perf_counter()
        while time.perf_counter() - start < WARM_SECONDS:
            self.seconds(name, "emulated")

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class CaseTimes:
    """Seconds of every round, by who was called."""

    name: str
    rounds: dict[str, list[float]]

    def milliseconds(self, who: str) -> float:
        """Median."""
        return 1e3 * statistics.median(self.rounds[who])

    def ratio(self, who: str) -> tuple[float, float, float]:
        """Median and quartiles of the time of `who` over that of this tree, round by round."""
        pairs = zip(self.rounds[who], self.rounds["this"], strict=True)
        ratios = [other / this for other, this in pairs]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return middle, low, high


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A temporary work tree of a commit of this repository."""
    root = HERE.parent
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree"
        add = ["git", "worktree", "add", "--detach", str(path), commit]
        subprocess.run(add, cwd=root, check=True, capture_output=True)
        try:
            yield path
        finally:
            remove = ["git", "worktree", "remove", "--force", str(path)]
            subprocess.run(remove, cwd=root, check=True, capture_output=True)


def measure(name: str, trees: dict[str, Tree], rounds: int) -> CaseTimes:
    """Rounds in which the trees and the reference take turns."""
    for who, tree in trees.items():
        if who == REFERENCE:
            tree.seconds(name, who)
        else:
            tree.warm(name)
    times: dict[str, list[float]] = {who: [] for who in trees}
    for _ in range(rounds):
        for who, tree in trees.items():
            which = who if who == REFERENCE else "emulated"
            times[who].append(tree.seconds(name, which))
    return CaseTimes(name, times)


def host_lines() -> list[str]:
    """The host, in words."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        match = re.search(r"model name\s*: (.*)", info.read_text())
        model = match[1] if match is not None else model
    cpu = processor()
    wide = sorted(flag for flag in cpu.flags if flag.startswith(("avx512", "avx2", "amx", "fma")))
    return [
        f"host: {model}, LLVM {cpu.cpu}, {os.cpu_count()} cores, Linux {platform.release()}",
        f"native code: strips of {cpu.strip_lanes} lanes; {' '.join(wide) or 'no vectors'}"
        + (f" ({VARIABLE}={os.environ[VARIABLE]})" if os.environ.get(VARIABLE) else ""),
    ]


def row(times: CaseTimes, against: bool, markdown: bool) -> str:
    """A line of the table."""
    columns = [times.name, f"{times.milliseconds('this'):.1f}"]
    for who in (REFERENCE, "commit") if against else (REFERENCE,):
        middle, low, high = times.ratio(who)
        columns += [f"{times.milliseconds(who):.1f}", f"{middle:.2f}", f"{low:.2f} – {high:.2f}"]
    if markdown:
        return "| " + " | ".join(columns) + " |"
    first, *rest = columns
    return f"{first:42}" + "".join(f"{column:>14}" for column in rest)


def head(against: bool, markdown: bool) -> str:
    """The head of the table."""
    columns = ["case", "ms", "reference, ms", "ratio", "quartiles"]
    columns += ["commit, ms", "ratio", "quartiles"] if against else []
    if markdown:
        return "| " + " | ".join(columns) + " |\n|" + "---|" * len(columns)
    first, *rest = columns
    return f"{first:42}" + "".join(f"{column:>14}" for column in rest)


def means(table: list[CaseTimes], against: bool) -> Iterator[str]:
    """Geometric means of the ratios per group."""
    for group in dict.fromkeys(times.name.split("/")[0] for times in table):
        members = [times for times in table if times.name.startswith(f"{group}/")]
        for who in (REFERENCE, "commit") if against else (REFERENCE,):
            ratios = [times.ratio(who)[0] for times in members]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            yield (f"{group}: {len(ratios)} cases, {who} / this tree: geometric mean {mean:.2f}, "
                   f"least {min(ratios):.2f}, most {max(ratios):.2f}")  # fmt: skip


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description="The emulator's speed, against a commit.")
    options.add_argument("--against", metavar="COMMIT", help="the commit to compare with")
    options.add_argument("-k", "--pattern", default="", help="only cases whose name matches")
    options.add_argument("--blas-core", metavar="NAME", default="", help="OpenBLAS's kernel")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--markdown", action="store_true", help="a table for docs/speed.md")
    return options


def main() -> None:
    options = parser().parse_args()
    against = options.against is not None
    print("\n".join(host_lines()))
    with ExitStack() as stack:
        roots = {"this": HERE.parent, REFERENCE: HERE.parent}
        if against:
            roots["commit"] = stack.enter_context(checkout(options.against))
        trees = {}
        for who, root in roots.items():
            cache = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            trees[who] = Tree(root, cache, options.blas_core)
            stack.callback(trees[who].close)
        print(trees[REFERENCE].blas())
        print(head(against, options.markdown), flush=True)
        table = []
        for case in CASES:
            if not re.search(options.pattern, case.name):
                continue
            try:
                table.append(measure(case.name, trees, options.rounds))
            except RuntimeError as error:
                print(f"{case.name}: {error}", flush=True)
                continue
            print(row(table[-1], against, options.markdown), flush=True)
        print("\n".join(means(table, against)))


if __name__ == "__main__":
    main()
