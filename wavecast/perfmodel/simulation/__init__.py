"""What the simulators of a compute unit and of an NVIDIA SM share."""
