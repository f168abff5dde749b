#!/usr/bin/env bash
# PyTorch's trace files do not escape the names of ranges: some change, some make the file invalid JSON.
#
# Expected: names are escaped. record_function takes any string.
# Happens: Kineto's writer puts "/" for a backslash, leaves a line feed out, calls a name with a tab "unknown", and
#   copies a double quote. The execution trace (Chakra) copies everything: a quote, a line feed or "\d" makes
#   it invalid, "\b" is read as a backspace. The file is written without an error; only the reader fails.
# Version: torch 2.13.0.
# Seen: a"b: "Expecting ',' delimiter" in both files; a\b: "a/b" in one, "a" and a backspace in the other.
# Why it matters: ranges are often named after files, shapes or a repr. One such name makes the trace of a long run
#   unreadable for Perfetto, HTA, replayers and simulators, and names no longer match those of the source.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$work"
KINETO_LOG_LEVEL=99 venv/bin/python - <<'PYTHON'
import json

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function


def kineto(name: str) -> None:
    with profile(activities=[ProfilerActivity.CPU]) as profiled, record_function(name):
        torch.ones(3)
    profiled.export_chrome_trace("trace.json")


def execution(name: str) -> None:
    observer = ExecutionTraceObserver()
    observer.register_callback("trace.json")
    observer.start()
    with record_function(name):
        torch.ones(3)
    observer.stop()
    observer.unregister_callback()


def read_back(record, name: str) -> str:
    record(name)
    try:
        with open("trace.json") as file:
            trace = json.load(file)
    except json.JSONDecodeError as error:
        return error.msg
    entries = trace.get("traceEvents", trace.get("nodes"))
    (kept,) = (entry["name"] for entry in entries if entry.get("cat", "") == "user_annotation" or is_range(entry))
    return repr(kept)


def is_range(node: dict) -> bool:
    """Whether a node of an execution trace is a range of the user."""
    return "attrs" in node and not node["name"].startswith(("aten::", "["))


print("torch", torch.__version__)
invalid = "Expecting ',' delimiter"
for name, *expected in (
    ("ab", "'ab'", "'ab'"),
    ('a"b', invalid, invalid),
    ("a\\b", "'a/b'", "'a\\x08'"),
    ("a\\d", "'a/d'", "Invalid \\escape"),
    ("a\nb", "'ab'", "Invalid control character at"),
    ("a\tb", "'unknown'", "Invalid control character at"),
):
    seen = [read_back(kineto, name), read_back(execution, name)]
    print(f"{name!r:8} profiler: {seen[0]:26} execution trace: {seen[1]}")
    assert seen == expected, (seen, expected)
PYTHON
echo "as recorded"
