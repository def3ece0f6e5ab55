"""Colour atoms by the discrete symbols that a trained model assigns to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.explain.explainer import Attribution, Explainer
from molgraph.nn.blocks.symbols import Symbols


@register("explainer", "symbols", summary="atoms by the symbols that they give the readout")
class SymbolsOfAtoms(Explainer):
    """Each atom has the colour of its symbol, which means the same in all molecules of one model.

    ``values`` has each atom's ``symbol`` and, as ``value``, the chance that the model gives it.
    """

    reads, model = "symbols of atoms", "gin(symbols=symbols)"

    def can_read(self, encoder: Any) -> bool:
        """Whether its atoms speak symbols."""
        return any(isinstance(option, Symbols) for option in encoder.options)

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The symbol of each atom."""
        option = next(option for option in encoder.options if isinstance(option, Symbols))
        rows = next(rows for rows in encoder(batch, rows=True).rows if rows.level == "atom")
        value, symbol = option.speak(rows.h).softmax(dim=1).max(dim=1)
        frame = pd.DataFrame(
            {"molecule": batch.graph_of("atom").numpy(), "symbol": symbol.numpy(), "value": value.numpy()}
        )
        frame.insert(1, "atom", frame.groupby("molecule").cumcount())
        drawings, captions = [], []
        for i, (a, b) in enumerate(pairwise(batch["atom"].offsets.tolist())):
            drawings.append((i, {"groups": symbol[a:b].tolist(), "shares": value[a:b].tolist()}))
            captions.append(f"{smiles[i]}, atoms by symbol")
        return Attribution("atom", frame, drawings, captions)
