"""A page and a JSON API for model files, over HTTP; the module itself is callable: ``molgraph.serve("model.mgm")``.

``server`` binds the port and runs; ``app`` joins the routes; ``guard`` lets requests in (token, size, time, overload),
``slow_clients`` ends connections that stall; ``engine`` batches what waits and asks a process of its own, whose side is
``answers``; ``jobs`` keeps uploaded files, which another process predicts (``file_work``).
"""

import sys

from molgraph.base.callable_module import VerbRoom

sys.modules[__name__].__class__ = VerbRoom
