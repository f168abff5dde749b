"""`wavecast doctor`: what is installed, what works here, and what to install for the rest."""

from __future__ import annotations

from wavecast.api.doctor import doctor
from wavecast.cli.verb import Show, Verb
from wavecast.options import NoOptions

command = Verb(
    name="doctor",
    function=doctor,
    options=NoOptions,
    show=Show(output=True, highlight=True),
    text="Show which inputs and targets work on this machine, and what to install for the others.",
    examples=(),
).command()

__all__ = ["command"]
