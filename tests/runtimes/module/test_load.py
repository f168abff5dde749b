"""`wavecast.load`: kernels of HIP, assembly and code objects called with numpy and PyTorch."""

from __future__ import annotations

import ctypes
import re
import struct
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast
from wavecast.compile import bundle, toolchain
from wavecast.compile.codeobject import Parameter
from wavecast.emulate.errors import ExecutionError
from wavecast.errors import (
    InputError,
    LaunchError,
    MissingTool,
    UnknownName,
    UsageError,
    WavecastError,
)
from wavecast.isa.program import KernelArgument
from wavecast.runtimes.module.arguments import ArgumentSlot, pack
from wavecast.runtimes.module.memory import Memory

ROOT = Path(__file__).parents[3]
SAXPY = ROOT / "tests/compile/data/saxpy.gfx942.s"

MODULE = b"""
struct Pair { float scale; int shift; double bias; };
namespace gpu {
__global__ void blocks(int *p) { p[blockIdx.x] = blockDim.x * 1000 + gridDim.x; }
}
template <int N> __global__ void fill(float *p) { p[threadIdx.x] = N; }
template __global__ void fill<1>(float *);
template __global__ void fill<2>(float *);
__global__ void apply(double *out, Pair pair, bool twice, _Float16 half, char small) {
  out[threadIdx.x] = pair.bias + pair.scale * (threadIdx.x + pair.shift) * (twice ? 2 : 1)
                     + (double)half + small;
}
__global__ void maybe(int *out, const int *in) { *out = in ? *in : -1; }
__global__ void through(float **rows) { rows[blockIdx.x][threadIdx.x] += 1; }
__global__ void dynamic(int *out, int n) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = shared[n - 1 - threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def compiler() -> None:
    try:
        toolchain.find()
    except MissingTool as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def module(compiler: None) -> wavecast.runtimes.module.Module:
    return wavecast.load(MODULE)


@pytest.fixture(scope="module")
def saxpy() -> wavecast.runtimes.module.Function:
    return wavecast.load(SAXPY)["saxpy"]


def operands(n: int = 500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.arange(n, dtype=np.float32)
    return x, np.ones(n, np.float32), 2 * x + 1


@pytest.mark.parametrize("grid", [2, (2,), (2, 1), (2, 1, 1), [2, 1, 1], np.int64(2)])
def test_assembly_from_its_metadata(saxpy, grid) -> None:
    x, y, expected = operands()
    saxpy(grid, (256, 1, 1), 2.0, x, y, len(x))
    assert (y == expected).all()


def test_a_code_object_and_compiled_code(tmp_path: Path, module) -> None:
    code = module["maybe"].code
    path = tmp_path / "module.hsaco"
    path.write_bytes(code.stages["hsaco"])
    again = wavecast.load(path, arch="mi300x")
    assert list(again) == list(module)
    for found in (again["maybe"], wavecast.load(code)["maybe"]):
        out = np.zeros(1, np.int32)
        found(1, 1, out, np.array([5], np.int32))
        assert out == [5]


def test_a_bundle_for_several_targets(compiler: None) -> None:
    members = {}
    for target in ("gfx942", "gfx1100"):
        code = wavecast.load(b"__global__ void k(int *p) { *p = warpSize; }", arch=target)["k"].code
        members[f"hip-amdgcn-amd-amdhsa--{target}".encode()] = code.stages["hsaco"]
    head, data = bundle.MAGIC + struct.pack("<Q", len(members)), b""
    start = len(head) + sum(24 + len(triple) for triple in members)
    for triple, content in members.items():
        head += struct.pack("<QQQ", start + len(data), len(content), len(triple)) + triple
        data += content
    with pytest.raises(UsageError, match=r'holds code for gfx942, gfx1100.*arch="gfx942"'):
        wavecast.load(head + data)
    for target, lanes in (("gfx942", 64), ("gfx1100", 32)):
        out = np.zeros(1, np.int32)
        wavecast.load(head + data, arch=target)["k"](1, 1, out)
        assert out == [lanes]


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_hidden_arguments_say_the_launch(compiler: None, arch: str) -> None:
    blocks = wavecast.load(MODULE, arch=arch)["gpu::blocks"]
    for grid, block in ((3, 1), (1, 1), (2, 96)):
        out = np.zeros(grid, np.int32)
        blocks(grid, block, out)
        assert (out == block * 1000 + grid).all()


def test_numbers_of_64_bits_without_a_type_take_arrays() -> None:
    """Kernels of Tensile declare their pointers as numbers."""
    layout = KernelArgument("AddressD", 0, 8, "by_value")
    slot = ArgumentSlot(1, layout, Parameter("AddressD", "", 0, 8))
    array, memory = np.zeros(4), Memory("k")
    packed, _ = pack([slot], 8, [array], memory)
    assert packed == struct.pack("<Q", array.ctypes.data)
    assert [start for start, _ in memory.ranges] == [array.ctypes.data]


def test_values_by_value(module) -> None:
    class Pair(ctypes.Structure):
        _fields_ = (
            ("scale", ctypes.c_float),
            ("shift", ctypes.c_int),
            ("bias", ctypes.c_double),
        )

    record = np.array((0.5, 3, 10.0), dtype=[("s", "f4"), ("i", "i4"), ("b", "f8")])[()]
    expected = 10.0 + (np.arange(8) + 3) + 1.5 - 7
    for pair in (Pair(0.5, 3, 10.0), bytes(Pair(0.5, 3, 10.0)), record):
        out = np.zeros(8)
        module["apply"](1, 8, out, pair, True, 1.5, -7)
        assert (out == expected).all()


VECTORS = b"""
__global__ void sum(float *out, uint2 a, float4 b, uchar3 c, dim3 d) {
  out[0] = a.x + 10 * a.y; out[1] = b.x - b.w; out[2] = c.z; out[3] = d.x * d.y * d.z;
}
"""


def test_vectors_are_tuples_or_arrays(compiler: None) -> None:
    total, out = wavecast.load(VECTORS)["sum"], np.zeros(4, np.float32)
    total(1, 1, out, (7, 2), [1.5, 0, 0, 0.5], np.array([1, 2, 255], np.uint8), (2, 3, 4))
    assert out.tolist() == [27, 1.0, 255, 24]
    for wrong, message in (
        ((7,), "has 2 elements, the value has 1"),
        ((7, -1), r"uint32 cannot hold \(7, -1\)"),
        ((7, 0.5), "takes elements of uint32"),
    ):
        with pytest.raises(LaunchError, match=message):
            total(1, 1, out, wrong, (0, 0, 0, 0), (1, 2, 3), (1, 1, 1))
    with pytest.raises(LaunchError, match="not a vector of 2 elements"):
        wavecast.load(MODULE)["dynamic"](1, 1, np.zeros(1, np.int32), (1, 2))


def test_a_prediction_of_a_function_has_what_ifs(saxpy) -> None:
    x, y, _ = operands()
    found = saxpy.predict(2, 256, 2.0, x, y, len(x), what_if=True)
    assert found.what_if
    assert all(change.seconds > 0 for change in found.what_if)
    assert not saxpy.predict(2, 256, 2.0, x, y, len(x)).what_if


def test_none_is_a_null_pointer(module) -> None:
    out = np.zeros(1, np.int32)
    module["maybe"](1, 1, out, None)
    assert out == [-1]


def test_dynamic_lds(module) -> None:
    out = np.zeros(64, np.int32)
    module["dynamic"](1, 64, out, 64, dynamic_lds=256)
    assert (out == np.arange(64)[::-1]).all()
    with pytest.raises(LaunchError, match=r"65,540 dynamic \(a workgroup on gfx942 .* 65,536"):
        module["dynamic"](1, 64, out, 64, dynamic_lds=65540)


def test_pointers_inside_arrays_reach_memory_that_is_named(module) -> None:
    rows = np.zeros((2, 4), np.float32)
    pointers = np.array([row.ctypes.data for row in rows], np.uint64)
    with pytest.raises(ExecutionError, match=r"touches the address 0x[0-9a-f]+, "):
        module["through"](2, 4, pointers)
    module["through"](2, 4, pointers, memory=(rows,))
    assert (rows == 1).all()


def test_views_reach_their_whole_allocation(saxpy) -> None:
    storage, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    saxpy(1, 256, 1.0, storage[100:], y[::2], 10)
    assert (y[:10] == 1 + np.arange(100, 110)).all()
    saxpy(1, 256, 1.0, storage[5:0:-1], y[20:21], 30)
    assert (y[20:50] == 1 + np.arange(5, 35)).all()
    strided = np.lib.stride_tricks.as_strided(storage[10:], (4, 4), (4, 4))
    saxpy(1, 256, 1.0, strided, y[100:], 500)
    assert (y[100:600] == 1 + np.arange(10, 510)).all()


def test_memory_outside_is_refused(saxpy) -> None:
    x, y, _ = operands()
    with pytest.raises(ExecutionError, match=r"saxpy: .*touches argument \d\[500\], outside"):
        saxpy(4, 256, 2.0, x, y, 1000)
    with pytest.raises(ExecutionError, match="touches "):
        saxpy(1, 64, 2.0, np.zeros(0, np.float32), y, 64)


def test_read_only_arrays_are_read_and_never_written(saxpy, tmp_path: Path) -> None:
    x, y, expected = operands()
    (tmp_path / "x").write_bytes(x.tobytes())
    mapped = np.memmap(tmp_path / "x", np.float32, "r")
    saxpy(2, 256, 2.0, mapped[:], y, len(x))
    assert (y == expected).all()
    y.flags.writeable = False
    with pytest.raises(LaunchError, match=r"writes to argument 3, a read-only"):
        saxpy(2, 256, 2.0, x, y, len(x))
    assert (y == expected).all()


@pytest.mark.torch
def test_tensors(saxpy) -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.arange(1000.0), torch.ones(1000)
    saxpy(1, 256, 2.0, x[100:], y[10:], 10)
    assert torch.equal(y[10:20], 2 * x[100:110] + 1)
    with wavecast.device("gfx942"):
        y = torch.ones(500, device="cuda")
        saxpy(1, 256, 2.0, torch.arange(500.0, device="cuda"), y, 500)
    assert torch.equal(y, 2 * x[:500] + 1)
    with pytest.raises(LaunchError, match=r"argument 2 lies on meta"):
        saxpy(1, 64, 2.0, x.to("meta"), y, 64)
    with pytest.raises(LaunchError, match="to_dense"):
        saxpy(1, 64, 2.0, x.to_sparse(), y, 64)
    freed = torch.ones(64)
    freed.untyped_storage().resize_(0)
    with pytest.raises(LaunchError, match=r"freed: its storage has 0 of 256 bytes"):
        saxpy(1, 64, 2.0, freed, y, 64)


BAD_CALLS = {
    "too few": ((1, 64, 2.0), r"takes 4 arguments, 1 were given"),
    "a list": ((1, 64, 2.0, [1.0], None, 4), r"argument 2 takes a pointer, not list"),
    "a float": ((1, 64, 2.0, 1.5, None, 4), r"argument 2 takes a pointer, not 1\.5"),
    "an object": ((1, 64, 2.0, np.array([None]), None, 4), r"Python objects"),
    "byte order": ((1, 64, 2.0, np.zeros(4, ">f4"), None, 4), r"byte order"),
    "text": ((1, 64, 2.0, None, None, "4"), r"argument 4 takes a value of 4 bytes, not str"),
    "too large": ((1, 64, 2.0, None, None, 1 << 32), r"argument 4: 4 bytes cannot hold"),
    "too long": ((1, 64, 2.0, None, None, b"12345678"), r"has 4 bytes, the value has 8"),
    "wrong scalar": ((1, 64, np.float64(2), None, None, 4), r"argument 1 takes a value of 4 bytes"),
    "grid of 2^31": ((1 << 31, 1, 2.0, None, None, 4), r"a grid of 2147483648"),
    "grid below 0": (((1, -1), 1, 2.0, None, None, 4), r"a grid of -1"),
    "grid of text": (("1", 1, 2.0, None, None, 4), r"a grid of '1'"),
    "grid of fractions": ((1.5, 1, 2.0, None, None, 4), r"a grid of 1\.5"),
    "four axes": (((1, 1, 1, 1), 1, 2.0, None, None, 4), r"a grid of \(1, 1, 1, 1\)"),
    "2^32 items": ((1 << 24, 256, 2.0, None, None, 4), r"2\^32 work-items"),
    "no block": ((1, 0, 2.0, None, None, 4), r"a block of 0"),
    "large block": ((1, 512, 2.0, None, None, 4), r"512 work-items \(.* at most 256"),
}


@pytest.mark.parametrize(("call", "says"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_calls_are_one_clear_error(saxpy, call: tuple, says: str) -> None:
    with pytest.raises(LaunchError, match=says) as caught:
        saxpy(*call)
    assert "saxpy" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_types_of_the_source_are_checked(module) -> None:
    out, small = np.zeros(8), np.zeros(1, np.int32)
    with pytest.raises(LaunchError, match=r"argument 1 \(out: double\*\) points at float64, not"):
        module["apply"](1, 8, small, bytes(16), True, 1.5, 0)
    with pytest.raises(LaunchError, match=r"argument 5 \(small: char\): char cannot hold 200"):
        module["apply"](1, 8, out, bytes(16), True, 1.5, 200)
    with pytest.raises(LaunchError, match=r"takes int8, not 2\.5 \(give an integer\)"):
        module["apply"](1, 8, out, bytes(16), True, 1.5, 2.5)
    with pytest.raises(LaunchError, match=r"takes a value of 16 bytes, not 3"):
        module["apply"](1, 8, out, 3, True, 1.5, 2)
    module["maybe"](1, 1, small.view(np.uint32), None)  # the sign does not matter


def test_numbers_need_a_type_where_the_source_gives_a_name_for_one(compiler: None) -> None:
    kernels = wavecast.load(
        b"typedef float real;"
        b"__global__ void scale(real *out, real by) { *out *= by; }"
        b"template <class T> __global__ void add(T *o, T by, const uint64_t n) { *o += by * n; }"
        b"template __global__ void add<double>(double *, double, size_t);"
    )
    out, double = np.ones(1, np.float32), np.ones(1)
    with pytest.raises(LaunchError, match=r"2 \(by: real\) may be an integer or a float"):
        kernels["scale"](1, 1, out, 2)
    kernels["scale"](1, 1, out, np.float32(2))
    with pytest.raises(LaunchError, match=r"2 \(by: T\) may be an integer or a float"):
        kernels["add"](1, 1, double, 2, 3)
    kernels["add"](1, 1, double, 2.0, 3)
    assert (out[0], double[0]) == (2, 7)


@pytest.mark.parametrize("code", [None, {}, [], ["saxpy.s"], 3])
def test_what_is_no_code_is_refused(code) -> None:
    with pytest.raises(UsageError, match="load takes"):
        wavecast.load(code)


@pytest.mark.parametrize("limit", ["threads", "max_instructions"])
@pytest.mark.parametrize("number", [0, -1])
def test_limits_are_at_least_one(limit: str, number: int) -> None:
    with pytest.raises(UsageError, match=f"{limit}={number}"):
        wavecast.load(SAXPY, **{limit: number})


def test_dynamic_lds_is_a_whole_number(saxpy) -> None:
    with pytest.raises(LaunchError, match=r"saxpy: dynamic_lds=1\.5"):
        saxpy(1, 64, 2.0, None, None, 0, dynamic_lds=1.5)


def test_an_empty_grid_runs_nothing(saxpy) -> None:
    x, y, _ = operands()
    for grid in (0, (4, 0), (0, 0, 0)):
        saxpy(grid, 256, 2.0, x, y, len(x))
    assert (y == 1).all()


def test_an_empty_grid_has_no_time(saxpy) -> None:
    x, y, _ = operands()
    with pytest.raises(LaunchError, match="no workgroup"):
        saxpy.predict((4, 0), 256, 2.0, x, y, len(x))


def test_assembly_without_metadata_takes_the_segment() -> None:
    text = re.sub(r"\t\.amdgpu_metadata.*", "", SAXPY.read_text(), flags=re.DOTALL)
    bare = wavecast.load(text.encode())["saxpy"]
    x, y, expected = operands()
    segment = struct.pack("<f4xQQi", 2.0, x.ctypes.data, y.ctypes.data, 256)
    segment = segment.ljust(32, b"\0") + struct.pack("<3I3H", 1, 1, 1, 256, 1, 1)
    bare(1, 256, segment, memory=(x, y))
    assert (y[:256] == expected[:256]).all()
    assert (y[256:] == 1).all()
    with pytest.raises(LaunchError, match="the whole argument segment as bytes"):
        bare(1, 256, 2.0, x, y, 256)
    with pytest.raises(LaunchError, match=r"argument segment has \d+ bytes, not 4096"):
        bare(1, 256, bytes(4096))


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (".offset:         24", ".offset:         -24", "malformed argument in metadata"),
        (".offset:         24", ".offset:         0x1000000000", "malformed argument in metadata"),
        (".size:           8", ".size:           4", r"argument 2 has 4 bytes, not 8"),
        ("by_value", "pipe", r"argument 1 is of kind pipe"),
    ],
)
def test_damaged_metadata_is_one_clear_error(before: str, after: str, says: str) -> None:
    text = SAXPY.read_text()
    assert before in text
    x, y, _ = operands()
    with pytest.raises(WavecastError, match=says):
        wavecast.load(text.replace(before, after, 1).encode())["saxpy"](2, 256, 2.0, x, y, len(x))


def test_names(module) -> None:
    assert "gpu::blocks" in module
    assert "blocks" in module
    assert "fill" not in module
    assert len(module) == 7
    with pytest.raises(UsageError, match=r"no kernel is called 'saxby'.*gpu::blocks.*maybe"):
        module["saxby"]
    with pytest.raises(UsageError, match=r"several kernels are called 'fill'.*<…1…>, fill<…2…>"):
        module["fill"]
    assert module["fill<…2…>"].symbol == "_Z4fillILi2EEvPf"
    out = np.zeros(4, np.float32)
    module["_Z4fillILi2EEvPf"](1, 4, out)
    assert (out == 2).all()
    assert module.get("nothing") is None


def test_compiler_options(compiler: None) -> None:
    source = b"__global__ void k(int *p) { *p = VALUE; }"
    out = np.zeros(1, np.int32)
    wavecast.load(source, options=["-DVALUE=42"])["k"](1, 1, out)
    assert out == [42]
    with pytest.raises(UsageError, match="options are for HIP and CUDA source"):
        wavecast.load(SAXPY, options=["-DVALUE=42"])


@pytest.mark.parametrize(
    ("code", "arch", "error", "says"),
    [
        ("nowhere.hip", "", InputError, "no such file: nowhere.hip"),
        (b"", "", InputError, "empty"),
        (b"plain text", "", InputError, "text of no known kind"),
        (SAXPY, "gfx1100", InputError, "for gfx942, not for gfx1100"),
        (SAXPY, "gfx924", UnknownName, "gfx942"),
        (SAXPY, "sm_90", InputError, "not code for sm_90"),
    ],
)
def test_what_cannot_be_loaded(code, arch: str, error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        wavecast.load(code, arch=arch)
