"""Contrast several descriptions of one molecule, such as its graph, its SMILES and its conformers, with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, Positive, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.encoder import Encoded
from molgraph.nn.matching import mil_nce
from molgraph.nn.perceptron import Perceptron
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.row_groups import RowGroups
from molgraph.train.samples import Sample, Samples

PART = "views"  # its name among a network's parts
D_USUAL = 64


class Bags(RowGroups):
    """The rows of one entity of the first column together, as those of the conformers of a molecule.

    Args:
        samples: the rows.
        n_groups: entities of a batch.
        most: rows of one in a batch, drawn at random where it has more.
    """

    def __init__(self, samples: Samples, n_groups: int, most: int) -> None:
        super().__init__(samples, n_groups)
        first = samples.graph[: len(samples), 0]
        order = np.argsort(first, kind="stable")
        self.bags, self.most = np.split(order, np.flatnonzero(np.diff(first[order])) + 1), most

    @property
    def count(self) -> int:
        """How many entities there are."""
        return len(self.bags)

    def rows(self, group: int, rng: np.random.Generator) -> np.ndarray:
        """int64: rows of one entity."""
        bag = self.bags[group]
        return bag if len(bag) <= self.most else rng.choice(bag, self.most, replace=False)


@register(
    "objective",
    "views",
    systems=(
        SystemCard(
            "vatt",
            left_out="video, sound and texts; DropToken, in whose place a view such as drop stands; one backbone for "
            "all kinds; the spaces of the pairs, which form a hierarchy there, are one",
            off="match",
            beside=("chance", "shuffled pairs"),
            command="molgraph pretrain dataset:davis -m dmpnn+tokens --objective views -o encoder.mgm",
            modules=("molgraph.nn.matching", "molgraph.train.row_groups"),
        ),
    ),
    summary="each description of a molecule finds its others: MIL-NCE of graph, SMILES, conformers",
    paper="Akbari et al. 2021, NeurIPS",
)
class Views(Objective):
    """MIL-NCE between the columns of a table, each of which describes the same thing in its own way.

    Akbari et al. 2021, "VATT: Transformers for Multimodal Self-Supervised Learning from Raw Video, Audio and Text":
    every column has an encoder of its own and a projection to one space, where the score of two is their cosine over
    the temperature. The entity of the first column is the anchor, and those of another column that stand in a row with
    it are its bag of positives, of which any may be the relevant one: with one, as SMILES and graph, that is InfoNCE,
    with several, as the conformers of a molecule, MIL-NCE (``nn.matching.mil_nce``). Each pair of columns with the
    first counts in both directions.

    A table has a row for each conformer, and its other columns repeat. Rows of one molecule come in one batch.

    Args:
        network: its encoders are trained, ``-m gin+tokens`` or ``-m gin+tokens+schnet``.
        inputs: the columns that it reads, two or more.
        temperature: of the cosines.
        width: of the space.
        bag: rows of one molecule in a batch.

    Raises:
        UnsupportedError: the network reads one column.
    """

    labelled = False
    least_rows = 2
    unused_parameters = True  # those of a joiner
    small = MappingProxyType({"width": 8})

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        temperature: Positive = 0.1,
        width: Width = D_USUAL,
        bag: Count = 4,
    ) -> None:
        super().__init__()
        if len(inputs) < 2:
            words = f"views compares columns that describe one thing, and the model reads one: {inputs[0].column}"
            raise UnsupportedError(words, hint="name several encoders: -m gin+tokens, with a column for each")
        self.temperature, self.bag = temperature, bag

    @classmethod
    def network_parts(cls, network: Network, *, width: int = D_USUAL, **_: Any) -> Mapping[str, nn.Module]:
        """A projection of each column."""
        return {PART: nn.ModuleList(Perceptron(e.d_out, e.d_out, width) for e in network.encoders)}

    def sampler(self, samples: Samples, batch_size: int, *, judged: bool = False) -> Bags | None:
        """Rows of one molecule together; None where each has one row, and where a part is judged."""
        bags = Bags(samples, batch_size, self.bag)
        longest = max(map(len, bags.bags), default=1)
        bags.n_groups = max(batch_size // min(longest, self.bag), 2)
        return None if longest == 1 else bags

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the rows of a batch of the mean loss of an anchor."""
        assert batch.weights is not None
        encoded, n = network.encode(batch), len(batch.weights)
        z = view_vectors(network, encoded)
        of_row = [torch.arange(n, device=z[0].device) if p.of_row is None else p.of_row for p in batch.parts]
        losses = dict[str, Tensor]()
        for k in range(1, len(z)):
            together = torch.zeros(len(z[0]), len(z[k]), dtype=torch.bool, device=z[0].device)
            together[of_row[0], of_row[k]] = True
            scores = z[0] @ z[k].T / self.temperature
            both = mil_nce(scores, together).mean() + mil_nce(scores.T, together.T).mean()
            losses[f"view_{k + 1}"] = both / 2 * n
        penalties = [part.penalties for part in encoded]
        loss = Loss(torch.stack([*losses.values()]).sum(), n, losses)
        for part in penalties:
            loss = loss.with_penalties(part)
        return loss


def view_vectors(network: Network, encoded: Sequence[Encoded]) -> list[Tensor]:
    """The vectors of length 1 of each column's entities in the common space, float [n_k, width].

    Args:
        network: of a model pretrained by ``views``.
        encoded: as ``network.encode`` gives.

    Raises:
        UnsupportedError: the model has no such space.
    """
    if PART not in network.parts:
        words = "the model has no space that its columns share"
        raise UnsupportedError(words, hint="pretrain one: molgraph pretrain LIB -m gin+tokens --objective views")
    projections: Any = network.parts[PART]
    return [F.normalize(change(e.graphs.float()), dim=1) for change, e in zip(projections, encoded, strict=True)]
