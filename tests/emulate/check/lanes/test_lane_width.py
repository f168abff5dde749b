"""Code for 32 lanes on waves of 64: found in the code and as it runs, at its line."""

import re
from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.targets import swept
from wavecast.analyze.lanes.assumption import one_per_mistake
from wavecast.analyze.lanes.assumptions import assumptions, is_wide
from wavecast.analyze.lanes.masks import mask_sites
from wavecast.compile import hip
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.errors import ChecksFailed
from wavecast.emulate.reports import Kind, Report

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("lane_width.hip")
LINES = SOURCE.read_text().splitlines()
TARGETS = ("gfx942", "gfx950")
THREADS = 128


def planted() -> dict[str, tuple[int, str] | None]:
    """Kernel -> line and kind of its mistake."""
    found: dict[str, tuple[int, str] | None] = {}
    functions: dict[str, tuple[int, str]] = {}
    function = ""
    for number, line in enumerate(LINES, 1):
        start = re.match(r"(KERNEL|__device__ int) (\w+)\(", line)
        if start is not None:
            function = start[2]
            if start[1] == "KERNEL":
                found[function] = None
        mistake = re.search(r"// ([A-Z_]+)$", line)
        if mistake is not None:
            functions[function] = number, mistake[1]
            if function in found:
                found[function] = number, mistake[1]
    found["sum_in_a_function"] = functions["sum_of_32"]
    return found


PLANTED = planted()


@pytest.fixture(scope="module", params=swept(TARGETS))
def compiled(request):
    return {code.kernel: code for code in hip.compile_file(SOURCE, request.param)}


@pytest.fixture(scope="module", params=swept(TARGETS))
def kernels(request):
    return wavecast.load(SOURCE, arch=request.param, check=True, threads=1)


def sites(code, block=None):
    kernel = parse_kernel(code)
    found = assumptions(code.stages["llir"], code.kernel, kernel.descriptor, block)
    if is_wide(kernel.descriptor, block):
        found += mask_sites(code, kernel.program)
    certain = one_per_mistake(site for site in found if site.certain)
    return [(site.position[0][1], site.what.name) for site in certain]


def reports(kernel, threads=THREADS) -> list[int]:
    """The lines of the reports of this kind; no other kind is in these kernels."""
    data = (np.arange(1024, dtype=np.int32) * 7919 % 23) - 3
    found: tuple[Report, ...] = ()
    try:
        kernel(1, threads, data, np.zeros(1024, np.int32))
    except ChecksFailed as error:
        found = error.reports
    assert {report.kind for report in found} <= {Kind.ASSUMES_32_LANES}
    return [report.location.line for report in found if report.location is not None]


@pytest.mark.parametrize("name", PLANTED)
def test_the_code_tells(compiled, name):
    mistake = PLANTED[name]
    assert sites(compiled[name]) == ([] if mistake is None else [mistake])


@pytest.mark.parametrize("name", PLANTED)
def test_a_run_tells(kernels, name):
    mistake = PLANTED[name]
    assert reports(kernels[name]) == ([] if mistake is None else [mistake[0]])


def test_workgroups_of_32_are_left_alone(compiled, kernels):
    for name, code in compiled.items():
        assert sites(code, (32, 1, 1)) == []
        if name != "votes_of_a_loop":
            assert reports(kernels[name], 32) == []


def test_waves_of_32_are_left_alone():
    for code in hip.compile_file(SOURCE, "gfx1100"):
        assert sites(code) == []
    kernels = wavecast.load(SOURCE, arch="gfx1100", check=True, threads=1)
    for name in ("votes_in_int", "sum_in_a_function", "scan_of_a_wave", "total_of_a_group"):
        assert reports(kernels[name]) == []


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_explain_tells(target):
    report = wavecast.explain(SOURCE, arch=target)
    for explanation in report.explanations:
        found = [
            (finding.severity, finding.location.line)
            for finding in explanation.findings
            if finding.rule == "assumes-32-lanes" and finding.location is not None
        ]
        assert explanation.launch is not None
        name = explanation.launch.code.kernel
        mistake = PLANTED[name] if target == "gfx942" else None
        assert found == ([] if mistake is None else [("warning", mistake[0])])
