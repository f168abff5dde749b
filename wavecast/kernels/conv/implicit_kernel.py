"""Convolutions as matrix products whose left operand is formed while it is loaded.

Rows are output positions, columns output channels, and the reduction walks the taps of the filter
with channels innermost. The gradient of the input is one as well, with the filter's taps reversed:
with a stride, each of its phases (positions modulo the stride) sees its own taps only.
"""

# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false
# pyright: reportPossiblyUnboundVariable=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false

import triton
import triton.language as tl

from wavecast.kernels.conv.combine import activated
from wavecast.kernels.tiles import store_tile, tile_of


@triton.jit
def first_tap(phase, pad, TAPS: tl.constexpr, STRIDE: tl.constexpr, DILATION: tl.constexpr):
    """The first tap that positions `phase` modulo the stride see; TAPS when there is none."""
    first = phase * 0 + TAPS
    for i in tl.static_range(TAPS):
        tap = TAPS - 1 - i
        first = tl.where((phase + pad - tap * DILATION) % STRIDE == 0, tap, first)
    return first


@triton.jit
def seen_in(
    phase, size, pad, TAPS: tl.constexpr, STRIDE: tl.constexpr, DILATION: tl.constexpr,
    STEP: tl.constexpr,
):  # fmt: skip
    """Along one axis, of the positions of `size` that are `phase` modulo the stride: (how many they
    are, the first tap they see, the number of taps, the input position that the first one sees)."""
    tap = first_tap(phase, pad, TAPS, STRIDE, DILATION)
    rows = (size - phase + STRIDE - 1) // STRIDE
    shift = (phase + pad - tap * DILATION) // STRIDE
    return rows, tap, (TAPS - tap + STEP - 1) // STEP, shift


@triton.jit
def carried(digit, limit, above):
    """A digit and the one above it: one that has reached its limit is 0 and one more above."""
    over = digit >= limit
    return tl.where(over, 0, digit), tl.where(over, above + 1, above)


@triton.jit
def convolution_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, images, columns, depth, groups,
    x_image, x_plane, x_row, x_pixel, x_channel,
    weight_group, weight_column, weight_channel, weight_tap, y_image, y_pixel, y_channel, y_split,
    x_d, x_h, x_w, y_d, y_h, y_w, y_pixels, pad_d, pad_h, pad_w,
    T: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    STRIDE_D: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_D: tl.constexpr, DILATION_H: tl.constexpr, DILATION_W: tl.constexpr,
    STEP_D: tl.constexpr, STEP_H: tl.constexpr, STEP_W: tl.constexpr,
    DEEP: tl.constexpr, FLAT: tl.constexpr, PADDED: tl.constexpr, TRANSPOSED: tl.constexpr,
    MERGED: tl.constexpr, DEPTH_STEP: tl.constexpr, COLUMN_STEP: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, SPLITS: tl.constexpr, Y_LAST: tl.constexpr,
    WIDE: tl.constexpr, XCDS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """FLAT: output positions are input positions. DEEP: the third dimension is used. MERGED: the
    channels of a filter's row of taps, MERGED of each, are taken as one (`layout.Rows`). DEPTH_STEP
    and COLUMN_STEP divide the sizes they name."""
    if MERGED:  # so that the compiler knows what divides them
        x_channel = 1
        x_pixel = MERGED
        x_row = x_w * MERGED
        x_plane = x_h * x_row
        if WIDE:
            x_plane = x_plane.to(tl.int64)
        x_image = x_d * x_plane
    # The tiles of a part of the reduction read the same channels and filters: one die takes them
    # all. Groups and phases, which share lines of the input, count as columns.
    if TRANSPOSED and STRIDE_D * STRIDE_H * STRIDE_W > 1:
        most = images * tl.cdiv(y_d, STRIDE_D) * tl.cdiv(y_h, STRIDE_H) * tl.cdiv(y_w, STRIDE_W)
        phases = STRIDE_D * STRIDE_H * STRIDE_W
    else:
        most = images * y_pixels
        phases = 1
    down, across = tl.cdiv(most, BLOCK_M), tl.cdiv(columns, BLOCK_N)
    split, tile = tile_of(tl.program_id(0), SPLITS, down * across * groups * phases, 1, XCDS)
    pid_m, pid_n = tile_of(tile, down, across * groups * phases, GROUP, 1)
    group = pid_n // across % groups
    phase = pid_n // (across * groups)
    pid_n = pid_n % across
    # How input positions follow from output positions and taps: rows i, taps j,
    # i * ALONG + shift + j * step.
    if TRANSPOSED:
        phase_w = phase % STRIDE_W
        phase_h = phase // STRIDE_W % STRIDE_H
        phase_d = phase // (STRIDE_W * STRIDE_H)
        rows_d, tap_d, taps_d, shift_d = seen_in(
            phase_d, y_d, pad_d, T, STRIDE_D, DILATION_D, STEP_D
        )
        rows_h, tap_h, taps_h, shift_h = seen_in(
            phase_h, y_h, pad_h, R, STRIDE_H, DILATION_H, STEP_H
        )
        rows_w, tap_w, taps_w, shift_w = seen_in(
            phase_w, y_w, pad_w, S, STRIDE_W, DILATION_W, STEP_W
        )
        ALONG_D: tl.constexpr = 1
        ALONG_H: tl.constexpr = 1
        ALONG_W: tl.constexpr = 1
        MOVE_D: tl.constexpr = -(STEP_D * DILATION_D // STRIDE_D)
        MOVE_H: tl.constexpr = -(STEP_H * DILATION_H // STRIDE_H)
        MOVE_W: tl.constexpr = -(STEP_W * DILATION_W // STRIDE_W)
    else:
        rows_d, rows_h, rows_w = y_d, y_h, y_w
        tap_d, tap_h, tap_w = 0, 0, 0
        taps_d, taps_h, taps_w = T, R, 1 if MERGED else S
        shift_d, shift_h, shift_w = -pad_d, -pad_h, -pad_w
        ALONG_D: tl.constexpr = STRIDE_D
        ALONG_H: tl.constexpr = STRIDE_H
        ALONG_W: tl.constexpr = STRIDE_W
        MOVE_D: tl.constexpr = DILATION_D
        MOVE_H: tl.constexpr = DILATION_H
        MOVE_W: tl.constexpr = DILATION_W
    # As one number the divisor is known to be divisible by 16 where it is.
    if TRANSPOSED and STRIDE_D * STRIDE_H * STRIDE_W > 1:
        pixels = rows_d * rows_h * rows_w
    else:
        pixels = y_pixels
    rows = images * pixels
    if pid_m * BLOCK_M >= rows:
        return

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    position = offs_m % rows
    image = position // pixels
    pixel = position % pixels
    if WIDE:
        image_wide = image.to(tl.int64)
    else:
        image_wide = image
    if FLAT:
        pixel_offs = image_wide * x_image + pixel * x_pixel
        at_d, at_h, at_w = pixel, pixel, pixel
    else:
        at_w = pixel % rows_w * ALONG_W
        at_h = pixel // rows_w % rows_h * ALONG_H
        at_d = pixel // (rows_w * rows_h) * ALONG_D
        pixel_offs = image_wide * x_image + at_h * x_row + at_w * x_pixel
        if DEEP:
            pixel_offs += at_d * x_plane
    offs_k = tl.arange(0, BLOCK_K)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    x_offs = pixel_offs[:, None] + (offs_k * x_channel)[None, :]
    weight_offs = (offs_k * weight_channel)[:, None] + (offs_n * weight_column)[None, :]
    x_base = x_ptr + group * depth * x_channel
    weight_base = weight_ptr + group * weight_group
    EVEN_K: tl.constexpr = DEPTH_STEP % BLOCK_K == 0
    EVEN_N: tl.constexpr = COLUMN_STEP % BLOCK_N == 0

    per_tap = tl.cdiv(depth, BLOCK_K)
    steps = taps_d * taps_h * taps_w * per_tap
    start = 0
    channel = 0
    d, h, w = 0, 0, 0
    if SPLITS > 1:
        part = tl.cdiv(steps, SPLITS)
        start = tl.minimum(split * part, steps)
        steps = tl.minimum(start + part, steps)
        channel = start % per_tap * BLOCK_K
        if not FLAT:
            tap = start // per_tap
            w = tap % taps_w
            h = tap // taps_w % taps_h
            d = tap // (taps_w * taps_h)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(start, steps):
        x_at = channel * x_channel
        weight_at = channel * weight_channel
        if WIDE:
            x_at = x_at.to(tl.int64)
        a_mask = (offs_m >= 0)[:, None]
        if not FLAT:
            move_h = shift_h + h * MOVE_H
            x_at += move_h * x_row
            if not MERGED:
                move_w = shift_w + w * MOVE_W
                x_at += move_w * x_pixel
            weight_at += (
                ((tap_d + d * STEP_D) * R + tap_h + h * STEP_H) * (1 if MERGED else S)
                + tap_w + w * STEP_W
            ) * weight_tap  # fmt: skip
            if DEEP:
                x_at += (shift_d + d * MOVE_D) * x_plane
            if PADDED:
                valid = (at_h + move_h >= 0) & (at_h + move_h < x_h)
                if DEEP:
                    move_d = shift_d + d * MOVE_D
                    valid = valid & (at_d + move_d >= 0) & (at_d + move_d < x_d)
                if not MERGED:
                    valid = valid & (at_w + move_w >= 0) & (at_w + move_w < x_w)
                a_mask = valid[:, None]
        if MERGED:  # what follows the taps may be no number
            a_mask = a_mask & (channel + offs_k < S * MERGED)[None, :]
        elif not EVEN_K:
            a_mask = a_mask & (channel + offs_k < depth)[None, :]
        if EVEN_K and (FLAT or not PADDED) and not MERGED:
            a = tl.load(x_base + x_at + x_offs)
        else:
            a = tl.load(x_base + x_at + x_offs, mask=a_mask, other=0.0)
        if EVEN_K and EVEN_N:
            b = tl.load(weight_base + weight_at + weight_offs)
        elif EVEN_K:
            b = tl.load(
                weight_base + weight_at + weight_offs, mask=(offs_n < columns)[None, :], other=0.0
            )
        else:
            b_mask = (channel + offs_k < depth)[:, None] & (offs_n < columns)[None, :]
            b = tl.load(weight_base + weight_at + weight_offs, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        channel += BLOCK_K
        if not FLAT:
            channel, w = carried(channel, depth, w)
            w, h = carried(w, taps_w, h)
            if DEEP:
                h, d = carried(h, taps_h, d)

    if BIAS:
        bias = tl.load(bias_ptr + group * columns + offs_n, mask=offs_n < columns, other=0.0)
        acc += bias.to(tl.float32)[None, :]
    acc = activated(acc, ACTIVATION)
    if TRANSPOSED and STRIDE_D * STRIDE_H * STRIDE_W > 1:
        to_w = pixel % rows_w * STRIDE_W + phase_w
        to_h = pixel // rows_w % rows_h * STRIDE_H + phase_h
        to_d = pixel // (rows_w * rows_h) * STRIDE_D + phase_d
        pixel = (to_d * y_h + to_h) * y_w + to_w
    out_offs = image_wide * y_image + pixel * y_pixel
    y_offs = out_offs[:, None] + ((group * columns + offs_n) * y_channel)[None, :]
    out_ptr = y_ptr
    if SPLITS > 1:
        out_ptr += split.to(tl.int64) * y_split
    out_mask = (offs_m < rows)[:, None] & (offs_n < columns)[None, :]
    if Y_LAST:
        store_tile(out_ptr, y_offs, acc, out_mask)
    else:  # pixels are adjacent
        store_tile(out_ptr, tl.trans(y_offs), tl.trans(acc), tl.trans(out_mask))
