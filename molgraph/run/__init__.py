"""A training run: what it decides (rows, split, baselines, descriptors, objective), in the order of ``prepare``."""
