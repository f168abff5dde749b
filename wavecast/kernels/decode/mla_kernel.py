"""The kernel of attention over compressed keys and values: all heads share one key per token, whose
first part is the value too."""

# Names bound under a constexpr are bound where they are used, and constants are plain values.
# pyright: reportPossiblyUnboundVariable=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl

from wavecast.kernels.decode.parts import cache_entries, cache_rows, widened
from wavecast.kernels.quantise.formats import half_of


@triton.jit
def latent_tile(rows, place, kept, TURNED: tl.constexpr):
    """Elements `place` of the tokens `rows` point to, zeros where not `kept`: a token per row, or
    per column where TURNED."""
    if TURNED:
        return tl.load(rows[None, :] + place[:, None], mask=kept[None, :], other=0.0)
    else:
        return tl.load(rows[:, None] + place[None, :], mask=kept[:, None], other=0.0)


@triton.jit
def latent_tiles(
    rows, kept,
    LATENT: tl.constexpr, ROPE: tl.constexpr, PIECE: tl.constexpr, TURNED: tl.constexpr,
):  # fmt: skip
    """The keys of a tile of tokens: the part with positions, then the others in pieces."""
    tiles = (latent_tile(rows, LATENT + tl.arange(0, ROPE), kept, TURNED),)
    for first in tl.static_range(0, LATENT, PIECE):  # pyright: ignore[reportGeneralTypeIssues]
        tiles += (latent_tile(rows, first + tl.arange(0, PIECE), kept, TURNED),)
    return tiles


@triton.jit
def paired_rows(
    cache, entry, at, block_stride, token_stride, BLOCK_N: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    """Pointers to the even ones of the BLOCK_N tokens from `at` on, which are all in one block."""
    first = cache + entry.to(tl.int64) * block_stride + at % BLOCK_SIZE * token_stride
    return first + 2 * tl.arange(0, BLOCK_N // 2) * token_stride


@triton.jit
def paired_tiles(
    rows, at, end, token_stride,
    LATENT: tl.constexpr, ROPE: tl.constexpr, PIECE: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """`latent_tiles` of the even tokens of a tile, and those of the odd ones."""
    token = at + 2 * tl.arange(0, BLOCK_N // 2)
    even = latent_tiles(rows, token < end, LATENT, ROPE, PIECE, False)
    odd = latent_tiles(rows + token_stride, token + 1 < end, LATENT, ROPE, PIECE, False)
    return even, odd


@triton.jit
def interleaved(even, odd, PIECE: tl.constexpr, BLOCK_N: tl.constexpr):
    """[BLOCK_N, PIECE] of its even and its odd rows, with every 16th column first, then those
    after them: lanes hold 16 columns in a row, and write to LDS by columns."""
    even = tl.reshape(even, (BLOCK_N // 2, PIECE // 16, 16))
    odd = tl.reshape(odd, (BLOCK_N // 2, PIECE // 16, 16))
    return tl.reshape(tl.permute(tl.join(even, odd), (0, 3, 2, 1)), (BLOCK_N, PIECE))


@triton.jit
def multiplied(x, kind: tl.constexpr, HALVED: tl.constexpr):
    """`widened`, or with HALVED half of e4m3fn values, by instructions for e4m3fnuz: of the same
    codes but for that of -0, which is NaN there."""
    if HALVED and x.dtype != kind:
        wide = x.to(tl.uint8, bitcast=True).to(tl.float8e4b8, bitcast=True).to(tl.float32)
        wide = tl.where(wide == wide, wide, 0.0)
        return half_of(wide) if kind == tl.bfloat16 else wide.to(kind)
    else:
        return widened(x, kind)


@triton.jit
def scored(q, keys, score, TURNED: tl.constexpr, HALVED: tl.constexpr):
    """`score` and the product of queries and a tile of keys."""
    keys = multiplied(keys, q.dtype, HALVED)
    if TURNED:
        return tl.dot(q, keys, score, out_dtype=tl.float32)
    else:
        return tl.dot(q, tl.trans(keys), score, out_dtype=tl.float32)


@triton.jit
def mla_decode_kernel(
    q_ptr, cache_ptr, table_ptr, length_ptr, scale_ptr, out_ptr, part_ptr, stat_ptr, factor,
    sequences, heads, q_sequence, q_head, table_stride, block_stride, token_stride,
    LATENT: tl.constexpr, ROPE: tl.constexpr, SPLITS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    SCALED: tl.constexpr, HALVED: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    ROWS: tl.constexpr, BLOCK_N: tl.constexpr, VALUE: tl.constexpr, PIECE: tl.constexpr,
    HELD: tl.constexpr, TURNED: tl.constexpr, PAIRED: tl.constexpr,
):  # fmt: skip
    """A program takes ROWS heads, VALUE columns of their values, and one of SPLITS parts of the
    tokens of a sequence.

    Where HELD, its queries stay in registers and each tile of tokens is loaded once, a tile ahead;
    else queries and keys are read again for every tile, PIECE elements at a time. Where TURNED, the
    product with the values is that of the transposed operands: Triton then gives each wave columns
    of its own and all rows, so that a value is read from LDS once and not by every wave. Where
    PAIRED, even and odd tokens are loaded, widened and scored apart, so that lanes have two values
    of a column side by side: matrix instructions take values that follow each other in tokens,
    which Triton otherwise turns round in registers only for what is multiplied as it is loaded.
    """
    program = tl.program_id(0)
    count = tl.num_programs(0)
    if XCDS > 1:
        # neighbours, which read the same tokens, to one die and its L2
        die = program % XCDS
        program = die * (count // XCDS) + tl.minimum(die, count % XCDS) + program // XCDS
    row_tiles = tl.cdiv(heads, ROWS)
    tile = program % row_tiles
    column = program // row_tiles % (LATENT // VALUE) * VALUE
    split = program // (row_tiles * (LATENT // VALUE)) % SPLITS
    sequence = program // (row_tiles * (LATENT // VALUE) * SPLITS)
    length = tl.load(length_ptr + sequence).to(tl.int32)
    share = tl.cdiv(tl.cdiv(length, BLOCK_N), SPLITS) * BLOCK_N
    start = split * share
    end = tl.minimum(start + share, length)

    # values come in pieces too where all are loaded for the keys
    WIDTH: tl.constexpr = PIECE if HELD else VALUE  # pyright: ignore[reportAssignmentType]
    FIRST: tl.constexpr = 1 if HELD else 0  # pyright: ignore[reportAssignmentType]
    kind: tl.constexpr = q_ptr.dtype.element_ty
    row = tile * ROWS + tl.arange(0, ROWS)
    inside = row < heads
    from_q = q_ptr + sequence.to(tl.int64) * q_sequence + row * q_head
    q = (latent_tile(from_q, LATENT + tl.arange(0, ROPE), inside, False),)
    if HELD:
        q = latent_tiles(from_q, inside, LATENT, ROPE, PIECE, False)
    own = 2.0 if HALVED else 1.0
    if SCALED:
        own *= tl.load(scale_ptr)
    factor *= own
    most = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    found = ()
    for _ in tl.static_range(0, VALUE, WIDTH):  # pyright: ignore[reportGeneralTypeIssues]
        if TURNED:
            found += (tl.zeros((WIDTH, ROWS), tl.float32),)
        else:
            found += (tl.zeros((ROWS, WIDTH), tl.float32),)
    table = table_ptr + sequence.to(tl.int64) * table_stride
    token = tl.arange(0, BLOCK_N)
    entries = cache_entries(table, start, end, BLOCK_N, BLOCK_SIZE)
    if PAIRED:
        rows = paired_rows(
            cache_ptr, entries, start, block_stride, token_stride, BLOCK_N, BLOCK_SIZE
        )
        ahead = paired_tiles(rows, start, end, token_stride, LATENT, ROPE, PIECE, BLOCK_N)
        entries = cache_entries(table, start + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
    elif HELD:
        # loads run a tile ahead, and the table's a tile more
        rows = cache_rows(
            cache_ptr, entries, start, block_stride, token_stride, BLOCK_N, BLOCK_SIZE, WIDE
        )
        ahead = latent_tiles(rows, start + token < end, LATENT, ROPE, PIECE, TURNED)
        entries = cache_entries(table, start + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
    for at in range(start, end, BLOCK_N):
        kept = at + token < end
        score = tl.zeros((ROWS, BLOCK_N), tl.float32)
        if PAIRED:
            tiles = ahead
            coming = at + BLOCK_N
            rows = paired_rows(
                cache_ptr, entries, coming, block_stride, token_stride, BLOCK_N, BLOCK_SIZE
            )
            ahead = paired_tiles(rows, coming, end, token_stride, LATENT, ROPE, PIECE, BLOCK_N)
            entries = cache_entries(table, coming + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            evens = ()
            odds = ()
            even_score = tl.zeros((ROWS, BLOCK_N // 2), tl.float32)
            odd_score = tl.zeros((ROWS, BLOCK_N // 2), tl.float32)
            for number in tl.static_range(0, 1 + LATENT // PIECE):  # pyright: ignore[reportGeneralTypeIssues]
                evens += (multiplied(tiles[0][number], kind, HALVED),)
                odds += (multiplied(tiles[1][number], kind, HALVED),)  # pyright: ignore[reportGeneralTypeIssues]
                even_score = scored(q[number], evens[number], even_score, False, HALVED)
                odd_score = scored(q[number], odds[number], odd_score, False, HALVED)
            score = tl.reshape(tl.join(even_score, odd_score), (ROWS, BLOCK_N))
        elif HELD:
            tiles = ahead
            coming = at + BLOCK_N
            rows = cache_rows(
                cache_ptr, entries, coming, block_stride, token_stride, BLOCK_N, BLOCK_SIZE, WIDE
            )
            ahead = latent_tiles(rows, coming + token < end, LATENT, ROPE, PIECE, TURNED)
            entries = cache_entries(table, coming + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            for number in tl.static_range(0, 1 + LATENT // PIECE):  # pyright: ignore[reportGeneralTypeIssues]
                score = scored(q[number], tiles[number], score, TURNED, HALVED)
        else:
            rows = cache_rows(
                cache_ptr, entries, at, block_stride, token_stride, BLOCK_N, BLOCK_SIZE, WIDE
            )
            entries = cache_entries(table, at + BLOCK_N, end, BLOCK_N, BLOCK_SIZE)
            k = latent_tile(rows, LATENT + tl.arange(0, ROPE), kept, False)
            score = scored(q[0], k, score, False, HALVED)
            # zero, which the compiler must not know: it would keep all queries in registers
            again = tl.minimum(at, 0)
            for first in tl.static_range(0, LATENT, PIECE):  # pyright: ignore[reportGeneralTypeIssues]
                place = first + tl.arange(0, PIECE)
                k = latent_tile(rows, place, kept, False)
                part = latent_tile(from_q + again, place, inside, False)
                score = scored(part, k, score, False, HALVED)
            tiles = (latent_tile(rows, column + tl.arange(0, VALUE), kept, False),)
        score = tl.where(kept[None, :], score * factor, float("-inf"))
        peak = tl.maximum(most, tl.max(score, axis=1))
        weight = tl.exp2(score - peak[:, None])
        shrink = tl.exp2(most - peak)
        total = total * shrink + tl.sum(weight, axis=1)
        weight = weight.to(kind)  # pyright: ignore[reportArgumentType]
        sums = ()
        for number in tl.static_range(0, VALUE // WIDTH):  # pyright: ignore[reportGeneralTypeIssues]
            if PAIRED:
                values = interleaved(evens[number + 1], odds[number + 1], PIECE, BLOCK_N)
            else:
                values = multiplied(tiles[number + FIRST], kind, HALVED)
            if TURNED:
                kept_sum = found[number] * shrink[None, :]
                sums += (tl.dot(values, tl.trans(weight), kept_sum, out_dtype=tl.float32),)
            else:
                kept_sum = found[number] * shrink[:, None]
                sums += (tl.dot(weight, values, kept_sum, out_dtype=tl.float32),)
        found = sums
        most = peak
    norm = tl.full((ROWS,), 1.0, tl.float32) * own
    row += sequence * heads
    if SPLITS == 1:
        norm /= tl.where(total > 0, total, 1.0)
    elif column == 0:
        to_stat = stat_ptr + row * SPLITS + split
        tl.store(to_stat, most, mask=inside)
        tl.store(to_stat + sequences * heads * SPLITS, total, mask=inside)
    to = row.to(tl.int64)[:, None]
    for number in tl.static_range(0, VALUE // WIDTH):  # pyright: ignore[reportGeneralTypeIssues]
        result = found[number]
        if PAIRED:
            result = tl.permute(tl.reshape(result, (ROWS, 16, PIECE // 16)), (0, 2, 1))
            result = tl.reshape(result, (ROWS, PIECE))
        if TURNED:
            result = tl.trans(result)
        result *= norm[:, None]
        columns = (column + number * WIDTH + tl.arange(0, WIDTH))[None, :]
        if SPLITS == 1:
            to_out = out_ptr + to * LATENT + columns
            tl.store(to_out, result.to(out_ptr.dtype.element_ty), mask=inside[:, None])
        else:
            to_part = part_ptr + (to * SPLITS + split) * LATENT + columns
            tl.store(to_part, result, mask=inside[:, None])


__all__ = ["mla_decode_kernel"]
