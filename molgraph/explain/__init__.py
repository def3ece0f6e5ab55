"""Explainers of a fitted model, one method a file. Called, it is the verb: see ``molgraph.api.explain``."""

import sys

from molgraph.base.callable_module import VerbRoom

sys.modules[__name__].__class__ = VerbRoom
