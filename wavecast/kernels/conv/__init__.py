"""Convolutions: implicit matrix products, depthwise and causal ones, and their gradients."""
