"""Profiles of other tools in one form: kernels, operators, host calls and copies of a run."""
