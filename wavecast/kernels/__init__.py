"""The kernel library: what each operator computes, its Triton source, and how its configuration is
chosen.

One file per operator (or a folder where it takes several) in the folder of its family, each with a
description (`operator.Operator`) named `OPERATOR`, or a tuple of them named `OPERATORS`. A
`signature.Signature` names its tensors and a `spec.KernelSpec` each of its kernels; from these
follow `torch.ops.wavecast.*`, argument checks, launches, tests, benchmarks, tables of
configurations and the pages in docs/ops.
The rest of the package uses `registry` (which operators and collectives there are), `operator`
(what one is), `choice` and `tables` (configurations of launches).
`docs/adding-an-op.md` goes through one step by step.
"""
