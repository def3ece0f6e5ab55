"""Data augmentations of molecules and sequences, one a file; the base class is in ``molgraph.data.view``."""
