"""The steps from an input to a `Report`, for every launch and every device."""

from wavecast.pipeline.run import Options, explain_launches, explain_path
from wavecast.pipeline.selection import Selection, select
from wavecast.pipeline.steps import Given

__all__ = [
    "Given",
    "Options",
    "Selection",
    "explain_launches",
    "explain_path",
    "select",
]
