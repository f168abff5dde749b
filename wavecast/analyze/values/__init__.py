"""Static evaluation of a kernel: block counts, trip counts, addresses, arguments.

A few waves of a launch are followed through their scalar code (`walk`), with the vector
instructions that scalar decisions depend on; the first of them also sees the addresses of memory
instructions (`access`). Which argument an address comes from needs no launch (`roots`).

    semantics of rows  ->  domain (values of a wave)  ->  execute, memory_step (one instruction)
    slices (which instructions matter)  ->  walk (one wave)  ->  Values

Unknown counts are None with a reason, unknown patterns `unknown`.
"""

from wavecast.analyze.values.access import AddressPattern
from wavecast.analyze.values.evaluation import Values, evaluate
from wavecast.analyze.values.roots import Uses

__all__ = ["AddressPattern", "Uses", "Values", "evaluate"]
