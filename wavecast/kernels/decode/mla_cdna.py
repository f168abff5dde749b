"""The kernel of `mla_decode` on CDNA, in Gluon, where the layouts of registers and of LDS are the
kernel's own: plain Triton writes a tile of tokens to LDS twice, as keys and as values, and has
waves read all of it for 16 heads each."""

# Names bound under a constexpr are bound where they are used, and constants are plain values.
# pyright: reportPossiblyUnboundVariable=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false
# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false

import triton
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3, cdna4

from wavecast.dtypes import lookup
from wavecast.kernels.decode.combine import workspaces
from wavecast.kernels.describe import Axes, Device, KernelSpec, Problem, Settings
from wavecast.perfmodel.ranking.cache import LatentLoop, latent_rows

_GROWN = gl.constexpr(8.0)
"""Sums are scaled once a weight exceeds two to the power of this, and not before: both 16-bit
formats can represent it, and float32 sums do not overflow."""


@gluon.constexpr_function
def mfma_layout(version, side, row_waves, waves):
    """The layout of products of 16-bit operands, by MFMA instructions of `side` rows."""
    depth = (8 if side == 32 else 16) * (2 if version == 4 else 1)
    return gl.amd.AMDMFMALayout(
        version=version,
        instr_shape=[side, side, depth],
        transposed=True,
        warps_per_cta=[row_waves, waves // row_waves],
    )


@gluon.constexpr_function
def padded(tokens, width):
    """Tokens in LDS as waves load them to it, 1 KiB at a time: lanes that read 16 bytes of
    16 tokens, and those that transpose 4 elements of 4 tokens, find them in different banks."""
    bases = [[0, 1 << bit] for bit in range(width.bit_length() - 1)]
    bases += [[1 << bit, 0] for bit in range(tokens.bit_length() - 1)]
    return gl.PaddedSharedLayout([[512, 16], [4096, 8]], bases, [], [tokens, width])


@gluon.constexpr_function
def swizzled(width):
    """Tokens in LDS, written by rows: lanes that read 16 bytes of 16 tokens find them in different
    banks."""
    return gl.SwizzledSharedLayout(8, 1, min(16, width // 8), [1, 0])


@gluon.constexpr_function
def by_columns(tokens, width, waves):
    """A wave's own columns of all tokens, in registers: lanes have the four tokens they multiply in
    each instruction, and adjacent columns, one for each of as many instructions."""
    columns = width // (16 * waves)
    registers = [[0, 1 << bit] for bit in range(columns.bit_length() - 1)] + [[1, 0], [2, 0]]
    registers += [[16 << bit, 0] for bit in range((tokens // 16).bit_length() - 1)]
    lanes = [[0, columns << bit] for bit in range(4)] + [[4, 0], [8, 0]]
    warps = [[0, columns * 16 << bit] for bit in range(waves.bit_length() - 1)]
    return gl.DistributedLinearLayout(registers, lanes, warps, [], [tokens, width])


@gluon.constexpr_function
def by_lines(width, waves):
    """Lanes that load 16 bytes each, side by side."""
    lanes = min(64, width // 8)
    return gl.BlockedLayout([1, 8], [64 // lanes, lanes], [waves, 1], [1, 0])


@gluon.jit
def load_block(table, start_n, end, BLOCK_SIZE: gl.constexpr):
    """The number of the block with token `start_n`."""
    return gl.load(table + start_n // BLOCK_SIZE, mask=start_n < end, other=0)


@gluon.jit
def token_ptr(cache_ptr, block, start_n, block_stride, token_stride, BLOCK_SIZE: gl.constexpr):
    """A pointer to token `start_n` in scalar registers, as buffer loads take it."""
    block = gl.inline_asm_elementwise(
        "s_nop 0\nv_readfirstlane_b32 $0, $1", "=s,v", [block], gl.int32, is_pure=True, pack=1
    )
    return cache_ptr + block.to(gl.int64) * block_stride + start_n % BLOCK_SIZE * token_stride


@gluon.jit
def tile_offsets(
    start_n, end, token_stride,
    first: gl.constexpr, WIDTH: gl.constexpr, BLOCK_N: gl.constexpr, lines: gl.constexpr,
):  # fmt: skip
    """Offsets of a tile's elements from `first` on, and the mask of its tokens."""
    offs_n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, lines))
    offs_d = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, lines))
    offsets = offs_n[:, None] * token_stride + (first + offs_d)[None, :]
    return offsets, (start_n + offs_n < end)[:, None]


@gluon.jit
def to_lds(
    tile_ptr, start_n, end, token_stride, latent, rope, WAVES: gl.constexpr, BLOCK_N: gl.constexpr,
):  # fmt: skip
    """Begin to load a tile to LDS."""
    LATENT: gl.constexpr = latent.shape[1]
    ROPE: gl.constexpr = rope.shape[1]
    wide: gl.constexpr = by_lines(LATENT, WAVES)
    offsets, mask = tile_offsets(start_n, end, token_stride, 0, LATENT, BLOCK_N, wide)
    cdna4.async_copy.buffer_load_to_shared(latent, tile_ptr, offsets, mask=mask)
    narrow: gl.constexpr = by_lines(ROPE, WAVES)
    offsets, mask = tile_offsets(start_n, end, token_stride, LATENT, ROPE, BLOCK_N, narrow)
    cdna4.async_copy.buffer_load_to_shared(rope, tile_ptr, offsets, mask=mask)
    cdna4.async_copy.commit_group()


@gluon.jit
def to_registers(
    tile_ptr, start_n, end, token_stride,
    LATENT: gl.constexpr, ROPE: gl.constexpr, WAVES: gl.constexpr, BLOCK_N: gl.constexpr,
):  # fmt: skip
    """A tile in registers, with columns of the values `by_columns`."""
    wide: gl.constexpr = by_columns(BLOCK_N, LATENT, WAVES)
    offsets, mask = tile_offsets(start_n, end, token_stride, 0, LATENT, BLOCK_N, wide)
    latent = cdna3.buffer_load(tile_ptr, offsets, mask=mask)
    narrow: gl.constexpr = by_lines(ROPE, WAVES)
    offsets, mask = tile_offsets(start_n, end, token_stride, LATENT, ROPE, BLOCK_N, narrow)
    return latent, cdna3.buffer_load(tile_ptr, offsets, mask=mask)


@gluon.jit
def load_operand(tile, layout: gl.constexpr, ASYNC: gl.constexpr):
    """A tile from LDS. With ASYNC, waves have waited for each other since it was loaded."""
    if ASYNC:
        return cdna4.async_copy.load_shared_relaxed(tile, layout)
    else:
        return tile.load(layout)


@gluon.jit
def scores(
    q, latent, rope, mask, scale, PIECE: gl.constexpr, ASYNC: gl.constexpr, mma: gl.constexpr
):
    """Products of queries and a tile of keys, -inf where not `mask`."""
    keys: gl.constexpr = gl.DotOperandLayout(1, mma, 8)
    qk = gl.full([q[0].shape[0], latent.shape[0]], 0.0, gl.float32, mma)
    qk = cdna3.mfma(q[0], load_operand(rope.permute((1, 0)), keys, ASYNC), qk)
    for number in gl.static_range(latent.shape[1] // PIECE):
        part = latent.slice(number * PIECE, PIECE, dim=1).permute((1, 0))
        qk = cdna3.mfma(q[number + 1], load_operand(part, keys, ASYNC), qk)
    return gl.where(mask[None, :], qk * scale, float("-inf"))


@gluon.jit
def softmax_step(qk, m_i, l_i, acc, dtype: gl.constexpr, sums: gl.constexpr):
    """(weights of a tile as an operand of products in the layout `sums`, m_i, l_i, acc)."""
    m_new = gl.maximum(m_i, gl.max(qk, axis=1))
    if gl.max(m_new - m_i, axis=0) > _GROWN:
        alpha = gl.exp2(m_i - m_new)
        scale_of_rows = gl.convert_layout(alpha, gl.SliceLayout(1, sums))[:, None]
        scaled = ()
        for number in gl.static_range(len(acc)):
            scaled += (acc[number] * scale_of_rows,)
        acc = scaled
        l_i = l_i * alpha
        m_i = m_new
    p = gl.exp2(qk - m_i[:, None])
    l_i = l_i + gl.sum(p, axis=1)
    p = gl.convert_layout(p.to(dtype), gl.DotOperandLayout(0, sums, 4))
    return p, m_i, l_i, acc


@gluon.jit
def side_by_side(tile, WAVES: gl.constexpr, sums: gl.constexpr):
    """A tile `by_columns` as an operand: column n of each lane goes to instruction n."""
    BLOCK_N: gl.constexpr = tile.shape[0]
    WIDTH: gl.constexpr = tile.shape[1]
    tile = tile.reshape([BLOCK_N, WAVES, 16, WIDTH // WAVES // 16]).permute([0, 3, 1, 2])
    return gl.convert_layout(tile.reshape([BLOCK_N, WIDTH]), gl.DotOperandLayout(1, sums, 4))


@gluon.jit
def blocks_of_rows(acc, WAVES: gl.constexpr):
    """16 rows each of the product with a `side_by_side` operand, with columns in their order."""
    ROWS: gl.constexpr = acc.shape[0]
    WIDTH: gl.constexpr = acc.shape[1]
    acc = acc.reshape([ROWS, WIDTH // WAVES // 16, WAVES, 16]).permute([0, 2, 3, 1])
    blocks = (acc.reshape([ROWS, WIDTH]),)
    for _ in gl.static_range((ROWS // 16).bit_length() - 1):
        split_rows = ()
        for number in gl.static_range(len(blocks)):
            rows = blocks[number].reshape([2, blocks[number].shape[0] // 2, WIDTH])
            split_rows += gl.split(rows.permute([1, 2, 0]))
        blocks = split_rows
    return blocks


@gluon.jit
def store_result(
    result, out_rows, first, out_ptr, part_ptr, mask, split, SPLITS: gl.constexpr,
    LATENT: gl.constexpr, lines: gl.constexpr,
):  # fmt: skip
    """Write columns from `first` on of a result, or of a part of one, in whole lines."""
    offs_d = gl.arange(0, result.shape[1], layout=gl.SliceLayout(0, lines))
    if SPLITS == 1:
        result = gl.convert_layout(result.to(out_ptr.dtype.element_ty), lines)
        ptrs = out_ptr + out_rows[:, None] * LATENT + (first + offs_d)[None, :]
    else:
        result = gl.convert_layout(result, lines)
        ptrs = part_ptr + (out_rows[:, None] * SPLITS + split) * LATENT + (first + offs_d)[None, :]
    gl.store(ptrs, result, mask=mask[:, None])


@gluon.jit
def mla_cdna_kernel(
    q_ptr, cache_ptr, block_table_ptr, lengths_ptr, cache_scale_ptr, out_ptr, part_ptr, stat_ptr,
    scale, sequences, heads, q_row, q_head, table_stride, block_stride, token_stride,
    LATENT: gl.constexpr, ROPE: gl.constexpr, SPLITS: gl.constexpr, BLOCK_SIZE: gl.constexpr,
    SCALED: gl.constexpr, XCDS: gl.constexpr, MFMA: gl.constexpr, ASYNC: gl.constexpr,
    ROWS: gl.constexpr, BLOCK_N: gl.constexpr,
    SIDE: gl.constexpr, ROW_WAVES: gl.constexpr, PIECE: gl.constexpr, AHEAD: gl.constexpr,
):  # fmt: skip
    """A program takes ROWS heads and one of SPLITS parts of the tokens of a sequence, BLOCK_N at a
    time.

    ROW_WAVES waves score different heads; several of the same heads share the tokens of a tile.
    Matrix instructions have SIDE rows. Queries and results stay in registers; LDS is read for PIECE
    elements of a token at a time. With ASYNC, AHEAD tiles are on their way to LDS, where waves read
    them as values, too, by instructions that transpose them. Else each wave loads columns of its
    own of a tile, writes them to LDS as keys, and multiplies them as values from the registers they
    were loaded to, for all heads. MFMA is the version of the matrix instructions.
    """
    WAVES: gl.constexpr = gl.num_warps()
    pid = gl.program_id(0)
    count = gl.num_programs(0)
    if XCDS > 1:
        # neighbours, which read the same tokens, to one XCD and its L2
        xcd = pid % XCDS
        pid = xcd * (count // XCDS) + gl.minimum(xcd, count % XCDS) + pid // XCDS
    row_tiles = (heads + ROWS - 1) // ROWS
    tile = pid % row_tiles
    split = pid // row_tiles % SPLITS
    sequence = pid // (row_tiles * SPLITS)
    length = gl.load(lengths_ptr + sequence).to(gl.int32)
    tokens_per_part = ((length + BLOCK_N - 1) // BLOCK_N + SPLITS - 1) // SPLITS * BLOCK_N
    start = split * tokens_per_part
    end = gl.minimum(start + tokens_per_part, length)
    dtype: gl.constexpr = q_ptr.dtype.element_ty
    mma: gl.constexpr = mfma_layout(MFMA, SIDE, ROW_WAVES, WAVES)
    by_row: gl.constexpr = gl.SliceLayout(1, mma)
    sums: gl.constexpr = mma if ASYNC else mfma_layout(MFMA, SIDE, 1, WAVES)
    # columns of a result that are multiplied one after the other
    WIDTH: gl.constexpr = PIECE if ASYNC else LATENT
    table = block_table_ptr + sequence.to(gl.int64) * table_stride

    if ASYNC:
        STAGES: gl.constexpr = AHEAD + 1
        latents = gl.allocate_shared_memory(
            dtype, [STAGES, BLOCK_N, LATENT], padded(BLOCK_N, LATENT)
        )
        ropes = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_N, ROPE], padded(BLOCK_N, ROPE))
        for stage in gl.static_range(AHEAD):
            start_n = start + stage * BLOCK_N
            block = load_block(table, start_n, end, BLOCK_SIZE)
            tile_ptr = token_ptr(cache_ptr, block, start_n, block_stride, token_stride, BLOCK_SIZE)
            to_lds(
                tile_ptr, start_n, end, token_stride, latents.index(stage), ropes.index(stage),
                WAVES, BLOCK_N,
            )  # fmt: skip
        block = load_block(table, start + AHEAD * BLOCK_N, end, BLOCK_SIZE)
    else:
        block = load_block(table, start, end, BLOCK_SIZE)
        tile_ptr = token_ptr(cache_ptr, block, start, block_stride, token_stride, BLOCK_SIZE)
        next_tile = to_registers(tile_ptr, start, end, token_stride, LATENT, ROPE, WAVES, BLOCK_N)
        block = load_block(table, start + BLOCK_N, end, BLOCK_SIZE)

    queries: gl.constexpr = gl.DotOperandLayout(0, mma, 8)
    heads_q = tile * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, queries))
    mask = (heads_q < heads)[:, None]
    q_base = q_ptr + sequence.to(gl.int64) * q_row
    q_offs = heads_q[:, None] * q_head
    offs_d = gl.arange(0, ROPE, layout=gl.SliceLayout(0, queries))
    q = (cdna3.buffer_load(q_base, q_offs + (LATENT + offs_d)[None, :], mask=mask),)
    offs_d = gl.arange(0, PIECE, layout=gl.SliceLayout(0, queries))
    for first in gl.static_range(0, LATENT, PIECE):
        q += (cdna3.buffer_load(q_base, q_offs + (first + offs_d)[None, :], mask=mask),)

    out_scale = gl.full([ROWS], 1.0, gl.float32, by_row)
    if SCALED:
        cache_scale = gl.load(cache_scale_ptr)
        scale *= cache_scale
        out_scale *= cache_scale
    m_i = gl.full([ROWS], float("-inf"), gl.float32, by_row)
    l_i = gl.full([ROWS], 0.0, gl.float32, by_row)
    acc = ()
    for _ in gl.static_range(0, LATENT, WIDTH):
        acc += (gl.full([ROWS, WIDTH], 0.0, gl.float32, sums),)
    offs_n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma))
    if ASYNC:
        stage = 0
        for start_n in range(start, end, BLOCK_N):
            next_n = start_n + AHEAD * BLOCK_N
            tile_ptr = token_ptr(cache_ptr, block, next_n, block_stride, token_stride, BLOCK_SIZE)
            block = load_block(table, next_n + BLOCK_N, end, BLOCK_SIZE)
            next_stage = gl.where(stage == 0, AHEAD, stage - 1)
            cdna4.async_copy.wait_group(AHEAD - 1)
            to_lds(
                tile_ptr, next_n, end, token_stride, latents.index(next_stage),
                ropes.index(next_stage), WAVES, BLOCK_N,
            )  # fmt: skip
            latent = latents.index(stage)
            qk = scores(
                q, latent, ropes.index(stage), start_n + offs_n < end, scale, PIECE, True, mma
            )
            p, m_i, l_i, acc = softmax_step(qk, m_i, l_i, acc, dtype, sums)
            new_acc = ()
            for number in gl.static_range(LATENT // PIECE):
                part = latent.slice(number * PIECE, PIECE, dim=1)
                value = load_operand(part, gl.DotOperandLayout(1, sums, 4), True)
                new_acc += (cdna3.mfma(p, value, acc[number]),)
            acc = new_acc
            stage = gl.where(stage == AHEAD, 0, stage + 1)
        cdna4.async_copy.wait_group(0)
    else:
        latent = gl.allocate_shared_memory(dtype, [BLOCK_N, LATENT], swizzled(LATENT))
        rope = gl.allocate_shared_memory(dtype, [BLOCK_N, ROPE], swizzled(ROPE))
        latent.store(next_tile[0])
        rope.store(next_tile[1])
        for start_n in range(start, end, BLOCK_N):
            value = side_by_side(next_tile[0], WAVES, sums)
            next_n = start_n + BLOCK_N
            tile_ptr = token_ptr(cache_ptr, block, next_n, block_stride, token_stride, BLOCK_SIZE)
            block = load_block(table, next_n + BLOCK_N, end, BLOCK_SIZE)
            next_tile = to_registers(
                tile_ptr, next_n, end, token_stride, LATENT, ROPE, WAVES, BLOCK_N
            )
            qk = scores(q, latent, rope, start_n + offs_n < end, scale, PIECE, False, mma)
            p, m_i, l_i, acc = softmax_step(qk, m_i, l_i, acc, dtype, sums)
            latent.store(next_tile[0])
            rope.store(next_tile[1])
            acc = (cdna3.mfma(p, value, acc[0]),)

    heads_q = tile * ROWS + gl.arange(0, ROWS, layout=by_row)
    if SPLITS == 1:
        out_scale /= gl.where(l_i > 0, l_i, 1.0)
    else:
        stat_ptrs = stat_ptr + (sequence * heads + heads_q) * SPLITS + split
        gl.store(stat_ptrs, m_i, mask=heads_q < heads)
        gl.store(stat_ptrs + sequences * heads * SPLITS, l_i, mask=heads_q < heads)
    # blocks of columns, or of rows, that fit in LDS while layouts are converted
    DOWN: gl.constexpr = ROWS if ASYNC else 16
    lanes: gl.constexpr = min(64, WIDTH // 4)
    lines: gl.constexpr = gl.BlockedLayout([1, 4], [64 // lanes, lanes], [WAVES, 1], [1, 0])
    out_scale = gl.convert_layout(out_scale, gl.SliceLayout(1, sums))[:, None]
    blocks = acc
    if not ASYNC:
        blocks = blocks_of_rows(acc[0] * out_scale, WAVES)
    for number in gl.static_range(len(blocks)):
        result = blocks[number]
        first_head = tile * ROWS
        if ASYNC:
            result *= out_scale
        else:
            first_head += number * 16
        heads_q = first_head + gl.arange(0, DOWN, layout=gl.SliceLayout(1, lines))
        out_rows = (sequence * heads + heads_q).to(gl.int64)
        store_result(
            result, out_rows, number * WIDTH if ASYNC else 0, out_ptr, part_ptr, heads_q < heads,
            split, SPLITS, LATENT, lines,
        )  # fmt: skip


_TILE = 32
"""Tokens of the smallest tile."""


def runs(device: Device, q: Tensor, cache: Tensor, rope: int) -> bool:
    """Whether `mla_cdna_kernel` takes a cache: of the dtype of `q`, of whole tiles, and aligned as
    loads of 16 bytes are. Fewer heads than a workgroup takes are for the other kernel."""
    rows = latent_rows(device)
    return (
        bool(rows)
        and 2 * q.shape[1] > min(rows)
        and cache.dtype == q.dtype
        and cache.shape[1] % _TILE == 0
        and rope % 32 == 0
        and not any(at % 16 for at in (cache.data_ptr(), *cache.stride()[:2]))
    )


def _axes(problem: Problem, device: Device) -> Axes:
    return {
        "ROWS": (problem["rows"],),
        "BLOCK_N": (_TILE, 2 * _TILE),
        "SIDE": (16,),
        "ROW_WAVES": (1, 2, 4),
        "PIECE": (128,),
        "AHEAD": (2, 1) if device.capabilities.direct_to_lds else (1,),
        "num_warps": (4, 2),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, tokens, side = settings["ROWS"], settings["BLOCK_N"], settings["SIDE"]
    waves, row_waves = settings["num_warps"], settings["ROW_WAVES"]
    if problem["block_size"] % tokens or rows < side * row_waves:
        return False
    if tokens < side * (waves // row_waves):
        return False
    return _demand(problem, settings, device).fits(device, waves)


def _demand(problem: Problem, settings: Settings, device: Device) -> LatentLoop:
    tiles = triton.cdiv(problem["tokens"], settings["BLOCK_N"])
    return LatentLoop(
        programs=SPEC.programs(problem, settings)[0],
        steps=triton.cdiv(tiles, problem["splits"]),
        rows=settings["ROWS"],
        tokens=settings["BLOCK_N"],
        latent=problem["latent"],
        width=problem["latent"] + problem["rope"],
        row_waves=settings["ROW_WAVES"],
        prefetched=settings["AHEAD"],
        dtype=lookup(problem["dtype"]).rate,
    )


SPEC = KernelSpec(
    function=mla_cdna_kernel,
    grid="cdiv(heads, ROWS) * splits * sequences",
    axes=_axes,
    fits=_fits,
    demand=_demand,
    workspaces=lambda problem, settings: workspaces(
        problem["sequences"] * problem["heads"], problem["splits"], problem["latent"]
    ),
    strides={
        "q": "q_row q_head",
        "block_table": "table_stride",
        "cache": "block_stride token_stride",
    },
    contiguous=("lengths",),
    rounded=("sequences", "tokens"),
)
