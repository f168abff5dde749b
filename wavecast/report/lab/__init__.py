"""What the lab and the tuner report."""
