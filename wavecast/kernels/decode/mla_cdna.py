"""The kernel of `mla_decode` on CDNA, in Gluon, where the layouts of registers and of LDS are the
kernel's own: plain Triton writes a tile of tokens to LDS twice, as keys and as values, and has
waves read all of it for 16 heads each."""

# Names bound under a constexpr are bound where they are used, and constants are plain values.
# pyright: reportPossiblyUnboundVariable=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false
# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3, cdna4

_GROWN = gl.constexpr(8.0)
"""Sums are scaled once a weight grows past two to this, and stay as they are until then: both
16-bit formats hold it, and float32 sums do not mind."""


@gluon.constexpr_function
def products(target, side, row_waves, waves):
    """The layout of products of 16-bit operands, by matrix instructions of `side` rows."""
    version = {"gfx90a": 2, "gfx942": 3, "gfx950": 4}[target]
    depth = (8 if side == 32 else 16) * (2 if target == "gfx950" else 1)
    return gl.amd.AMDMFMALayout(
        version=version,
        instr_shape=[side, side, depth],
        transposed=True,
        warps_per_cta=[row_waves, waves // row_waves],
    )


@gluon.constexpr_function
def padded(tokens, width):
    """Tokens in LDS as waves load them to it, 1 KiB at a time: lanes that read 16 bytes of
    16 tokens, and those that turn 4 elements of 4 tokens, find them in different banks."""
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
    """A wave's own columns of all tokens, in registers: lanes have of each instruction the four
    tokens they multiply, and columns side by side, which are those of as many instructions."""
    own = width // (16 * waves)
    registers = [[0, 1 << bit] for bit in range(own.bit_length() - 1)] + [[1, 0], [2, 0]]
    registers += [[16 << bit, 0] for bit in range((tokens // 16).bit_length() - 1)]
    lanes = [[0, own << bit] for bit in range(4)] + [[4, 0], [8, 0]]
    across = [[0, own * 16 << bit] for bit in range(waves.bit_length() - 1)]
    return gl.DistributedLinearLayout(registers, lanes, across, [], [tokens, width])


@gluon.constexpr_function
def by_lines(width, waves):
    """Lanes that load 16 bytes each, side by side."""
    lanes = min(64, width // 8)
    return gl.BlockedLayout([1, 8], [64 // lanes, lanes], [waves, 1], [1, 0])


@gluon.jit
def block_of(table, at, end, BLOCK_SIZE: gl.constexpr):
    """The block that holds token `at`."""
    return gl.load(table + at // BLOCK_SIZE, mask=at < end, other=0)


@gluon.jit
def block_start(cache_ptr, entry, at, block_stride, token_stride, BLOCK_SIZE: gl.constexpr):
    """Where token `at` begins, in scalar registers, as buffer loads take it."""
    entry = gl.inline_asm_elementwise(
        "s_nop 0\nv_readfirstlane_b32 $0, $1", "=s,v", [entry], gl.int32, is_pure=True, pack=1
    )
    return cache_ptr + entry.to(gl.int64) * block_stride + at % BLOCK_SIZE * token_stride


@gluon.jit
def places(at, end, token_stride, first: gl.constexpr, WIDTH: gl.constexpr,
           BLOCK_N: gl.constexpr, lines: gl.constexpr):  # fmt: skip
    """Offsets of a tile's elements from `first` on, and which tokens there are."""
    token = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, lines))
    place = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, lines))
    offsets = token[:, None] * token_stride + (first + place)[None, :]
    return offsets, (at + token < end)[:, None]


@gluon.jit
def to_lds(
    base, at, end, token_stride, latent, rope, WAVES: gl.constexpr, BLOCK_N: gl.constexpr,
):  # fmt: skip
    """Begin to load a tile to LDS."""
    LATENT: gl.constexpr = latent.shape[1]
    ROPE: gl.constexpr = rope.shape[1]
    wide: gl.constexpr = by_lines(LATENT, WAVES)
    offsets, kept = places(at, end, token_stride, 0, LATENT, BLOCK_N, wide)
    cdna4.async_copy.buffer_load_to_shared(latent, base, offsets, mask=kept)
    narrow: gl.constexpr = by_lines(ROPE, WAVES)
    offsets, kept = places(at, end, token_stride, LATENT, ROPE, BLOCK_N, narrow)
    cdna4.async_copy.buffer_load_to_shared(rope, base, offsets, mask=kept)
    cdna4.async_copy.commit_group()


@gluon.jit
def to_registers(
    base, at, end, token_stride, LATENT: gl.constexpr, ROPE: gl.constexpr, WAVES: gl.constexpr,
    BLOCK_N: gl.constexpr,
):  # fmt: skip
    """A tile in registers, columns of the values of each wave's own."""
    wide: gl.constexpr = by_columns(BLOCK_N, LATENT, WAVES)
    offsets, kept = places(at, end, token_stride, 0, LATENT, BLOCK_N, wide)
    latent = cdna3.buffer_load(base, offsets, mask=kept)
    narrow: gl.constexpr = by_lines(ROPE, WAVES)
    offsets, kept = places(at, end, token_stride, LATENT, ROPE, BLOCK_N, narrow)
    return latent, cdna3.buffer_load(base, offsets, mask=kept)


@gluon.jit
def operand(tile, layout: gl.constexpr, ASYNC: gl.constexpr):
    """A tile from LDS, which waves have met before reading where it was loaded there."""
    if ASYNC:
        return cdna4.async_copy.load_shared_relaxed(tile, layout)
    else:
        return tile.load(layout)


@gluon.jit
def scored(
    q, latent, rope, kept, factor, PIECE: gl.constexpr, ASYNC: gl.constexpr, mma: gl.constexpr
):
    """Products of queries and a tile of keys, -inf where not `kept`."""
    keys: gl.constexpr = gl.DotOperandLayout(1, mma, 8)
    score = gl.full([q[0].shape[0], latent.shape[0]], 0.0, gl.float32, mma)
    score = cdna3.mfma(q[0], operand(rope.permute((1, 0)), keys, ASYNC), score)
    for number in gl.static_range(latent.shape[1] // PIECE):
        part = latent.slice(number * PIECE, PIECE, dim=1).permute((1, 0))
        score = cdna3.mfma(q[number + 1], operand(part, keys, ASYNC), score)
    return gl.where(kept[None, :], score * factor, float("-inf"))


@gluon.jit
def weighed(score, most, total, found, kind: gl.constexpr, sums: gl.constexpr):
    """Weights of a tile as an operand of products in the layout `sums`, with `most`, `total` and
    `found`."""
    peak = gl.maximum(most, gl.max(score, axis=1))
    if gl.max(peak - most, axis=0) > _GROWN:
        shrink = gl.exp2(most - peak)
        across = gl.convert_layout(shrink, gl.SliceLayout(1, sums))[:, None]
        scaled = ()
        for number in gl.static_range(len(found)):
            scaled += (found[number] * across,)
        found = scaled
        total = total * shrink
        most = peak
    weight = gl.exp2(score - most[:, None])
    total = total + gl.sum(weight, axis=1)
    weight = gl.convert_layout(weight.to(kind), gl.DotOperandLayout(0, sums, 4))
    return weight, most, total, found


@gluon.jit
def side_by_side(tile, WAVES: gl.constexpr, sums: gl.constexpr):
    """A tile `by_columns` as an operand: column `own` of each lane's to instruction `own`."""
    BLOCK_N: gl.constexpr = tile.shape[0]
    WIDTH: gl.constexpr = tile.shape[1]
    tile = tile.reshape([BLOCK_N, WAVES, 16, WIDTH // WAVES // 16]).permute([0, 3, 1, 2])
    return gl.convert_layout(tile.reshape([BLOCK_N, WIDTH]), gl.DotOperandLayout(1, sums, 4))


@gluon.jit
def lots_of_rows(found, WAVES: gl.constexpr):
    """16 rows each of the product with what is `side_by_side`, with columns in their order."""
    ROWS: gl.constexpr = found.shape[0]
    WIDTH: gl.constexpr = found.shape[1]
    found = found.reshape([ROWS, WIDTH // WAVES // 16, WAVES, 16]).permute([0, 2, 3, 1])
    lots = (found.reshape([ROWS, WIDTH]),)
    for _ in gl.static_range((ROWS // 16).bit_length() - 1):
        halves = ()
        for number in gl.static_range(len(lots)):
            lot = lots[number].reshape([2, lots[number].shape[0] // 2, WIDTH])
            halves += gl.split(lot.permute([1, 2, 0]))
        lots = halves
    return lots


@gluon.jit
def stored(
    result, to_row, first, out_ptr, part_ptr, kept, split, SPLITS: gl.constexpr,
    LATENT: gl.constexpr, lines: gl.constexpr,
):  # fmt: skip
    """Write columns from `first` on of a result, or of a part of one, in whole lines."""
    place = gl.arange(0, result.shape[1], layout=gl.SliceLayout(0, lines))
    if SPLITS == 1:
        result = gl.convert_layout(result.to(out_ptr.dtype.element_ty), lines)
        to = out_ptr + to_row[:, None] * LATENT + (first + place)[None, :]
    else:
        result = gl.convert_layout(result, lines)
        to = part_ptr + (to_row[:, None] * SPLITS + split) * LATENT + (first + place)[None, :]
    gl.store(to, result, mask=kept[:, None])


@gluon.jit
def mla_cdna_kernel(
    q_ptr, cache_ptr, table_ptr, length_ptr, scale_ptr, out_ptr, part_ptr, stat_ptr, factor,
    sequences, heads, q_sequence, q_head, table_stride, block_stride, token_stride,
    LATENT: gl.constexpr, ROPE: gl.constexpr, SPLITS: gl.constexpr, BLOCK_SIZE: gl.constexpr,
    SCALED: gl.constexpr, XCDS: gl.constexpr, TARGET: gl.constexpr,
    ROWS: gl.constexpr, BLOCK_N: gl.constexpr,
    SIDE: gl.constexpr, ROW_WAVES: gl.constexpr, PIECE: gl.constexpr, AHEAD: gl.constexpr,
):  # fmt: skip
    """A program takes ROWS heads and one of SPLITS parts of the tokens of a sequence, BLOCK_N at a
    time.

    ROW_WAVES waves score heads of their own; several of the same heads share the tokens of a tile.
    Matrix instructions have SIDE rows. Queries and results stay in registers; LDS is read for PIECE
    elements of a token at a time. On gfx950 AHEAD tiles are on their way to LDS, where waves read
    them as values, too, by instructions that turn them. Others have no such: there each wave loads
    a tile's columns of its own, writes them to LDS as keys, and multiplies them as values from the
    registers they came in, for all heads.
    """
    WAVES: gl.constexpr = gl.num_warps()
    ASYNC: gl.constexpr = TARGET == "gfx950"
    program = gl.program_id(0)
    count = gl.num_programs(0)
    if XCDS > 1:
        # neighbours, which read the same tokens, to one die and its L2
        die = program % XCDS
        program = die * (count // XCDS) + gl.minimum(die, count % XCDS) + program // XCDS
    row_tiles = (heads + ROWS - 1) // ROWS
    tile = program % row_tiles
    split = program // row_tiles % SPLITS
    sequence = program // (row_tiles * SPLITS)
    length = gl.load(length_ptr + sequence).to(gl.int32)
    share = ((length + BLOCK_N - 1) // BLOCK_N + SPLITS - 1) // SPLITS * BLOCK_N
    start = split * share
    end = gl.minimum(start + share, length)
    kind: gl.constexpr = q_ptr.dtype.element_ty
    mma: gl.constexpr = products(TARGET, SIDE, ROW_WAVES, WAVES)
    by_row: gl.constexpr = gl.SliceLayout(1, mma)
    sums: gl.constexpr = mma if ASYNC else products(TARGET, SIDE, 1, WAVES)
    # columns of a result that are multiplied one after the other
    WIDTH: gl.constexpr = PIECE if ASYNC else LATENT
    table = table_ptr + sequence.to(gl.int64) * table_stride

    if ASYNC:
        STAGES: gl.constexpr = AHEAD + 1
        latents = gl.allocate_shared_memory(
            kind, [STAGES, BLOCK_N, LATENT], padded(BLOCK_N, LATENT)
        )
        ropes = gl.allocate_shared_memory(kind, [STAGES, BLOCK_N, ROPE], padded(BLOCK_N, ROPE))
        for stage in gl.static_range(AHEAD):
            at = start + stage * BLOCK_N
            entry = block_of(table, at, end, BLOCK_SIZE)
            base = block_start(cache_ptr, entry, at, block_stride, token_stride, BLOCK_SIZE)
            to_lds(
                base, at, end, token_stride, latents.index(stage), ropes.index(stage),
                WAVES, BLOCK_N,
            )  # fmt: skip
        entry = block_of(table, start + AHEAD * BLOCK_N, end, BLOCK_SIZE)
    else:
        entry = block_of(table, start, end, BLOCK_SIZE)
        base = block_start(cache_ptr, entry, start, block_stride, token_stride, BLOCK_SIZE)
        ahead = to_registers(base, start, end, token_stride, LATENT, ROPE, WAVES, BLOCK_N)
        entry = block_of(table, start + BLOCK_N, end, BLOCK_SIZE)

    queries: gl.constexpr = gl.DotOperandLayout(0, mma, 8)
    row = tile * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, queries))
    kept = (row < heads)[:, None]
    from_q = q_ptr + sequence.to(gl.int64) * q_sequence
    at_row = row[:, None] * q_head
    place = gl.arange(0, ROPE, layout=gl.SliceLayout(0, queries))
    q = (cdna3.buffer_load(from_q, at_row + (LATENT + place)[None, :], mask=kept),)
    place = gl.arange(0, PIECE, layout=gl.SliceLayout(0, queries))
    for first in gl.static_range(0, LATENT, PIECE):
        q += (cdna3.buffer_load(from_q, at_row + (first + place)[None, :], mask=kept),)

    norm = gl.full([ROWS], 1.0, gl.float32, by_row)
    if SCALED:
        own = gl.load(scale_ptr)
        factor *= own
        norm *= own
    most = gl.full([ROWS], float("-inf"), gl.float32, by_row)
    total = gl.full([ROWS], 0.0, gl.float32, by_row)
    found = ()
    for _ in gl.static_range(0, LATENT, WIDTH):
        found += (gl.full([ROWS, WIDTH], 0.0, gl.float32, sums),)
    token = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma))
    if ASYNC:
        stage = 0
        for at in range(start, end, BLOCK_N):
            coming = at + AHEAD * BLOCK_N
            base = block_start(cache_ptr, entry, coming, block_stride, token_stride, BLOCK_SIZE)
            entry = block_of(table, coming + BLOCK_N, end, BLOCK_SIZE)
            into = gl.where(stage == 0, AHEAD, stage - 1)
            cdna4.async_copy.wait_group(AHEAD - 1)
            to_lds(
                base, coming, end, token_stride, latents.index(into), ropes.index(into),
                WAVES, BLOCK_N,
            )  # fmt: skip
            latent = latents.index(stage)
            score = scored(
                q, latent, ropes.index(stage), at + token < end, factor, PIECE, True, mma
            )
            weight, most, total, found = weighed(score, most, total, found, kind, sums)
            results = ()
            for number in gl.static_range(LATENT // PIECE):
                part = latent.slice(number * PIECE, PIECE, dim=1)
                value = operand(part, gl.DotOperandLayout(1, sums, 4), True)
                results += (cdna3.mfma(weight, value, found[number]),)
            found = results
            stage = gl.where(stage == AHEAD, 0, stage + 1)
        cdna4.async_copy.wait_group(0)
    else:
        latent = gl.allocate_shared_memory(kind, [BLOCK_N, LATENT], swizzled(LATENT))
        rope = gl.allocate_shared_memory(kind, [BLOCK_N, ROPE], swizzled(ROPE))
        latent.store(ahead[0])
        rope.store(ahead[1])
        for at in range(start, end, BLOCK_N):
            value = side_by_side(ahead[0], WAVES, sums)
            coming = at + BLOCK_N
            base = block_start(cache_ptr, entry, coming, block_stride, token_stride, BLOCK_SIZE)
            entry = block_of(table, coming + BLOCK_N, end, BLOCK_SIZE)
            ahead = to_registers(base, coming, end, token_stride, LATENT, ROPE, WAVES, BLOCK_N)
            score = scored(q, latent, rope, at + token < end, factor, PIECE, False, mma)
            weight, most, total, found = weighed(score, most, total, found, kind, sums)
            latent.store(ahead[0])
            rope.store(ahead[1])
            found = (cdna3.mfma(weight, value, found[0]),)

    row = tile * ROWS + gl.arange(0, ROWS, layout=by_row)
    if SPLITS == 1:
        norm /= gl.where(total > 0, total, 1.0)
    else:
        to_stat = stat_ptr + (sequence * heads + row) * SPLITS + split
        gl.store(to_stat, most, mask=row < heads)
        gl.store(to_stat + sequences * heads * SPLITS, total, mask=row < heads)
    # lots of columns, or of rows, so that LDS holds them while they are turned
    DOWN: gl.constexpr = ROWS if ASYNC else 16
    lanes: gl.constexpr = min(64, WIDTH // 4)
    lines: gl.constexpr = gl.BlockedLayout([1, 4], [64 // lanes, lanes], [WAVES, 1], [1, 0])
    norm = gl.convert_layout(norm, gl.SliceLayout(1, sums))[:, None]
    lots = found
    if not ASYNC:
        lots = lots_of_rows(found[0] * norm, WAVES)
    for number in gl.static_range(len(lots)):
        result = lots[number]
        first_row = tile * ROWS
        if ASYNC:
            result *= norm
        else:
            first_row += number * 16
        row = first_row + gl.arange(0, DOWN, layout=gl.SliceLayout(1, lines))
        to_row = (sequence * heads + row).to(gl.int64)
        stored(
            result, to_row, number * WIDTH if ASYNC else 0, out_ptr, part_ptr, row < heads, split,
            SPLITS, LATENT, lines,
        )  # fmt: skip


__all__ = ["mla_cdna_kernel"]
