"""A search in several processes from a script without a guard."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import wavecast

report = wavecast.model(
    "Llama-3.1-8B", "8xMI300X", dtype="fp8", search="tp=4|8,batch=4", jobs=2, requests=8
)
print("ranked", len(report.search.ranked))
"""


def test_processes_do_not_import_the_script(tmp_path: Path) -> None:
    script = tmp_path / "search.py"
    script.write_text(SCRIPT)
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert ended.stdout.count("ranked 2") == 1, ended.stderr
