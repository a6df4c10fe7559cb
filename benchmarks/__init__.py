"""Benchmarks; run `pytest benchmarks --benchmark-only`."""
