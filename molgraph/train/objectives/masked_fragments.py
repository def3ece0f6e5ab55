"""Masked fragments: match each molecule from which a fragment is hidden with that fragment, among those of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import NotNegative, Positive, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.feature_layout import FEATURISER
from molgraph.data.subgraph import subgraphs
from molgraph.data.views.mask import hidden
from molgraph.nn.contrastive import Contrast, info_nce
from molgraph.train.adversary import same_running_means
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.objectives.masked_atoms import N_ELEMENTS, elements, whole
from molgraph.train.samples import Sample

KEY = "fragment"  # array of atoms: the number of the fragment that each hidden atom is of, -1 for others


@register(
    "objective",
    "masked-fragments",
    systems=(
        SystemCard(
            "infoword",
            left_out="text and the transformer; fragments of BRICS: they are the atoms around one",
            off="-s params.objective.weight=0",
            beside=("chance", "the encoder without training"),
            command="molgraph pretrain dataset:chembl2321810 -m gin --objective masked-fragments -o encoder.mgm",
            modules=("molgraph.nn.contrastive", "molgraph.data.subgraph"),
        ),
    ),
    summary="match molecules with the fragments that are hidden from them",
    paper="Kong et al. 2020, ICLR",
)
class MaskedFragments(Objective):
    """Mutual information of a fragment and the rest of its molecule, for pretraining an encoder of molecules.

    Kong et al. 2020, "A Mutual Information Maximization Perspective of Language Representation Learning" (InfoWord),
    equations 1 and 6: a fragment, all atoms within ``hops`` bonds of a random one, is masked with its bonds; the same
    encoder reads the rest and the fragment alone, and the loss is the InfoNCE of their vectors, whose negatives are the
    fragments of the other molecules, plus the cross-entropy of the elements of the masked atoms, which is InfoNCE with
    all elements as candidates. Fragments that are alike, and molecules of which nothing is left, do not count.

    The curves have ``bound``, the mutual information in nats that the batch shows, at most the log of its size.

    Args:
        network: its one encoder is trained; it must give the states of atoms.
        inputs: the one column of molecules that it reads.
        hops: bonds from the middle of a fragment to its ends.
        weight: of the InfoNCE beside the cross-entropy of elements, the paper's lambda.
        temperature: by which the cosines of two vectors are divided.
        d_score: width of those vectors, which are linear in those of the encoder.

    Raises:
        UsageError: the network reads something else, or its encoder gives no states of atoms.
    """

    labelled = False
    least_rows = 2
    unused_parameters = True

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        hops: Annotated[int, Range(0, 8)] = 1,
        weight: NotNegative = 1.0,
        temperature: Positive = 0.1,
        d_score: Width = 128,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "masked-fragments hides atoms of one column of molecules", FEATURISER)
        self.hops, self.weight, self.temperature = hops, weight, temperature
        self.rest, self.part = (nn.Linear(network.encoder.d_out, d_score) for _ in range(2))
        self.head = nn.Linear(network.encoder.d_rows, N_ELEMENTS)

    def corrupt(self, batch: Sample, rng: np.random.Generator) -> Sample:
        """The batch with a masked fragment in each molecule; ``y`` holds the elements of its atoms, in their order."""
        (part,) = batch.parts
        plain = part.batch
        atoms = plain["atom"]
        assert atoms.table is not None
        chosen = fragments(plain, self.hops, rng)
        keys = torch.full((len(atoms),), -1)
        keys[chosen] = torch.from_numpy(keys_of(plain, chosen))[plain.graph_of("atom")[chosen]]
        graphs = plain.with_level("atom", original=atoms.code, **{KEY: keys}).with_level(
            "bond", original=plain["bond"].code
        )
        cut = chosen[plain.source] | chosen[plain.target]
        graphs = hidden(hidden(graphs, "atom", chosen.nonzero()[:, 0]), "bond", cut.nonzero()[:, 0])
        sample = copy(batch)
        sample.y = elements(atoms.table)[atoms.code[chosen]]
        sample.parts = (part._replace(batch=graphs),)
        return sample

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the molecules of a batch."""
        (part,) = batch.parts
        assert batch.y is not None and batch.weights is not None
        graphs, weights = part.batch, batch.weights[:, 0]
        encoded = network.encoder(graphs, rows=True)
        (h,) = (states.h for states in encoded.rows if states.level == "atom")
        rows = (graphs["atom"].arrays[KEY] >= 0).nonzero()[:, 0]
        losses = F.cross_entropy(self.head(h.index_select(0, rows)).float(), batch.y, reduction="none")
        of_row, count = weights[graphs.graph_of("atom")[rows]], int((weights > 0).sum())
        guessed = (losses * of_row).sum() / of_row.sum().clamp(min=1e-9)
        contrast = self.contrast(network, encoded.graphs, graphs, weights > 0)
        parts = {
            "contrast": self.weight * contrast.loss * count,
            "elements": guessed * count,
            "bound": contrast.bound.detach() * count,
        }
        return Loss(parts["contrast"] + parts["elements"], count, parts).with_penalties(encoded.penalties)

    def contrast(self, network: Any, rest: Tensor, graphs: GraphBatch, counts: Tensor) -> Contrast:
        """InfoNCE of the molecules that count; zeros where fewer than one does.

        Args:
            network: its encoder reads the fragments.
            rest: float [g, d_out], the vectors of the molecules without their fragments.
            graphs: the masked batch.
            counts: bool [g], which molecules count.
        """
        keys, graph_of = graphs["atom"].arrays[KEY], graphs.graph_of("atom")
        key = keys.new_full((graphs.n_graphs,), -1).scatter_reduce(0, graph_of, keys, "amax")
        left = torch.bincount(graph_of[keys < 0], minlength=graphs.n_graphs) > 0
        use = (counts & left & (key >= 0)).nonzero()[:, 0]
        with same_running_means(network.encoder):  # those of molecules
            alone = network.encoder(subgraphs(whole(graphs), keys >= 0)).graphs
        if not len(use):
            nothing = (rest.sum() + alone.sum()) * 0.0
            return Contrast(nothing[None], nothing, nothing, nothing)
        same = key[use, None] == key[use]
        scores, positive = self.scores(rest[use], alone[use]), torch.arange(len(use), device=use.device)
        return info_nce(scores, positive, same, repeats=same.sum(dim=1))

    def scores(self, rest: Tensor, alone: Tensor) -> Tensor:
        """float [n, m]: the cosine of each molecule's and each fragment's vector, over the temperature."""
        a, b = F.normalize(self.rest(rest).float(), dim=1), F.normalize(self.part(alone).float(), dim=1)
        return a @ b.T / self.temperature


def fragments(batch: GraphBatch, hops: int, rng: np.random.Generator) -> Tensor:
    """bool [n]: which atoms are within so many bonds of a random atom of their graph."""
    offsets = batch["atom"].offsets.numpy()
    sizes = np.diff(offsets)
    inside = np.zeros(batch.n_atoms, dtype=bool)
    middle = offsets[:-1] + (rng.random(len(sizes)) * sizes).astype(np.int64)
    inside[middle[sizes > 0]] = True
    source, target = batch.source.numpy(), batch.target.numpy()
    for _ in range(hops):
        grown = inside.copy()
        grown[target[inside[source]]] = True
        inside = grown
    return torch.from_numpy(inside)


def keys_of(batch: GraphBatch, chosen: Tensor) -> np.ndarray:
    """int64 [g]: a number of each graph's chosen atoms, the same for those of the same atoms and bonds.

    Two fragments are alike where their kinds of atoms are, and those of their bonds with both ends.
    """
    cut = subgraphs(batch, chosen)
    code, kinds = cut["atom"].code.numpy(), cut["bond"].code.numpy()
    ends = np.stack([code[cut.source.numpy()], kinds, code[cut.target.numpy()]], axis=1)
    atoms, bonds, numbers = cut["atom"].offsets.tolist(), cut["bond"].offsets.tolist(), dict[Any, int]()
    keys = []
    for i in range(cut.n_graphs):
        key = sorted(code[atoms[i] : atoms[i + 1]].tolist()), sorted(ends[bonds[i] : bonds[i + 1]].tolist())
        keys.append(numbers.setdefault(repr(key), len(numbers)))
    return np.array(keys, dtype=np.int64)
