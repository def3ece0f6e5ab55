"""Sequence layers: recurrent units, convolutions, a diagonal state space."""
