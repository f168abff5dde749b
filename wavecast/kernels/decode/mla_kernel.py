"""The kernel of attention over compressed keys and values: all heads share one key per token, whose
first part is the value too."""

# Names bound under a constexpr are bound where they are used, and constants are plain values.
# pyright: reportPossiblyUnboundVariable=false, reportArgumentType=false

import triton
import triton.language as tl

from wavecast.kernels.decode.parts import cache_blocks, cache_ptrs, widen
from wavecast.kernels.quantise.formats import half_of


@triton.jit
def load_part(ptrs, offs_d, mask, TRANSPOSED: tl.constexpr):
    """Elements `offs_d` of the tokens at `ptrs`, zeros where not `mask`: a token per row, or per
    column where TRANSPOSED."""
    if TRANSPOSED:
        return tl.load(ptrs[None, :] + offs_d[:, None], mask=mask[None, :], other=0.0)
    else:
        return tl.load(ptrs[:, None] + offs_d[None, :], mask=mask[:, None], other=0.0)


@triton.jit
def load_keys(
    ptrs, mask,
    LATENT: tl.constexpr, ROPE: tl.constexpr, PIECE: tl.constexpr, TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """The keys of a tile of tokens: the part with positions, then the others in pieces."""
    tiles = (load_part(ptrs, LATENT + tl.arange(0, ROPE), mask, TRANSPOSED),)
    for first in tl.static_range(0, LATENT, PIECE):  # pyright: ignore[reportGeneralTypeIssues]
        tiles += (load_part(ptrs, first + tl.arange(0, PIECE), mask, TRANSPOSED),)
    return tiles


@triton.jit
def paired_ptrs(
    cache, block, start_n, block_stride, token_stride,
    BLOCK_N: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Pointers to the even ones of the BLOCK_N tokens from `start_n` on, which are all in one
    block."""
    first = cache + block.to(tl.int64) * block_stride + start_n % BLOCK_SIZE * token_stride
    return first + 2 * tl.arange(0, BLOCK_N // 2) * token_stride


@triton.jit
def load_pairs(
    ptrs, start_n, end, token_stride,
    LATENT: tl.constexpr, ROPE: tl.constexpr, PIECE: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """`load_keys` of the even tokens of a tile, and of the odd ones."""
    offs_n = start_n + 2 * tl.arange(0, BLOCK_N // 2)
    even = load_keys(ptrs, offs_n < end, LATENT, ROPE, PIECE, False)
    odd = load_keys(ptrs + token_stride, offs_n + 1 < end, LATENT, ROPE, PIECE, False)
    return even, odd


@triton.jit
def interleaved(even, odd, PIECE: tl.constexpr, BLOCK_N: tl.constexpr):
    """[BLOCK_N, PIECE] of its even and its odd rows, with every 16th column first, then those
    after them: lanes have 16 columns in a row, and write to LDS by columns."""
    even = tl.reshape(even, (BLOCK_N // 2, PIECE // 16, 16))
    odd = tl.reshape(odd, (BLOCK_N // 2, PIECE // 16, 16))
    return tl.reshape(tl.permute(tl.join(even, odd), (0, 3, 2, 1)), (BLOCK_N, PIECE))


@triton.jit
def widen_or_halve(x, dtype: tl.constexpr, HALVED: tl.constexpr):
    """`widen`, or with HALVED half of e4m3fn values, by instructions for e4m3fnuz, which has the
    same codes but for that of -0, which is NaN there."""
    if HALVED and x.dtype != dtype:
        wide = x.to(tl.uint8, bitcast=True).to(tl.float8e4b8, bitcast=True).to(tl.float32)
        wide = tl.where(wide == wide, wide, 0.0)
        return half_of(wide) if dtype == tl.bfloat16 else wide.to(dtype)
    else:
        return widen(x, dtype)


@triton.jit
def add_scores(q, keys, qk, TRANSPOSED: tl.constexpr, HALVED: tl.constexpr):
    """`qk` and the product of queries and a tile of keys."""
    keys = widen_or_halve(keys, q.dtype, HALVED)
    if TRANSPOSED:
        return tl.dot(q, keys, qk, out_dtype=tl.float32)
    else:
        return tl.dot(q, tl.trans(keys), qk, out_dtype=tl.float32)


@triton.jit
def mla_decode_kernel(
    q_ptr, cache_ptr, block_table_ptr, lengths_ptr, cache_scale_ptr, out_ptr, part_ptr, stat_ptr,
    scale, sequences, heads, q_row, q_head, table_stride, block_stride, token_stride,
    LATENT: tl.constexpr, ROPE: tl.constexpr, SPLITS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    SCALED: tl.constexpr, HALVED: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    ROWS: tl.constexpr, BLOCK_N: tl.constexpr, VALUE: tl.constexpr, PIECE: tl.constexpr,
    Q_LOADED: tl.constexpr, TRANSPOSED: tl.constexpr, PAIRED: tl.constexpr,
):  # fmt: skip
    """A program takes ROWS heads, VALUE columns of their values, and one of SPLITS parts of the
    tokens of a sequence.

    Where Q_LOADED, the queries stay in registers and each tile of tokens is loaded once, a tile
    ahead; else queries and keys are read again for every tile, PIECE elements at a time. Where
    TRANSPOSED, the product with the values is that of the transposed operands: Triton then gives
    each wave its own columns and all rows, so that a value is read from LDS once and not by every
    wave. Where PAIRED, even and odd tokens are loaded, widened and scored apart, so that lanes have
    two values of a column next to each other: matrix instructions take values of consecutive
    tokens, which Triton otherwise transposes in registers only for operands that are not widened.
    """
    pid = tl.program_id(0)
    count = tl.num_programs(0)
    if XCDS > 1:
        # neighbours, which read the same tokens, to one XCD and its L2
        xcd = pid % XCDS
        pid = xcd * (count // XCDS) + tl.minimum(xcd, count % XCDS) + pid // XCDS
    row_tiles = tl.cdiv(heads, ROWS)
    tile = pid % row_tiles
    column = pid // row_tiles % (LATENT // VALUE) * VALUE
    split = pid // (row_tiles * (LATENT // VALUE)) % SPLITS
    sequence = pid // (row_tiles * (LATENT // VALUE) * SPLITS)
    length = tl.load(lengths_ptr + sequence).to(tl.int32)
    tokens_per_part = tl.cdiv(tl.cdiv(length, BLOCK_N), SPLITS) * BLOCK_N
    start = split * tokens_per_part
    end = tl.minimum(start + tokens_per_part, length)

    # values come in pieces too where all are loaded for the keys
    WIDTH: tl.constexpr = PIECE if Q_LOADED else VALUE  # pyright: ignore[reportAssignmentType]
    FIRST: tl.constexpr = 1 if Q_LOADED else 0  # pyright: ignore[reportAssignmentType]
    dtype: tl.constexpr = q_ptr.dtype.element_ty
    heads_q = tile * ROWS + tl.arange(0, ROWS)
    row_mask = heads_q < heads
    q_ptrs = q_ptr + sequence.to(tl.int64) * q_row + heads_q * q_head
    q = (load_part(q_ptrs, LATENT + tl.arange(0, ROPE), row_mask, False),)
    if Q_LOADED:
        q = load_keys(q_ptrs, row_mask, LATENT, ROPE, PIECE, False)
    cache_scale = 2.0 if HALVED else 1.0
    if SCALED:
        cache_scale *= tl.load(cache_scale_ptr)
    scale *= cache_scale
    m_i = tl.full((ROWS,), float("-inf"), tl.float32)
    l_i = tl.zeros((ROWS,), tl.float32)
    acc = ()
    for _ in tl.static_range(0, VALUE, WIDTH):  # pyright: ignore[reportGeneralTypeIssues]
        if TRANSPOSED:
            acc += (tl.zeros((WIDTH, ROWS), tl.float32),)
        else:
            acc += (tl.zeros((ROWS, WIDTH), tl.float32),)
    table = block_table_ptr + sequence.to(tl.int64) * table_stride
    offs_n = tl.arange(0, BLOCK_N)
    blocks = cache_blocks(table, start, end, BLOCK_N, BLOCK_SIZE)
    if PAIRED:
        ptrs = paired_ptrs(
            cache_ptr, blocks, start, block_stride, token_stride, BLOCK_N, BLOCK_SIZE
        )
        next_tiles = load_pairs(ptrs, start, end, token_stride, LATENT, ROPE, PIECE, BLOCK_N)
        blocks = cache_blocks(table, start + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
    elif Q_LOADED:
        # tiles are loaded one ahead, and their blocks two
        ptrs = cache_ptrs(
            cache_ptr, blocks, start, block_stride, token_stride, BLOCK_N, BLOCK_SIZE, WIDE
        )
        next_tiles = load_keys(ptrs, start + offs_n < end, LATENT, ROPE, PIECE, TRANSPOSED)
        blocks = cache_blocks(table, start + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
    for start_n in range(start, end, BLOCK_N):
        mask = start_n + offs_n < end
        qk = tl.zeros((ROWS, BLOCK_N), tl.float32)
        if PAIRED:
            tiles = next_tiles
            next_n = start_n + BLOCK_N
            ptrs = paired_ptrs(
                cache_ptr, blocks, next_n, block_stride, token_stride, BLOCK_N, BLOCK_SIZE
            )
            next_tiles = load_pairs(ptrs, next_n, end, token_stride, LATENT, ROPE, PIECE, BLOCK_N)
            blocks = cache_blocks(table, next_n + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            even_keys = ()
            odd_keys = ()
            even_qk = tl.zeros((ROWS, BLOCK_N // 2), tl.float32)
            odd_qk = tl.zeros((ROWS, BLOCK_N // 2), tl.float32)
            for number in tl.static_range(0, 1 + LATENT // PIECE):  # pyright: ignore[reportGeneralTypeIssues]
                even_keys += (widen_or_halve(tiles[0][number], dtype, HALVED),)
                odd_keys += (widen_or_halve(tiles[1][number], dtype, HALVED),)  # pyright: ignore[reportGeneralTypeIssues]
                even_qk = add_scores(q[number], even_keys[number], even_qk, False, HALVED)
                odd_qk = add_scores(q[number], odd_keys[number], odd_qk, False, HALVED)
            qk = tl.reshape(tl.join(even_qk, odd_qk), (ROWS, BLOCK_N))
        elif Q_LOADED:
            tiles = next_tiles
            next_n = start_n + BLOCK_N
            ptrs = cache_ptrs(
                cache_ptr, blocks, next_n, block_stride, token_stride, BLOCK_N, BLOCK_SIZE, WIDE
            )
            next_tiles = load_keys(ptrs, next_n + offs_n < end, LATENT, ROPE, PIECE, TRANSPOSED)
            blocks = cache_blocks(table, next_n + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            for number in tl.static_range(0, 1 + LATENT // PIECE):  # pyright: ignore[reportGeneralTypeIssues]
                qk = add_scores(q[number], tiles[number], qk, TRANSPOSED, HALVED)
        else:
            ptrs = cache_ptrs(
                cache_ptr, blocks, start_n, block_stride, token_stride, BLOCK_N, BLOCK_SIZE, WIDE
            )
            blocks = cache_blocks(table, start_n + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            k = load_part(ptrs, LATENT + tl.arange(0, ROPE), mask, False)
            qk = add_scores(q[0], k, qk, False, HALVED)
            # the compiler must not know that it is 0: it would keep all queries in registers
            zero = tl.minimum(start_n, 0)
            for first in tl.static_range(0, LATENT, PIECE):  # pyright: ignore[reportGeneralTypeIssues]
                offs_d = first + tl.arange(0, PIECE)
                k = load_part(ptrs, offs_d, mask, False)
                q_chunk = load_part(q_ptrs + zero, offs_d, row_mask, False)
                qk = add_scores(q_chunk, k, qk, False, HALVED)
            tiles = (load_part(ptrs, column + tl.arange(0, VALUE), mask, False),)
        qk = tl.where(mask[None, :], qk * scale, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        p = p.to(dtype)  # pyright: ignore[reportArgumentType]
        new_acc = ()
        for number in tl.static_range(0, VALUE // WIDTH):  # pyright: ignore[reportGeneralTypeIssues]
            if PAIRED:
                values = interleaved(even_keys[number + 1], odd_keys[number + 1], PIECE, BLOCK_N)
            else:
                values = widen_or_halve(tiles[number + FIRST], dtype, HALVED)
            if TRANSPOSED:
                scaled = acc[number] * alpha[None, :]
                new_acc += (tl.dot(values, tl.trans(p), scaled, out_dtype=tl.float32),)
            else:
                scaled = acc[number] * alpha[:, None]
                new_acc += (tl.dot(p, values, scaled, out_dtype=tl.float32),)
        acc = new_acc
        m_i = m_new
    out_scale = tl.full((ROWS,), 1.0, tl.float32) * cache_scale
    heads_q += sequence * heads
    if SPLITS == 1:
        out_scale /= tl.where(l_i > 0, l_i, 1.0)
    elif column == 0:
        stat_ptrs = stat_ptr + heads_q * SPLITS + split
        tl.store(stat_ptrs, m_i, mask=row_mask)
        tl.store(stat_ptrs + sequences * heads * SPLITS, l_i, mask=row_mask)
    out_rows = heads_q.to(tl.int64)[:, None]
    for number in tl.static_range(0, VALUE // WIDTH):  # pyright: ignore[reportGeneralTypeIssues]
        out = acc[number]
        if PAIRED:
            out = tl.permute(tl.reshape(out, (ROWS, 16, PIECE // 16)), (0, 2, 1))
            out = tl.reshape(out, (ROWS, PIECE))
        if TRANSPOSED:
            out = tl.trans(out)
        out *= out_scale[:, None]
        columns = (column + number * WIDTH + tl.arange(0, WIDTH))[None, :]
        if SPLITS == 1:
            out_ptrs = out_ptr + out_rows * LATENT + columns
            tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=row_mask[:, None])
        else:
            part_ptrs = part_ptr + (out_rows * SPLITS + split) * LATENT + columns
            tl.store(part_ptrs, out, mask=row_mask[:, None])
