"""No input; rates of D-MPNN training steps and inference of molgraph and of chemprop, measured in turn, out.

Both sides begin with batches that are ready: molgraph's time includes finding the rows that look alike (its
encoder's ``prepare``), which is done afresh for every batch; chemprop's graphs need no such step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from timing import in_turn
from torch import Tensor, nn

import molgraph.models  # noqa: F401 - registers the encoders
from molgraph.base.registry import get
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.featurize import featurize
from molgraph.data.graph_store import InputSpec
from molgraph.data.read import read_table
from molgraph.nn.perceptron import Perceptron

LISTS = {"NCI list": "builtin:nci", "CHEMBL2321810": "builtin:chembl2321810"}
FLOORS = {"training step": {"float32": 1.7, "bfloat16": 3.0}, "inference": {"float32": 2.4, "bfloat16": 4.5}}


class Ours(nn.Module):
    """molgraph's ``dmpnn`` and its head, at its default sizes, which are chemprop's."""

    def __init__(self, spec: InputSpec) -> None:
        super().__init__()
        self.encoder = get("encoder", "dmpnn")(spec)
        self.head = Perceptron(self.encoder.d_out)

    def forward(self, batch: GraphBatch) -> Tensor:
        """One value a graph."""
        return self.head(self.encoder(batch).graphs)


@dataclass(frozen=True)
class Case:
    """The same molecules as batches of both libraries, with targets."""

    ours: list[GraphBatch]
    theirs: list[Any]
    y: list[Tensor]

    @property
    def n(self) -> int:
        """Number of molecules."""
        return sum(len(y) for y in self.y)


def make_case(smiles: list[str], size: int, molecules: int) -> Case:
    """Shuffled batches of ``size`` molecules, about ``molecules`` of them in all."""
    from chemprop.data import BatchMolGraph
    from chemprop.featurizers import SimpleMoleculeMolGraphFeaturizer
    from rdkit import Chem

    store = featurize(smiles)
    rows = np.flatnonzero(store.status == "ok").tolist()
    random.Random(0).shuffle(rows)
    parts = [rows[i : i + size] for i in range(0, min(len(rows), max(molecules, size)) - size + 1, size)]
    peer = SimpleMoleculeMolGraphFeaturizer()
    theirs = [BatchMolGraph([peer(Chem.MolFromSmiles(smiles[i])) for i in part]) for part in parts]
    generator = torch.Generator().manual_seed(0)
    y = [torch.randn(len(part), 1, generator=generator) for part in parts]
    return Case([collate(store, np.array(part)) for part in parts], theirs, y)


def training(model: nn.Module, batches: list[Any], y: list[Tensor], bfloat16: bool) -> Callable[[], None]:
    """One pass over the batches: forward, mean squared error, backward, Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)

    def run() -> None:
        model.train()
        for batch, target in zip(batches, y, strict=True):
            optimiser.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                out = model(afresh(batch))
            (out.float() - target).square().mean().backward()
            optimiser.step()

    return run


def inference(model: nn.Module, batches: list[Any], y: list[Tensor], bfloat16: bool) -> Callable[[], None]:
    """One pass over the batches without gradients."""

    def run() -> None:
        model.eval()
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            for batch in batches:
                model(afresh(batch))

    return run


def afresh(batch: Any) -> Any:
    """The batch without what was made for it before."""
    return replace(batch, _made={}) if isinstance(batch, GraphBatch) else batch


def model_speed(sizes: tuple[int, ...] = (64,), molecules: int = 960, rounds: int = 7) -> dict[str, dict[str, Any]]:
    """Rows of the speed table: molecules a second of both libraries, their ratio and the floor asked for.

    The peer is chemprop in float32 in every row: bfloat16 is a choice that molgraph offers by name.
    """
    from chemprop.models import MPNN
    from chemprop.nn import BondMessagePassing, NormAggregation, RegressionFFN

    rows: dict[str, dict[str, Any]] = {}
    for name, source in LISTS.items():
        for size in sizes:
            case = make_case([str(text) for text in read_table(source).smiles], size, molecules)
            ours = Ours(MOLECULE_SPEC)
            theirs = MPNN(BondMessagePassing(), NormAggregation(), RegressionFFN(), batch_norm=False)
            for word, make in (("training step", training), ("inference", inference)):
                works = [make(ours, case.ours, case.y, low) for low in (False, True)]
                single, low, peer = in_turn([*works, make(theirs, case.theirs, case.y, False)], rounds)
                for precision, seconds in (("float32", single), ("bfloat16", low)):
                    rows[f"D-MPNN {word}, {precision}, {name}, batches of {size}"] = {
                        "molgraph": case.n / seconds,
                        "peer": case.n / peer,
                        "ratio": peer / seconds,
                        "floor": FLOORS[word][precision],
                        "peer_name": "chemprop (float32)",
                        "unit": "molecules/s",
                    }
    return rows
