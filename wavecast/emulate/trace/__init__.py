"""Trace mode: executions, active lanes, memory transactions and bank conflicts of a launch, and
the paths and addresses of sampled waves.

`mode.py` is the mode; `observer.py` what it adds to a kernel's code, with the outlined functions
`lines.py` (global memory and scratch), `passes.py` (LDS banks) and `record.py` (addresses);
`layout.py` and `logs.py` the memory they write to; `result.py` what comes out.
"""
