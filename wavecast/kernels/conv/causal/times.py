"""Tiles of channels by times whose lanes hold several adjacent times each, in registers.

What a lane holds is a tuple with one tile [channels, groups] per time, so that a shift along time
is another index. Where times are adjacent in memory a lane loads vectors of them, else (channels
innermost, LAST) one time after another, vectors of channels.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false

import triton
import triton.language as tl


@triton.jit
def parted(tile, N: tl.constexpr):
    """The N elements (a power of two) of the last of three dimensions, as tiles of the others."""
    D: tl.constexpr = tile.shape[0]
    G: tl.constexpr = tile.shape[1]
    parts = (tile,)
    for level in tl.static_range(5):
        if 2**level < N:
            evens = ()
            odds = ()
            for part in tl.static_range(2**level):
                pairs = tl.reshape(parts[part], (D, G, N // (2 * 2**level), 2))
                even, odd = tl.split(pairs)
                evens = evens + (even,)  # noqa: RUF005 -- Triton
                odds = odds + (odd,)  # noqa: RUF005 -- Triton
            parts = evens + odds
    flat = ()
    for part in tl.static_range(N):
        flat = flat + (tl.reshape(parts[part], (D, G)),)  # noqa: RUF005 -- Triton
    return flat


@triton.jit
def joined(parts, N: tl.constexpr):
    """The inverse of `parted`."""
    D: tl.constexpr = parts[0].shape[0]
    G: tl.constexpr = parts[0].shape[1]
    tiles = ()
    for part in tl.static_range(N):
        tiles = tiles + (tl.reshape(parts[part], (D, G, 1)),)  # noqa: RUF005 -- Triton
    for level in tl.static_range(5):
        if 2**level < N:
            pairs = ()
            for part in tl.static_range(N // (2 * 2**level)):
                pair = tl.join(tiles[part], tiles[part + N // (2 * 2**level)])
                pairs = pairs + (tl.reshape(pair, (D, G, 2 * 2**level)),)  # noqa: RUF005 -- Triton
            tiles = pairs
    return tiles[0]


@triton.jit
def filters(
    weight_ptr, channel, channel_mask, W: tl.constexpr, TAPS: tl.constexpr, LAST: tl.constexpr
):  # fmt: skip
    """The W taps [channels, 1] of every channel, in float32; TAPS is W or more, a power of two.

    Where each lane has its own channels, it loads all taps as vectors.
    """
    taps = ()
    if LAST:
        tap = tl.arange(0, TAPS)[None, None, :]
        mask = channel_mask[:, :, None] & (tap < W)
        parts = parted(tl.load(weight_ptr + channel[:, :, None] * W + tap, mask, 0.0), TAPS)
        for tap in tl.static_range(W):
            taps = taps + (parts[tap].to(tl.float32),)  # noqa: RUF005 -- Triton
    else:
        for tap in tl.static_range(W):
            weight = tl.load(weight_ptr + channel * W + tap, channel_mask, 0.0)
            taps = taps + (weight.to(tl.float32),)  # noqa: RUF005 -- Triton
    return taps


@triton.jit
def times(
    x_ptr, state_ptr, start, channel, channel_mask, length, x_channel, x_step, state_channel,
    state_step,
    FROM: tl.constexpr, COUNT: tl.constexpr, W: tl.constexpr, STATE: tl.constexpr,
    LAST: tl.constexpr, N: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    """COUNT times of G groups of N, from FROM before or after the first of each group on; the first
    of all groups is `start`, a multiple of N. Times outside the sequence are zero, but those before
    it the last W - 1 of a state if STATE."""
    first = start + (tl.arange(0, G) * N)[None, :]
    values = ()
    if LAST:
        for i in tl.static_range(COUNT):
            offs = first + (FROM + i)
            mask = channel_mask & (offs >= 0) & (offs < length)
            x = tl.load(x_ptr + channel * x_channel + offs * x_step, mask, 0.0)
            if STATE and FROM + i < 0:
                if start == 0:
                    ptrs = state_ptr + channel * state_channel + (offs + (W - 1)) * state_step
                    x += tl.load(ptrs, channel_mask & (offs < 0) & (offs > -W), 0.0)
            values = values + (x,)  # noqa: RUF005 -- Triton
    else:
        # in vectors; floors, which a constant below zero has no operator for
        V: tl.constexpr = 128 // x_ptr.dtype.element_ty.primitive_bitwidth
        least: tl.constexpr = -((V - 1 - FROM) // V) if FROM < 0 else FROM // V
        end: tl.constexpr = (FROM + COUNT + V - 1 + W * V) // V - W
        row, valid = channel[:, :, None], channel_mask[:, :, None]
        for part in tl.static_range(least, end):
            offs = first[:, :, None] + (part * V + tl.arange(0, V)[None, None, :])
            mask = valid & (offs >= 0) & (offs < length) if part < 0 else valid & (offs < length)
            x = tl.load(x_ptr + row * x_channel + offs * x_step, mask, 0.0)
            if STATE and part < 0:
                if start == 0:
                    ptrs = state_ptr + row * state_channel + (offs + (W - 1)) * state_step
                    x += tl.load(ptrs, valid & (offs < 0) & (offs > -W), 0.0)
            values = values + parted(x, V)
        skipped: tl.constexpr = FROM - least * V
        values = values[skipped : skipped + COUNT]
    return values


@triton.jit
def store_times(
    y_ptr, parts, start, channel, channel_mask, length, y_channel, y_step,
    LAST: tl.constexpr, N: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    """Store what `times` with FROM 0 and COUNT N would load."""
    dtype = y_ptr.dtype.element_ty
    first = start + (tl.arange(0, G) * N)[None, :]
    if LAST:
        for i in tl.static_range(N):
            ptrs = y_ptr + channel * y_channel + (first + i) * y_step
            tl.store(ptrs, parts[i].to(dtype), channel_mask & (first + i < length))
    else:
        V: tl.constexpr = 128 // dtype.primitive_bitwidth
        for part in tl.static_range(N // V):
            offs = first[:, :, None] + (part * V + tl.arange(0, V)[None, None, :])
            ptrs = y_ptr + channel[:, :, None] * y_channel + offs * y_step
            rounded = ()
            for i in tl.static_range(V):
                rounded = rounded + (parts[part * V + i].to(dtype),)  # noqa: RUF005 -- Triton
            tl.store(ptrs, joined(rounded, V), channel_mask[:, :, None] & (offs < length))
