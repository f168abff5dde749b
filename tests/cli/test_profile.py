"""`wavecast profile` on a trace of our own: text at two widths, JSON, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_main import call

_GPU = {"name": "AMD Instinct MI300X", "numSms": 304, "totalGlobalMem": 206141652992}


def _trace(path: Path, *, sizes: bool = True) -> Path:
    shapes = {
        "Input Dims": [[4096, 1024], [1024, 2048]],
        "Input type": ["c10::BFloat16", "c10::BFloat16"],
    }
    host, gpu = {"ph": "X", "pid": 1, "tid": 1}, {"ph": "X", "pid": 2, "tid": 0}
    events = [
        {**host, "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 9,
         "args": shapes if sizes else {}},
        {**host, "cat": "cuda_runtime", "name": "hipLaunchKernel", "ts": 1, "dur": 2,
         "args": {"correlation": 1}},
        {**gpu, "cat": "kernel", "name": "Cijk_Alik_MT128x128x64", "ts": 20, "dur": 40,
         "args": {"device": 2, "stream": 0, "correlation": 1}},
    ]  # fmt: skip
    path.write_text(json.dumps({"deviceProperties": [_GPU], "traceEvents": events}))
    return path


@pytest.mark.torch
@pytest.mark.parametrize("width", [80, 160])
def test_the_text_fits_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = call(capsys, "profile", str(_trace(tmp_path / "t.json")), "--on", "mi355x")
    assert (code, err) == (0, "")
    assert all(len(line) <= width for line in out.splitlines())
    for part in ("hipBLASLt", "aten::mm", "predicted on mi300x", "on mi355x", "gemm"):
        assert part in out


@pytest.mark.torch
def test_at_80_columns_names_and_reasons_are_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "pmc.csv"
    counters = {"TCC_HIT_sum": 90, "TCC_MISS_sum": 10, "SQ_INSTS_VALU": 64, "SQ_WAVES": 8,
                "SQ_LDS_BANK_CONFLICT": 1, "SQ_LDS_IDX_ACTIVE": 4}  # fmt: skip
    values = ",".join(map(str, counters.values()))
    table.write_text(
        f"Kernel_Name,Start_Timestamp,End_Timestamp,{','.join(counters)}\n"
        f"a_long_name_of_a_kernel,1000,9000,{values}\nanother_kernel,9000,9500,{values}\n"
    )
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call(capsys, "profile", str(table), "--device", "mi300x")
    assert code == 0
    figures = "L2 hit 90%, LDS conflicts 25%, vector instructions of a wave 8"
    assert f"a_long_name_of_a_kernel {figures}" in " ".join(out.split())
    assert out.count("names and grids") == 1
    assert "2 rows without a prediction: the calls that launched" in " ".join(out.split())
    assert "80% interval" not in out
    monkeypatch.setenv("COLUMNS", "120")
    assert "80% interval" in call(capsys, "profile", str(table), "--device", "mi300x")[1]


@pytest.mark.torch
def test_json_has_what_the_text_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(_trace(tmp_path / "t.json"))
    code, out, _ = call(capsys, "profile", file, "--on", "mi355x", "--format", "json")
    assert code == 0
    (rank,) = json.loads(out)["ranks"]
    assert rank["seconds"] == pytest.approx(40e-6)
    assert rank["devices"][0]["chip"] == "mi300x"
    (operator,) = rank["predicted"]["operators"]
    assert operator["name"] == "aten::mm"
    assert operator["low"] < operator["predicted"] < operator["high"]
    assert rank["elsewhere"][0]["chip"] == "mi355x"


def test_without_sizes_kernels_change_as_the_chips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(_trace(tmp_path / "t.json", sizes=False))
    code, out, _ = call(capsys, "profile", file)
    assert code == 0
    assert "record_shapes=True" in out
    code, out, _ = call(capsys, "profile", file, "--on", "mi355x,h100", "--format", "json")
    assert code == 0
    first, second = json.loads(out)["ranks"][0]["elsewhere"]
    assert first["operators"][0]["basis"] == "as memory and matrix rates"
    assert first["seconds"] < 40e-6 < second["seconds"]
    assert first["low"] < first["seconds"] < first["high"]


@pytest.mark.torch
def test_changes_and_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (str(_trace(tmp_path / f"{name}.json")) for name in "ab")
    code, out, err = call(capsys, "profile", first, "--what-if", "gemm*0.5; graphs")
    assert (code, err) == (0, "")
    assert "on mi300x, gemm*0.5; graphs" in out
    code, out, _ = call(capsys, "profile", first, "--against", second)
    assert code == 0
    assert "100.0% and 100.0% are in operators that both have" in " ".join(out.split())
    code, out, _ = call(capsys, "profile", first, "--against", second, "--format", "json")
    document = json.loads(out)
    assert document["comparison"]["operators"][0]["ratio"] == 1
    assert len(document["ranks"]) == 2


@pytest.mark.torch
def test_page_timelines_and_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _trace(tmp_path / "t.json")
    page, timelines = tmp_path / "page.html", tmp_path / "timelines.json"
    code, out, err = call(
        capsys, "profile", str(file), "--on", "h100", "--html", str(page), "--perfetto",
        str(timelines), "--format", "markdown",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "| gemm | 40 µs | 100.0% |" in out
    assert "| aten::mm [[4096,1024],[1024,2048]] | 1 | 40 µs |" in out
    text = page.read_text()
    for part in ('<svg class="plot treemap"', '<svg class="plot roofline"', "<canvas", "aten::mm"):
        assert part in text
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    measured, moved = data[0]["timelines"]
    assert (measured["title"], measured["length"], measured["span"]) == (
        "measured",
        [40_000],
        40_000,
    )
    assert moved["title"] == "h100_sxm"
    events = json.loads(timelines.read_text())["traceEvents"]
    named = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert named == [
        "t.json: measured", "t.json: predicted on h100_sxm", "t.json: host, measured",
    ]  # fmt: skip
    slices = [event for event in events if event.get("cat") == "gemm"]
    assert [slices[0]["ts"], slices[0]["dur"]] == [20, 40]
    assert slices[1]["args"]["time there / measured"] == pytest.approx(
        slices[1]["dur"] / 40, rel=0.01
    )


_COPY = """
#include <hip/hip_runtime.h>
__global__ void copy(double *a, double *b, int n) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < n) b[id] = a[id];
}
"""


@pytest.mark.hip
def test_counters_findings_and_prediction_of_a_kernel_are_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, table, page = (tmp_path / name for name in ("copy.hip", "pmc.csv", "page.html"))
    source.write_text(_COPY)
    table.write_text(
        "Kernel_Name,Grid_Size,Workgroup_Size,Start_Timestamp,End_Timestamp,TCC_HIT_sum,"
        'TCC_MISS_sum\n"copy(double*, double*, int)",1048576,256,1000,9000,90,10\n'
    )
    given = ("profile", str(table), "--device", "mi300x", "--code", str(source))
    arguments = ("--arg", "a=f64[1048576]", "--arg", "b=f64[1048576]", "--arg", "n=1048576")
    code, out, err = call(capsys, *given, *arguments, "--html", str(page))
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    assert "copy copy.hip on mi300x, 1 launch measured 8 µs, predicted" in text
    assert "90% 33% L2 hit: " in text
    assert "measured 8 µs, predicted" in page.read_text()
    code, out, _ = call(capsys, *given, "--format", "json")
    (kernel,) = json.loads(out)["ranks"][0]["code"]
    assert kernel["explanation"]["kernel"] == "_Z4copyPdS_i"
    assert kernel["explanation"]["prediction"]["seconds"] > 0
    hit = kernel["figures"][0]
    assert (hit["name"], hit["unit"], hit["measured"]) == ("L2 hit", "share", 0.9)
    code, out, _ = call(capsys, *given, "--format", "markdown")
    assert "| L2 hit | 90% | 33% | " in out
    other = tmp_path / "other.hip"
    other.write_text(_COPY.replace("copy(", "other("))
    code, out, _ = call(capsys, "profile", str(table), "--device", "mi300x", "--code", str(other))
    assert code == 0
    assert "other.hip: no kernel of the profile is in it" in out


def test_names_in_a_file_cannot_become_elements_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _trace(tmp_path / "t.json", sizes=False)
    file.write_text(file.read_text().replace("aten::mm", "</script><b>|x"))
    page = tmp_path / "page.html"
    code, out, _ = call(capsys, "profile", str(file), "--html", str(page), "--format", "markdown")
    assert code == 0
    assert "</script><b>" not in page.read_text()
    assert "&lt;/script>" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.json"], "no such file"),
        (["{file}", "--device", "nochip"], "unknown device 'nochip'"),
        (["{file}", "--on", "nochip"], "unknown device 'nochip'"),
        (["{file}", "--what-if", "nothing"], "is not a change of a profile"),
        (["{file}", "--against", "missing.json"], "no such file"),
        (["{file}", "--model", "nomodel"], "unknown model 'nomodel'"),
        (["{file}", "--code", "missing.hip"], "no such file: missing.hip"),
        (["{file}", "--arg", "n=3"], "--arg, --grid and --block are for kernels"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    file = str(_trace(tmp_path / "t.json"))
    code, out, err = call(capsys, "profile", *(a.format(file=file) for a in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
