"""HIP's own calls in scripts of several ranks: devices, and handles of tensors' memory for kernels
that find peers by a table of addresses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast

pytestmark = [pytest.mark.torch, pytest.mark.hip]

TABLE = """
import ctypes, os, torch, torch.distributed as dist, triton, triton.language as tl
hip = ctypes.CDLL("libamdhip64.so")

class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]

@triton.jit
def put(heap, tables, own: tl.constexpr, peer: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    here, there = tl.load(tables + own), tl.load(tables + peer)
    offset = heap.to(tl.uint64) - here
    target = (there + offset).to(tl.pointer_type(tl.float32))
    tl.store(target + i, i.to(tl.float32) + own)

dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
count, device = ctypes.c_int(), ctypes.c_int()
assert hip.hipGetDeviceCount(ctypes.byref(count)) == 0 and count.value == world
assert hip.hipSetDevice(rank) == 0 and torch.cuda.current_device() == rank
assert hip.hipGetDevice(ctypes.byref(device)) == 0 and device.value == rank
torch.cuda.memory.change_current_allocator(
    torch.cuda.memory.CUDAPluggableAllocator(hip._name, "hipMalloc", "hipFree"))
heap = torch.empty(128, device=f"cuda:{rank}")
handle = Handle()
assert hip.hipIpcGetMemHandle(ctypes.byref(handle), ctypes.c_void_p(heap.data_ptr())) == 0
handles = [None] * world
dist.all_gather_object(handles, bytes(handle))
bases = []
for peer in range(world):
    if peer == rank:
        bases.append(heap.data_ptr())
        continue
    address = ctypes.c_void_p()
    hip.hipIpcOpenMemHandle.argtypes = [ctypes.POINTER(ctypes.c_void_p), Handle, ctypes.c_uint]
    copy = Handle.from_buffer_copy(handles[peer])
    assert hip.hipIpcOpenMemHandle(ctypes.byref(address), copy, 1) == 0
    bases.append(address.value)
tables = torch.tensor(bases, dtype=torch.int64, device=f"cuda:{rank}").view(torch.uint64)
peer = (rank + 1) % world
put[(1,)](heap, tables, rank, peer, 128)
torch.cuda.synchronize()
dist.barrier()
assert (heap.cpu() == torch.arange(128) + (rank - 1) % world).all(), heap
print(f"rank {rank}\\n", end="")  # threads may write between a line and its end
"""


def test_kernels_reach_peers_by_handles_of_tensors(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    script = tmp_path / "table.py"
    script.write_text(TABLE)
    done = wavecast.run(script, arch="gfx942", gpus=3)
    assert (done.code, done.traceback) == (0, "")
    assert sorted(capfd.readouterr().out.splitlines()) == [f"rank {r}" for r in range(3)]
