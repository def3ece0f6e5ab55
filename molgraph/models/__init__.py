"""The models: one paper, one file. Importing this package registers every one of them under ``encoder``.

| module | rows | relation | message | update | readout |
|---|---|---|---|---|---|
| ``dmpnn`` | directed bonds | next bond, no U-turn | sum | skip + ReLU | incoming sum, mean |
"""

from molgraph.models import dmpnn

__all__ = ["dmpnn"]
