"""Tests of simulated collectives."""
