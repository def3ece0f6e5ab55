"""The models: one paper, one file. Importing this package registers every one of them under ``encoder``.

| module | rows | relation | message | update | readout | objective |
|---|---|---|---|---|---|---|
| ``mpnn`` | atoms | bonds | edge network | GRU | set2set | supervised |
| ``dmpnn`` | directed bonds | next bond, no U-turn | sum | skip + ReLU | incoming sum, mean | supervised |
| ``pyg_conv`` | atoms | bonds | the convolution's | skip + ReLU | mean | supervised |
"""

from molgraph.models import dmpnn, mpnn, pyg_conv

__all__ = ["dmpnn", "mpnn", "pyg_conv"]
