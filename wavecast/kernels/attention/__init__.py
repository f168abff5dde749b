"""Attention of many queries at once: prefill and training, forward and backward."""
