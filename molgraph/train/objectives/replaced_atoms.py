"""Replaced atoms: a small generator fills masked atoms, and the encoder says of every atom whether it was replaced."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import NotNegative, Positive, Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.feature_layout import FEATURISER
from molgraph.data.views.mask import chosen_rows, hidden
from molgraph.nn.second_encoder import atom_states, second_encoder
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample

UNIFORM = "uniform"  # the array of atoms with a random number each, by which kinds are drawn


class Filled(NamedTuple):
    """A batch in which drawn atoms stand for the masked ones.

    Args:
        graphs: the batch.
        rows: int64 [m], its atoms that were masked.
        scores: float [m, kinds], the generator's scores of all kinds of atoms for those.
        replaced: bool [n], of all atoms, whether the kind is another one than the molecule's.
    """

    graphs: GraphBatch
    rows: Tensor
    scores: Tensor
    replaced: Tensor


@register(
    "objective",
    "replaced-atoms",
    systems=(
        SystemCard(
            "electra",
            left_out="tokens and the transformer; embeddings that generator and discriminator share",
            off="masked-atoms",
            beside=("how rare an atom is among those with as many bonds", "the encoder without training"),
            command="molgraph pretrain dataset:chembl2321810 -m gin --objective replaced-atoms -o encoder.mgm",
            modules=("molgraph.data.views.mask", "molgraph.nn.second_encoder"),
        ),
    ),
    summary="tell atoms that a small generator put in from those of the molecule",
    paper="Clark et al. 2020, ICLR",
)
class ReplacedAtoms(Objective):
    """Replaced token detection on atoms, for pretraining an encoder of molecules.

    Clark et al. 2020, "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators", equations 1 to 3:
    ``int(rate n) + 1`` of the n atoms of each molecule are masked; a generator G gives each a distribution over all
    kinds of atoms, ``p(x) = softmax(e(x) . W h_G)``, and one drawn from it takes its place; the encoder D says of every
    atom whether it is the molecule's, ``sigmoid(w . h_D)``. The loss is
    ``-log p_G(x)`` of the masked atoms + ``weight`` x the cross-entropy of all atoms, each the mean over its atoms. An
    atom that is drawn as it was counts as the molecule's. Drawing lets no gradient pass from D to G.

    A kind of atom is a row of features (element, bonds, charge, hydrogens, hybridisation, aromaticity) of the table
    that a batch comes from. Most atoms of a molecule are few kinds of carbon, so a good generator draws many as they
    were: ``train_replaced`` in the curves is the share of the masked atoms that were replaced, and a higher
    ``temperature`` raises it.

    Args:
        network: its one encoder is the discriminator, and is kept; it must give the states of atoms.
        inputs: the one column of molecules that it reads.
        rate: share of the atoms that are masked.
        generator: a registered encoder with its settings; the paper's has a quarter to half of D's width.
        weight: of the discriminator's loss, the paper's lambda.
        temperature: by which the generator's scores are divided where atoms are drawn; 1 in the paper.

    Raises:
        UsageError: the network reads something else, or its encoder, or the generator, gives no states of atoms.
    """

    labelled = False
    unused_parameters = True  # those of readouts

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        rate: Share = 0.15,
        generator: str = 'gin(d_hidden=64, depth=3, norm="none")',
        weight: NotNegative = 50.0,
        temperature: Positive = 1.0,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "replaced-atoms replaces the atoms of one column of molecules", FEATURISER)
        self.rate, self.weight, self.temperature = rate, weight, temperature
        self.generator = second_encoder(generator, inputs[0].spec, "replaced-atoms has a generator")
        width = inputs[0].spec.width("atom")
        self.kind = nn.Linear(width, self.generator.d_rows)
        self.guess = nn.Linear(self.generator.d_rows, self.generator.d_rows)
        self.head = nn.Linear(network.encoder.d_rows, 1)

    def corrupt(self, batch: Sample, rng: np.random.Generator) -> Sample:
        """The batch with masked atoms and a random number each; ``y`` has the masked kinds, in their order."""
        (part,) = batch.parts
        atoms = part.batch["atom"]
        rows = chosen_rows(atoms.offsets.numpy(), self.rate, rng)
        sample = copy(batch)
        sample.y = atoms.code[rows]
        uniform = torch.from_numpy(rng.random(len(atoms)))
        sample.parts = (part._replace(batch=hidden(part.batch, "atom", rows).with_level("atom", **{UNIFORM: uniform})),)
        return sample

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the masked atoms, to each of which the mean over all atoms is added."""
        (part,) = batch.parts
        assert batch.y is not None and batch.weights is not None
        graphs = part.batch
        filled, rows, scores, replaced = self.fill(graphs, batch.y)
        encoded = network.encoder(filled, rows=True)
        judged = self.head(atom_states(encoded))[:, 0].float()
        terms = F.binary_cross_entropy_with_logits(judged, replaced.float(), reduction="none")
        weights, graph_of = batch.weights[:, 0], graphs.graph_of("atom")
        of_atom, of_masked = weights[graph_of], weights[graph_of[rows]]
        count = int((of_masked > 0).sum())
        generated = (F.cross_entropy(scores, batch.y, reduction="none") * of_masked).sum()
        discriminated = (terms * of_atom).sum() / (of_atom > 0).sum().clamp(min=1) * count
        parts = {
            "generator": generated,
            "discriminator": self.weight * discriminated,
            "replaced": (replaced[rows] * (of_masked > 0)).sum().float(),
        }
        total = generated + self.weight * discriminated
        return Loss(total, count, parts).with_penalties(encoded.penalties)

    def fill(self, graphs: GraphBatch, original: Tensor) -> Filled:
        """Draw a kind for each masked atom of a batch.

        Args:
            graphs: as ``corrupt`` gives it.
            original: int64 [m], the kinds of the masked atoms.
        """
        atoms = graphs["atom"]
        assert atoms.table is not None
        rows = torch.eq(atoms.code, len(atoms.table) - 1).nonzero().squeeze(1)
        h = atom_states(self.generator(graphs, rows=True)).index_select(0, rows)
        scores = (self.guess(h) @ self.kind(atoms.table[:-1]).T).float()
        kinds = self.draw(scores, atoms.arrays[UNIFORM][rows])
        filled = graphs.with_level("atom", code=atoms.code.index_copy(0, rows, kinds), table=atoms.table[:-1])
        return Filled(filled, rows, scores, self.labels(atoms.code.index_copy(0, rows, original), filled["atom"].code))

    def draw(self, scores: Tensor, uniform: Tensor) -> Tensor:
        """int64 [m]: a kind of each masked atom, of scores [m, kinds], by random numbers [m] from 0 to 1."""
        below = (scores.detach().double() / self.temperature).softmax(dim=1).cumsum(dim=1)
        return torch.searchsorted(below, uniform[:, None] * below[:, -1:], right=True)[:, 0].clamp(
            max=below.shape[1] - 1
        )

    def labels(self, original: Tensor, filled: Tensor) -> Tensor:
        """bool [n]: which atoms were replaced, those whose kind is another one than the molecule's."""
        return original != filled
