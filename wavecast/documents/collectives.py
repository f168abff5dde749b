"""`wavecast.collectives/1`: what `wavecast model --collectives --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.json_objects import Count, High, JsonObject, Low, NonNegative, Positive, doc


class PhaseJson(JsonObject):
    """A phase of a schedule."""

    function: Annotated[str, doc("reduce_scatter, all_gather, all_reduce, dispatch or combine")]
    axis: Annotated[
        str, doc("node: GPUs of a node; rail: GPUs of one number on all nodes; all: all GPUs")
    ]
    algorithm: Annotated[str, doc("ring, direct, halving or doubling")]
    size: Annotated[Positive, doc("GPUs of the phase")]
    rounds: Annotated[Positive, doc("rounds of messages")]


class ScheduleJson(JsonObject):
    """A simulated schedule."""

    phases: Annotated[list[PhaseJson], doc("phases in order")]
    copies: Annotated[str, doc('copies of a token: per expert, gpu, node or rail; else ""')]
    protocol: Annotated[str, doc("flags: a flag per word; slices: whole slices; copies: of tokens")]
    pieces: Annotated[Positive, doc("pieces that follow each other")]
    seconds: Annotated[NonNegative, doc("time of the collective")]
    low: Low
    high: High
    limiter: Annotated[str, doc("links, network or latency")]
    links: Annotated[NonNegative, doc("seconds that a GPU's links send")]
    network: Annotated[NonNegative, doc("seconds that a GPU's NICs send")]


class CollectiveChangeJson(JsonObject):
    """The fastest schedule after a change."""

    change: Annotated[str, doc("the change, as it was asked for")]
    schedule: Annotated[ScheduleJson, doc("the fastest schedule")]


class CollectiveJson(JsonObject):
    """A collective on a system."""

    function: Annotated[
        str, doc("all_reduce, reduce_scatter, all_gather, all_to_all, dispatch or combine")
    ]
    bytes: Annotated[Positive, doc("bytes as nccl-tests counts them; tokens of a GPU")]
    topk: Annotated[Count, doc("experts of a token; 0 where there are none")]
    system: Annotated[str, doc("the system")]
    gpus: Annotated[Positive, doc("its GPUs")]
    nodes: Annotated[Positive, doc("its nodes")]
    oversubscription: Annotated[NonNegative, doc("bandwidth of NICs over that of uplinks")]
    leaf: Annotated[Positive, doc("nodes of a leaf switch")]
    library_seconds: Annotated[
        NonNegative, doc("what NCCL, RCCL or kernels of exchanges are predicted to take")
    ]
    schedules: Annotated[list[ScheduleJson], doc("schedules, fastest first")]
    changes: Annotated[list[CollectiveChangeJson], doc("answers to --what-if")]


class CollectivesDocument(JsonObject, tag_field="schema", tag="wavecast.collectives/1"):
    """What `wavecast model --collectives --format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    collectives: Annotated[list[CollectiveJson], doc("systems, and the collectives of each")]
