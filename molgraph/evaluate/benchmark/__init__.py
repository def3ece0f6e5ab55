"""Benchmarks: datasets x splits x methods x seeds, each cell a process of its own; scores from what cells stored."""
