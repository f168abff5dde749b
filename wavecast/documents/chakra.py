"""`wavecast.chakra/1`: what `wavecast model --from-chakra --format json` writes."""

from __future__ import annotations

from typing import Annotated

from wavecast.json_objects import Count, JsonObject, NonNegative, Numbers, doc
from wavecast.systems.chakra.replay import RankTime, UsedCollective


class ReplayJson(JsonObject):
    """Traces of the ranks of a run on a system."""

    name: Annotated[str, doc("name of the run: that of its files")]
    system: Annotated[str, doc("the system")]
    collective_times: Annotated[str, doc("library, schedules or recorded")]
    nodes: Annotated[Count, doc("nodes of all ranks")]
    unresolved: Annotated[Count, doc("control dependencies on nodes that are not in the traces")]
    sources: Annotated[
        Numbers,
        doc("nodes by the origin of their time: recorded, predicted, untimed, communication"),
    ]
    seconds: Annotated[NonNegative, doc("until the last node has ended")]
    low: Annotated[NonNegative, doc("with collectives at the lower ends of their 80 % intervals")]
    high: Annotated[NonNegative, doc("with collectives at the upper ends of their 80 % intervals")]
    exposed: Annotated[NonNegative, doc("the most seconds of a rank with exposed communication")]
    critical: Annotated[Numbers, doc("seconds of the critical path: compute, communication, host")]
    slowed: Annotated[Count, doc("collectives and messages that shared links at the same time")]
    slowed_by: Annotated[NonNegative, doc("seconds that these took longer than alone")]
    ranks: Annotated[list[RankTime], doc("every rank")]
    collectives: Annotated[list[UsedCollective], doc("what ranks exchange, longest first")]


class ChakraDocument(JsonObject, tag_field="schema", tag="wavecast.chakra/1"):
    """What `wavecast model --from-chakra --format json` writes."""

    wavecast: Annotated[str, doc("version that wrote the document")]
    runs: Annotated[list[ReplayJson], doc("runs on systems")]
