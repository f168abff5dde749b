"""The kernel library: what each operator computes, its Triton source, and how its configuration is
chosen.

One file per operator (or a folder where it takes several) in the folder of its family, each with an
`OPERATORS` tuple of descriptions (`operator.Operator`). Everything else is derived from these:
`torch.ops.wavecast.*`, tests, benchmarks, tables of configurations, the pages in docs/ops.
`docs/adding-an-op.md` goes through one step by step.
"""
