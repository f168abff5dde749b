"""The floors of the package, from the bottom: the table that imports and docs/system.md follow.

python -m tests.structure.floors --write    # the table of docs/system.md again
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

from tests.structure.sources import ROOT

DOCS: Final = ROOT.parent / "docs" / "system.md"
BEGIN: Final = "<!-- floors: python -m tests.structure.floors --write -->\n"
END: Final = "<!-- end of floors -->\n"


@dataclass(frozen=True, slots=True)
class Room:
    """A row of the table: folders or modules of one floor, what they contain, and the values that
    other floors have from them."""

    names: tuple[str, ...]
    contents: str
    results: str = ""


FLOORS: Final[tuple[tuple[Room, ...], ...]] = (
    (Room(("errors",), "the tree of errors"),),
    (
        Room(
            ("extras", "dtypes", "version"),
            "the optional extras; the registry of dtypes: size, encoding, names by source",
            "`Dtype`",
        ),
        Room(
            ("json_objects",),
            "the class of results that are objects of JSON documents; JSON text",
            "`JsonObject`",
        ),
        Room(
            ("files", "patterns", "limits", "wording"),
            "reading files and regular expressions that users give, writing files whole or not at "
            "all; what a run may take of the machine; counts with their nouns",
            "`ProcessLimits`",
        ),
        Room(("options",), "what options of verbs are and which values they take", "`Options`"),
        Room(("packing",), "plain values as msgpack, for caches and between processes", "bytes"),
    ),
    (
        Room(
            ("processes",),
            "child processes: the one place that forks, with one policy for signals and limits",
            "`Ended`",
        ),
        Room(("plugins", "protobuf"), "entry points of other distributions; protocol buffers"),
        Room(("json_schema",), "schemas and tables of JSON objects"),
    ),
    (
        Room(
            ("arch",),
            "hardware facts: one TOML per chip, family files for shared facts, cost tables per "
            "generation; every number has a source and a status",
            "`Device`",
        ),
    ),
    (
        Room(
            ("isa",),
            "syntax and semantics of AMD machine code: opcode table, parser, control flow, "
            "liveness, def-use, semantics, descriptors",
            "`AssemblyModule`, `Program`",
        ),
        Room(
            ("launch",),
            "what a launch needs of any kernel: the GPU it goes to, its tensors, who records it",
        ),
    ),
    (
        Room(
            ("compile",),
            "HIP, assembly, code objects, NVIDIA tools, Triton's output; the cache",
            "`CodeObject`, `Launch`",
        ),
    ),
    (Room(("analyze",), "static analysis of one kernel for one device", "`CodeAnalysis`"),),
    (
        Room(
            ("perfmodel",),
            "work, bounds and time: operations, the compute-unit simulator, caches, power, "
            "intervals",
            "`Work`, `Roofline`, `Prediction`",
        ),
    ),
    (
        Room(
            ("kernels",),
            "the kernel library: one description per operator, configurations by formula and table",
            "`Operator`, `Configuration`",
        ),
        Room(("rules",), "findings, one rule per file", "`Finding`"),
    ),
    (
        Room(
            ("emulate",),
            "execution of AMD machine code on the host: lowering to LLVM IR, matrix instructions, "
            "waves, workgroups, modes that check and trace",
            "results in memory, check reports, `Trace`",
        ),
    ),
    (
        Room(
            ("sampling",),
            "execution of a sample of a launch, and its replay on a chip",
            "`Prediction`",
        ),
    ),
    (
        Room(
            ("systems",),
            "models on machines with several GPUs: kernels of a step, memory, serving",
            "`ModelAnswer`",
        ),
    ),
    (
        Room(
            ("runtimes",),
            "programs under the name of a GPU that is not there: Triton's launches, PyTorch on the "
            "CPU, HIP programs, kernels in files, several GPUs, a pytest plugin",
            "`Launch`, results in memory",
        ),
    ),
    (
        Room(
            ("frameworks",),
            "the operators of the library in PyTorch, vLLM, SGLang, JAX and TensorFlow",
        ),
    ),
    (
        Room(
            ("pipeline",),
            "the steps in order, for every launch and device; what this machine supports",
            "`ExplainReport`",
        ),
    ),
    (
        Room(
            ("tuning",),
            "search of configurations by a score that the caller passes",
            "tables of configurations",
        ),
    ),
    (
        Room(
            ("lab",),
            "the compiler's passes and other decisions: alternatives of a kernel, compared by "
            "execution and ranked by simulation",
            "`PassReport`, `LabEntry`",
        ),
    ),
    (
        Room(
            ("profiles",),
            "profiles of other tools: readers, what took the time, predictions of their operators",
            "`Profile`, `ProfileAnswer`",
        ),
    ),
    (
        Room(
            ("benchmarking",),
            "measurements: taking, storing, comparing and gating them; errors of predictions",
            "`Record`, `Comparison`, accuracy",
        ),
    ),
    (
        Room(
            ("documents",),
            "the JSON documents: roots that hold results, objects of other units, the registry",
            "`ExplainDocument` …",
        ),
    ),
    (
        Room(
            ("report",),
            "output of an `ExplainReport` as terminal text, JSON, HTML, SARIF",
            "text",
        ),
    ),
    (
        Room(
            ("servers",),
            "tools of coding agents (MCP), diagnostics of editors (LSP), the workbench: what verbs "
            "find, from other processes",
        ),
    ),
    (Room(("learn",), "the course: chapters as data, goals checked by running verbs"),),
    (
        Room(
            ("api",),
            "a file per verb: its options, its function, its result: `wavecast.explain`, "
            "`wavecast.model`",
            "`ShownResult`",
        ),
    ),
    (
        Room(("cli",), "commands, made of the options of the verbs; output, exit codes"),
        Room(("ops", "jax", "tensorflow"), "operators of the library for PyTorch, JAX, TensorFlow"),
        Room(("testing",), "times of calls, in the form Triton's users know"),
    ),
)
"""A room imports from lower floors and from nothing else: rooms of one floor do not import each
other."""
LEVELS: Final = {
    name: level for level, rooms in enumerate(FLOORS) for room in rooms for name in room.names
}
"""Folder or module -> its floor."""


def table() -> str:
    """The table of docs/system.md."""
    lines = ["| floor | folder | contents | main results |", "|---|---|---|---|"]
    for level, rooms in enumerate(FLOORS):
        for room in rooms:
            names = ", ".join(f"`{_shown(name)}`" for name in room.names)
            lines.append(f"| {level} | {names} | {room.contents} | {room.results} |")
    return "\n".join(line.replace("  |", " |") for line in lines) + "\n"


def _shown(name: str) -> str:
    return name if (ROOT / name).is_dir() else f"{name}.py"


def with_table(text: str) -> str:
    """A text with the table between its marks. Raises ValueError without them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("no marks of the table of floors")
    return f"{before}{begin}\n{table()}\n{end}{after}"


if __name__ == "__main__":
    text = with_table(DOCS.read_text(encoding="utf-8"))
    if "--write" in sys.argv[1:]:
        DOCS.write_text(text, encoding="utf-8")
    else:
        print(table(), end="")
