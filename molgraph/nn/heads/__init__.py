"""Heads: a perceptron, and one that predicts a variance beside each number."""
