"""Readouts from less cited papers, one file each."""
