"""Operators on sizes nobody chose: `python -m tests.kernels.varied [--check] [--seed S] [--count N]
[--target T]… [NAME…]`.

Each trial takes a case of an operator's description and changes some of its sizes. What the
operator refuses with an ArgumentError is counted, what its inputs or its reference cannot make is
passed over; anything else that raises or differs is printed. Exit code 1 when there is any.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from typing import Any

from tests.kernels.test_operators import TARGETS
from wavecast import ops
from wavecast.errors import ArgumentError
from wavecast.frameworks.torch.verify import results, to_float64, verify
from wavecast.kernels.operator import Operator
from wavecast.launch.inputs import Make

_LARGEST = 2**18
"""Elements of a tensor that a trial may have: more are emulated too long."""


def varied(operator: Operator, choose: random.Random) -> dict[str, Any]:
    """A case with some sizes changed, at least one of them."""
    cases = (*operator.cases, *operator.thorough)
    sizes = dict(choose.choice(cases))
    names = choose.sample(sorted(sizes), choose.randint(1, len(sizes)))
    for name in names:
        sizes[name] = _changed(sizes[name], [case[name] for case in cases if name in case], choose)
    return sizes


def _changed(value: Any, others: list[Any], choose: random.Random) -> Any:
    if isinstance(value, bool):
        return choose.random() < 0.5
    if isinstance(value, int) and value > 0:
        near = [value - 1, value + 1, value // 2, value * 2, choose.randint(1, 2 * value)]
        return max(0, choose.choice([*near, *others]))
    return choose.choice(others)


def tried(operator: Operator, sizes: dict[str, Any], target: str, check: bool) -> tuple[str, ...]:
    """What is wrong with a call. Raises ArgumentError where it is refused, and _Impossible where
    there is no such call."""
    try:
        given = operator.inputs(Make(0), **sizes)
        if any(getattr(value, "numel", int)() > _LARGEST for value in given.values()):
            raise _Impossible
        results(operator.reference, to_float64(operator, given), operator.mutates)
    except Exception as error:
        raise _Impossible from error
    return verify(operator, sizes, target, check=check).problems


class _Impossible(Exception):
    pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    choose = random.Random(given.seed)
    counts: Counter[str] = Counter()
    for number in range(given.count):
        operator = ops.operator(choose.choice(given.names or ops.names()))
        target = choose.choice(given.target or TARGETS)
        sizes = varied(operator, choose)
        started = time.perf_counter()
        if operator.targets and target not in operator.targets:
            continue
        try:
            problems = tried(operator, sizes, target, given.check)
        except _Impossible:
            counts["impossible"] += 1
            continue
        except ArgumentError:
            counts["refused"] += 1
            continue
        except Exception as error:  # of any kind: the others still run
            problems = (f"{type(error).__name__}: {error}"[:600],)
        counts["wrong" if problems else "right"] += 1
        if problems:
            seconds = time.perf_counter() - started
            print(f"{number}: {target} {operator.name} {sizes} ({seconds:.1f} s)", flush=True)
            for problem in problems:
                print(f"    {problem}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
