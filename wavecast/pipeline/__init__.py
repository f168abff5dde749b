"""The steps from an input to an `ExplainReport`, for every launch and every device."""

from wavecast.pipeline.run import ExplainOptions, explain_launches, explain_path
from wavecast.pipeline.selection import DEFAULT, Selection, select, selectors
from wavecast.pipeline.steps import Given

__all__ = [
    "DEFAULT",
    "ExplainOptions",
    "Given",
    "Selection",
    "explain_launches",
    "explain_path",
    "select",
    "selectors",
]
