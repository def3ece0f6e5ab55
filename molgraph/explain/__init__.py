"""Explainers of trained models, one method a file; the module itself is callable: ``molgraph.explain(model, data)``."""

import sys

from molgraph.base.callable_module import VerbRoom

sys.modules[__name__].__class__ = VerbRoom
