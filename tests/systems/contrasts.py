"""Batches, objectives and encoders for the checks of contrastive pretraining."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from rdkit import Chem, rdBase
from torch import Tensor, nn
from torch.nn import functional as F

import molgraph
from molgraph.data.sources import builtin
from molgraph.data.table import make_table
from molgraph.data.view import make_views
from molgraph.train.network import build_network
from molgraph.train.objective import StepState, make_objective
from molgraph.train.preparation import prepare
from molgraph.train.samples import Sample

SMILES = ["CC(=O)Nc1ccc(O)cc1", "CCCCN", "C#N", "OCC1CC1"]
SIZE = {"d_hidden": 8, "depth": 2}
STEP = StepState(0, 1, 0)
VIEWS = "mask(p=0.3)+drop(p=0.3)"


def made(
    objective: str, smiles: list[str] = SMILES, *, views: str | None = "mask+drop", **size: Any
) -> tuple[Any, Any, Sample]:
    """An objective, a small network, and a batch of all rows seen twice."""
    found = prepare(
        make_table(smiles), None, "gin", None, None, {}, targets=False, views=make_views(views), judge_views=True
    )
    torch.manual_seed(0)
    network = build_network(found.inputs, {**SIZE, "norm": "none", **size}, joiner="concat", d_extra=0)
    learns = make_objective(objective, {}, network, found.inputs, found.outputs)
    rows = np.tile(np.arange(len(found.train)), 2)
    batch = found.train.sample(rows, np.random.default_rng(0) if views else None)
    network.prepare(batch)
    return learns, network, batch


def vectors(learns: Any, network: Any, batch: Sample) -> Tensor:
    """float [2 n, width]: the projected states of all views, of length 1."""
    return F.normalize(learns.project(network.encoder(batch.parts[0].batch).graphs), dim=1)


@cache
def molecules() -> list[str]:
    """What can be read of a built-in corpus, in random order."""
    with rdBase.BlockLogs():
        smiles = [str(text) for text in builtin.nci().smiles if Chem.MolFromSmiles(str(text)) is not None]
    return [smiles[i] for i in np.random.default_rng(0).permutation(len(smiles))]


def pretrained(objective: str, seed: int, smiles: list[str], views: str | None = VIEWS, **more: Any) -> nn.Module:
    """A small encoder after six epochs."""
    how: dict[str, Any] = {"model": "gin", "params": {"d_hidden": 32, "depth": 3}, "epochs": 6, "batch_size": 64}
    how |= {"learning_rate": 1e-3, "views": views, "threads": 1}
    model: Any = molgraph.pretrain(smiles, **{**how, **more}, objective=objective, seed=seed)
    encoder: nn.Module = model.method.fitted.network.encoder
    return encoder


def untrained(seed: int, **size: Any) -> nn.Module:
    """The same encoder with its first weights."""
    found = prepare(make_table(SMILES), None, "gin", None, None, {}, targets=False)
    torch.manual_seed(seed)
    return build_network(found.inputs, {"d_hidden": 32, "depth": 3, **size}, joiner="concat", d_extra=0).encoder


def top_1(encoder: nn.Module, smiles: list[str]) -> float:
    """The share of molecules whose other view is the nearest of all, by the cosine of the encoder's states."""
    found = prepare(make_table(smiles), None, "gin", None, None, {}, targets=False, views=make_views(VIEWS))
    batch = found.train.sample(np.tile(np.arange(len(found.train)), 2), np.random.default_rng(0))
    with torch.no_grad():
        z = F.normalize(encoder.eval()(batch.parts[0].batch).graphs, dim=1)
    assert batch.graphs is not None
    positive = torch.arange(len(z)).roll(len(z) // 2)
    others = (batch.graphs[:, None] == batch.graphs[None]).scatter(1, positive[:, None], False)
    return float(((z @ z.T).masked_fill(others, -2).argmax(dim=1) == positive).float().mean())
