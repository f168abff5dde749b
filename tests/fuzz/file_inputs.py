"""Valid small inputs of verbs, and how each is damaged. `make` without a generator writes them as
they are."""

from __future__ import annotations

import contextlib
import importlib
import json
import random
import re
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz import damage, mutate
from tests.fuzz.kinds import DATA, Seeds

Draw = random.Random | None
_SAXPY = (DATA / "saxpy.gfx942.s").read_text()
_HIP = """\
#include <hip/hip_runtime.h>
template <int N> __device__ float twice(float x) { return N * x; }
extern "C" __global__ void scale(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = twice<2>(x[i]);
}
"""
_EXPLAIN = ["--grid", "4", "--block", "64", "-a", "gfx942"]
_RUN = ["--grid", "1", "--block", "64", "--threads", "1", "--max-instructions", "20000"]
_ARGUMENTS = ["1=2.5", "2=f32[64]:ones", "3=f32[64]:arange", "4=64"]
_ARGS: dict[str, Any] = {
    "kernel": "saxpy", "grid": 1, "block": [64, 1, 1], "lds": 0,
    "args": {"1": 2.5, "2": "f32[8, 8]:uniform(1, 0, 2)", "4": 64,
             "3": {"value": "f32[64]:ones", "expect": "f32[64]:ones", "rtol": 1e9, "atol": 1e9}},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DamagedInput:
    """`make` writes files to a folder, damaged with a generator, and gives the command line."""

    name: str
    make: Callable[[Draw, Path], list[str]]


def _kernel_arguments() -> list[str]:
    return [word for argument in _ARGUMENTS for word in ("--arg", argument)]


def _damaged_metadata(rng: Draw) -> str:
    """Assembly whose kernel descriptor and metadata have other values."""
    if rng is None:
        return _SAXPY
    head, kernel, tail = _SAXPY.partition("\t.amdhsa_kernel")
    code, metadata, rest = tail.partition("\t.amdgpu_metadata")
    if rng.random() < 0.3:
        code = mutate.text(rng, code)
    else:
        metadata = mutate.text(rng, metadata)
    if rng.random() < 0.3:
        pattern, numbers = re.compile(r"(?<=[ :])\d+$", re.M), ("99999999999", "-8", "4294967295")
        metadata = pattern.sub(
            lambda match: rng.choice(numbers) if rng.random() < 0.1 else match[0], metadata
        )
    return head + kernel + code + metadata.join(["\t.amdgpu_metadata", ""]) + rest


def _metadata(verb: str) -> Callable[[Draw, Path], list[str]]:
    def make(rng: Draw, folder: Path) -> list[str]:
        text = _damaged_metadata(rng).encode("utf-8", "surrogatepass")
        (folder / "k.s").write_bytes(text)
        return [verb, "k.s", *(_EXPLAIN if verb == "explain" else [*_RUN, *_kernel_arguments()])]

    return make


def _code(verb: str, *options: str) -> Callable[[Draw, Path], list[str]]:
    def make(rng: Draw, folder: Path) -> list[str]:
        text = _SAXPY if rng is None else mutate.text(rng, _SAXPY)
        (folder / "k.s").write_bytes(text.encode("utf-8", "surrogatepass"))
        return [verb, "k.s", *_RUN, *_kernel_arguments(), *options]

    return make


def _object(verb: str) -> Callable[[Draw, Path], list[str]]:
    def make(rng: Draw, folder: Path) -> list[str]:
        data = Seeds().objects()[0]
        (folder / "k.hsaco").write_bytes(data if rng is None else damage.elf(rng, data))
        options = _EXPLAIN if verb == "explain" else [*_RUN, *_kernel_arguments()]
        return [verb, "k.hsaco", *options]

    return make


def _run_args(rng: Draw, folder: Path) -> list[str]:
    (folder / "k.s").write_text(_SAXPY)
    text = damage.toml_text(_ARGS).encode() if rng is None else damage.toml(rng, _ARGS)
    (folder / "args.toml").write_bytes(text)
    return ["run", "k.s", "--threads", "1", "--max-instructions", "20000", "--args", "args.toml"]


def _run_arg(rng: Draw, folder: Path) -> list[str]:
    (folder / "k.s").write_text(_SAXPY)
    arguments = list(_ARGUMENTS)
    if rng is not None:
        number = rng.randrange(len(arguments))
        text = mutate.text(rng, arguments[number], strength=2)
        arguments[number] = text.encode("utf-8", "replace").decode().replace("\0", "")
    words = [word for argument in arguments for word in ("--arg", argument)]
    return ["run", "k.s", *_RUN, *words, "--check"]


def _hip(verb: str) -> Callable[[Draw, Path], list[str]]:
    def make(rng: Draw, folder: Path) -> list[str]:
        text = _HIP if rng is None else mutate.text(rng, _HIP, strength=1)
        (folder / "k.hip").write_bytes(text.encode("utf-8", "surrogatepass"))
        if verb == "explain":
            return ["explain", "k.hip", *_EXPLAIN]
        return ["run", "k.hip", *_RUN, "--arg", "x=f32[64]:ones", "--arg", "n=64"]

    return make


# --- measurements -----------------------------------------------------------------------------


def _record(name: str, seconds: float) -> Any:
    from wavecast.benchmarking.records import (
        BenchRecord,
        BenchSubject,
        Conditions,
        Environment,
        Figure,
    )

    return BenchRecord(
        subject=BenchSubject("operator", name, {"rows": 8}),
        environment=Environment(device="mi300x", target="gfx942", emulated=False, commit="abc"),
        conditions=Conditions(),
        figures={
            "measured_seconds": Figure(
                seconds, "measured", samples=(seconds, 1.1 * seconds, 0.9 * seconds)
            ),
            "vgprs": Figure(32, "static"),
        },
    )


def _write_store(path: Path) -> None:
    from wavecast.benchmarking.records import BenchRun
    from wavecast.benchmarking.store.sqlite import open_store

    with open_store(path) as store:
        for number in (1, 2):
            started, ended = (f"2026-01-0{number}T00:00:0{second}Z" for second in (0, 1))
            store.begin(BenchRun(f"run{number}", started, f"label{number}", commit=f"c{number}"))
            for name in ("rms_norm", "softmax"):
                store.add(f"run{number}", _record(name, number * 1e-5))
            store.finish(f"run{number}", ended)


@cache
def _store_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.sqlite"
        _write_store(path)
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = DELETE")
        return path.read_bytes()


_STORE_VERBS = (
    ["store", "list", "--store", "s.sqlite"],
    ["store", "check", "--store", "s.sqlite"],
    ["store", "export", "out.json", "--store", "s.sqlite"],
    ["store", "export", "out.csv", "--salvage", "--store", "s.sqlite"],
    ["compare", "label1", "label2", "--store", "s.sqlite"],
    ["history", "--store", "s.sqlite"],
)


def _store(rng: Draw, folder: Path) -> list[str]:
    path = folder / "s.sqlite"
    path.write_bytes(_store_bytes())
    if rng is None:
        return _STORE_VERBS[0]
    kind = rng.randrange(3)
    if kind == 0:
        path.write_bytes(mutate.binary(rng, path.read_bytes()))
    elif kind == 1:
        _change_schema(rng, path)
    else:
        _change_rows(rng, path)
    return rng.choice(_STORE_VERBS)


def _change_schema(rng: random.Random, path: Path) -> None:
    statements = (
        "PRAGMA user_version = 2", "PRAGMA user_version = -1", "PRAGMA application_id = 5",
        "DROP TABLE ends", "DROP TABLE runs", "DROP TABLE records",
        "ALTER TABLE records RENAME COLUMN body TO text", "ALTER TABLE runs DROP COLUMN label",
        "CREATE TABLE more (a)", "DROP INDEX records_of_runs",
    )  # fmt: skip
    with closing(sqlite3.connect(path)) as database, database:
        for statement in rng.sample(statements, rng.randint(1, 2)):
            database.execute("PRAGMA foreign_keys = OFF")
            with contextlib.suppress(sqlite3.OperationalError):  # the table is dropped
                database.execute(statement)


def _change_rows(rng: random.Random, path: Path) -> None:
    """Other texts in the records and the runs, also of types that the tables refuse now."""
    with closing(sqlite3.connect(path)) as database, database:
        for table in ("runs", "ends", "records"):
            for what in ("update", "delete"):
                database.execute(f"DROP TRIGGER {table}_{what}")
        if rng.random() < 0.3:
            column = rng.choice(("started", "label", "commit_", "command"))
            text = rng.choice(("", "x" * 5000, "\u202e", "9" * 300, "2026-99-99", "last"))
            database.execute(f"UPDATE runs SET {column} = ?", (text,))
            return
        (body,) = database.execute("SELECT body FROM records").fetchone()
        text = damage.document(rng, json.loads(body)).decode("utf-8", "replace")
        database.execute("UPDATE records SET body = ? WHERE number = 1", (text,))


@cache
def _export() -> Any:
    """What a store exports."""
    from tests.fuzz import files

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "s.sqlite").write_bytes(_store_bytes())
        end = files.run(_STORE_VERBS[2], Path(folder))
        assert not end.code, end.err
        return json.loads((Path(folder) / "out.json").read_text())


def _imported(rng: Draw, folder: Path) -> list[str]:
    from tests.benchmarking.store import test_importers as samples

    sample = rng.choice((samples.nvbench(), _export())) if rng else samples.nvbench()
    text = damage.document(rng, sample) if rng else json.dumps(sample).encode()
    (folder / "in.json").write_bytes(text)
    return ["store", "import", "in.json", "--store", "new.sqlite"]


# --- gate -------------------------------------------------------------------------------------

_GATE: dict[str, Any] = {
    "arch": ["gfx942"],
    "strict": False,
    "checks": False,
    "subjects": [
        {"operator": "rms_norm", "axes": {"rows": 8}},
        {"operator": "softmax", "axes": {"rows": [8]}, "thresholds": {"vgprs": "10%"}},
    ],
    "thresholds": {"measured_seconds": "5%", "vgprs": 2, "spills": 0},
}
_BASELINE: dict[str, Any] = {
    "schema": "wavecast.baseline/1",
    "subjects": {
        f"operator {name} rows=8": {"mi300x": {"figures": {"measured_seconds": 2e-5, "vgprs": 32}}}
        for name in ("rms_norm", "softmax")
    },
}


def _gate(rng: Draw, folder: Path) -> list[str]:
    """The newest run of a store is judged: nothing is measured."""
    (folder / "s.sqlite").write_bytes(_store_bytes())
    settings = {"tool": {"wavecast": {"gate": _GATE}}}
    written = damage.toml_text(settings).encode()
    baseline = json.dumps(_BASELINE).encode()
    if rng is not None and rng.random() < 0.5:
        text = damage.toml(rng, _GATE)
        head = b"tool.wavecast.gate."
        written = b"\n".join(head + line if b" = " in line else line for line in text.split(b"\n"))
    elif rng is not None:
        baseline = damage.document(rng, _BASELINE)
    (folder / "pyproject.toml").write_bytes(written)
    (folder / "wavecast-baseline.json").write_bytes(baseline)
    return [
        "gate",
        "--run",
        "last",
        "--store",
        "s.sqlite",
        "--junit",
        "j.xml",
        "--sarif",
        "s.sarif",
    ]


# --- searches ---------------------------------------------------------------------------------

_MODEL = {
    "model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 1024,
}  # fmt: skip
_SEARCH = [
    "model", "model.json", "--system", "mi300x", "--in", "8", "--out", "2", "--search", "tp=1",
    "--jobs", "1", "--state", "state.jsonl",
]  # fmt: skip
ENTRY = {
    "problem": {
        "kernel": "k", "key": {"n": 64}, "arguments": {"x": "*fp32:16"}, "source": "s",
        "target": "gfx942", "device": "mi300x", "compiler": "triton 3.9.0",
    },
    "result": {
        "configuration": {"BLOCK": 64, "num_warps": 4}, "seconds": 1e-5, "low": 9e-6,
        "high": 1.1e-5, "limiter": "memory", "fidelity": "executed", "registers": 32, "spills": 0,
        "lds_bytes": 0, "waves": 8.0, "matrix": False, "reason": "",
    },
}  # fmt: skip
_TUNED = """\
import torch, triton, triton.language as tl
@triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def k(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, i, mask=i < n)
k[(1,)](torch.empty(64, device="cuda"), 64)
"""


@cache
def _state() -> bytes:
    """The state that a search writes."""
    from tests.fuzz import files

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.json").write_text(json.dumps(_MODEL))
        end = files.run(_SEARCH, Path(folder))
        assert not end.code, end.err
        return (Path(folder) / "state.jsonl").read_bytes()


def _search_state(rng: Draw, folder: Path) -> list[str]:
    (folder / "model.json").write_text(json.dumps(_MODEL))
    state = _state()
    if rng is not None:
        line = json.loads(state.split(b"\n")[0])
        state = damage.document(rng, line).replace(b"\n", b" ") + b"\n"
    (folder / "state.jsonl").write_bytes(state)
    return _SEARCH


def _tune_journal(rng: Draw, folder: Path) -> list[str]:
    (folder / "x.py").write_text(_TUNED)
    text = json.dumps(ENTRY).encode()
    text = text if rng is None else damage.document(rng, ENTRY).replace(b"\n", b" ")
    (folder / "t.json.journal").write_bytes(text + b"\n")
    usual = ["tune", "x.py", "-a", "gfx942", "--simulate", "0", "--jobs", "1"]
    return [*usual, "-o", "t.json", "--resume"]


# --- profiles ---------------------------------------------------------------------------------


@cache
def _profiles() -> dict[str, Any]:
    """Valid profiles by the names of their files: values of JSON, texts, bytes and databases."""
    from tests.profiles import test_damaged as damaged
    from tests.profiles import test_readers, test_xla_json

    kernels = [damaged.KERNEL, {**damaged.KERNEL, "ts": 9}]
    call = {
        "ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 1, "tid": 1,
        "ts": 0, "dur": 1, "args": {"correlation": 1},
    }  # fmt: skip
    operator = {
        **call,
        "cat": "cpu_op",
        "name": "aten::mm",
        "args": {
            "External id": 1,
            "Input Dims": [[8, 8], [8, 8]],
            "Input type": ["float", "float"],
        },
    }
    properties = [{"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}]
    dispatch = {
        "start_timestamp": 1, "end_timestamp": 5, "correlation_id": {"internal": 1},
        "dispatch_info": {"agent_id": {"handle": 9}, "queue_id": {"handle": 3}, "kernel_id": 4,
                          "workgroup_size": {"x": 64, "y": 1, "z": 1},
                          "grid_size": {"x": 640, "y": 1, "z": 1}},
    }  # fmt: skip
    process = {
        "agents": [{"id": {"handle": 9}, "type": 2, "name": "gfx950", "cu_count": 256,
                    "product_name": "AMD Instinct MI350X", "mem_banks": [{"size_in_bytes": 9}]}],
        "kernel_symbols": [{"kernel_id": 4, "demangled_kernel_name": "f", "sgpr_count": 32}],
        "buffer_records": {"kernel_dispatch": [dispatch]},
    }  # fmt: skip
    leaf = {
        "frame": {"name": "k"},
        "children": [],
        "metrics": {"time (ns)": 300, "count": 3, "device_id": "0", "device_type": "HIP"},
    }
    tree = {"frame": {"name": "ROOT"}, "metrics": {}, "children": [leaf]}
    trace = f"{damaged.COLUMNS}\n" + "".join(
        f"KERNEL_DISPATCH,k,{start},{start + 4},a,1,64,128\n" for start in (1, 9)
    )
    ncu = f"{test_readers._NCU}\n" + "".join(
        f'"{n}","k(int)","7","(256, 1, 1)","(10, 2, 1)","0","9.0","Duration","us","1,234.5"\n'
        for n in (0, 1)
    )
    return {
        "kineto.json": {"deviceProperties": properties, "traceEvents": [operator, call, *kernels]},
        "rocprofv3.json": {damaged.ROCPROF: [process]},
        "proton.json": [tree, {"HIP": {"0": {"arch": "gfx942", "num_sms": 304}}}],
        "xla.json": {"displayTimeUnit": "ns", "traceEvents": [
            *test_xla_json.NAMES, *test_xla_json.EVENTS]},
        "trace.csv": trace,
        "ncu.csv": ncu,
        **_binary_profiles(),
        "rocpd.db": _ROCPD,
        "nsys.sqlite": _NSYS,
    }  # fmt: skip


def _binary_profiles() -> dict[str, bytes]:
    """Those of Perfetto and JAX, where the libraries that write them are installed."""
    binary: dict[str, bytes] = {}
    try:
        from tests.profiles import test_perfetto as perfetto
    except BaseException as error:  # pytest's skip of a module
        if type(error).__name__ != "Skipped":
            raise
    else:
        packets = [*perfetto._TRACKS, *perfetto._kernel(10, 20), *perfetto._kernel(30, 40)]
        binary["run.pftrace"] = perfetto._bytes(packets)
    try:
        data = importlib.import_module("jax.profiler").ProfileData

        from tests.profiles import test_xplane as planes
    except ImportError:
        return binary
    given = planes._planes()
    given[1].lines[0].events.pop()
    serialized = data.text_proto_to_serialized_xspace(planes._space(given))
    return {**binary, "host.xplane.pb": serialized}


_ROCPD: dict[str, list[tuple[Any, ...]]] = {
    "rocpd_info_agent_a (id, name, product_name)": [(1, "gfx942", "MI300X")],
    "rocpd_info_kernel_symbol_a (id, display_name, sgpr_count)": [(7, "k", 24)],
    "rocpd_string_a (id, string)": [(1, "x")],
    "rocpd_memory_copy_a (name_id, start, end)": [(1, 3, 4)],
    'rocpd_kernel_dispatch_a (agent_id, kernel_id, stream_id, start, "end", workgroup_size_x,'
    " workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z)": [
        (1, 7, 2, 10, 30, 64, 1, 1, 128, 1, 1),
        (1, 7, 2, 40, 60, 64, 1, 1, 128, 1, 1),
    ],
}
_NSYS: dict[str, list[tuple[Any, ...]]] = {
    "StringIds (id, value)": [(1, "k(int)"), (2, "cudaLaunchKernel")],
    "CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, demangledName,"
    " registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory,"
    " dynamicSharedMemory)": [
        (5, 25, 0, 7, 3, 1, 40, 2, 1, 1, 128, 1, 1, 16, 32),
        (35, 55, 0, 7, 4, 1, 40, 2, 1, 1, 128, 1, 1, 16, 32),
    ],
    "CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId)": [
        (1, 2, 9, 3, 2), (3, 4, 9, 4, 2)],
    "TARGET_INFO_GPU (id, name, smCount, totalMemory, computeMajor, computeMinor)": [
        (0, "NVIDIA H100", 132, 80 << 30, 9, 0)],
}  # fmt: skip


def _profile(rng: Draw, folder: Path) -> list[str]:
    samples = _profiles()
    name = rng.choice(sorted(samples)) if rng is not None else "kineto.json"
    path, sample = folder / name, samples[name]
    if isinstance(sample, dict) and path.suffix in (".db", ".sqlite"):
        _write_database(rng, path, sample)
    elif isinstance(sample, bytes):
        path.write_bytes(sample if rng is None else mutate.binary(rng, sample))
    elif isinstance(sample, str):
        assert rng is not None
        damaged = mutate.text(rng, sample).encode("utf-8", "surrogatepass")
        path.write_bytes(damaged if rng.random() < 0.7 else mutate.binary(rng, sample.encode()))
    else:
        text = json.dumps(sample).encode() if rng is None else damage.document(rng, sample)
        path.write_bytes(text)
    return ["profile", name, "--device", "mi300x"]


def _write_database(rng: Draw, path: Path, tables: dict[str, list[tuple[Any, ...]]]) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for table, rows in tables.items():
            if rng is not None and rng.random() < 0.1:
                continue
            database.execute(f"CREATE TABLE {table}")
            for row in rows:
                if rng is not None:
                    row = [damage.cell(rng, part) if rng.random() < 0.1 else part for part in row]
                marks = ",".join("?" * len(row))
                database.execute(f"INSERT INTO {table.split()[0]} VALUES ({marks})", row)
    if rng is not None and rng.random() < 0.3:
        path.write_bytes(mutate.binary(rng, path.read_bytes()))


def _trace_folder(rng: Draw, folder: Path) -> list[str]:
    from tests.profiles import test_thread_trace as traces

    path = traces._folder(folder / "ui_output_agent_1_dispatch_1", ["s_nop 0", "v_add_f32 v0, v1"])
    if rng is not None:
        part = rng.choice(sorted(path.iterdir()))
        part.write_bytes(damage.document(rng, json.loads(part.read_text())))
    return ["profile", path.name, "--device", "mi300x"]


INPUTS = {
    damaged.name: damaged
    for damaged in (
        DamagedInput("explain-metadata", _metadata("explain")),
        DamagedInput("explain-object", _object("explain")),
        DamagedInput("run-code", _code("run")),
        DamagedInput("run-check", _code("run", "--check")),
        DamagedInput("run-metadata", _metadata("run")),
        DamagedInput("run-object", _object("run")),
        DamagedInput("run-args", _run_args),
        DamagedInput("run-arg", _run_arg),
        DamagedInput("explain-hip", _hip("explain")),
        DamagedInput("run-hip", _hip("run")),
        DamagedInput("store", _store),
        DamagedInput("store-import", _imported),
        DamagedInput("gate", _gate),
        DamagedInput("search-state", _search_state),
        DamagedInput("tune-journal", _tune_journal),
        DamagedInput("profile", _profile),
        DamagedInput("profile-folder", _trace_folder),
    )
}
"""By name."""


__all__ = ["ENTRY", "INPUTS", "DamagedInput"]
