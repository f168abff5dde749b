"""Orders of pipeline schedules are those of PyTorch; their times follow from them."""

from __future__ import annotations

import pytest

from wavecast.errors import UsageError
from wavecast.systems.training.schedule import ChunkTimes, orders, peak_activations, simulate
from wavecast.systems.training.stages import chunk_layers

EVEN = ChunkTimes(1.0, 1.0, 1.0)
NAMES = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W"}


def torch_orders(schedule: str, stages: int, micro_batches: int, chunks: int) -> list[list]:
    """The actions of every rank as `torch.distributed.pipelining` orders them."""
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    cls = {
        "interleaved": "ScheduleInterleaved1F1B",
        "zero-bubble": "ScheduleInterleavedZeroBubble",
    }[schedule]

    class Order:
        """What the function that orders one rank's work reads of a schedule."""

        n_local_stages, pp_group_size, _n_microbatches = chunks, stages, micro_batches
        number_of_rounds = max(1, micro_batches // stages)
        microbatches_per_round = micro_batches // number_of_rounds

    rank_operations = getattr(schedules, cls)._calculate_single_rank_operations
    found = []
    for rank in range(stages):
        actions = [action for action in rank_operations(Order(), rank) if action is not None]
        found.append(
            [(NAMES[a.computation_type.name], a.stage_index, a.microbatch_index) for a in actions]
        )
    return found


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), [(4, 8, 2), (2, 4, 3), (4, 4, 4)])
def test_interleaved_is_the_order_of_torch(stages, micro_batches, chunks) -> None:
    expected = torch_orders("interleaved", stages, micro_batches, chunks)
    assert orders("interleaved", stages, micro_batches, chunks) == expected


def test_zero_bubble_does_the_work_of_torch_in_no_more_time() -> None:
    """PyTorch's order has warm-up passes of an interleaved schedule; ZB-H1 those of 1F1B."""
    theirs, ours = torch_orders("zero-bubble", 4, 8, 1), orders("zero-bubble", 4, 8)
    assert [sorted(actions) for actions in ours] == [sorted(actions) for actions in theirs]
    times = [EVEN] * 4
    assert simulate(ours, times, 0.0).seconds <= simulate(theirs, times, 0.0).seconds


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 3), (2, 2), (4, 16), (8, 9)])
def test_bubble_of_one_chunk(schedule, stages, micro_batches) -> None:
    """(p - 1) / (m + p - 1): Narayanan et al. 2021."""
    found = simulate(orders(schedule, stages, micro_batches), [EVEN] * stages, 0.0)
    assert found.seconds == pytest.approx(3.0 * (micro_batches + stages - 1))
    assert found.bubble == pytest.approx((stages - 1) / (micro_batches + stages - 1))


def test_chunks_divide_the_bubble() -> None:
    """(p - 1) / v of a micro-batch: Narayanan et al. 2021."""
    stages, micro_batches, chunks = 4, 16, 4
    part = ChunkTimes(1 / chunks, 1 / chunks, 1 / chunks)
    found = simulate(
        orders("interleaved", stages, micro_batches, chunks), [part] * (stages * chunks), 0.0
    )
    assert found.seconds == pytest.approx(3.0 * micro_batches + 3.0 * (stages - 1) / chunks)


def test_zero_bubble_waits_a_third() -> None:
    """(p - 1)(F + I - W) of ZB-H1 with equal times: Qi et al. 2023."""
    found = simulate(orders("zero-bubble", 4, 16), [EVEN] * 4, 0.0)
    assert found.seconds == pytest.approx(3.0 * 16 + 3.0)


def test_the_slowest_stage_and_transfers_count() -> None:
    slow = ChunkTimes(2.0, 2.0, 2.0)
    even = simulate(orders("1f1b", 4, 8), [EVEN] * 4, 0.0)
    assert simulate(orders("1f1b", 4, 8), [EVEN, slow, EVEN, EVEN], 0.0).busy == 48.0
    assert simulate(orders("1f1b", 4, 8), [EVEN] * 4, 0.5).seconds > even.seconds + 2.0


def test_stored_activations() -> None:
    assert peak_activations("1f1b", 4, 64, 1) == (4, 3, 2, 1)
    assert peak_activations("gpipe", 4, 64, 1) == (64, 64, 64, 64)
    assert peak_activations("interleaved", 4, 64, 2)[0] == 11  # (v - 1) p + 2 (p - 1) + 1
    assert max(peak_activations("zero-bubble", 4, 64, 1)) == 4


def test_too_many_actions_are_refused() -> None:
    with pytest.raises(UsageError, match="too many to simulate"):
        orders("gpipe", 64, 1 << 16)


def test_uneven_chunks_leave_room_for_embedding_and_head() -> None:
    assert chunk_layers(126, 64) == (1, *(2,) * 62, 1)
    assert chunk_layers(7, 1) == (7,)
    assert chunk_layers(9, 4) == (2, 3, 2, 2)
    assert sum(chunk_layers(61, 16)) == 61
