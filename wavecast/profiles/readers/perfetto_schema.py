"""The messages of Perfetto's traces that have activities of GPUs, and calls of the host.

Facts of the public schema of Perfetto (google/perfetto, protos/perfetto/trace, 2026): messages,
fields, their numbers and types. Text is declared as bytes: producers write what is not UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Final

from wavecast.protobuf import Fields, message_classes

PACKAGE: Final = "perfetto.protos"
BEGIN, END = 1, 2
"""Values of `TrackEvent.type`."""
CLEARED, NEEDS_STATE = 1, 2
"""Bits of `TracePacket.sequence_flags`."""
COMPUTE: Final = 2
"""The value of `InternedGpuRenderStageSpecification.category` for kernels."""
_INTERNED: Final[Fields] = (("iid", 1, "uint64"), ("name", 2, "bytes"))
_MESSAGES: Final[Mapping[str, Fields]] = {
    "TracePacket": (
        ("clock_snapshot", 6, "ClockSnapshot"),
        ("timestamp", 8, "uint64"),
        ("trusted_packet_sequence_id", 10, "uint32"),
        ("track_event", 11, "TrackEvent"),
        ("interned_data", 12, "InternedData"),
        ("sequence_flags", 13, "uint32"),
        ("incremental_state_cleared", 41, "bool"),
        ("previous_packet_dropped", 42, "uint32"),
        ("compressed_packets", 50, "bytes"),
        ("gpu_render_stage_event", 53, "GpuRenderStageEvent"),
        ("timestamp_clock_id", 58, "uint32"),
        ("trace_packet_defaults", 59, "TracePacketDefaults"),
        ("track_descriptor", 60, "TrackDescriptor"),
    ),
    "ClockSnapshot": (("clocks", 1, "*Clock"),),
    "Clock": (
        ("clock_id", 1, "uint32"),
        ("timestamp", 2, "uint64"),
        ("is_incremental", 3, "bool"),
        ("unit_multiplier_ns", 4, "uint64"),
    ),
    "TracePacketDefaults": (
        ("track_event_defaults", 11, "TrackEventDefaults"),
        ("timestamp_clock_id", 58, "uint32"),
    ),
    "TrackEventDefaults": (("track_uuid", 11, "uint64"),),
    "TrackDescriptor": (
        ("uuid", 1, "uint64"),
        ("name", 2, "bytes"),
        ("static_name", 10, "bytes"),
    ),
    "TrackEvent": (
        ("category_iids", 3, "*uint64"),
        ("debug_annotations", 4, "*DebugAnnotation"),
        ("type", 9, "int32"),
        ("name_iid", 10, "uint64"),
        ("track_uuid", 11, "uint64"),
        ("categories", 22, "*bytes"),
        ("name", 23, "bytes"),
    ),
    "DebugAnnotation": (
        ("name_iid", 1, "uint64"),
        ("uint_value", 3, "uint64"),
        ("int_value", 4, "int64"),
        ("double_value", 5, "double"),
        ("string_value", 6, "bytes"),
        ("name", 10, "bytes"),
        ("string_value_iid", 17, "uint64"),
    ),
    "InternedData": (
        ("event_categories", 1, "*InternedName"),
        ("event_names", 2, "*InternedName"),
        ("debug_annotation_names", 3, "*InternedName"),
        ("gpu_specifications", 24, "*GpuSpecification"),
        ("debug_annotation_string_values", 29, "*InternedName"),
    ),
    "InternedName": _INTERNED,
    "GpuSpecification": (*_INTERNED, ("category", 4, "int32")),
    "GpuRenderStageEvent": (
        ("duration", 2, "uint64"),
        ("gpu_id", 11, "int32"),
        ("hw_queue_iid", 13, "uint64"),
        ("stage_iid", 14, "uint64"),
        ("name", 17, "bytes"),
        ("name_iid", 20, "uint64"),
        ("launch", 21, "ComputeKernelLaunch"),
    ),
    "ComputeKernelLaunch": (("grid_size", 1, "Dim3"), ("workgroup_size", 2, "Dim3")),
    "Dim3": (("x", 1, "uint32"), ("y", 2, "uint32"), ("z", 3, "uint32")),
}


@cache
def messages() -> SimpleNamespace:
    """The classes of `_MESSAGES` by name. Raises MissingTool without the runtime of protobuf."""
    return message_classes(PACKAGE, _MESSAGES, {}, extra="perfetto")


__all__ = ["BEGIN", "CLEARED", "COMPUTE", "END", "NEEDS_STATE", "PACKAGE", "messages"]
