"""What-ifs, comparisons, findings and costs of `wavecast.system/1`."""

from __future__ import annotations

from typing import Annotated

from wavecast.json_objects import Count, High, JsonObject, Low, NonNegative, doc
from wavecast.systems.comparison import StepBound, SystemRatio
from wavecast.systems.speedup import Speedup


class ChangedServingJson(JsonObject):
    """A load before and after a change."""

    concurrency: Annotated[Count, doc("requests at once; 0 for an open loop")]
    rate: Annotated[NonNegative, doc("requests per second of an open loop, else 0")]
    ttft_before: Annotated[NonNegative, doc("mean time to first token, seconds")]
    ttft_after: Annotated[NonNegative, doc("the same after the change")]
    ttft_speedup: Annotated[Speedup, doc("before over after")]
    tpot_before: Annotated[NonNegative, doc("mean time per output token, seconds")]
    tpot_after: Annotated[NonNegative, doc("the same after the change")]
    tpot_speedup: Annotated[Speedup, doc("before over after")]
    output_rate_before: Annotated[NonNegative, doc("output tokens per second of all GPUs")]
    output_rate_after: Annotated[NonNegative, doc("the same after the change")]
    rate_per_gpu_speedup: Annotated[Speedup, doc("tokens/s per GPU, after over before")]


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


class ComparedServingJson(JsonObject):
    """A load on a system of a comparison."""

    concurrency: Annotated[Count, doc("requests at once; 0 for an open loop")]
    rate: Annotated[NonNegative, doc("requests per second of an open loop, else 0")]
    ttft: Annotated[SystemRatio, doc("time to first token over that of the first system")]
    tpot: Annotated[SystemRatio, doc("time per output token over that of the first system")]
    rate_per_gpu: Annotated[SystemRatio, doc("tokens/s per GPU over that of the first system")]
    bound: Annotated[StepBound, doc("what bounds the decode step")]


class ComparedSystemJson(JsonObject):
    """A system of a comparison."""

    system: Annotated[str, doc("the machine")]
    servings: Annotated[list[ComparedServingJson], doc("one entry per load; none: does not fit")]


class ModelFindingJson(JsonObject):
    """A change that makes the deployment faster."""

    advice: Annotated[str, doc("what to do")]
    changed: Annotated[ModelChangeJson, doc("the change and what it does at the last load")]


class ModuleFindingJson(JsonObject):
    """A module of the decode step, and what making it faster is worth."""

    module: Annotated[str, doc("name of the module")]
    share: Annotated[NonNegative, doc("its share of the decode step of the last load")]
    changed: Annotated[ModelChangeJson, doc("the module with 0.8 of its time")]


class ModelFindingsJson(JsonObject):
    """What to change in a deployed model, the best first."""

    changes: Annotated[list[ModelFindingJson], doc("by output tokens per second and GPU")]
    modules: Annotated[list[ModuleFindingJson], doc("by the speedup of TPOT")]


class EnergyPriceJson(JsonObject):
    """A figure with its 80 % interval."""

    value: Annotated[NonNegative, doc("the prediction")]
    low: Low
    high: High


class TokenCostJson(JsonObject):
    """What a million output tokens take; null where power or price are not given."""

    energy: Annotated[EnergyPriceJson | None, doc("kWh")]
    price: Annotated[EnergyPriceJson | None, doc("in the currency of --price")]
