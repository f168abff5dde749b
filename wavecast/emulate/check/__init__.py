"""Check mode: what is wrong with a kernel although it gives a result.

`mode.py` is the mode. Native code writes what it sees to a log (`log.py`), which becomes `Report`s
(`report.py`). `counters.py` numbers what a wave has asked of memory and what it has waited for;
`memory.py` observes accesses, `shadow*.py` hold the outlined functions that compare each with who
touched the same place before.

What counts as ordered, within a workgroup: two accesses of different waves to the same bytes, one
of them a store, need a barrier between them, and the earlier one must have been waited for before
its wave reached that barrier. Between workgroups nothing is ordered but by atomic operations and by
accesses of device scope: two workgroups that have both done one count as ordered (more lenient than
the memory model: no false alarms, some races missed).
"""
