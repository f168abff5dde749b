"""Several GPUs, streams and HIP programs: what orders their works, and what these share."""
