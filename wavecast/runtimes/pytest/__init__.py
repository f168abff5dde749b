"""`pytest --wavecast gfx942`: the Triton kernels of a test suite, executed on the emulator."""
