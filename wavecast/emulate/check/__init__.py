"""Check mode: what is wrong with a kernel although it gives a result.

`mode.py` is the mode. Native code writes what it sees to a log (`log.py`), which becomes `Report`s
(`report.py`). `counters.py` numbers what a wave has asked of memory and what it has waited for;
`memory.py` observes accesses, `shadow*.py` have the outlined functions that compare each with who
accessed the same address before.

Two accesses of different waves to the same bytes, one of them a store, must be ordered. Within a
workgroup a barrier orders them if the earlier one was waited for before its wave reached it, where
the target needs that. Between workgroups release and acquire of agent scope do
(`launch_clocks.py`), as the machine code states them (`atomicity.py`, `isa/scopes.py`).
"""
