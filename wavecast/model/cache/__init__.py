"""Replay of executed memory accesses through the caches of a chip.

`accesses.Accesses` holds the requests of sampled waves in the order in which they run beside each
other; `geometry.Geometry` the caches of one die; `replay.replay` says for each request how many
lines it looks up and how many bytes come from which level; `banks.passes` the turns LDS requests
take; `traffic` scales what the sample moved to the launch and decides what memory must serve.
"""
