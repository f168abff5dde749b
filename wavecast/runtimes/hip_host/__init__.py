"""HIP programs that run natively, with their launches executed on the emulator."""
