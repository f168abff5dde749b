"""Libraries of ROCm that extension modules depend on: loaded where a process has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.warm_python import run_python
from wavecast.compile import process, toolchain

pytestmark = [pytest.mark.hip, pytest.mark.torch]
SOURCE = """
int hipblasSscal(void *, int, const float *, float *, int);
int hipblasCreate(void **);
int rocsolver_sgetrf(int);
int roctxMarkA(const char *);
int scaled(float *x, int n) {
    void *handle;
    float by = 3;
    roctxMarkA("here");
    return hipblasCreate(&handle) || hipblasSscal(handle, n, &by, x, 1);
}
int factored(void) { return rocsolver_sgetrf(1); }
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


def test_functions_of_the_host_and_names_of_others(tmp_path: Path) -> None:
    zig = (toolchain.find().compiler[0], "cc", "-target", toolchain.zig_target(), "-shared", "-w")
    stubs = []
    for name, functions in (
        ("libhipblas.so.3", ("hipblasSscal", "hipblasCreate")),
        ("librocsolver.so.0", ("rocsolver_sgetrf",)),
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
    assert lines[0] == "0 [0.0, 3.0, 6.0, 9.0]", result.stderr
    assert "rocsolver_sgetrf is not supported" in lines[1]
