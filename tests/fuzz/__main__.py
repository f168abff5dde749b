"""`python -m tests.fuzz --seconds 120 --seed 1`: damage inputs until the time is up.

Prints, for every failure, the seed that makes it again and a minimal input. Exit code 1 when there
was one.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from tests.fuzz import limits
from tests.fuzz.kinds import Kind, Seeds, kinds, outcome, quiet_environment
from tests.fuzz.minimize import minimize

SLOW_SECONDS = 20.0


def main() -> int:
    """Fuzz every kind in turn for its share of the time."""
    options = _options()
    warnings.simplefilter("error")
    every = kinds(Seeds(options.corpus))
    chosen = {name: every[name] for name in options.kinds or every}
    failed = False
    with quiet_environment():
        for name, kind in chosen.items():
            failed |= _fuzz(name, kind, options, options.seconds / len(chosen))
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all kinds together")
    parser.add_argument("--seed", type=int, default=1, help="number of the first case")
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="at most so many per kind")
    parser.add_argument("--corpus", type=Path, help="a folder of .amdgcn, .hsaco … to start from")
    parser.add_argument("--keep", type=Path, help="a folder for minimal failing inputs")
    parser.add_argument("kinds", nargs="*", help=", ".join(kinds(Seeds())))
    return parser.parse_args()


def _fuzz(name: str, kind: Kind, options: argparse.Namespace, seconds: float) -> bool:
    start, slowest, counts = time.monotonic(), (0.0, 0), Counter[str]()
    failures: dict[str, int] = {}
    number = options.seed
    while time.monotonic() - start < seconds and number < options.seed + options.cases:
        seed = f"{name} {number}"
        data = kind.make(random.Random(seed))
        begun = time.monotonic()
        where = _attempt(kind, data, seed, counts)
        slowest = max(slowest, (time.monotonic() - begun, number))
        if where and where not in failures:
            failures[where] = number
            _report(name, kind, data, seed, where, options.keep)
        number += 1
    summary = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    print(f"{name}: {number - options.seed} cases: {summary}; slowest {slowest[0]:.2f} s "
          f"(seed {slowest[1]})", flush=True)  # fmt: skip
    return bool(failures)


def _attempt(kind: Kind, data: bytes, seed: str, counts: Counter[str] | None = None) -> str:
    """ "" when all is well, else what was raised and where, as one line."""
    try:
        with limits.seconds(SLOW_SECONDS):
            found = outcome(kind, data, seed)
    except limits.TooLong:
        found, where = "too long", f"ran longer than {SLOW_SECONDS:.0f} s"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        found, where = "failed", f"{type(error).__name__} at {last.filename}:{last.lineno}"
    else:
        where = ""
    if counts is not None:
        counts[found] += 1
    return where


def _report(name: str, kind: Kind, data: bytes, seed: str, where: str, keep: Path | None) -> None:
    small = data
    if "longer" not in where:
        small = minimize(data, lambda smaller: _attempt(kind, smaller, seed) == where)
    print(f"FAILED {seed}: {where} ({len(data)} bytes, minimal {len(small)})", flush=True)
    if len(small) < 3000:
        print("  " + small.decode("utf-8", "backslashreplace").replace("\n", "\n  "), flush=True)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{seed.replace(' ', '-')}{kind.suffix}").write_bytes(small)


if __name__ == "__main__":
    sys.exit(main())
