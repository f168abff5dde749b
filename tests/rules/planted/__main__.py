"""`python -m tests.rules.planted [NAME …]`: the table of the planted kernels."""

from __future__ import annotations

import sys

from tests.rules.planted.cases import CASES
from tests.rules.planted.score import score, table


def main(names: list[str]) -> None:
    """Print the table of all kernels, or of those whose name has one of `names` in it."""
    chosen = [case for case in CASES if not names or any(name in case.name for name in names)]
    for line in table(score(case) for case in chosen):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
