"""The simulator of a streaming multiprocessor (SM): warps of SASS through its four sub-partitions.

It takes the same `Streams` and gives the same `Run` as the simulator of a compute unit
(`model.cu`). The compiled loop differs, because SASS states its schedule: decision 0019.
"""
