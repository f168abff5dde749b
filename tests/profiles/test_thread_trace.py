"""Thread traces of rocprofv3: cycles by instruction, the simulated ones, damaged folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wavecast.compile import load as load_code
from wavecast.compile.parsing import parse_kernel
from wavecast.errors import InputError
from wavecast.pipeline.plan import Plan
from wavecast.profiles.answer import ProfileAnswer, profiles
from wavecast.profiles.reading import read_ranks
from wavecast.report.kit.terminal import plain
from wavecast.report.profiles import html, terminal
from wavecast.report.profiles import json as profiles_json

_HEADER = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
_COPY = """
#include <hip/hip_runtime.h>
__global__ void copy(double *a, double *b) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    b[id] = a[id];
}
"""


def _row(text: str, number: int, *sums: Any) -> list[Any]:
    return [text, 0, number, f"/src/copy.hip:{number}", 4, 6144 + 4 * number, *sums]


def _folder(path: Path, texts: Sequence[str], kernel: str = "copy") -> Path:
    """A trace of two waves, in the files that rocprofv3 writes."""
    path.mkdir(exist_ok=True)
    rows = [[f"; {kernel}", 0, 0, "copy(double*)", 4, 6144, 0, 0, 0, 0]]
    for number, text in enumerate(texts, 1):
        waits = text.startswith("s_waitcnt")
        rows.append(_row(text, number, 2, 1000 if waits else 8, 992 if waits else 0, 16))
    given = {
        "code.json": {"code": rows, "version": "3.0.0", "header": _HEADER},
        "filenames.json": {
            "gfxip": 9,
            "wave_filenames": {
                "0": {"0": {"0": {"0": ["se0_sm0_sl0_wv0.json", 1000, 3000]},
                            "1": {"0": ["se0_sm0_sl1_wv0.json", 1000, 5000]}}},
            },
        },
        "realtime.json": {
            "SE0": [[0, 500], [40_000, 2_500]],
            "metadata": {"descriptor": "[gfx_clock, realtime_clock]", "frequency": 100_000_000},
        },
        "occupancy.json": {
            "0": [[1000, 0, 0, 0, 1, 1], [5000, 0, 0, 0, 0, 1]],
            "1": [[70_000, 0, 0, 0, 1, 1], [78_000, 0, 0, 0, 0, 1]],
            "dispatches": {"1": kernel},
            "version": "3.0.0",
        },
    }  # fmt: skip
    for name, content in given.items():
        (path / name).write_text(json.dumps(content))
    return path


def _one(path: Path) -> ProfileAnswer:
    (answer,) = profiles(path, "mi300x")
    return answer


def test_cycles_by_instruction(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "ui_output_agent_1_dispatch_1", ["s_nop 0", "s_waitcnt vmcnt(0)"])
    answer = _one(folder)
    (traced,) = answer.traces
    assert traced.why_not == "the code is not given (--code)"
    assert (traced.trace.kernel, traced.trace.waves, traced.trace.wave_cycles) == ("copy", 2, 3000)
    assert traced.trace.clock == pytest.approx(2.0)
    assert answer.summary.kernel_time == 4000  # 8,000 cycles of the second shader engine
    assert traced.cycles == 24 + 1016
    first, second = traced.longest
    assert (first.number, first.traced.text, first.traced.cycles) == (1, "s_waitcnt vmcnt(0)", 508)
    assert (second.traced.stall, second.traced.idle, second.traced.cycles) == (0, 16, 12)
    assert answer.notes == ()


def test_a_wave_that_did_not_end_is_counted(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "ui_output_agent_1_dispatch_1", ["s_nop 0"])
    names = folder / "filenames.json"
    names.write_text(names.read_text().replace("1000, 5000", "1000, 0"))
    answer = _one(folder)
    (traced,) = answer.traces
    assert (traced.trace.waves, traced.trace.wave_cycles) == (1, 2000)
    assert answer.notes == (
        "1 record without a start and a later end: left out of times, means and spans",
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("trace") / "copy.hip"
    file.write_text(_COPY)
    return file


@pytest.mark.hip
def test_the_simulated_cycles_are_next_to_the_measured(tmp_path: Path, source: Path) -> None:
    (code,) = load_code(source, "gfx942")
    # the disassembler of a trace can leave out the encoding
    texts = [
        f"{one.mnemonic.removesuffix('_e32')} operands"
        for one in parse_kernel(code).program.instructions
    ]
    folder = _folder(tmp_path / "ui_output_agent_1_dispatch_1", texts, code.kernel)
    plan = Plan("", (4096, 1, 1), (256, 1, 1))
    (answer,) = profiles(folder, "mi300x", code=[source], plan=plan)
    (traced,) = answer.traces
    assert traced.why_not == ""
    simulated = [one.simulated for one in traced.instructions]
    assert all(one is not None and one > 0 for one in simulated)
    longest = max(traced.instructions, key=lambda one: one.simulated or 0)
    assert longest.traced.text.startswith("s_waitcnt")
    (rank,) = profiles_json.document([answer])["ranks"]
    (shown,) = rank["traces"]
    assert [one["simulated"] for one in shown["instructions"]] == simulated
    text = plain(lambda console: terminal.render([answer], console), 80)
    assert "2 traced waves of 3,000 cycles at 2 GHz" in " ".join(text.split())
    assert "simulated" in text
    assert "Thread trace of copy" in html.render([answer])
    other = _folder(tmp_path / "other", [*texts[:-1], "s_nop 1"], code.kernel)
    (answer,) = profiles(other, "mi300x", code=[source], plan=plan)
    count = len(texts)
    why = f"1 of {count} instructions of the trace are not those of the code"
    assert answer.traces[0].why_not == why
    (answer,) = profiles(other, "mi300x", code=[source])
    assert "the grid of the launch is not known" in answer.traces[0].why_not


@pytest.mark.parametrize("name", ["filenames.json", "realtime.json", "occupancy.json"])
@pytest.mark.parametrize("text", [None, "", '{"0": [[1', '{"SE0": [[0, 5], [true, {}]]}', "[1]"])
def test_without_the_other_files_cycles_remain(tmp_path: Path, name: str, text: str | None) -> None:
    folder = _folder(tmp_path / "ui_output_agent_1_dispatch_1", ["s_nop 0"])
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    answer = _one(folder)
    assert answer.traces[0].longest[0].traced.cycles == 12
    assert answer.summary.kernel_time in (0, 4000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ('{"code": [["s_nop 0", 0', "cannot be read"),
        ("[1, 2]", "cannot be read"),
        ('{"code": [], "header": "ISA, Hit"}', "no column Source, Latency"),
        ('{"code": 7}', "cannot be read"),
        (json.dumps({"code": [], "header": _HEADER}), "no instruction was executed"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_damaged_trace_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    folder = _folder(tmp_path / "ui_output_agent_1_dispatch_1", ["s_nop 0"])
    (folder / "code.json").write_text(text)
    with pytest.raises(InputError, match=message) as error:
        list(read_ranks(folder))
    assert "\n" not in error.value.message


@pytest.mark.parametrize(
    "row",
    [
        [], ["s_nop 0"], _row("s_nop 0", 1, -1, 0, 0, 0), _row("s_nop 0", 1, True, 0, 0, 0),
        _row("s_nop 0", 1, 1, 1 << 70, 0, 0), _row("s_nop 0", 1, 1, 2.5, 0, 0),
        _row("s_nop 0", 1, 1, "many", 0, 0),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_read_are_counted(tmp_path: Path, row: list[Any]) -> None:
    folder = _folder(tmp_path / "ui_output_agent_1_dispatch_1", ["s_nop 0"])
    given = json.loads((folder / "code.json").read_text())
    given["code"].append(row)
    (folder / "code.json").write_text(json.dumps(given))
    answer = _one(folder)
    assert len(answer.traces[0].instructions) == 1
    assert answer.notes == ("1 record cannot be read, left out",)


def test_the_kernel_with_the_most_cycles_is_shown(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "ui_output_agent_1_dispatch_1", ["s_nop 0"])
    given = json.loads((folder / "code.json").read_text())
    given["code"] += [["; helper.kd", 0, 9, "", 4, 0, 0, 0, 0, 0], _row("s_nop 1", 9, 1, 99, 0, 0)]
    (folder / "code.json").write_text(json.dumps(given))
    answer = _one(folder)
    assert answer.traces[0].trace.kernel == "helper"
    assert answer.notes == ("not shown: other code in the trace (copy)",)


def test_a_folder_of_traces_names_them(tmp_path: Path) -> None:
    for number in (1, 2):
        _folder(tmp_path / f"ui_output_agent_1_dispatch_{number}", ["s_nop 0"])
    with pytest.raises(InputError, match="has 2 thread traces: give one of them"):
        list(read_ranks(tmp_path))
