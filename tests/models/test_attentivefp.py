"""AttentiveFP against PyG's, with copied weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn.models import AttentiveFP as Reference

from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.models.attentivefp import AttentiveFP

SMILES = ["CCO", "c1ccccc1O", "[Na+].[Cl-]", "CC(C)(C)Cl", "C", "OC(=O)c1ccncc1"]


@pytest.mark.parametrize("distinct", [True, False])
def test_it_is_pygs(distinct: bool) -> None:
    store = featurize(SMILES)
    batch = collate(store, np.arange(len(SMILES)))
    torch.manual_seed(0)
    made = AttentiveFP(store.spec, d_hidden=12, depth=3, distinct=distinct)
    theirs = Reference(store.spec.width("atom"), 12, 12, store.spec.width("bond"), 3, 2)
    theirs.lin2 = torch.nn.Identity()
    gate = theirs.gate_conv
    with torch.no_grad():
        for mine, weight in (
            (made.embed.weight, theirs.lin1.weight), (made.embed.bias, theirs.lin1.bias),
            (made.neighbour.weight, gate.lin1.weight), (made.value.weight, gate.lin2.weight),
            (made.of_source.weight, gate.att_l), (made.of_target.weight, gate.att_r), (made.bias, gate.bias),
        ):  # fmt: skip
            mine.copy_(weight)
        pairs = [*zip(made.attention, theirs.atom_convs, strict=True), (made.readout.attention, theirs.mol_conv)]
        for mine, conv in pairs:
            mine.w.weight.copy_(conv.lin_src.weight if hasattr(conv, "lin_src") and conv.lin_src else conv.lin.weight)
            mine.of_source.weight.copy_(conv.att_src[0])
            mine.of_target.weight.copy_(conv.att_dst[0])
            mine.bias.copy_(conv.bias)
        cells = [theirs.gru, *theirs.atom_grus, theirs.mol_gru]
        for mine, cell in zip([*made.cells, made.readout.cell], cells, strict=True):
            mine.load_state_dict(cell.state_dict())
        edges, bond = torch.stack([batch.source, batch.target]), batch.features("bond")
        known = theirs(batch.features("atom"), edges, bond, batch.graph_of("atom"))
        torch.testing.assert_close(made(batch).graphs, known, rtol=0, atol=1e-5)
