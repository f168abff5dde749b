"""Replay of executed memory accesses through the caches of a chip.

`accesses.Accesses` has the requests of sampled waves, with the LDS passes of each;
`geometry.DieCaches` the caches of one die. `replay.replay` gives for each request how many lines it
looks up and how many bytes come from which level. `traffic` gives the part that reaches memory.
"""
