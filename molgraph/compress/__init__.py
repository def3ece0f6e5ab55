"""Ways to make a trained model smaller or faster; the module itself is callable: ``molgraph.compress(model, data)``."""

import sys

from molgraph.base.callable_module import VerbRoom

sys.modules[__name__].__class__ = VerbRoom
