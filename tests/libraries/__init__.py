"""Kernels of libraries, executed on the emulator and compared with PyTorch.

The objects are other people's; where `../shared/library_objects` is absent, these tests skip.
"""
