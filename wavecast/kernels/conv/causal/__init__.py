"""Causal convolutions along time, one short filter per channel, as state space models have them."""
