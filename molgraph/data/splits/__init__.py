"""Splits: ``split_table``, ``kfold`` and ``repeated_kfold`` make ``Split``s by splitters, a file for what they read."""

from molgraph.data.splits import columns, files, groups, others
from molgraph.data.splits.classes import few_of_a_class, one_class
from molgraph.data.splits.folds import kfold, repeated_kfold
from molgraph.data.splits.make import split_table
from molgraph.data.splits.split import Leak, LeftOut, Split

__all__ = [
    "Leak",
    "LeftOut",
    "Split",
    "columns",
    "few_of_a_class",
    "files",
    "groups",
    "kfold",
    "one_class",
    "others",
    "repeated_kfold",
    "split_table",
]
