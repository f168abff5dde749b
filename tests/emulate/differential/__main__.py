"""Command line: workers run seeds, a parent restarts those that a compiler takes down."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.emulate.differential.run import attempt, program_of, report

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
_SILENCE = 120
"""Seconds without a line after which a worker is taken to hang."""


def main() -> int:
    options = _options()
    if options.worker:
        return _work(options.target[0], options.seed, options.count, options.failures)
    deadline = time.monotonic() + options.seconds
    failed = False
    totals = {target: Counter[str]() for target in options.target}
    refused: Counter[str] = Counter()
    seed = options.seed
    while time.monotonic() < deadline and seed < options.seed + options.count:
        step = min(25, options.seed + options.count - seed)
        for target in options.target:
            failed |= _supervise(target, seed, step, options.failures, totals[target], refused)
        seed += step
    for target, counts in totals.items():
        print(f"{target}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    for text, count in refused.most_common():
        print(f"refused {count}: {text}")
    print(f"seeds {options.seed} to {seed - 1}")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.emulate.differential")
    parser.add_argument("--target", action="append", choices=(*TARGETS, "gfx1250"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1 << 40)
    parser.add_argument("--failures", type=Path, default=Path("differential-failures"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.target = options.target or list(TARGETS)
    return options


def _supervise(
    target: str, seed: int, count: int, failures: Path, totals: Counter[str], refused: Counter[str]
) -> bool:
    """Run seeds in a process of their own; go on behind one that ends or stops it."""
    end, failed = seed + count, False
    while seed < end:
        command = [sys.executable, "-m", "tests.emulate.differential", "--worker"]
        command += ["--target", target, "--seed", str(seed), "--count", str(end - seed)]
        command += ["--failures", str(failures)]
        hung = ""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SILENCE + count)
            output, errors = done.stdout, done.stderr
        except subprocess.TimeoutExpired as error:
            output, errors, hung = _text(error.stdout), "", "hung"
        for line in output.splitlines():
            _, kind, text = line.split("\t", 2)
            totals[kind] += 1
            seed += 1
            if kind == "unsupported":
                refused[f"{target}: {text}"] += 1
            elif kind not in ("same", "uncompiled"):
                failed = True
                print(f"{target} seed {seed - 1}: {kind}: {text}", flush=True)
        if seed < end:
            last = errors.strip().splitlines()[-1:] or [hung or "no message"]
            print(f"{target} seed {seed}: the process ended: {last[0]}", flush=True)
            totals["crashed"] += 1
            seed += 1
    return failed


def _text(output: bytes | str | None) -> str:
    return output.decode() if isinstance(output, bytes) else output or ""


def _work(target: str, seed: int, count: int, failures: Path) -> int:
    for number in range(seed, seed + count):
        outcome = attempt(program_of(number, target), target, number)
        text = " ".join(outcome.text.split())
        if outcome.failed:
            failures.mkdir(parents=True, exist_ok=True)
            path = failures / f"{target}-{number}.txt"
            path.write_text(report(number, target, outcome), encoding="utf-8")
            text += f" ({path})"
        print(f"{number}\t{outcome.kind}\t{text}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
