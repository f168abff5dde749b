"""Libraries of ROCm that extension modules depend on: loaded where a process has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtimes.hip_host.compiler import c_compiler
from tests.warm_python import run_python
from wavecast.compile import process

pytestmark = [pytest.mark.hip, pytest.mark.torch]
SOURCE = """
int hipblasSscal(void *, int, const float *, float *, int);
int hipblasCreate(void **);
int rocfft_setup(int);
int rocblas_create_handle(void **);
int rocblas_sscal(void *, int, const float *, float *, int);
int roctxMarkA(const char *);
int scaled(float *x, int n) {
    void *handle;
    float by = 3;
    roctxMarkA("here");
    if (hipblasCreate(&handle) || hipblasSscal(handle, n, &by, x, 1)) return 1;
    by = 2;
    return rocblas_create_handle(&handle) || rocblas_sscal(handle, n, &by, x, 1);
}
int factored(void) { return rocfft_setup(1); }
"""
SCRIPT = """
import ctypes, sys, torch, wavecast
from wavecast.emulate.errors import Unsupported
x = torch.arange(4.0)
with wavecast.device("gfx942"):
    library = ctypes.CDLL(sys.argv[1])
    print(library.scaled(ctypes.c_void_p(x.data_ptr()), 4), x.tolist())
    try:
        library.factored()
    except Unsupported as error:
        print(error)
"""


ENDING = """
int hipMallocArray(void);
void exit(int);
void ending(void) {
    hipMallocArray();
    exit(3);
}
"""
ENDS = """
import ctypes, sys, wavecast
with wavecast.device("gfx942"):
    ctypes.CDLL(sys.argv[1]).ending()
"""


def test_a_program_that_ends_at_an_error_shows_its_reason(tmp_path: Path) -> None:
    """Libraries end the process themselves; Python never raises the reason."""
    zig = (*c_compiler(), "-shared", "-w")
    stub, library = tmp_path / "stub.so", tmp_path / "ends.so"
    (tmp_path / "stub.c").write_text("int hipMallocArray(void) { return 1; }")
    (tmp_path / "ends.c").write_text(ENDING)
    named = ("-Wl,-soname,libamdhip64.so.7", "-o", stub)
    assert not process.run([*zig, tmp_path / "stub.c", *named]).status
    assert not process.run([*zig, tmp_path / "ends.c", stub, "-o", library]).status
    result = run_python("-c", ENDS, str(library))
    assert result.returncode == 3
    assert "hipMallocArray is not supported" in result.stderr


def test_functions_of_the_host_and_names_of_others(tmp_path: Path) -> None:
    zig = (*c_compiler(), "-shared", "-w")
    stubs = []
    for name, functions in (
        ("libhipblas.so.3", ("hipblasSscal", "hipblasCreate")),
        ("librocblas.so.5", ("rocblas_create_handle", "rocblas_sscal")),
        ("librocfft.so.0", ("rocfft_setup",)),
        ("libroctx64.so.4", ("roctxMarkA",)),
    ):
        source = tmp_path / f"{name}.c"
        source.write_text("".join(f"int {function}() {{ return 9; }}\n" for function in functions))
        output = tmp_path / f"{name}.stub.so"
        assert not process.run([*zig, source, f"-Wl,-soname,{name}", "-o", output]).status
        stubs.append(output)
    source, library = tmp_path / "needs.c", tmp_path / "needs.so"
    source.write_text(SOURCE)
    assert not process.run([*zig, source, *stubs, "-o", library]).status
    result = run_python("-c", SCRIPT, str(library))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "0 [0.0, 6.0, 12.0, 18.0]", result.stderr
    assert "rocfft_setup is not supported" in lines[1]
