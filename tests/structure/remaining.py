"""What remains of each thing that the structure tests count: `remaining.json`, which only shrinks.

    python -m tests.structure.remaining     # after a change: write the smaller counts

The tests compare exactly, so a count that has become smaller must be written, and a larger one
fails. The command refuses a larger total of any table; within one it accepts a renamed file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")

Counts = Mapping[str, int]


def read() -> dict[str, dict[str, int]]:
    """Table -> what is counted -> how often it remains."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def check(table: str, found: Counts) -> None:
    """Assert that `found` is exactly what the table has."""
    known = read()[table]
    more = {name: count for name, count in found.items() if count > known.get(name, 0)}
    assert not more, (
        f"{table}: new ones in {more}, known are { {n: known.get(n, 0) for n in more} }"
    )
    assert found == known, "fewer remain: run python -m tests.structure.remaining"


def main() -> int:
    """Write the counts of the working tree; 1 if a total has grown."""
    from tests.structure.sources import ROOT
    from tests.structure.test_class_names import repeated_names
    from tests.structure.test_targets import counted as targets
    from tests.structure.words import counted as words

    found = {
        "target comparisons": targets(ROOT),
        "classes of one name": {name: len(where) for name, where in repeated_names(ROOT).items()},
        "banned words": words(),
    }
    known = read() if FILE.exists() else found
    grown = [name for name in found if sum(found[name].values()) > sum(known[name].values())]
    if grown:
        print(f"more than before: {', '.join(grown)}", file=sys.stderr)
        return 1
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
