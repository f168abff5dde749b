"""What-ifs of `wavecast.system/1`."""

from __future__ import annotations

from typing import Annotated

from wavecast.documents.base import Count, JsonObject, NonNegative, doc


class SpeedupJson(JsonObject):
    """A time before over the time after a change."""

    value: Annotated[NonNegative, doc("the prediction")]
    low: Annotated[NonNegative, doc("lower end of its 80 % interval")]
    high: Annotated[NonNegative, doc("upper end of its 80 % interval")]


class ChangedServingJson(JsonObject):
    """A load before and after a change."""

    concurrency: Annotated[Count, doc("requests at once; 0 for an open loop")]
    rate: Annotated[NonNegative, doc("requests per second of an open loop, else 0")]
    ttft_before: Annotated[NonNegative, doc("mean time to first token, seconds")]
    ttft_after: Annotated[NonNegative, doc("the same after the change")]
    ttft_speedup: Annotated[SpeedupJson, doc("before over after")]
    tpot_before: Annotated[NonNegative, doc("mean time per output token, seconds")]
    tpot_after: Annotated[NonNegative, doc("the same after the change")]
    tpot_speedup: Annotated[SpeedupJson, doc("before over after")]
    output_rate_before: Annotated[NonNegative, doc("output tokens per second of all GPUs")]
    output_rate_after: Annotated[NonNegative, doc("the same after the change")]
    rate_per_gpu_speedup: Annotated[SpeedupJson, doc("tokens/s per GPU, after over before")]


class ModelChangeJson(JsonObject):
    """A change of the deployed model."""

    change: Annotated[str, doc("the change as it was written, or several")]
    why_not: Annotated[str, doc("why there are no servings; else empty")]
    parallelism: Annotated[str, doc("how the model is divided after the change")]
    servings: Annotated[list[ChangedServingJson], doc("one entry per load")]


class ModelWhatIfJson(JsonObject):
    """Changes of a model on one system."""

    system: Annotated[str, doc("the machine")]
    parallelism: Annotated[str, doc("how the model is divided before the changes")]
    changes: Annotated[list[ModelChangeJson], doc("each change by itself, as it was asked for")]
    together: Annotated[ModelChangeJson | None, doc("all changes at once; null for a single one")]
