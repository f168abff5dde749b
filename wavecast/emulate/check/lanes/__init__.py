"""Programs that take a wave for 32 lanes, or for 64."""
