"""Studies of one's own data, models and generators, one a file. Called, it is the verb: see ``molgraph.api.study``."""

import sys

from molgraph.base.callable_module import VerbRoom

sys.modules[__name__].__class__ = VerbRoom
