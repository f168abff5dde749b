"""Joining what workgroups computed of the parts of a sequence's tokens."""

import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import Device, KernelSpec, Problem, Settings, StreamingKernel
from wavecast.perfmodel.ranking.cache import PartsJoin


@triton.jit
def decode_reduce_kernel(
    part_ptr, stat_ptr, out_ptr, rows, row_stride,
    HEAD: tl.constexpr, SPLITS: tl.constexpr, PADDED_SPLITS: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Joins the SPLITS parts of ROWS rows, COLUMNS elements of each and PARTS parts at a time:
    `part_ptr` [rows, SPLITS, HEAD] are sums weighted with exp2(score - m), `stat_ptr`
    [2, rows, SPLITS] the maximum m and the sum of weights."""
    pid = tl.program_id(0)
    num_columns: tl.constexpr = (HEAD + COLUMNS - 1) // COLUMNS  # pyright: ignore[reportAssignmentType]
    offs_m = pid // num_columns * ROWS + tl.arange(0, ROWS)
    offs_d = pid % num_columns * COLUMNS + tl.arange(0, COLUMNS)
    row_mask = offs_m < rows
    offs_s = tl.arange(0, PADDED_SPLITS)
    stat_mask = row_mask[:, None] & (offs_s < SPLITS)[None, :]
    all_stat_ptrs = stat_ptr + offs_m[:, None] * SPLITS + offs_s[None, :]
    m_all = tl.load(all_stat_ptrs, mask=stat_mask, other=float("-inf"))
    m_i = tl.max(m_all, axis=1)
    m_i = tl.where(m_i == float("-inf"), 0.0, m_i)
    l_all = tl.load(all_stat_ptrs + rows * SPLITS, mask=stat_mask, other=0.0)
    l_i = tl.sum(l_all * tl.exp2(m_all - m_i[:, None]), axis=1)
    offs_p = tl.arange(0, PARTS)
    first_part = offs_m * SPLITS
    if WIDE:
        first_part = first_part.to(tl.int64)
    acc = tl.zeros((ROWS, PARTS, COLUMNS), tl.float32)
    for start in range(0, SPLITS, PARTS):
        part = start + offs_p
        part_mask = row_mask[:, None] & (part < SPLITS)[None, :]
        stat_ptrs = stat_ptr + offs_m[:, None] * SPLITS + part[None, :]
        m_part = tl.load(stat_ptrs, mask=part_mask, other=float("-inf"))
        weight = tl.exp2(m_part - m_i[:, None])
        part_offs = (first_part[:, None] + part[None, :])[:, :, None] * HEAD + offs_d[None, None, :]
        mask = part_mask[:, :, None] & (offs_d < HEAD)[None, None, :]
        acc += tl.load(part_ptr + part_offs, mask=mask, other=0.0) * weight[:, :, None]
    out = tl.sum(acc, axis=1) / tl.where(l_i > 0, l_i, 1.0)[:, None]  # pyright: ignore[reportOperatorIssue]
    out_ptrs = out_ptr + offs_m.to(tl.int64)[:, None] * row_stride + offs_d[None, :]
    mask = row_mask[:, None] & (offs_d < HEAD)[None, :]
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=mask)


def workspaces(rows: int, parts: int, head: int) -> dict[str, describe.Workspace]:
    """Scratch memory of a kernel that leaves `parts` of `rows` to `reduce_parts`; none for one."""
    some = parts if parts > 1 else 0
    shapes = {"part": (rows, some, head), "stat": (2, rows, some)}
    return {name: describe.Workspace(shape) for name, shape in shapes.items()}


def reduce_parts(part: Tensor, stat: Tensor, out: Tensor) -> None:
    """Join `part` [rows, splits, head] with `stat` [2, rows, splits] into `out` [rows, head]."""
    rows, count, head = part.shape
    problem = {"rows": rows, "head": head, "splits": count, "wide": checks.wide(part)}
    padded = triton.next_power_of_2(count)
    choice.run(REDUCE, problem, part=part, stat=stat, out=out, PADDED_SPLITS=padded)


def _demand(problem: Problem, settings: Settings, device: Device) -> PartsJoin:
    rows, head, count = problem["rows"], problem["head"], problem["splits"]
    steps = triton.cdiv(count, settings["PARTS"])
    streamed = StreamingKernel(
        workgroups=REDUCE.programs(problem, settings)[0],
        read=4.0 * rows * count * (head + 2),
        written=2.0 * rows * head,
        elements=settings["ROWS"] * settings["PARTS"] * settings["COLUMNS"],
        instructions=10.0 + 4.0 * steps,
        live_registers=2.0,
    )
    return PartsJoin(streamed=streamed, steps=steps)


REDUCE = KernelSpec(
    function=decode_reduce_kernel,
    grid="cdiv(rows, ROWS) * cdiv(head, COLUMNS)",
    axes={
        "ROWS": (1, 2, 4, 8),
        "COLUMNS": "up_to(max(64, next_power_of_2(head)), 64, 128, 256, 512)",
        "PARTS": "up_to(next_power_of_2(splits), 2, 4, 8, 16, 32, 64)",
        "num_warps": (1, 2, 4),
    },
    fits="2 <= ROWS * PARTS * COLUMNS / lanes <= 32",
    demand=_demand,
    strides={"out": "row_stride"},
    rounded=("rows",),
)
