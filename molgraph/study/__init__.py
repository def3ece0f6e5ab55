"""Analyses of data sets, models and generators, one a file; the module itself is callable: ``molgraph.study(...)``."""

import sys

from molgraph.base.callable_module import VerbRoom

sys.modules[__name__].__class__ = VerbRoom
