"""Collectives on many nodes: schedules of messages, their simulation, a search of schedules."""
