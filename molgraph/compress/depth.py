"""Cut a trained graph network to fewer layers, without training it again."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

from molgraph.base.contracts import Method
from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import INNER_LIMIT, Range
from molgraph.base.registry import register
from molgraph.compress.compressor import Compressor
from molgraph.data.table import Table
from molgraph.train.cut_depth import cut_depth
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model


@register("compressor", "depth", summary="fewer layers of a network that was trained with layer_drop",
          paper="Fan et al. 2020, ICLR",
          command="molgraph train dataset:esol -m gin -s params.depth=8 -s 'params.stack=layer_drop(p=0.3)' -o deep.mgm"
          " && molgraph compress deep.mgm dataset:esol --how 'depth(4)' -o short.mgm")  # fmt: skip
class Depth(Compressor):
    """The encoder runs ``k`` of its layers, and the file holds no others (Fan et al. 2020, section 3.2).

    A model should be trained for it, with ``params.stack=layer_drop(p=0.3)``; one that was not loses more.

    Args:
        k: layers that stay.
        keep: ``every`` second, third, ... one, or the ``first``.
    """

    trains = False
    source = "gin(depth=4, d_hidden=8, stack='layer_drop(p=0.3)')"
    small = MappingProxyType({"k": 2})

    def __init__(self, k: Annotated[int, Range(1, INNER_LIMIT)] = 4, *, keep: Literal["every", "first"] = "every"):
        self.k, self.keep = k, keep

    def compress(self, model: Model, table: Table, valid: Table, seed: int) -> Method:
        """The shorter network; it learns nothing."""
        if not isinstance(model.method, GraphMethod):
            words = f"a {model.kind} has no layers that could be left out"
            raise UnsupportedError(words, hint="teach a smaller model: --how 'born_again(student=gin)'")
        return cut_depth(model.method, self.k, self.keep)
