"""Vectors of molecules by trained encoders, and searches in them; the module is callable: ``molgraph.embed(...)``."""

import sys

from molgraph.base.callable_module import VerbRoom

sys.modules[__name__].__class__ = VerbRoom
