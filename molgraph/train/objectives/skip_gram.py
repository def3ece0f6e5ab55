"""Skip-gram with negative sampling: tell the environments near each one in a molecule from random ones."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.models.mol2vec import PRETRAIN, Mol2vec
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample

UNIFORM = "uniform"  # array of environments: float32 [rows, neighbours, negatives], from 0 to 1


@register(
    "objective",
    "skip-gram",
    systems=(
        SystemCard(
            "skip-gram",
            left_out="text; windows of random length, frequent words left out at random, phrases",
            off="-s params.objective.power=0",
            beside=("atom counts", "vectors without training"),
            command=f"{PRETRAIN} -o vectors.mgm",
            modules=("molgraph.models.mol2vec", "molgraph.chem.morgan_words"),
        ),
    ),
    summary="tell an environment's neighbours in a molecule from random environments (word2vec), for mol2vec",
    paper="Mikolov et al. 2013, NeurIPS",
)
class SkipGram(Objective):
    """Vectors of words by their neighbours, for the encoder ``mol2vec``.

    Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their Compositionality", equation 4: of
    each environment w and each neighbour c of at most ``window`` places before or after it, the loss is ``-log
    sigmoid(u_c . v_w) - sum_{j=1..k} log sigmoid(-u_{n_j} . v_w)``, where the k ``negatives`` n_j are drawn by
    ``P(n) ~ count(n)^power``. With power 1 its optimum is ``u_c . v_w = PMI(w, c) - log k`` (Levy and Goldberg 2014).
    The vectors u of contexts are left behind after training.

    Args:
        network: its encoder is ``mol2vec``.
        inputs: the one column of molecules that it reads.
        window: environments on either side, two of an atom.
        negatives: drawn for each neighbour.
        power: of the counts by which they are drawn.

    Raises:
        UnsupportedError: another encoder, or several columns.
    """

    labelled = False

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        window: Annotated[int, Range(1, 64)] = 10,
        negatives: Annotated[int, Range(1, 64)] = 5,
        power: NotNegative = 0.75,
    ) -> None:
        super().__init__()
        if len(inputs) != 1 or not isinstance(network.encoder, Mol2vec):
            raise UnsupportedError("skip-gram learns vectors of environments", hint="choose -m mol2vec")
        self.window, self.negatives, self.power = window, negatives, power
        self.contexts = nn.Embedding(len(network.encoder.counts), network.encoder.d_out)
        nn.init.zeros_(self.contexts.weight)

    def corrupt(self, batch: Sample, rng: np.random.Generator) -> Sample:
        """The batch with a random number for each negative."""
        (part,) = batch.parts
        shape = (len(part.batch["environment"]), 2 * self.window, self.negatives)
        drawn = torch.from_numpy(rng.random(shape, dtype=np.float32))
        made = copy(batch)
        made.parts = (part._replace(batch=part.batch.with_level("environment", **{UNIFORM: drawn})),)
        return made

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the pairs of neighbours."""
        graphs = batch.parts[0].batch
        assert batch.weights is not None
        graph, arrays = graphs.graph_of("environment"), graphs["environment"].arrays
        source, target, column = neighbours(graph, self.window)
        h = network.encoder.vectors(graphs)[source]
        weights = batch.weights[graph[source], 0]
        noise = drawn_words(network.encoder.counts, self.power, arrays[UNIFORM][source, column])
        near = (h * self.contexts(arrays["word"][target])).sum(dim=1)
        random = (self.contexts(noise) @ h.unsqueeze(2)).squeeze(2)
        losses = F.softplus(-near) + F.softplus(random).sum(dim=1)
        return Loss((losses * weights).sum(), int((weights > 0).sum()))


def neighbours(graph: Tensor, window: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs of rows of one graph, at most ``window`` places apart: both rows, int64 [pairs] each, and which place.

    ``graph``: int64 [n], the graph of each row.

    Example:
        >>> [each.tolist() for each in neighbours(torch.tensor([0, 0, 1]), 1)]
        [[0, 1], [1, 0], [1, 0]]
    """
    steps = torch.cat([torch.arange(-window, 0), torch.arange(1, window + 1)]).to(graph.device)
    target = torch.arange(len(graph), device=graph.device)[:, None] + steps
    inside = (target >= 0) & (target < len(graph))
    target = target.clamp(0, max(len(graph) - 1, 0))
    source, column = (inside & (graph[target] == graph[:, None])).nonzero(as_tuple=True)
    return source, target[source, column], column


def drawn_words(counts: Tensor, power: float, uniform: Tensor) -> Tensor:
    """The word that each random number from 0 to 1 stands for, where P(n) is proportional to ``counts^power``.

    Args:
        counts: float [words].
        power: of the counts.
        uniform: float, of any shape, which the words have too.
    """
    shares = torch.where(counts > 0, counts.double() ** power, 0.0).cumsum(dim=0)
    return torch.searchsorted(shares, uniform.double() * shares[-1], right=True).clamp(max=len(counts) - 1)
