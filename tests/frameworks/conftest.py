"""Triton compiles operators here as it does in the tests of runtimes."""

from tests.runtimes.conftest import fp_fusion

__all__ = ["fp_fusion"]
