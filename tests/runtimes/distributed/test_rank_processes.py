"""`wavecast run --processes` and `torchrun`: ranks that are processes, and how they end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast
from wavecast.emulate.errors import ExecutionError
from wavecast.errors import InputError, UsageError
from wavecast.launch.group_calls import CallsDiffer
from wavecast.runtimes.triton.torchrun import RankedScript, read_torchrun

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.platform != "linux", reason="memory of forks: Linux"),
]

PIECES = """
import sys, torch.distributed as dist
dist.init_process_group("nccl")
for stream in sys.stdout, sys.stderr:
    print("rank ", end="", file=stream)
    dist.barrier()
    print(dist.get_rank(), file=stream)
"""

COLLECTIVES = """
import os, torch, torch.distributed as dist
CALLS = []
CALLS.append(1)
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
x = torch.full((1000,), rank + 1.0, device="cuda")
dist.all_reduce(x)
assert (x == world * (world + 1) / 2).all(), x[:4]
parts = [None] * world
dist.all_gather_object(parts, os.getpid())
assert len(set(parts)) == world and CALLS == [1], parts
if rank:
    dist.send(x * rank, 0)
else:
    for source in range(1, world):
        y = torch.empty_like(x)
        dist.recv(y, source)
        assert (y == x * source).all()
from wavecast.ops import distributed
group = distributed.groups(world)[rank]
z = distributed.all_gather(torch.full((7,), float(rank), device="cuda"), group)
assert z.view(-1).tolist() == [float(r) for r in range(world) for _ in range(7)]
model = torch.nn.Linear(4, 4).cuda()
ddp = torch.nn.parallel.DistributedDataParallel(model)
ddp(torch.full((2, 4), rank + 1.0, device="cuda")).sum().backward()
assert torch.allclose(model.weight.grad.cpu(), torch.full((4, 4), (world + 1.0))), model.weight.grad
dist.barrier()
print(f"rank {rank} of {world}")
dist.destroy_process_group()
"""
STARTED = """
import os, torch, torch.distributed as dist
import torch.multiprocessing as mp

def work(rank, world, queue):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    x = torch.full((3,), rank + 1.0, device="cuda")
    dist.all_reduce(x)
    if queue is not None:
        queue.put((rank, os.getpid(), x.tolist()))

if __name__ == "__main__":
    mp.spawn(work, args=(2, None), nprocs=2)
    context = mp.get_context("spawn")
    queue = context.Queue()
    started = [context.Process(target=work, args=(rank, 2, queue)) for rank in range(2)]
    for process in started:
        process.start()
    rows = sorted(queue.get() for _ in started)
    for process in started:
        process.join()
    assert rows == [(rank, started[rank].pid, [3.0] * 3) for rank in range(2)], rows
    assert [process.exitcode for process in started] == [0, 0]
    print("both")
"""
SHARED = """
import torch, triton, triton.language as tl
import torch.multiprocessing as mp

@triton.jit
def receive(flag, x, out, B: tl.constexpr):
    while tl.atomic_add(flag, 0, sem="acquire", scope="sys") == 0:
        pass
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))

@triton.jit
def send(flag, x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, i.to(tl.float32) * 3)
    tl.debug_barrier()
    tl.atomic_xchg(flag, 1, sem="release", scope="sys")

def work(rank, queue):
    torch.cuda.set_device(rank)
    if rank == 0:
        x = torch.zeros(256, device="cuda")
        flag = torch.zeros(1, dtype=torch.int32, device="cuda")
        queue.put((x, flag))
        out = torch.empty_like(x)
        receive[(1,)](flag, x, out, 256)
        assert (out.cpu() == torch.arange(256.0) * 3).all(), out
    else:
        x, flag = queue.get()
        assert str(x.device) == "cuda:0", x.device
        send[(1,)](flag, x, 256)
        torch.cuda.synchronize()

if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue = context.Queue()
    started = [context.Process(target=work, args=(rank, queue)) for rank in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0, 0]
    print("shared")
"""
ENDINGS = """
import os, signal, sys, torch, torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
x = torch.ones(1000, device="cuda")
dist.all_reduce(x)
torch.cuda.synchronize()
if rank == 1:
    match sys.argv[1]:
        case "raise": raise ValueError("rank one breaks")
        case "kill": os.kill(os.getpid(), signal.SIGKILL)
        case "exit": os._exit(3)
        case "sys": sys.exit(5)
        case "large": raise ValueError("z" * 300_000)
        case "interrupt": raise KeyboardInterrupt
        case "child":  # lives longer than the rank, and has its files
            import time
            if not os.fork():
                time.sleep(20)
                os._exit(0)
            raise ValueError("has a child")
        case "leave": sys.exit(0)
        case "exit0": os._exit(0)
        case "size": x = torch.ones(500, device="cuda")
        case "both": dist.recv(x, 0)
        case "unnamed": dist.recv(x)
elif sys.argv[1] == "both":
    dist.recv(x, 1)
dist.all_reduce(x)
torch.cuda.synchronize()
if sys.argv[1] == "all":
    dist.barrier()
    os._exit(0)
"""

CAUGHT = """
import sys, time, torch, torch.distributed as dist
from pathlib import Path
dist.init_process_group("nccl")
rank, launched = dist.get_rank(), Path(sys.argv[1])
x = torch.ones(100 + rank, device=f"cuda:{rank}")
if rank == 0:
    work = dist.all_reduce(x, async_op=True)
    launched.touch()
    work.wait()
while not launched.exists():
    time.sleep(0.01)
try:
    dist.all_reduce(x)
except Exception:
    time.sleep(600)
"""


def line_of(text: str) -> int:
    """The line of `ENDINGS` that begins with a text, the last one."""
    lines = ENDINGS.splitlines()
    return max(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))


UNNAMED = line_of('case "unnamed"')
BOTH = line_of('case "both"')
REDUCED = rf"\(\w+, all_reduce of 1000 float32 at ranks.py:{line_of('dist.all_reduce(x)')}\)"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The path of a script with a text; what running it in this process changes is restored."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text: str) -> Path:
        path = tmp_path / "ranks.py"
        path.write_text(text)
        return path

    return write


def test_torchrun_starts_processes(program, capfd: pytest.CaptureFixture[str]) -> None:
    path = program(COLLECTIVES)
    done = wavecast.run("torchrun", "--standalone", "--nproc-per-node", 3, path, arch="gfx942")
    assert (done.code, done.traceback, done.notes) == (0, "", ())
    launches = {kernel["kernel"]: kernel["launches"] for kernel in done.to_dict()["kernels"]}
    assert launches["reduce_kernel"] == 9  # three by each rank
    assert sorted(capfd.readouterr().out.splitlines()) == [f"rank {r} of 3" for r in range(3)]


@pytest.mark.parametrize(
    ("text", "line"), [(STARTED, "both"), (SHARED, "shared")], ids=["started", "shared"]
)
def test_processes_that_a_script_starts(
    program, capfd: pytest.CaptureFixture[str], text: str, line: str
) -> None:
    done = wavecast.run(program(text), arch="gfx1100", gpus=2, processes=True)
    assert (done.code, done.traceback, done.notes) == (0, "", ())
    assert done.to_dict()["kernels"] in ([], None)  # theirs are not known
    assert capfd.readouterr().out == f"{line}\n"


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("kill", "rank 1: its process was ended by SIGKILL; the other ranks were stopped"),
        ("exit", r"rank 1: its process left by os._exit\(3\); the other ranks were stopped"),
        ("leave", rf"^deadlock: all that runs waits: GPU 0 {REDUCED}: .*; rank 1 has ended "
            r"\(1 launch"),
        ("exit0", rf"^rank 1 left by os._exit before the others: deadlock: .* GPU 0 {REDUCED}: .*"
            r"; rank 1 has ended \(1 launch"),
        ("size", r"^collective 2: rank 0 calls all_reduce of 1000 float32 at ranks.py:"
            rf"{line_of('dist.all_reduce(x)')}, rank 1 calls all_reduce of 500 float32"),
        ("unnamed", rf"^rank 1: recv: the sender must be named \(raised at ranks.py:{UNNAMED}\)"),
        ("both", r"GPU 0 \(\w+, recv of 1000 float32 from rank 1 at ranks.py:"
            rf"{line_of('dist.recv(x, 1)')}\): .*; GPU 1 \(\w+, recv of 1000 float32 from rank 0 "
            rf"at ranks.py:{BOTH}\)"),
    ],
)  # fmt: skip
def test_a_rank_that_fails_ends_all_with_a_line(program, ending: str, message: str) -> None:
    with pytest.raises((ExecutionError, UsageError), match=message):
        wavecast.run(program(ENDINGS), ending, arch="gfx942", gpus=2, processes=True)


def test_a_rank_that_waits_is_told_of_a_call_that_differs(program, tmp_path: Path) -> None:
    """Whatever the other does with its error; a deadlock would take a minute to be certain."""
    message = "^collective 1: rank 0 calls all_reduce of 100 .*, rank 1 calls all_reduce of 101 "
    with pytest.raises(CallsDiffer, match=message):
        wavecast.run(program(CAUGHT), tmp_path / "launched", arch="gfx942", gpus=2, processes=True)


def test_a_rank_may_leave_by_exit_once_nobody_needs_it(program) -> None:
    done = wavecast.run(program(ENDINGS), "all", arch="gfx942", gpus=2, processes=True)
    assert (done.code, done.traceback, done.notes) == (0, "", ())


def test_what_a_rank_raises_or_exits_with_is_that_of_the_run(program) -> None:
    path = program(ENDINGS)
    done = wavecast.run(path, "raise", arch="gfx942", gpus=2, processes=True)
    assert done.code == 1
    assert done.traceback.endswith("ValueError: rank one breaks\nraised by rank 1\n")
    done = wavecast.run(path, "sys", arch="gfx942", gpus=2, processes=True)
    assert (done.code, done.traceback) == (5, "")


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        ("large", "z" * 300_000),
        ("interrupt", "KeyboardInterrupt"),
        ("child", "ValueError: has a child"),
    ],
)
def test_a_rank_may_raise_anything(program, ending: str, last: str) -> None:
    before = time.monotonic()
    done = wavecast.run(program(ENDINGS), ending, arch="gfx942", gpus=2, processes=True)
    assert done.code == 1
    assert done.traceback.endswith(f"{last}\nraised by rank 1\n")
    assert time.monotonic() - before < 15


def test_lines_of_ranks_stay_whole(program, capfd: pytest.CaptureFixture[str]) -> None:
    path = program(PIECES)
    done = wavecast.run(path, arch="gfx942", gpus=2, processes=True)
    assert (done.code, done.traceback) == (0, "")
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == sorted(err.splitlines()) == ["rank 0", "rank 1"]


def test_torchrun_starts_ranks_whatever_a_script_imports(
    program, capfd: pytest.CaptureFixture[str]
) -> None:
    path = program(f"import multiprocessing\n{COLLECTIVES}")
    done = wavecast.run("torchrun", "--nproc-per-node", 2, path, arch="gfx942")
    assert (done.code, done.traceback) == (0, "")
    assert sorted(capfd.readouterr().out.splitlines()) == [f"rank {r} of 2" for r in range(2)]
    path = program(f"import multiprocessing\n{ENDINGS}")
    done = wavecast.run("torchrun", "--nproc-per-node=2", path, "none", check=True)
    assert (done.code, done.traceback) == (0, "")


def test_checks_follow_threads_only(program) -> None:
    path = program(ENDINGS)
    with pytest.raises(UsageError, match="--processes and --check exclude each other"):
        wavecast.run(path, "none", gpus=2, processes=True, check=True)
    done = wavecast.run("torchrun", "--nproc-per-node=2", path, "none", check=True)
    assert done.code == 0
    assert done.checks is not None


def test_arguments_of_torchrun() -> None:
    words = ("--nnodes=1", "--nproc_per_node", "4", "train.py", "--lr", "8")
    assert read_torchrun(words, 1) == RankedScript(Path("train.py"), ("--lr", "8"), 4)
    module = read_torchrun(("--nproc-per-node", "gpu", "-m", "json.tool", "x"), 2)
    assert (module.path.name, module.arguments, module.ranks) == ("tool.py", ("x",), 2)


@pytest.mark.parametrize(
    ("words", "gpus", "message"),
    [
        ("--nnodes 2 train.py", 1, "--nnodes 2: one node is emulated"),
        ("--nproc-per-node auto train.py", 1, "--nproc-per-node auto needs --gpus N"),
        ("--nproc-per-node 2 train.py", 4, "--nproc-per-node 2 is not --gpus 4"),
        ("--nproc-per-node 1 train.py", 1, "emulated from two ranks on"),
        ("--nproc-per-node=-1 train.py", 1, "--nproc-per-node -1 is not a number"),
        ("--no-python --nproc-per-node 2 ls", 1, "only Python scripts"),
        ("--nproc-per-node 2", 1, "torchrun: the following arguments are required"),
        ("--nproc-per-node 2 -m no.such.module", 1, "no such module: no.such.module"),
    ],
)
def test_refused_arguments_of_torchrun(words: str, gpus: int, message: str) -> None:
    with pytest.raises((UsageError, InputError), match=message):
        read_torchrun(words.split(), gpus)
