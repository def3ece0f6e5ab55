"""Trust: wrappers of a method that say how far to believe it."""

from molgraph.trust import ensemble  # noqa: F401 - registers
