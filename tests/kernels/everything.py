"""All operators, cases and targets: `python -m tests.kernels.everything [--check] [--target T]…
[--cases N] [NAME…]`. Prints what is wrong, what spills, and a count; exit code 1 when anything is
wrong. With `--cases`, only the first N cases of an operator."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.kernels.test_operators import TARGETS
from wavecast import ops
from wavecast.frameworks.torch.verify import verify


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--cases", type=int)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for name in given.names or ops.names():
        operator = ops.operator(name)
        for target in given.target or TARGETS:
            if operator.targets and target not in operator.targets:
                continue
            for sizes in (*operator.cases, *operator.thorough)[: given.cases]:
                started = time.perf_counter()
                try:
                    verdict = verify(operator, sizes, target, check=given.check)
                    problems = list(verdict.problems)
                    spills = [d for d in verdict.decisions if d.spills]
                except Exception as error:  # of any kind: the others still run
                    problems, spills = [f"{type(error).__name__}: {error}"[:400]], []
                counts["wrong" if problems else "right"] += 1
                counts["spilling"] += bool(spills)
                seconds = time.perf_counter() - started
                if problems or spills or given.verbose:
                    print(f"{target} {operator.describe(sizes)} ({seconds:.1f} s)", flush=True)
                for problem in problems:
                    print(f"    {problem}", flush=True)
                for decision in spills:
                    print(f"    {decision.spec.name} spills {decision.spills}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
