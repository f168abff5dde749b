"""Attention: sizes, tiles, options, and the shape of the predicted times."""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.perfmodel.interval import interval_of
from wavecast import arch
from wavecast.errors import MissingFact, Unpredictable, UsageError
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops import op
from wavecast.perfmodel.ops.attention import Attention, libraries
from wavecast.perfmodel.ops.attention.libraries import Library, Tile
from wavecast.perfmodel.ops.attention.machine import AttentionRates
from wavecast.perfmodel.ops.attention.streaming import streaming
from wavecast.perfmodel.ops.attention.tiled import (
    _masked_share,
    _rounds,
    _scores,
    _widths,
    tiled_time,
)

PREFILL = Attention(
    batch=16,
    heads=64,
    kv_heads=8,
    seq_q=4096,
    seq_k=4096,
    head=128,
    head_v=128,
    dtype="bf16",
    causal=True,
)
LATENT = Attention(
    batch=32,
    heads=16,
    kv_heads=1,
    seq_q=1,
    seq_k=8192,
    head=576,
    head_v=512,
    dtype="bf16",
    latent=True,
)
DECODE = replace(PREFILL, seq_q=1)
CHIPS = ("mi210", "mi300a", "mi300x", "mi308x", "mi325x", "mi350x", "mi355x", "rx9070xt", "h200")
TILE = Tile(kernel="asm", rows=256, columns=64, mask=64, schedule="interleaved")


def seconds(problem: Attention, device: str = "mi355x") -> float:
    return problem.predict(arch.load(device)).seconds


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 9), (9, 3), (1, 7)])
def test_scores_under_the_mask_are_those_of_a_lower_triangle(queries: int, keys: int) -> None:
    problem = replace(PREFILL, seq_q=queries, seq_k=keys)
    kept = torch.ones(queries, keys).tril(keys - queries).sum().item()
    assert problem.sizes.scores == 16 * 64 * kept
    assert replace(problem, causal=False).sizes.scores == 16 * 64 * queries * keys


def test_work() -> None:
    problem = replace(PREFILL, causal=False, kv_dtype="fp8")
    work = problem.work()
    assert work.flops == {"bf16": 16 * 64 * 4096 * 4096 * 4 * 128}
    query = 16 * 64 * 4096 * 128 * 2
    assert work.bytes_read == query + 2 * 16 * 8 * 4096 * 128
    assert work.bytes_written == query
    backward = replace(problem, backward=True).work().flops
    assert backward == {"bf16": 16 * 64 * 4096 * 4096 * 10 * 128}
    assert LATENT.work().bytes_read == 32 * (8192 * 576 + 16 * 576) * 2


@pytest.mark.parametrize(("queries", "keys"), [(1000, 1000), (300, 1000), (1024, 512)])
@pytest.mark.parametrize("backward", [False, True])
def test_tiles_walked_are_those_the_mask_leaves(queries: int, keys: int, backward: bool) -> None:
    mask = np.tril(np.ones((queries, keys), bool), keys - queries)
    if backward:
        mask = mask.T
    own, other = mask.shape
    tiles = -(-own // TILE.rows)
    widths = _widths(queries, keys, tiles, TILE, True, backward=backward)
    for number, width in enumerate(widths):
        rows = mask[number * TILE.rows : (number + 1) * TILE.rows]
        touched = sum(rows[:, at : at + TILE.columns].any() for at in range(0, other, TILE.columns))
        assert width == touched


def test_rounds_last_as_long_as_their_longest_tile() -> None:
    assert _rounds(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 2).tolist() == [2, 2, 4, 4, 5]


def test_workgroups_fill_compute_units_in_rounds() -> None:
    sizes = replace(PREFILL, batch=1, heads=9, kv_heads=1, causal=False, seq_k=64).sizes
    tiles = _scores(sizes, TILE, 100, 1, backward=False)
    assert tiles.workgroups == 9 * 16
    assert tiles.busiest == 2 * 256 * 64
    assert tiles.longest == 256 * 64
    assert tiles.scores == 9 * 4096 * 64


def test_the_longest_workgroup_bounds_a_small_causal_launch() -> None:
    sizes = replace(PREFILL, batch=1, heads=1, kv_heads=1).sizes
    tiles = _scores(sizes, TILE, 256, 8, backward=False)
    assert tiles.busiest == tiles.longest == 4096 * 256


@pytest.mark.parametrize("device", CHIPS)
@pytest.mark.parametrize("problem", [PREFILL, LATENT, DECODE])
def test_nothing_is_faster_than_the_datasheet(device: str, problem: Attention) -> None:
    chip = Chip.of(arch.load(device))
    work = problem.work()
    assert work.flops
    assert work.bytes
    peak = chip.matrix_rate("bf16") * chip.units * chip.clock
    floor = max(work.flops["bf16"] / peak, work.bytes / chip.hbm_peak)
    prediction = problem.predict(arch.load(device))
    assert prediction.seconds > floor
    ends = interval_of(prediction, problem.subject, arch.load(device))
    assert prediction.basis
    if (
        "tiles and waves" in prediction.assumed
        and prediction.basis.distance != "target not measured"
    ):
        assert prediction.low < ends[0]
        assert ends[1] < prediction.high
    else:
        assert (prediction.low, prediction.high) == pytest.approx(ends)
    assert prediction.limiter in prediction.bounds
    assert sum(share.seconds for share in prediction.lines) == pytest.approx(prediction.seconds)
    assert min(share.seconds for share in prediction.lines) >= 0


@pytest.mark.parametrize(
    ("heads", "backward", "kernel"),
    [
        ((128, 128), False, "asm"),
        ((192, 128), False, "asm"),
        ((64, 64), False, "ck"),
        ((64, 64), True, "asm"),
        ((256, 256), True, "ck"),
    ],
)
def test_kernels_aiter_has(heads: tuple[int, int], backward: bool, kernel: str) -> None:
    problem = replace(
        PREFILL, head=heads[0], head_v=heads[1], kv_heads=64, backward=backward, library="asm"
    )
    assert problem.predict(arch.load("mi300x")).assumed["kernel"] == kernel


@pytest.mark.parametrize("library", ["asm", "hipkittens", "ck", "triton"])
def test_a_mask_halves_long_sequences(library: str) -> None:
    problem = replace(PREFILL, seq_q=32768, seq_k=32768, library=library, batch=1)
    ratio = seconds(problem) / seconds(replace(problem, causal=False))
    assert 0.5 < ratio < 0.6


def test_a_launch_of_few_long_rows_does_not_profit_from_the_mask_under_lockstep() -> None:
    """AITER's own CK; in CK itself heads vary fastest, and long tiles start first."""
    problem = replace(PREFILL, head=64, head_v=64, library="asm")
    full = replace(problem, causal=False)
    assert seconds(problem) == pytest.approx(seconds(full), rel=0.01)
    for direction in (False, True):
        ck = replace(problem, library="ck", backward=direction)
        assert 0.5 < seconds(ck) / seconds(replace(ck, causal=False)) < 0.6


def test_long_tiles_that_start_last_leave_units_idle() -> None:
    sizes = replace(PREFILL, batch=1, heads=8, kv_heads=8).sizes
    even = _scores(sizes, TILE, 32, 1, backward=False)
    assert even.workgroups == 8 * 16
    ascending = _scores(sizes, replace(TILE, ascending=True), 32, 1, backward=False)
    assert ascending.busiest - even.busiest == 4096 * 256 / 2
    # the last tile shares its unit, and takes twice as long
    shared = replace(TILE, ascending=True, resident=2)
    last = _scores(sizes, shared, 32, 1, backward=False)
    assert last.busiest - even.busiest == 4096 * 256
    # but no unit computes more than without a mask
    few = _scores(
        replace(PREFILL, batch=1, heads=1, kv_heads=1).sizes, shared, 32, 1, backward=False
    )
    assert few.busiest == few.longest == 4096 * 256
    full = replace(PREFILL, causal=False).sizes
    assert _scores(full, TILE, 32, 1, backward=False) == _scores(
        full, replace(TILE, ascending=True), 32, 1, backward=False
    )


def test_tiles_that_the_diagonal_or_the_end_crosses_are_compared() -> None:
    square = replace(TILE, rows=128, columns=64)
    even = replace(PREFILL, seq_q=512, seq_k=512)
    # 2, 4, 6 and 8 tiles of columns, the last two of each on the diagonal
    assert _masked_share(even.sizes, square, backward=False) == 8 / 20
    uneven = replace(PREFILL, seq_q=559, seq_k=559)
    assert _masked_share(uneven.sizes, square, backward=False) == (2 + 4 * 3) / 29
    full = replace(even, causal=False)
    assert _masked_share(full.sizes, square, backward=False) == 0
    assert _masked_share(replace(full, seq_k=500).sizes, square, backward=False) == 1 / 8


def test_a_tile_counter_costs_a_latency_per_tile_of_a_causal_mask() -> None:
    machine = AttentionRates.of(arch.load("mi300x"))
    library = libraries.libraries()["aotriton"]

    def latency(problem: Attention, *, counter: bool) -> float:
        kernel = replace(library.forward[3], counter=counter)
        return tiled_time(
            problem.sizes,
            machine=machine,
            kernel=kernel,
            library=library,
            backward=False,
            eager=False,
        ).parts["latency"]

    short = replace(PREFILL, batch=16, heads=16, kv_heads=16, seq_q=559, seq_k=559)
    rounds = math.ceil(16 * 16 * 5 / 304)
    added = latency(short, counter=True) - latency(short, counter=False)
    assert added == pytest.approx(rounds * machine.chip.latency["hbm"] / 2)
    full = replace(short, causal=False)
    assert latency(full, counter=True) == latency(full, counter=False)
    assert library.forward[3].counter
    assert library.forward[3].resident == 2


def test_comparing_positions_takes_time() -> None:
    problem = replace(PREFILL, seq_q=640, seq_k=640, library="flash2")
    device = arch.load("h100")
    row = libraries.libraries()["flash2"].forward[1]
    machine = AttentionRates.of(device)
    times = [
        tiled_time(
            problem.sizes,
            machine=machine,
            kernel=replace(row, mask_operations=operations),
            library=libraries.libraries()["flash2"],
            backward=False,
            eager=False,
        ).parts["vector"]
        for operations in (0.0, 4.0)
    ]
    assert times[1] > 1.1 * times[0]


def test_short_sequences_pay_for_masks_and_for_what_is_outside_the_loop() -> None:
    row = libraries.libraries()["flash2"].forward[0]
    assert row.setup_clocks

    def share(length: int, **changed: float) -> float:
        same = replace(PREFILL, head=64, head_v=64, seq_q=length, seq_k=length, library="flash2")
        machine = AttentionRates.of(arch.load("h100"))
        assert machine.selects < 0.6 * machine.lanes
        vector = [
            tiled_time(
                same.sizes,
                machine=machine,
                kernel=kernel,
                library=libraries.libraries()["flash2"],
                backward=False,
                eager=False,
            ).parts["vector"]
            for kernel in (row, replace(row, **changed))
        ]
        return vector[1] / vector[0]

    for name in ("mask_operations", "setup_clocks"):
        assert share(512, **{name: 0.0}) < 0.95 < 0.98 < share(16384, **{name: 0.0}) < 1


def test_rounding_to_bf16_costs_where_no_instruction_does() -> None:
    for name, slower in (("mi300x", True), ("mi355x", False)):
        machine = AttentionRates.of(arch.load(name))
        without = AttentionRates.of(arch.load(name), {"bf16_operations": 0.0})
        for backward in (False, True):
            problem = replace(PREFILL, library="triton", backward=backward)
            assert (problem.seconds(machine) > 1.02 * problem.seconds(without)) == slower
            problem = replace(problem, dtype="fp16")
            assert problem.seconds(machine) == problem.seconds(without)


@pytest.mark.parametrize(
    ("choice", "device", "library"),
    [
        ("sdpa_masked", "h100", "efficient"),
        ("sdpa_cudnn", "h100", "cudnn"),
        ("sdpa_masked", "mi300x", "aotriton"),
        ("sdpa_cudnn", "mi300x", "aotriton"),
        ("sdpa_masked", "mi100", "math"),
    ],
)
def test_choices_of_torch(choice: str, device: str, library: str) -> None:
    problem = replace(PREFILL, library=choice)
    assert problem.predict(arch.load(device)).assumed["library"] == library


def test_time_grows_with_every_size() -> None:
    for name in ("batch", "heads", "seq_q", "seq_k"):
        grown = replace(PREFILL, causal=False, **{name: 2 * getattr(PREFILL, name)})
        assert seconds(grown) > 1.5 * seconds(replace(PREFILL, causal=False))


def test_backward_takes_longer_than_its_products() -> None:
    problem = replace(PREFILL, kv_heads=64, library="asm")
    assert seconds(replace(problem, backward=True)) > 2.5 * seconds(problem)


@pytest.mark.parametrize(
    ("device", "problem", "library"),
    [
        ("mi300x", PREFILL, "aotriton"),
        ("mi355x", replace(PREFILL, backward=True), "aotriton"),
        ("mi100", PREFILL, "math"),
        ("rx6800xt", PREFILL, "math"),
        ("rx7900xtx", replace(PREFILL, head=512, head_v=512), "math"),
        ("rx9070xt", replace(PREFILL, head=512, head_v=512), "aotriton"),
        ("a100", PREFILL, "flash2"),
        ("h100", replace(PREFILL, head=320, head_v=320), "efficient"),
        ("mi300x", DECODE, "triton"),
        ("h100", DECODE, "flash3"),
        ("h100", LATENT, "flash3"),
        ("a100", LATENT, "triton"),
    ],
)
def test_the_default_is_what_pytorch_or_vllm_run(
    device: str, problem: Attention, library: str
) -> None:
    prediction = problem.predict(arch.load(device))
    assert prediction.assumed["library"] == library


def test_names_of_libraries() -> None:
    assert [row.name for row in libraries.resolve_libraries("aiter", "cdna3")] == ["asm"]
    assert libraries.resolve_libraries("sdpa", "hopper")[0].name == "flash2"
    assert libraries.resolve_libraries("sdpa", "unheard of") == ()
    assert all(row.fused for row in libraries.resolve_libraries("best", "cdna3"))
    known = libraries.libraries()
    lists = [one for row in libraries.choices().values() for one in row.libraries.values()]
    named = {name for one in lists for name in one} | {row.falls_back for row in known.values()}
    assert named - {""} <= set(known)
    aliases = [alias for row in known.values() for alias in row.aliases]
    assert len({*aliases, *libraries.names()}) == len(aliases) + len(libraries.names())


@pytest.mark.parametrize("row", libraries.libraries().values(), ids=lambda row: row.name)
def test_libraries_have_what_a_time_needs(row: Library) -> None:
    """Every tile kernel finds its coefficients on every chip it is for, and has a source."""
    assert row.source
    assert row.about
    for device in (d for d in arch.devices() if row.runs_on(d.generation)):
        machine = AttentionRates.of(device)
        for direction, tiles in (("forward", row.forward), ("backward", row.backward)):
            assert machine.coefficient("call", row.caller, "python", direction) > 0
            for tile in tiles:
                assert machine.coefficient("vector", tile.kernel, tile.schedule, direction) > 0


@pytest.mark.parametrize(
    ("library", "device", "kernel"),
    [
        ("flash2", "mi300x", "ck"),
        ("fa2", "a100", "flash2"),
        ("xformers", "mi300x", "aotriton"),
        ("xformers", "h100", "efficient"),
    ],
)
def test_what_libraries_of_one_name_run_on_other_chips(
    library: str, device: str, kernel: str
) -> None:
    prediction = replace(PREFILL, library=library).predict(arch.load(device))
    assert prediction.assumed["kernel"] == kernel


def test_the_docs_name_every_library() -> None:
    page = (Path(__file__).parents[2] / "docs" / "predict.md").read_text(encoding="utf-8")
    section = page.partition("## Attention by library")[2].partition("\n## ")[0]
    assert {name for name in libraries.names() if f"`{name}`" not in section} == set()


def test_heads_are_padded_to_the_widths_of_a_kernel() -> None:
    ck = libraries.libraries()["ck"].forward[-1]
    assert ck.padded_elements(replace(PREFILL, head=80, head_v=72).sizes) == (96, 96)
    expanded = replace(PREFILL, head=192, head_v=128).sizes
    for name, generation, widths in (
        ("flash3", "hopper", (192, 192)),
        ("asm", "cdna3", (192, 128)),
    ):
        kernel = libraries.libraries()[name].tile(expanded, generation, backward=False)
        assert kernel
        assert kernel.padded_elements(expanded) == widths


def test_schedules_order_the_times_of_equal_tiles() -> None:
    """Softmax beside the products costs less than between them; seven products more than five."""
    problem = replace(PREFILL, library="asm", causal=False)
    machine = AttentionRates.of(arch.load("b200"))
    tile = Tile(kernel="none", rows=128, columns=128, mask=128, schedule="serial")

    def time(kernel: Tile, *, backward: bool = False) -> float:
        library = libraries.libraries()["asm"]
        found = tiled_time(
            problem.sizes,
            machine=machine,
            kernel=kernel,
            library=library,
            backward=backward,
            eager=False,
        )
        return found.seconds

    asynchronous, serial = replace(tile, schedule="asynchronous"), time(tile)
    assert time(asynchronous) < time(replace(tile, schedule="interleaved")) < serial
    assert time(replace(tile, warp_level=True)) > 1.2 * serial
    assert time(replace(tile, products=7), backward=True) > 1.2 * time(tile, backward=True)
    assert time(replace(tile, lds_bytes=4.0), backward=True) > 1.5 * time(tile, backward=True)


def test_a_library_that_was_not_measured_says_so() -> None:
    new = replace(PREFILL, library="flash3").predict(arch.load("h100"))
    assert "flash3 was not measured: costs of the interleaved schedule" in new.notes
    other = replace(PREFILL, library="asm").predict(arch.load("mi300x"))
    assert "asm was measured on cdna4 only: costs of the interleaved schedule" in other.notes
    assert replace(PREFILL, library="asm").predict(arch.load("mi355x")).notes == ()
    built = replace(PREFILL, library="flash2").predict(arch.load("mi300x"))
    assert "flash2 runs the kernel of ck on mi300x" in built.notes


def test_the_best_library_is_no_slower_than_any() -> None:
    for backward, library in itertools.product((False, True), ("asm", "hipkittens", "ck")):
        problem = replace(PREFILL, backward=backward, library="best")
        assert seconds(problem) <= seconds(replace(problem, library=library))


def test_best_splits_are_no_slower_than_given_ones() -> None:
    latent = replace(LATENT, library="asm")
    best = latent.predict(arch.load("mi355x"))
    times = {n: seconds(replace(latent, splits=n)) for n in (1, 2, 4, 8, 9, 16)}
    assert best.seconds <= min(times.values())
    assert min(times.values()) == pytest.approx(best.seconds)
    assert times[8] == min(times.values())
    assert best.assumed["splits"] == 8
    assert times[9] > times[8], "one round of 256 workgroups, or two"


def test_pytorch_on_amd_decodes_in_one_workgroup_per_head() -> None:
    """AOTriton splits no keys: its time grows with them, not with the heads that fill the chip."""
    few = replace(DECODE, batch=1, heads=32, kv_heads=32, causal=False, library="sdpa")
    assert seconds(few, "mi300x") > 1.3 * seconds(replace(few, library="vllm"), "mi300x")
    longer, more = replace(few, seq_k=16384), replace(few, heads=128, kv_heads=128)
    assert seconds(longer, "mi300x") > 3 * seconds(few, "mi300x")
    assert seconds(more, "mi300x") < 1.1 * seconds(few, "mi300x")
    prediction = few.predict(arch.load("mi300x"))
    assert prediction.assumed["tile"] == (64, 64)


def test_decoding_is_bound_by_memory() -> None:
    prediction = replace(DECODE, batch=256, library="asm").predict(arch.load("mi300x"))
    assert prediction.assumed["kernel"] == "split keys"
    assert prediction.limiter == "memory"
    small = replace(DECODE, batch=256, kv_dtype="fp8", library="asm").predict(arch.load("mi300x"))
    assert 0.5 < small.seconds / prediction.seconds < 0.65


def test_short_rows_of_keys_move_whole_lines() -> None:
    sizes = replace(DECODE, head=16, head_v=16).sizes
    assert sizes.token_bytes == 64
    assert sizes.token_lines == 256
    assert LATENT.sizes.token_lines == LATENT.sizes.token_bytes == 1152


def test_a_call_takes_longer_than_its_kernel() -> None:
    small = replace(PREFILL, batch=1, seq_q=128, seq_k=128)
    assert seconds(replace(small, timing="eager")) > 3 * seconds(small)


def test_lengths_count_each_sequence() -> None:
    lengths = (512, 1024, 4096, 512)
    ragged = replace(PREFILL, batch=4, seq_q=0, lengths=lengths)
    assert ragged.sizes.lengths == ((512, 512, 2), (1024, 1024, 1), (4096, 4096, 1))
    padded = replace(PREFILL, batch=4)
    assert ragged.sizes.scores < padded.sizes.scores
    assert seconds(ragged) < seconds(padded)
    even = replace(PREFILL, batch=2, seq_q=0, lengths=(4096, 4096))
    assert seconds(even) == pytest.approx(seconds(replace(PREFILL, batch=2)))


def test_what_if_is_faster() -> None:
    prediction = PREFILL.predict(arch.load("mi355x"))
    assert {change.change for change in prediction.what_if} >= {
        "softmax hidden behind the products"
    }
    for change in prediction.what_if:
        assert change.seconds < prediction.seconds
        assert change.time_saved == pytest.approx(1 - change.seconds / prediction.seconds)


LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
GRID = [
    (device, library)
    for device in ("mi100", "mi300x", "mi355x", "rx7900xtx", "rx9070xt", "a100", "h100", "b200")
    for library in (*libraries.libraries(), "sdpa", "sdpa_masked")
]


@pytest.mark.parametrize(("device", "library"), GRID)
def test_a_mask_never_costs_and_longer_sequences_take_longer(device: str, library: str) -> None:
    """Over heads, directions, lengths and sizes of a launch: under a causal mask no call takes
    longer than without, a longer sequence takes longer, and a backward pass that fills the chip
    takes longer than its forward pass."""
    machine = AttentionRates.of(arch.load(device))
    for head, (batch, heads) in itertools.product((64, 128, 256, 512), ((1, 2), (2, 16), (8, 64))):
        before: dict[tuple[bool, bool], float] = {}
        for length in LENGTHS:
            times: dict[tuple[bool, bool], float] = {}
            for backward, causal in itertools.product((False, True), (False, True)):
                problem = replace(
                    PREFILL,
                    batch=batch,
                    heads=heads,
                    kv_heads=heads,
                    library=library,
                    head=head,
                    head_v=head,
                    seq_q=length,
                    seq_k=length,
                    backward=backward,
                    causal=causal,
                )
                with contextlib.suppress(MissingFact, Unpredictable):
                    times[backward, causal] = problem.seconds(machine)
            for (backward, causal), time in times.items():
                at = (head, batch, heads, length, backward, causal)
                assert time <= times[backward, False], at
                assert time >= before.get((backward, causal), 0.0), at
                if batch * heads == 512:
                    assert time >= times.get((False, causal), 0.0), at
            before = times


@pytest.mark.parametrize("device", ["mi300x", "mi355x", "rx9070xt"])
def test_waves_that_share_a_simd_hide_softmax_and_loads(device: str) -> None:
    """Two workgroups of a unit never take longer than one after the other, and a unit with one
    workgroup hides nothing of it."""
    machine = AttentionRates.of(arch.load(device))
    library = libraries.libraries()["triton"]
    problem = replace(PREFILL, causal=False, dtype="fp16")
    row = library.tile(problem.sizes, arch.load(device).generation, backward=False)
    assert row
    assert row.waves

    def computing(resident: int, batch: int) -> float:
        found = tiled_time(
            replace(problem, batch=batch).sizes,
            machine=machine,
            kernel=replace(row, resident=resident),
            library=library,
            backward=False,
            eager=False,
        )
        hidden = found.shares["LDS and loads that no other wave hides"] + found.shares["vector"]
        assert found.parts["matrix"] + hidden <= sum(
            found.parts[name] for name in ("matrix", "vector", "LDS", "waits")
        ) * (1 + 1e-9)
        return found.seconds

    assert computing(3, 64) < computing(2, 64) < computing(1, 64)
    # one workgroup per unit at most: nothing shares it
    alone = replace(problem, batch=1, heads=1, kv_heads=1).sizes
    for backward in (False, True):
        kernel = library.tile(alone, arch.load(device).generation, backward=backward)
        assert kernel
        found = tiled_time(
            alone, machine=machine, kernel=kernel, library=library, backward=backward, eager=False
        )
        parts = sum(found.parts[name] for name in ("matrix", "vector", "LDS", "waits"))
        extra = ("useful products", "padding, mask edges, uneven rounds, repeated products")
        extra += ("vector", "LDS and loads that no other wave hides")
        waves = kernel.waves / machine.chip.simds
        computed = sum(found.shares[name] for name in extra)
        assert computed == pytest.approx(parts) if waves <= 1 else computed < parts


@pytest.mark.parametrize(
    ("shape", "microseconds"),
    [((1, 128, 4096), 1740.6), ((1, 96, 4096), 1324.3), ((1, 64, 16384), 13637.2)],
)
def test_tritons_kernel_on_mi300x_takes_what_was_published(
    shape: tuple[int, int, int], microseconds: float
) -> None:
    """ROCm/aiter, results of its Triton kernel, next to lean attention: causal, fp16, heads of 128
    (`op_tests`, 2025)."""
    batch, heads, length = shape
    problem = replace(PREFILL, batch=batch, heads=heads, kv_heads=heads, library="triton")
    problem = replace(problem, seq_q=length, seq_k=length, dtype="fp16")
    assert seconds(problem, "mi300x") == pytest.approx(microseconds * 1e-6, rel=0.12)


def test_a_mask_that_is_a_tensor_is_read_and_added() -> None:
    for device in ("mi300x", "rx9070xt"):
        for backward in (False, True):
            plain = replace(PREFILL, causal=False, backward=backward, library="sdpa")
            masked = replace(plain, library="sdpa_masked")
            assert 1.02 < seconds(masked, device) / seconds(plain, device) < 1.6


@pytest.mark.parametrize("library", ["aotriton", "triton", "tilelang"])
@pytest.mark.parametrize("device", ["rx7900xtx", "rx9070xt", "strixhalo"])
def test_small_tiles_on_rdna_stay_far_from_the_peak(device: str, library: str) -> None:
    """A wave per SIMD hides nothing: latencies, LDS and the matrix pipe follow each other. Nothing
    of it was measured, and the prediction says so."""
    problem = replace(PREFILL, causal=False, library=library)
    assert any(
        note.startswith("tiles and waves of") for note in problem.predict(arch.load(device)).notes
    )
    chip = Chip.of(arch.load(device))
    peak = chip.matrix_rate("bf16") * chip.units * chip.clock
    flops = problem.work().flops or {}
    assert 0.1 < flops["bf16"] / peak / seconds(problem, device) < 0.45


def test_pytorchs_math_backend_computes_in_fp32() -> None:
    math_backend = replace(PREFILL, causal=False, library="math", head=512, head_v=512)
    products = replace(math_backend, library="unfused")
    assert seconds(math_backend, "mi300x") > 2 * seconds(products, "mi300x")
    single = replace(math_backend, dtype="fp32")
    both = [seconds(replace(single, library=name), "mi300x") for name in ("math", "unfused")]
    assert both[0] == both[1]


def test_scores_in_memory_cost_more_than_fused() -> None:
    assert seconds(replace(PREFILL, library="unfused")) > 3 * seconds(PREFILL)


def test_trial_coefficients_replace_those_of_the_table() -> None:
    device = arch.load("mi355x")
    half = AttentionRates.of(device).k["bandwidth_asm"] / 2
    problem = replace(LATENT, batch=256, library="asm").sizes
    times = [
        streaming(problem, machine=machine, library="asm", splits=1).seconds
        for machine in (
            AttentionRates.of(device),
            AttentionRates.of(device, {"bandwidth_asm": half}),
        )
    ]
    assert times[1] > 1.5 * times[0]


def test_parse() -> None:
    parsed = op("attention").parse(
        "16x64x8x1x4096x128",
        {"dtype": "bf16", "kv_dtype": "fp8", "library": "asm", "splits": "4", "causal": "yes"},
    )
    assert parsed == replace(DECODE, kv_dtype="fp8", library="asm", splits=4)
    options = {"dtype": "bf16", "causal": "true"}
    assert op("attention").parse("16x64x8x4096x128", options) == PREFILL
    backward = Attention.parse("2x4x64x32", {"dtype": "fp16", "direction": "backward"})
    assert (backward.kv_heads, backward.seq_k, backward.backward) == (4, 64, True)
    latent = op("attention").parse("32x16x1x1x8192x576x512", {"dtype": "bf16", "latent": "1"})
    assert latent == LATENT
    ragged = Attention.parse("1x4x64x32", {"dtype": "fp16", "lengths": "16,64"})
    assert (ragged.batch, ragged.seq_q, ragged.lengths) == (2, 0, (16, 64))


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        ("16x64", {"dtype": "bf16"}, "no shape"),
        ("ax64x1x1", {"dtype": "bf16"}, "not a shape"),
        ("1x4x64x32", {"dtype": "bf16", "splits": "x"}, "splits is a whole number"),
        ("1x4x64x32", {"dtype": "bf16", "timing": "slow"}, "timing"),
        ("1x4x64x32", {}, "needs --dtype"),
        ("1x4x64x32", {"dtype": "fp12"}, "unknown dtype"),
        ("1x4x3x64x32", {"dtype": "bf16"}, "share"),
        ("0x4x64x32", {"dtype": "bf16"}, "positive"),
        ("1x4x64x32", {"dtype": "bf16", "library": "magic"}, "magic"),
        ("1x4x64x32", {"dtype": "bf16", "direction": "up"}, "direction"),
        ("1x4x64x32", {"dtype": "bf16", "causal": "maybe"}, "causal"),
        ("1x4x64x32", {"dtype": "bf16", "window": "128"}, "window"),
        ("1x4x64x32", {"dtype": "bf16", "latent": "yes"}, "latent"),
    ],
)
def test_what_is_wrong_is_named(shape: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        op("attention").parse(shape, options)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(Unpredictable, match=r"flash3 has no kernel.*libraries with one: asm, .*ck"):
        replace(PREFILL, library="flash3").predict(arch.load("mi355x"))
    with pytest.raises(Unpredictable, match="asm has no kernel"):
        replace(PREFILL, library="asm").predict(arch.load("mi210"))
    with pytest.raises(Unpredictable, match="flash3 has no kernel"):
        replace(PREFILL, library="flash3").predict(arch.load("a100"))
    with pytest.raises(Unpredictable, match="flashmla has no kernel"):
        replace(PREFILL, library="flashmla").predict(arch.load("h200"))
    with pytest.raises(MissingFact, match="fp8 matrix rate"):
        replace(PREFILL, dtype="fp8").predict(arch.load("mi210"))


def test_a_generation_that_no_choice_names(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {name: replace(row, libraries={}) for name, row in libraries.choices().items()}
    monkeypatch.setattr(libraries, "choices", lambda: nothing)
    with pytest.raises(MissingFact, match="sdpa runs no known kernel"):
        PREFILL.predict(arch.load("mi300x"))


def test_options_a_name_shows() -> None:
    assert str(replace(LATENT, splits=4, library="asm")) == (
        "attention 32x16/1x576/512 1x8192 bf16 asm splits=4"
    )
    assert str(replace(PREFILL, backward=True)) == (
        "attention backward causal 16x64/8x128/128 4096x4096 bf16"
    )
