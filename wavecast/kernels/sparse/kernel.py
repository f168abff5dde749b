"""The kernel of `matmul_sparse24`, in Gluon: the layouts of registers are those of the sparse
instructions (`instructions`)."""

# `gl.amd.cdna3.buffer_load` is not imported by name: with torch, Triton 3.9 then ends a process
# with reports of leaks.
# Names bound under a constexpr are bound where they are used, and constants are plain values.
# pyright: reportPossiblyUnboundVariable=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false
# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false
# pyright: reportCallIssue=false, reportIndexIssue=false

from typing import Any

import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language import core

from wavecast.kernels.sparse.instructions import A_WORDS, B_WORDS, LIBRARY
from wavecast.kernels.tiles import tile_of

_A_WORDS = gl.constexpr(A_WORDS)
_B_WORDS = gl.constexpr(B_WORDS)


@core.builtin
def multiply_add(a: Any, b: Any, c: Any, index: Any, symbol: Any, part: Any, _semantic: Any = None):
    """Part `part` of c + A·B by the functions `symbol` of the library, on the words of A, B and the
    sum: a tensor of int64."""
    words = [*a, *b, *c]
    name = f"{core._unwrap_if_constexpr(symbol)}_{core._unwrap_if_constexpr(part)}"
    kinds = (*(tl.int64 for _ in words), index.dtype)
    return core.extern_elementwise(
        LIBRARY, "", [*words, index], {kinds: (name, tl.int64)}, is_pure=True, _semantic=_semantic
    )


@gluon.constexpr_function
def bits(count):
    """1, 2, 4 … below `count`."""
    return [1 << bit for bit in range(count.bit_length() - 1)]


@gluon.constexpr_function
def wave_layout(tiles_n, tiles_m, groups, waves_n, waves_m):
    """[waves_n, waves_m, tiles_n, tiles_m, 16, groups]: lanes along the last two, a wave's tiles
    in its registers."""
    return gl.BlockedLayout(
        [1, 1, tiles_n, tiles_m, 1, 1],
        [1, 1, 1, 1, 16, groups],
        [waves_n, waves_m, 1, 1, 1, 1],
        [4, 5, 3, 2, 1, 0],
    )


@gluon.constexpr_function
def fragments(tiles, calls, groups, words, waves, others, inner):
    """Rows [waves * tiles * 16, calls * groups * words] as lanes read them: `words` of each row
    adjacent. `others` waves have the same rows, and are next to each other where the rows are the
    `inner` ones of the workgroup's waves, else apart."""
    registers = [[0, bit] for bit in bits(words)] + [[16 * bit, 0] for bit in bits(tiles)]
    registers += [[0, groups * words * bit] for bit in bits(calls)]
    lanes = [[bit, 0] for bit in bits(16)] + [[0, words * bit] for bit in bits(groups)]
    rows = [[16 * tiles * bit, 0] for bit in bits(waves)]
    same = [[0, 0] for _ in bits(others)]
    shape = [waves * tiles * 16, calls * groups * words]
    return gl.DistributedLinearLayout(
        registers, lanes, rows + same if inner else same + rows, [], shape
    )


@gluon.constexpr_function
def by_lines(columns, lanes, waves):
    """Lanes that load 16 bytes each, side by side."""
    across = min(lanes, columns // 2)
    return gl.BlockedLayout([1, 2], [lanes // across, across], [waves, 1], [1, 0])


@gluon.constexpr_function
def by_fours(columns, lanes, waves):
    """Lanes that store four elements each, side by side."""
    across = min(lanes, columns // 4)
    return gl.BlockedLayout([1, 4], [lanes // across, across], [waves, 1], [1, 0])


@gluon.constexpr_function
def swizzled(rows, columns, masks):
    """Rows of words in LDS, whose pieces of two words are in another order in every row
    (`row_swizzle`)."""
    bases = [[0, bit] for bit in bits(columns)]
    for number, bit in enumerate(bits(rows)):
        bases.append([bit, 2 * masks[number] if number < len(masks) else 0])
    return gl.SharedLinearLayout(bases)


@gluon.jit
def load_rows(ptr, rows, pitch, first, EVEN: gl.constexpr, WIDTH: gl.constexpr,
              lines: gl.constexpr):  # fmt: skip
    """WIDTH words of each of `rows`, which have `pitch`, from word `first` on; 0 beyond the end."""
    offs = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, lines))
    if EVEN:
        return gl.amd.cdna3.buffer_load(ptr + first, rows[:, None] * pitch + offs[None, :])
    else:
        mask = (offs < pitch - first)[None, :]
        return gl.amd.cdna3.buffer_load(
            ptr + first, rows[:, None] * pitch + offs[None, :], mask=mask, other=0
        )


@gluon.jit
def load_index(ptr, columns, N, first, chunks, WORDS: gl.constexpr, DEPTH: gl.constexpr,
               EVEN: gl.constexpr, layout: gl.constexpr):  # fmt: skip
    """The index of DEPTH chunks from chunk `first` on, of WORDS words each, [columns, DEPTH]; 0
    beyond the end."""
    numbers = gl.arange(0, DEPTH, layout=gl.SliceLayout(0, layout))
    base = ptr + first.to(gl.int64) * WORDS * N
    offs = columns[:, None] + (numbers * WORDS * N)[None, :]
    mask = (numbers < chunks - first)[None, :]
    low = (
        gl.amd.cdna3.buffer_load(base, offs)
        if EVEN
        else gl.amd.cdna3.buffer_load(base, offs, mask=mask, other=0)
    )
    if WORDS == 1:
        return low
    else:
        offs += N
        high = (
            gl.amd.cdna3.buffer_load(base, offs)
            if EVEN
            else gl.amd.cdna3.buffer_load(base, offs, mask=mask, other=0)
        )
        return low.to(gl.uint32, bitcast=True).to(gl.int64) | (high.to(gl.int64) << 32)


@gluon.jit
def halves_of(parts):
    """Every part [rows, columns] as its even and its odd columns, next to each other."""
    result = ()
    for number in gl.static_range(len(parts)):
        part = parts[number]
        even, odd = gl.split(part.reshape([part.shape[0], part.shape[1] // 2, 2]))
        result += (even, odd)
    return result


@gluon.constexpr_function
def reversed_bits(number, count):
    """Where column `number` of `count` is after splits by `halves_of`."""
    width = count.bit_length() - 1
    return int(f"{number:0{width}b}"[::-1], 2) if width else 0


@gluon.jit
def words_of(tile, call: gl.constexpr, CALLS: gl.constexpr, WORDS: gl.constexpr,
             SHAPE: gl.constexpr, layout: gl.constexpr):  # fmt: skip
    """The words of every lane for one of the calls of a step, from a tile in `fragments`: each as
    SHAPE in the layout of the waves."""
    parts = (tile,)
    for _ in gl.static_range(WORDS.bit_length() - 1):
        parts = halves_of(parts)
    result = ()
    for word in gl.static_range(WORDS):
        part = parts[reversed_bits(word, WORDS)]
        if CALLS > 1:
            by_call = part.reshape([part.shape[0], CALLS, part.shape[1] // CALLS])
            part = gl.split(by_call.permute([0, 2, 1]))[call]
        result += (gl.convert_layout(part.reshape(SHAPE), layout, assert_trivial=True),)
    return result


@gluon.jit
def numbers(word, INTEGER: gl.constexpr):
    """The two 32-bit values of words of a sum, as float32."""
    low = (word & 0xFFFFFFFF).to(gl.int32)
    high = (word >> 32).to(gl.int32)
    if INTEGER:
        return low.to(gl.float32), high.to(gl.float32)
    else:
        return low.to(gl.float32, bitcast=True), high.to(gl.float32, bitcast=True)


@gluon.jit
def matmul_sparse24_kernel(
    x_ptr, values_ptr, index_ptr, x_scale_ptr, weight_scale_ptr, bias_ptr, out_ptr, part_ptr,
    M, N, CHUNKS,
    SYMBOL: gl.constexpr, GROUPS: gl.constexpr, CALLS: gl.constexpr, SUM_WORDS: gl.constexpr,
    INDEX_WORDS: gl.constexpr, INTEGER: gl.constexpr,
    X_SCALES: gl.constexpr, WEIGHT_SCALES: gl.constexpr, X_SWIZZLE: gl.constexpr,
    W_SWIZZLE: gl.constexpr, EVEN_K: gl.constexpr, WIDE: gl.constexpr, XCDS: gl.constexpr,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, WAVES_M: gl.constexpr, SPLIT_K: gl.constexpr,
    GROUP: gl.constexpr,
):  # fmt: skip
    """A program computes a tile of `out` [M, N], or with SPLIT_K its part over some steps of K,
    which goes to `part_ptr` [SPLIT_K, M, N].

    `x` [M, CHUNKS * 8] and `values` [N, CHUNKS * 4] are words of 64 bits, `index`
    [CHUNKS * INDEX_WORDS, N] of 32: a chunk is what a lane multiplies in a call of
    `multiply_add`. The rows of A are those of the weights, its columns those of `x`, so that a
    lane's sums are adjacent in `out`. A step is CALLS times GROUPS chunks.
    """
    WAVES: gl.constexpr = gl.num_warps()
    WAVES_N: gl.constexpr = WAVES // WAVES_M
    TILES_M: gl.constexpr = BLOCK_M // WAVES_M // 16
    TILES_N: gl.constexpr = BLOCK_N // WAVES_N // 16
    LANES: gl.constexpr = 16 * GROUPS
    DEPTH: gl.constexpr = CALLS * GROUPS
    X_WIDTH: gl.constexpr = _B_WORDS * DEPTH
    W_WIDTH: gl.constexpr = _A_WORDS * DEPTH
    waves: gl.constexpr = wave_layout(TILES_N, TILES_M, GROUPS, WAVES_N, WAVES_M)
    x_lines: gl.constexpr = by_lines(X_WIDTH, LANES, WAVES)
    w_lines: gl.constexpr = by_lines(W_WIDTH, LANES, WAVES)
    x_words: gl.constexpr = fragments(TILES_M, CALLS, GROUPS, _B_WORDS, WAVES_M, WAVES_N, True)
    w_words: gl.constexpr = fragments(TILES_N, CALLS, GROUPS, _A_WORDS, WAVES_N, WAVES_M, False)
    index_words: gl.constexpr = fragments(TILES_N, CALLS, GROUPS, 1, WAVES_N, WAVES_M, False)
    x_order: gl.constexpr = swizzled(BLOCK_M, X_WIDTH, X_SWIZZLE)
    w_order: gl.constexpr = swizzled(BLOCK_N, W_WIDTH, W_SWIZZLE)
    A_SHAPE: gl.constexpr = [WAVES_N, 1, TILES_N, 1, 16, GROUPS]
    B_SHAPE: gl.constexpr = [1, WAVES_M, 1, TILES_M, 16, GROUPS]

    down = gl.cdiv(M, BLOCK_M)
    across = gl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tile_of(gl.program_id(0), down, across, GROUP, XCDS)
    steps = gl.cdiv(CHUNKS, DEPTH)
    first = gl.program_id(1) * steps // SPLIT_K
    last = (gl.program_id(1) + 1) * steps // SPLIT_K

    # rows beyond the end repeat the last
    first_m, first_n = pid_m * BLOCK_M, pid_n * BLOCK_N
    x_rows = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, x_lines))
    w_rows = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, w_lines))
    columns = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, index_words))
    x_rows = gl.minimum(x_rows, M - 1 - first_m)
    w_rows = gl.minimum(w_rows, N - 1 - first_n)
    columns = gl.minimum(columns, N - 1 - first_n)
    x_pitch = CHUNKS * _B_WORDS
    w_pitch = CHUNKS * _A_WORDS
    # offsets within a tile have 32 bits
    x_ptr += first_m.to(gl.int64) * x_pitch
    values_ptr += first_n.to(gl.int64) * w_pitch
    index_ptr += first_n

    x_lds = gl.allocate_shared_memory(gl.int64, [BLOCK_M, X_WIDTH], x_order)
    w_lds = gl.allocate_shared_memory(gl.int64, [BLOCK_N, W_WIDTH], w_order)
    acc = ()
    for _ in gl.static_range(SUM_WORDS):
        zero = gl.full([WAVES_N, WAVES_M, TILES_N, TILES_M, 16, GROUPS], 0, gl.int64, waves)
        acc += (zero,)

    x_next = load_rows(x_ptr, x_rows, x_pitch, first * X_WIDTH, EVEN_K, X_WIDTH, x_lines)
    w_next = load_rows(values_ptr, w_rows, w_pitch, first * W_WIDTH, EVEN_K, W_WIDTH, w_lines)
    i_next = load_index(
        index_ptr, columns, N, first * DEPTH, CHUNKS, INDEX_WORDS, DEPTH, EVEN_K, index_words
    )
    for step in range(first, last):
        x_lds.store(x_next)
        w_lds.store(w_next)
        index = i_next
        following = gl.minimum(step + 1, last - 1)
        x_next = load_rows(x_ptr, x_rows, x_pitch, following * X_WIDTH, EVEN_K, X_WIDTH, x_lines)
        w_next = load_rows(
            values_ptr, w_rows, w_pitch, following * W_WIDTH, EVEN_K, W_WIDTH, w_lines
        )
        i_next = load_index(
            index_ptr, columns, N, following * DEPTH, CHUNKS, INDEX_WORDS, DEPTH, EVEN_K,
            index_words,
        )  # fmt: skip
        x_tile, w_tile = x_lds.load(x_words), w_lds.load(w_words)
        for call in gl.static_range(CALLS):
            b = words_of(x_tile, call, CALLS, _B_WORDS, B_SHAPE, waves)
            a = words_of(w_tile, call, CALLS, _A_WORDS, A_SHAPE, waves)
            kept = words_of(index, call, CALLS, 1, A_SHAPE, waves)[0]
            sums = ()
            for part in gl.static_range(SUM_WORDS):
                sums += (multiply_add(a, b, acc, kept, SYMBOL, part),)
            acc = sums

    # [WAVES_N, WAVES_M, TILES_N, TILES_M, 16, GROUPS] of words -> rows of x, columns of weights
    pairs = ()
    for part in gl.static_range(SUM_WORDS):
        low, high = numbers(acc[part], INTEGER)
        pairs += (gl.join(low, high),)
    # [..., low or high, bits of the word]
    if SUM_WORDS == 4:
        halves = gl.join(gl.join(pairs[0], pairs[2]), gl.join(pairs[1], pairs[3]))
        tile = halves.permute([1, 3, 4, 0, 2, 5, 7, 8, 6])
    else:
        tile = gl.join(pairs[0], pairs[1]).permute([1, 3, 4, 0, 2, 5, 7, 6])
    tile = tile.reshape([BLOCK_M, BLOCK_N])
    layout: gl.constexpr = tile.type.layout
    offs_m = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    offs_n = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, layout))
    if x_scale_ptr is not None:
        scale_rows = gl.minimum(offs_m, M - 1) if X_SCALES else offs_m * 0
        tile *= gl.load(x_scale_ptr + scale_rows)[:, None]
    if weight_scale_ptr is not None:
        scale_columns = gl.minimum(offs_n, N - 1) if WEIGHT_SCALES else offs_n * 0
        tile *= gl.load(weight_scale_ptr + scale_columns)[None, :]
    if bias_ptr is not None:
        bias = gl.load(bias_ptr + gl.minimum(offs_n, N - 1)).to(gl.float32)
        tile += gl.where(gl.program_id(1) == 0, bias, 0.0)[None, :]
    out_lines: gl.constexpr = by_fours(BLOCK_N, LANES, WAVES)
    if SPLIT_K == 1:
        tile = tile.to(out_ptr.dtype.element_ty)
    tile = gl.convert_layout(tile, out_lines)
    offs_m = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, out_lines))
    offs_n = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, out_lines))
    mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    if WIDE:
        offs_m, offs_n = offs_m.to(gl.int64), offs_n.to(gl.int64)
    offs = offs_m[:, None] * N + offs_n[None, :]
    if SPLIT_K > 1:
        part_base = gl.program_id(1) * M * N if not WIDE else gl.program_id(1).to(gl.int64) * M * N
        gl.store(part_ptr + part_base + offs, tile, mask=mask)
    else:
        gl.store(out_ptr + offs, tile, mask=mask)
