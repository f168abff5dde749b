"""`wavecast.ops.distributed`: everything that the ranks of a group call."""

from wavecast.kernels.distributed import arguments
from wavecast.kernels.distributed.collectives import (
    RankGroup,
    all_gather,
    all_reduce,
    all_reduce_rms_norm,
    all_to_all,
    all_to_all_uneven,
    broadcast,
    groups,
    reduce_scatter,
    shots_for,
)
from wavecast.kernels.distributed.context import (
    all_gather_attention,
    all_gather_attention_backward,
    ring_attention,
    ring_attention_backward,
    shift,
)
from wavecast.kernels.distributed.experts import (
    Dispatched,
    combine_gradients,
    expert_combine,
    expert_dispatch,
    expert_rows,
)
from wavecast.kernels.distributed.group import HALF, RankLayout, groups_of
from wavecast.kernels.distributed.products import (
    all_gather_matmul,
    matmul_all_reduce,
    matmul_reduce_scatter,
)
from wavecast.kernels.distributed.quantised import (
    all_reduce_quantised,
    all_reduce_rms_norm_quantised,
)

__all__ = [
    "HALF",
    "Dispatched",
    "RankGroup",
    "RankLayout",
    "all_gather",
    "all_gather_attention",
    "all_gather_attention_backward",
    "all_gather_matmul",
    "all_reduce",
    "all_reduce_quantised",
    "all_reduce_rms_norm",
    "all_reduce_rms_norm_quantised",
    "all_to_all",
    "all_to_all_uneven",
    "arguments",
    "broadcast",
    "combine_gradients",
    "expert_combine",
    "expert_dispatch",
    "expert_rows",
    "groups",
    "groups_of",
    "matmul_all_reduce",
    "matmul_reduce_scatter",
    "reduce_scatter",
    "ring_attention",
    "ring_attention_backward",
    "shift",
    "shots_for",
]
