"""What a simulation of serving reads and changes, as arrays of records for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from wavecast.systems.engine import Engine

Array = np.ndarray[Any, Any]

INBOX, WAITING, PREFILLING, RUNNING = range(4)
"""Queues of an instance: received and not yet seen by the engine, waiting for admission, admitted
without all of the prompt, decoding."""
NOTHING: Final = -1
"""The number of no request."""


def _record(whole: str, fractional: str) -> np.dtype[np.void]:
    return np.dtype(
        [(name, "i8") for name in whole.split()] + [(name, "f8") for name in fractional.split()]
    )


_ENGINE: Final = _record(
    "batched_tokens sequences mixed poll handover wait_steps asynchronous graphs captured "
    "prompt_graph",
    "wait_share reserve admission tokenise request host_step host_sequence launch",
)
"""Fields of `Engine` that the simulation reads."""
_LOAD: Final = _record("concurrency drafted entries first_decoder seed", "setup bandwidth")
"""Requests at once of a closed loop, drafted tokens of a step, instances that requests go to and
the first of those that decode, the seed of acceptance; seconds and bytes per second of a cache that
moves."""
_REQUEST: Final = _record(
    "prompt output hits need stored written chunk next previous ready",
    "arrival first end acceptance",
)
"""`need` is the number of tokens that a prefill computes: those of the prompt that no earlier
request left in the prefix cache (`hits`), and after a preemption the written ones. `stored` of them
are in the cache, `written` tokens of the output exist, `chunk` tokens are computed in this step.
`next` and `previous` link the requests of a queue. An instance that decodes does not look at a
request that was prefilled elsewhere before its step `ready`, unless it has nothing to do. Seconds
of arrival, first token and end."""
_INSTANCE: Final = np.dtype(
    [(name, "i8", (4,)) for name in ("head", "tail", "count")]
    + _record(
        "profile prefills decodes busy decoding chunks unseen postponed times steps most "
        "preemptions",
        "token sequence pool used each last seconds prefill_seconds",
    ).descr
)
"""An engine: its queues; its row of `ServingState.engine`; whether it prefills and decodes; whether
the running sequences decode in this step, and the number of prompts with a chunk; decode steps
since it looked for new requests and since prompts were left waiting for more of them; how many
equal steps are advanced together, and the seconds of each. `last` is the end of the last decode
step, NaN without one. `token` and `sequence` are the bytes that a cached token and a sequence take
of the `pool`."""
_EVENT: Final = _record("order kind index", "time")
_CLIENT: Final = _record("sent ended order events pending gaps scheduled", "server_free now")
"""`pending` is the instance whose next step is being chosen, -1 for none; `scheduled`: its content
is chosen and only its time is unknown. `gaps` is the number of rows of the array of that name."""


class ServingState(NamedTuple):
    """Arrays of records. `engine` has a row, or with pools that of the instances that decode and
    that of those that prefill. `gaps` (f64[n, 2]) are times between tokens and how many had them.
    """

    engine: Array
    captures: Array
    load: Array
    requests: Array
    instances: Array
    events: Array
    client: Array
    gaps: Array


def engine_record(engine: Engine) -> tuple[Array, Array]:
    """A profile as a record, and the numbers of sequences of its graphs."""
    record = np.zeros(1, _ENGINE)
    for name in _ENGINE.names or ():
        record[name] = getattr(engine, name)
    return record, np.array(engine.sizes, np.int64)


def empty_state(engines: Sequence[Engine], requests: int, instances: int) -> ServingState:
    """The state before a run: no request is in a queue, no event is known. Graphs of decode steps
    are those of the first engine."""
    profiles = np.concatenate([engine_record(engine)[0] for engine in engines])
    _, captures = engine_record(engines[0])
    records = np.zeros(instances, _INSTANCE)
    for name, value in (("head", NOTHING), ("tail", NOTHING), ("last", np.nan), ("times", 1)):
        records[name] = value
    client = np.zeros(1, _CLIENT)
    client["pending"] = -1
    return ServingState(
        profiles,
        captures,
        np.zeros(1, _LOAD),
        np.zeros(requests, _REQUEST),
        records,
        np.zeros(requests + instances + 1, _EVENT),
        client,
        np.zeros((1024, 2)),
    )


__all__ = [
    "INBOX",
    "NOTHING",
    "PREFILLING",
    "RUNNING",
    "WAITING",
    "ServingState",
    "empty_state",
    "engine_record",
]
