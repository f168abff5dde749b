"""Calls exported for C: compiled, and launched on the emulator through a HIP runtime."""

from __future__ import annotations

import ctypes
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import wavecast  # noqa: E402
from tests.documents.support import validated  # noqa: E402
from tests.pipeline.hip_driver import Driver  # noqa: E402
from wavecast import arch  # noqa: E402
from wavecast import compile as compiling  # noqa: E402
from wavecast.cli.main import run  # noqa: E402
from wavecast.compile.codeobject import Launch  # noqa: E402
from wavecast.emulate.launch import Emulator  # noqa: E402
from wavecast.errors import UsageError  # noqa: E402
from wavecast.kernels import registry  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402
from wavecast.pipeline.library.exporting import export  # noqa: E402
from wavecast.report.library.exported import export_files  # noqa: E402

pytestmark = pytest.mark.torch

SPLIT = {"m": 33, "n": 64, "k": 2048, "dtype": "bfloat16"}
"""Two kernels and a workspace between them."""


class Exported:
    """An exported call in a folder, with the driver that runs its launches."""

    def __init__(self, folder: Path, operator: str, sizes: Mapping[str, Any], target: str) -> None:
        self.operator, self.sizes = registry.operator(operator), sizes
        calls = export(self.operator, sizes, [arch.load(target)])
        for name, content in export_files("call", calls).items():
            (folder / name).write_bytes(content)
        self.buffers = calls[0].plan.interface
        self.codes = {
            (code.kernel, path.stat().st_size): code
            for path in folder.glob("*.hsaco")
            for code in compiling.load(path)
        }
        self.ranges: list[tuple[int, int]] = []
        self.driver = Driver(folder, folder / "call.c", f"{target}:sramecc+", self._launched)
        self.c = self.driver.c
        self.c.call_workspace_bytes.restype = ctypes.c_size_t
        self.c.call_error.restype = ctypes.c_char_p

    def create(self) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        assert self.c.call_create(ctypes.byref(handle)) == 0
        return handle

    def run(self, inputs: Mapping[str, Any]) -> list[Any]:
        """The results of the call."""
        handle = self.create()
        tensors = [
            inputs[one.name]
            if one.name in inputs
            else torch.empty(one.shape, dtype=getattr(torch, one.dtype)).fill_(7)
            for one in self.buffers
        ]
        workspace = torch.full((self.c.call_workspace_bytes(handle) + 16,), 0xAA, dtype=torch.uint8)
        passed = [*tensors, workspace]
        self.ranges = [(one.data_ptr(), one.data_ptr() + one.nbytes) for one in passed]
        addresses = [ctypes.c_void_p(one.data_ptr()) for one in passed]
        status = self.c.call_run(handle, *addresses, ctypes.c_void_p(7))
        assert not self.driver.failures, self.driver.failures
        assert status == 0
        assert self.c.call_destroy(handle) == 0
        assert self.driver.open == 0
        return [
            one
            for one, buffer in zip(tensors, self.buffers, strict=True)
            if buffer.name not in inputs
        ]

    def _launched(self, code: int, symbol: str, shape: Sequence[int], segment: bytes) -> None:
        found = [
            one
            for (name, size), one in self.codes.items()
            if name == symbol and ctypes.string_at(code, size) == one.stages["hsaco"]
        ]
        assert len(found) == 1
        grid, block = (*shape[:3],), (*shape[3:6],)
        launch = Launch(found[0], grid, block, (), segment, shape[6])  # type: ignore[arg-type]
        Emulator(threads=1).run(launch, self.ranges)


@pytest.mark.parametrize(
    ("operator", "sizes", "target"),
    [
        ("matmul", SPLIT, "gfx942"),
        ("softmax", {"rows": 3, "columns": 130, "dtype": "float32"}, "gfx1201"),
        ("attention_varlen", registry.operator("attention_varlen").cases[0], "gfx942"),
        pytest.param("matmul", SPLIT, "gfx1201", marks=pytest.mark.thorough),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.operators
def test_results_through_the_launcher_are_those_of_the_operator(
    tmp_path: Path, operator: str, sizes: Mapping[str, Any], target: str
) -> None:
    import wavecast

    exported = Exported(tmp_path, operator, sizes, target)
    chosen = exported.operator
    inputs = chosen.inputs(Make(seed=3), **sizes)
    tensors = {name: one for name, one in inputs.items() if isinstance(one, torch.Tensor)}
    with wavecast.device(target):
        expected = chosen.call(**inputs)
    results = exported.run(tensors)
    wanted = expected if isinstance(expected, (list, tuple)) else [expected]
    assert len(results) == len(wanted)
    for got, want in zip(results, wanted, strict=True):
        assert torch.equal(got.view(torch.uint8), want.contiguous().view(torch.uint8))


@pytest.mark.operators
def test_a_launcher_says_what_is_wrong_and_unloads_all(tmp_path: Path) -> None:
    exported = Exported(tmp_path, "matmul", SPLIT, "gfx942")
    c, driver = exported.c, exported.driver
    assert c.call_create(None) == -3
    handle = exported.create()
    assert c.call_workspace_bytes(handle) > 0
    address = ctypes.c_void_p(4096)
    stream = ctypes.c_void_p(7)
    assert c.call_run(handle, address, None, address, address, stream) == -3
    assert c.call_run(handle, address, address, address, None, stream) == -3
    assert c.call_run(handle, address, ctypes.c_void_p(4100), address, address, stream) == -4
    assert c.call_run(handle, address, address, address, ctypes.c_void_p(4100), stream) == -4
    assert b"16 bytes" in c.call_error(-4)
    assert c.call_error(500) == b"an error of the driver"
    assert c.call_destroy(handle) == 0
    for call in (1, 2):
        driver.fail(call)
        assert c.call_create(ctypes.byref(handle)) == 500
        assert handle.value is None
        assert driver.open == 0
    (ctypes.c_char * 256).in_dll(c, "test_gpu").value = b"gfx9420"
    assert c.call_create(ctypes.byref(handle)) == -1


@pytest.mark.operators
def test_two_vendors_and_the_manifest(tmp_path: Path) -> None:
    sizes = {"rows": 64, "columns": 512, "dtype": "float32"}
    devices = [arch.load(name) for name in ("gfx942", "gfx1100", "sm_90")]
    files = export_files("wc", export(registry.operator("softmax"), sizes, devices))
    assert sorted(files) == [
        "wc.c",
        "wc.gfx1100.softmax_kernel.hsaco",
        "wc.gfx942.softmax_kernel.hsaco",
        "wc.h",
        "wc.json",
        "wc.sm_90.softmax_kernel.cubin",
        "wc_code.h",
    ]
    assert b"#ifdef WC_CUDA" in files["wc.c"]
    document = validated(json.loads(files["wc.json"]), "wavecast.export/1")
    assert [one["target"] for one in document["targets"]] == ["gfx942", "gfx1100", "sm_90"]
    for target in document["targets"]:
        (launch,) = target["launches"]
        assert launch["low"] <= launch["seconds"] <= launch["high"]
        assert launch["file"] in files


LANGUAGES = {"gcc": ["-std=c99", "-Wpedantic"], "g++": ["-x", "c++", "-std=c++11"]}


@pytest.mark.operators
def test_a_launcher_needs_no_headers_of_a_vendor(tmp_path: Path) -> None:
    """For either vendor, in C and in C++, without a warning; what it then lacks are the functions
    that the driver's library exports."""
    sizes = {"rows": 64, "columns": 512, "dtype": "float32"}
    devices = [arch.load(name) for name in ("gfx942", "sm_90")]
    files = export_files("wc", export(registry.operator("softmax"), sizes, devices))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    compilers = {name: options for name, options in LANGUAGES.items() if shutil.which(name)}
    if not compilers:
        pytest.skip("needs gcc or g++")
    for compiler, options in compilers.items():
        for vendor, macros in (("hip", []), ("cu", ["-DWC_CUDA"])):
            made = tmp_path / f"{compiler}.{vendor}.o"
            flags = ["-Wall", "-Wextra", "-Werror", "-nostdlib", "-c", *options, *macros]
            subprocess.run([compiler, *flags, str(tmp_path / "wc.c"), "-o", str(made)], check=True)
            lacking = undefined_symbols(made)
            assert {one for one in lacking if one.startswith(vendor)} == lacking - C_LIBRARY
            assert len(lacking) > 10


C_LIBRARY = {
    "memcpy",
    "memset",
    "strcmp",
    "strcspn",
    "malloc",
    "calloc",
    "free",
    "__stack_chk_fail",
}


def undefined_symbols(made: Path) -> set[str]:
    symbols: Any = ELFFile(io.BytesIO(made.read_bytes())).get_section_by_name(".symtab")
    names = {one.name for one in symbols.iter_symbols() if one["st_shndx"] == "SHN_UNDEF"}
    return names - {"", "_GLOBAL_OFFSET_TABLE_"}


PROGRAM = """
#include <cmath>
#include <cstdio>
#include <vector>
#include "wc.h"
extern "C" int hipMalloc(void **, size_t);
extern "C" int hipMemcpy(void *, const void *, size_t, int);
int main() {
    wc *handle;
    int status = wc_create(&handle);
    if (status) { std::puts(wc_error(status)); return 1; }
    std::vector<float> x(64 * 512), y(x.size());
    for (size_t i = 0; i < x.size(); i++) x[i] = std::sin((float)i);
    void *in, *out;
    size_t bytes = x.size() * sizeof(float);
    if (hipMalloc(&in, bytes) || hipMalloc(&out, bytes)) return 2;
    if (hipMemcpy(in, x.data(), bytes, 1)) return 2;
    if (wc_run(handle, in, out, nullptr, nullptr) || hipMemcpy(y.data(), out, bytes, 2)) return 3;
    double worst = 0;
    for (size_t row = 0; row < x.size(); row += 512) {
        double sum = 0;
        for (size_t i = row; i < row + 512; i++) sum += std::exp((double)x[i]);
        for (size_t i = row; i < row + 512; i++)
            worst = std::fmax(worst, std::fabs(std::exp((double)x[i]) / sum - y[i]));
    }
    std::printf("largest error %s\\n", worst < 1e-7 ? "below 1e-7" : "too large");
    return wc_destroy(handle);
}
"""


@pytest.mark.operators
@pytest.mark.hip
def test_a_program_in_cpp_runs_on_the_emulated_gpu(tmp_path: Path) -> None:
    """Built by gcc and g++ without headers of ROCm, linked with the runtime of the emulator."""
    from wavecast.runtimes.hip_host.library import runtime_folder

    if shutil.which("gcc") is None or shutil.which("g++") is None:
        pytest.skip("needs gcc and g++")
    sizes = {"rows": 64, "columns": 512, "dtype": "float32"}
    files = export_files("wc", export(registry.operator("softmax"), sizes, [arch.load("gfx942")]))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "main.cpp").write_text(PROGRAM)
    link = [f"-L{runtime_folder()}", "-lamdhip64", "-o", "program"]
    for command in (["gcc", "-c", "wc.c"], ["g++", "main.cpp", "wc.o", *link]):
        subprocess.run(command, cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "wavecast", "run", "--arch", "gfx942", "./program"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "largest error below 1e-7\n"), ended.stderr


def test_what_the_launcher_says_of_drivers_is_theirs(tmp_path: Path) -> None:
    """By the headers of ROCm and CUDA that Triton contains."""
    backends = Path(triton.__file__).parent / "backends"
    facts = {
        "amd": ("hip/hip_runtime_api.h", "offsetof(hipDeviceProp_t, gcnArchName) == 1160",
                "sizeof(hipDeviceProp_t) <= 4096", "sizeof(hipError_t) == sizeof(int)",
                "(size_t)HIP_LAUNCH_PARAM_BUFFER_POINTER == 1",
                "(size_t)HIP_LAUNCH_PARAM_BUFFER_SIZE == 2", "(size_t)HIP_LAUNCH_PARAM_END == 3"),
        "nvidia": ("cuda.h", "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == 75",
                   "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == 76",
                   "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == 8",
                   "sizeof(CUdeviceptr) == sizeof(unsigned long long)",
                   "(size_t)CU_LAUNCH_PARAM_BUFFER_POINTER == 1",
                   "(size_t)CU_LAUNCH_PARAM_BUFFER_SIZE == 2", "(size_t)CU_LAUNCH_PARAM_END == 0"),
    }  # fmt: skip
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    for vendor, (header, *conditions) in facts.items():
        checks = "\n".join(f"    if (!({one})) return {n + 1};" for n, one in enumerate(conditions))
        source, made = tmp_path / f"{vendor}.c", tmp_path / vendor
        head = f"#include <stddef.h>\n#include <{header}>\n"
        source.write_text(f"{head}int main(void) {{\n{checks}\n    return 0;\n}}\n")
        folder = f"-I{backends / vendor / 'include'}"
        command = ["gcc", "-w", "-D__HIP_PLATFORM_AMD__", folder, str(source), "-o", str(made)]
        subprocess.run(command, check=True)
        assert subprocess.run([made], check=False).returncode == 0


@pytest.mark.parametrize(
    ("operator", "says"),
    [
        ("adamw_foreach", "it passes a table of addresses"),
        ("layer_norm_backward", "it computes aten::sum of memory of the call on the host"),
        ("embedding_backward", "it computes aten::sort of indices on the host"),
    ],
)
@pytest.mark.operators
def test_what_needs_the_host_is_refused(operator: str, says: str) -> None:
    chosen = registry.operator(operator)
    with pytest.raises(UsageError, match=f"^{operator} cannot be exported: {says}"):
        export(chosen, chosen.cases[0], [arch.load("gfx942")])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing"], "unknown operator 'nothing'"),
        (["softmax", "--shape", "row=3"], "softmax has no axis 'row'"),
        (["softmax", "--shape", "rows"], "'rows' is not NAME=VALUE"),
        (["softmax", "--shape", "rows=many"], "rows must be an integer from 1, not 'many'"),
        (["softmax", "--arch", ","], "no name in ','"),
        (["softmax", "--arch", "mi300x,mi325x"], "run the same code, that of gfx942"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["export", *arguments, "-o", str(tmp_path / "libcall")])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_prefix_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["export", "softmax"])
    assert ended.value.code == 2
    assert "--output is missing (PREFIX)" in capsys.readouterr().err


@pytest.mark.operators
def test_python_has_the_document_and_the_files_of_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    by_command, by_python = tmp_path / "command", tmp_path / "python"
    shape = "rows=64,columns=512,dtype=float32"
    prefix = str(by_command / "libwc")
    with pytest.raises(SystemExit):
        run(["export", "softmax", "--shape", shape, "-o", prefix, "-f", "json"])
    sizes = {"rows": 64, "columns": 512, "dtype": "float32"}
    exported = wavecast.export("softmax", shape=sizes, output=by_python / "libwc")
    assert json.loads(capsys.readouterr().out) == exported.to_dict()
    assert str(exported).splitlines() == [*map(str, exported.files)]
    assert {file.name: file.read_bytes() for file in by_command.iterdir()} == {
        file.name: file.read_bytes() for file in exported.files
    }


def test_a_name_that_c_does_not_allow(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'two-words' cannot name"):
        export_files("two-words", [])
