"""`wavecast.system-search/1`: what `wavecast model --search --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.json_objects import Count, JsonObject, NonNegative, Positive, doc


class SearchedModelJson(JsonObject):
    """A configuration that runs."""

    system: Annotated[str, doc("the machine")]
    values: Annotated[dict[str, str], doc("values by dimension of the search")]
    parallelism: Annotated[str, doc("how the model is divided")]
    gpus: Annotated[Positive, doc("GPUs that it takes")]
    concurrency: Annotated[Positive, doc("requests at once")]
    ttft: Annotated[NonNegative, doc("mean time to first token, seconds")]
    tpot: Annotated[NonNegative, doc("mean time per output token after the first, seconds")]
    per_gpu: Annotated[NonNegative, doc("output tokens per second and GPU")]
    per_gpu_low: Annotated[NonNegative, doc("lower end of its 80 % interval")]
    per_gpu_high: Annotated[NonNegative, doc("upper end of its 80 % interval")]
    per_user: Annotated[NonNegative, doc("output tokens per second of one request")]
    meets: Annotated[bool, doc("whether it meets all objectives")]


class ModelSearchDocument(JsonObject, tag_field="schema", tag="wavecast.system-search/1"):
    """What `wavecast model --search --format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    model: Annotated[str, doc("the model as it was asked for")]
    slo: Annotated[str, doc("the objectives as they were asked for; may be empty")]
    tried: Annotated[Count, doc("configurations")]
    known: Annotated[Count, doc("those whose result was in the state")]
    ranked: Annotated[list[SearchedModelJson], doc("those that meet the objectives, by per_gpu")]
    frontier: Annotated[list[SearchedModelJson], doc("none is better in per_gpu and per_user")]
    missed: Annotated[Count, doc("those that run and miss an objective")]
    skipped: Annotated[dict[str, int], doc("number of those that cannot run, by reason")]
