"""Scores of how far a molecule is from those that a model learned from."""
