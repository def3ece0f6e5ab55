"""Readouts of the long tail of the literature, one file each."""
