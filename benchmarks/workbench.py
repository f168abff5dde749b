"""From an edit to the answer of the workbench, and to what its advice saves: seconds of its server.

    python -m benchmarks.workbench [FILE] [--arch gfx942,gfx1201]

Every version has another constant, so Triton compiles it. The reference is a new process of
`wavecast explain` on such versions.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wavecast.servers.workbench.engine import WorkbenchEngine, private_cache


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=Path("examples/matmul.py"))
    parser.add_argument("--arch", default="gfx942,gfx1201")
    parser.add_argument("--constant", default='"GROUP": 8', help="text that each version changes")
    given = parser.parse_args()
    name, _, value = given.constant.rpartition(" ")
    text = given.file.read_text()
    if given.constant not in text:
        parser.error(f"{given.file} does not contain {given.constant!r}")
    versions = [text.replace(given.constant, f"{name} {int(value) + n}") for n in range(1, 7)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / given.file.name
        engine = WorkbenchEngine(private_cache(Path(folder)))
        question = {"question": "explain", "path": str(path), "arch": given.arch, "timeout": 60}
        edits, advised, commands = [], [], []
        for version in versions:
            path.write_text(version)
            start = time.perf_counter()
            engine.explain(question)
            edits.append(time.perf_counter() - start)
            engine.ask({"question": "advice"})
            advised.append(time.perf_counter() - start)
        engine.close()
        for version in versions[:3]:
            path.write_text(version + "\n")
            start = time.perf_counter()
            command = [sys.executable, "-m", "wavecast", "explain", str(path), "-a", given.arch]
            subprocess.run([*command, "-f", "json"], check=True, capture_output=True)
            commands.append(time.perf_counter() - start)
    print(
        f"first version {edits[0]:.2f} s, then {statistics.median(edits[1:]):.2f} s (median of 5)"
    )
    print(f"with what the advice saves: {statistics.median(advised[1:]):.2f} s (median of 5)")
    print(f"wavecast explain in a new process: {statistics.median(commands):.2f} s (median of 3)")


if __name__ == "__main__":
    main()
