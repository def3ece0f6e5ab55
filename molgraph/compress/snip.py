"""Prune a network at initialisation by SNIP, then train it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from molgraph.base.contracts import Method
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.compress.compressor import Compressor
from molgraph.compress.retrain import graph_method
from molgraph.data.table import Table
from molgraph.train.callback import NONE
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model


@register(
    "compressor",
    "snip",
    summary="trains the same network with a tenth of its weights, chosen before training",
    paper="Lee, Ajanthan and Torr 2019, ICLR; isometry: Lee et al. 2020, ICLR",
    systems=(
        SystemCard(
            "layerwise-dynamical-isometry-pruning",
            left_out="pruning without labels; the singular values of whole-network Jacobians; architectures that grow",
            off="'snip(fraction=0.9, isometry=false)'",
            beside=("orthogonal weights, pruned and not restored",),
            command="molgraph train dataset:adme_sol -m dmpnn -o assay.mgm && "
            "molgraph compress assay.mgm dataset:adme_sol --how 'snip(fraction=0.9, isometry=true)' -o pruned.mgm",
            modules=("molgraph.train.callbacks.snip", "molgraph.train.masks"),
        ),
    ),
)
class TrainPruned(Compressor):
    """A network of the model's settings is drawn anew, pruned at once, and trained on the rows.

    The callback ``snip`` has the equations. The rows need to be as many as the model was trained on; the new file is as
    long as the old one, and shorter where it is compressed.

    Args:
        fraction: of the weights that are removed.
        isometry: whether matrices are drawn orthogonal, and brought back towards it once they are pruned.
    """

    source = "dmpnn(d_hidden=8)"
    small = MappingProxyType({"fraction": 0.5})

    def __init__(
        self, fraction: Annotated[float, Range(0, 1, above=True, below=True)] = 0.9, *, isometry: bool = False
    ) -> None:
        self.fraction, self.isometry = fraction, isometry

    def compress(self, model: Model, table: Table, valid: Table, seed: int) -> Method:
        """The pruned network, trained."""
        method = graph_method(model, "layers of weights")
        spec = f"snip(fraction={self.fraction}, isometry={str(self.isometry).lower()})"
        before = [method.callback] if method.callback and method.callback != NONE else []
        settings = {"callback": "+".join([*before, spec]), "init": None, "store": None, "seed": derive(seed, "snip")}
        result = GraphMethod(**{**method.get_params(), **settings})
        return result.fit(table, valid if len(valid) else None)
