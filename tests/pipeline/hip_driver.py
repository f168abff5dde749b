"""A HIP runtime of a few functions for tests: memory is the host's, launches go to a callback."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HEADER = """
#pragma once
#include <stddef.h>
typedef int hipError_t;
typedef void *hipModule_t;
typedef struct function *hipFunction_t;
typedef void *hipDeviceptr_t;
typedef void *hipStream_t;
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)
#define HIP_LAUNCH_PARAM_END ((void *)3)
hipError_t hipGetDevice(int *);
hipError_t hipGetDevicePropertiesR0600(void *, int);
hipError_t hipModuleLoadData(hipModule_t *, const void *);
hipError_t hipModuleUnload(hipModule_t);
hipError_t hipModuleGetFunction(hipFunction_t *, hipModule_t, const char *);
hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, hipStream_t, void **, void **);
hipError_t hipMemsetD8Async(hipDeviceptr_t, unsigned char, size_t, hipStream_t);
hipError_t hipMemsetD16Async(hipDeviceptr_t, unsigned short, size_t, hipStream_t);
hipError_t hipMemsetD32Async(hipDeviceptr_t, int, size_t, hipStream_t);
hipError_t hipMalloc(void **, size_t);
hipError_t hipMemcpyHtoD(hipDeviceptr_t, void *, size_t);
hipError_t hipFree(void *);
const char *hipGetErrorString(hipError_t);
"""

RUNTIME = """
#include "types.h"
#include <stdlib.h>
#include <string.h>
struct function { const void *code; const char *symbol; };
typedef int (*launched)(const void *, const char *, const unsigned *, const void *, size_t);
char test_gpu[256];
int test_open, test_fails;
launched test_launched;
static struct function functions[64];
static int known;
hipError_t hipGetDevice(int *device) { *device = 0; return 0; }
hipError_t hipGetDevicePropertiesR0600(void *properties, int device)
{ (void)device; memcpy((char *)properties + 1160, test_gpu, 256); return 0; }
hipError_t hipModuleLoadData(hipModule_t *module, const void *code)
{ *module = (void *)code; test_open++; return 0; }
hipError_t hipModuleUnload(hipModule_t module) { (void)module; test_open--; return 0; }
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *symbol)
{
    if (test_fails && !--test_fails) return 500;
    functions[known].code = module;
    functions[known].symbol = symbol;
    *function = &functions[known++];
    return 0;
}
hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned x, unsigned y, unsigned z, unsigned bx,
                                 unsigned by, unsigned bz, unsigned lds, hipStream_t stream,
                                 void **parameters, void **extra)
{
    unsigned shape[7] = {x, y, z, bx, by, bz, lds};
    if (parameters || stream != (hipStream_t)7 || extra[0] != HIP_LAUNCH_PARAM_BUFFER_POINTER
        || extra[2] != HIP_LAUNCH_PARAM_BUFFER_SIZE || extra[4] != HIP_LAUNCH_PARAM_END)
        return 1;
    return test_launched(f->code, f->symbol, shape, extra[1], *(size_t *)extra[3]);
}
hipError_t hipMemsetD8Async(hipDeviceptr_t at, unsigned char value, size_t n, hipStream_t stream)
{ (void)stream; memset(at, value, n); return 0; }
hipError_t hipMemsetD16Async(hipDeviceptr_t at, unsigned short value, size_t n, hipStream_t stream)
{ (void)stream; for (size_t i = 0; i < n; i++) ((unsigned short *)at)[i] = value; return 0; }
hipError_t hipMemsetD32Async(hipDeviceptr_t at, int value, size_t n, hipStream_t stream)
{ (void)stream; for (size_t i = 0; i < n; i++) ((int *)at)[i] = value; return 0; }
hipError_t hipMalloc(void **at, size_t n) { *at = malloc(n); test_open++; return 0; }
hipError_t hipMemcpyHtoD(hipDeviceptr_t at, void *from, size_t n) { memcpy(at, from, n); return 0; }
hipError_t hipFree(void *at) { free(at); test_open--; return 0; }

const char *hipGetErrorString(hipError_t error) { (void)error; return "an error of the driver"; }
"""

Launched = Callable[[int, str, Sequence[int], bytes], None]
"""(address of the code, symbol, grid and block and LDS bytes, kernel argument segment)"""
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.c_void_p,
    ctypes.c_size_t,
)


def compiler() -> list[str]:
    """A C compiler: the system's, or zig's."""
    system = shutil.which("cc")
    return [system] if system else [sys.executable, "-m", "ziglang", "cc"]


class Driver:
    """A launcher that is compiled, without headers of ROCm, with the runtime, as a library of C."""

    def __init__(self, folder: Path, launcher: Path, gpu: str, launched: Launched) -> None:
        (folder / "types.h").write_text(HEADER)
        runtime, library = folder / "runtime.c", folder / "library.so"
        runtime.write_text(RUNTIME)
        flags = [
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            "-fPIC",
            "-shared",
            f"-I{folder}",
        ]
        subprocess.run(
            [*compiler(), *flags, str(launcher), str(runtime), "-o", str(library)], check=True
        )
        self.c = ctypes.CDLL(str(library))
        self.failures: list[BaseException] = []
        self._callback = _CALLBACK(self._called)
        self._launched = launched
        ctypes.c_void_p.in_dll(self.c, "test_launched").value = ctypes.cast(
            self._callback, ctypes.c_void_p
        ).value
        (ctypes.c_char * 256).in_dll(self.c, "test_gpu").value = gpu.encode()

    @property
    def open(self) -> int:
        """Modules that are loaded and memory that is allocated."""
        return ctypes.c_int.in_dll(self.c, "test_open").value

    def fail(self, call: int) -> None:
        """Make a lookup of a function fail: 1 is the next one."""
        ctypes.c_int.in_dll(self.c, "test_fails").value = call

    def _called(self, code: int, symbol: bytes, shape: Any, segment: int, size: int) -> int:
        try:
            data = ctypes.string_at(segment, size)
            self._launched(code, symbol.decode(), shape[:7], data)
        except BaseException as error:  # an exception cannot pass through C
            self.failures.append(error)
            return 999
        return 0
