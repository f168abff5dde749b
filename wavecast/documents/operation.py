"""`wavecast.operation/1`: what `wavecast explain OPERATION --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.documents.prediction import PredictionJson
from wavecast.json_objects import JsonObject, NonNegative, Numbers, doc


class OperationJson(JsonObject):
    """One operation on one device."""

    operation: Annotated[str, doc("gemm, attention …")]
    problem: Annotated[str, doc("the operation with its sizes and dtypes")]
    arch: Annotated[str, doc("target, such as gfx942 or sm_90")]
    device: Annotated[str, doc("marketing name")]
    device_id: Annotated[str, doc("id of the device in `wavecast arch`")]
    flops: Annotated[Numbers | None, doc("useful floating-point operations by dtype")]
    bytes: Annotated[NonNegative | None, doc("least bytes read and written")]
    floor_seconds: Annotated[NonNegative | None, doc("least time in seconds at datasheet peaks")]
    sustained_seconds: Annotated[
        NonNegative | None, doc("least time in seconds at sustained rates")
    ]
    flops_per_second: Annotated[NonNegative | None, doc("useful FLOP/s at the predicted time")]
    bytes_per_second: Annotated[
        NonNegative | None, doc("least bytes over the predicted time, byte/s")
    ]
    prediction: Annotated[PredictionJson | None, doc("predicted time and where it goes")]
    prediction_why_not: Annotated[str, doc("why there is no prediction; empty where there is one")]


class OperationDocument(JsonObject, tag_field="schema", tag="wavecast.operation/1"):
    """What `wavecast explain OPERATION --format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    notes: Annotated[list[str], doc("what a user must know about the run")]
    operations: Annotated[
        list[OperationJson], doc("shape by shape, devices in the order of --arch")
    ]
