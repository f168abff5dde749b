"""Models of any source as a graph of PyTorch's operator calls, and their time on a GPU.

A recorder (`wavecast.runtimes.torch_graph`) or a YAML file gives a `ModuleGraph`; `kernels`
maps its calls to the operations of `model.ops`, and `answer` adds up their times.
"""
