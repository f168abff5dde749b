"""Mixture of experts: routing of tokens, their order by expert, and the experts' products."""
