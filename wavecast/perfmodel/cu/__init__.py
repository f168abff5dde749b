"""The compute-unit simulator: waves of machine code through the pipes of one compute unit.

It replays what sampled waves executed (`streams.Streams`) on one compute unit of a chip
(`machine.ComputeUnit`) and gives its time (`simulation.run.Run`): every SIMD issues in order per
wave and at most one instruction per category and slot; registers become ready by the latencies of
the cost tables; waits block a wave until its memory operations are done; LDS, the vector cache's
address path and the unit's share of L2, memory-side cache and memory are servers in the order of
requests.

What a wave executed is given as

- its basic blocks in order (`blocks`, as a trace's stream records them),
- one row per request of its memory instructions, in order (`streams.REQUEST`): the number of the
  instruction, the cache lines the request looks up in the vector L1 (`tags`; for scalar memory in
  the scalar cache), and the bytes of them that come from the L2, the memory-side cache and the
  memory (`l2` counts everything that leaves the L1, `mall` everything that leaves the L2, `hbm`
  what reaches memory). Passes of LDS requests come from the trace's counts per instruction.

`code.Code` holds what the instructions ask of the machine, in arrays; `simulate.simulate` is the
compiled loop over them; `fold` cuts long loops down to a few iterations before and adds their time
after; `account` divides the result among source lines and causes.
"""
