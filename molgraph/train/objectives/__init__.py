"""Objectives of training, one method a file; the base class stands in ``molgraph.train.objective``."""
