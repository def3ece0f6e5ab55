"""arch2vec: a variational graph autoencoder that rebuilds the bonds, bond types and elements of each molecule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from molgraph.base.ranges import NotNegative, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.feature_layout import FEATURISER
from molgraph.nn.variational import Gaussian, bounded, elbo, reparameterise
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.objectives.masked_atoms import N_BOND_TYPES, N_ELEMENTS, elements
from molgraph.train.samples import Sample

VALID_NOISE = 0  # seed of the points at which a validation part is judged


@register(
    "objective",
    "arch2vec",
    systems=(
        SystemCard(
            "arch2vec",
            left_out="the search of the paper; the vectors are the encoder's readout, not the means of the posterior",
            off="-s params.objective.beta=0.0",
            beside=("the encoder without training", "training from scratch"),
            command="molgraph pretrain dataset:chembl2321810 -m gin --objective arch2vec -o encoder.mgm",
            modules=("molgraph.nn.variational",),
        ),
    ),
    summary="rebuild each molecule's bonds and elements from latent vectors of its atoms",
    paper="Yan et al. 2020, NeurIPS; Kipf and Welling 2016, arXiv:1611.07308",
)
class Arch2Vec(Objective):
    """Evidence lower bound of a graph, for pretraining an encoder whose vectors a search can stand on.

    Yan et al. 2020, "Does Unsupervised Architecture Representation Learning Help Neural Architecture Search?": each
    atom has ``z_i ~ N(mu(h_i), sigma(h_i)^2)``; a bond has the probability ``sigmoid(z_i . z_j)``, an element
    ``softmax(W z_i + b)``, a type of bond ``softmax(V (z_i * z_j) + c)``, which depends on no direction. The loss is
    that of a molecule, with the encoder's penalties. ``molgraph embed`` gives the vectors of molecules, to be frozen
    and searched: ``pipelines/arch2vec/pool_search.py``. They are the encoder's readout, not the means of the posterior.

    Known limits: no gain over the encoder's random weights was seen in how distances follow Tanimoto's (Spearman 0.337
    beside 0.338), and a fine-tuning of 80 labels was worse than one from scratch; a search of a pool took 19.5 queries
    beside 28 of random weights, 15 of an encoder of logP and 56 of chance.

    Args:
        network: its one encoder is trained; it must give the states of atoms (the paper's is ``gin``).
        inputs: the one column of molecules that it reads.
        d_latent: width of an atom's latent vector.
        beta: weight of the divergence from the standard normal prior.

    Raises:
        UsageError: the network reads something else, or its encoder gives no states of atoms.
    """

    labelled = False
    unused_parameters = True  # those of a readout

    def __init__(
        self, network: Network, inputs: Sequence[Input], *, d_latent: Width = 16, beta: NotNegative = 0.1
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "arch2vec rebuilds the molecules of one column", FEATURISER)
        self.beta = beta
        self.posterior = nn.Linear(network.encoder.d_rows, 2 * d_latent)
        self.element, self.bond_type = nn.Linear(d_latent, N_ELEMENTS), nn.Linear(d_latent, N_BOND_TYPES)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the molecules of a batch."""
        graphs = batch.parts[0].batch
        encoded = network.encoder(graphs, rows=True)
        (h,) = (states.h for states in encoded.rows if states.level == "atom")
        mean, log_variance = self.posterior(h).float().chunk(2, dim=1)
        q = Gaussian(mean, bounded(log_variance))
        rng = None if state.training else torch.Generator(mean.device).manual_seed(VALID_NOISE)
        z = reparameterise(q.mean, q.log_variance, generator=rng)
        atoms, bonds, graph_of = graphs["atom"], graphs["bond"], graphs.graph_of("atom")
        assert atoms.table is not None and bonds.table is not None and batch.weights is not None
        target = elements(atoms.table)[atoms.code.long()]
        of_atom = elbo(-F.cross_entropy(self.element(z), target, reduction="none"), q, beta=self.beta)
        pair = z[graphs.source] * z[graphs.target]
        types = bonds.table[:, :N_BOND_TYPES].argmax(dim=1)[bonds.code.long()]
        of_bond = -0.5 * F.cross_entropy(self.bond_type(pair), types, reduction="none")  # each has two directions
        links = self._links(z, graphs)
        total = torch.zeros(graphs.n_graphs, device=z.device).index_add(0, graph_of, of_atom.elbo)
        total = total.index_add(0, graph_of[graphs.target], of_bond) - links
        weights = batch.weights[:, 0]
        kl = torch.zeros_like(total).index_add(0, graph_of, of_atom.kl.sum(dim=1))
        parts = {"bonds": (links * weights).sum(), "kl": (kl * weights).sum()}
        loss = Loss(-(total * weights).sum(), int((weights > 0).sum()), parts)
        return loss.with_penalties(encoded.penalties)

    def scores(self, z: Sequence[Tensor]) -> Tensor:
        """float [molecules, most atoms, most atoms]: ``z_i . z_j`` of each pair of atoms, 0 where there is no atom."""
        dense = pad_sequence(list(z), batch_first=True)
        return dense @ dense.transpose(1, 2)

    def _links(self, z: Tensor, graphs: Any) -> Tensor:
        """float [molecules]: ``-log p`` of which pairs of different atoms are bonded, each pair once."""
        offsets = graphs["atom"].offsets
        counts = offsets.diff()
        scores = self.scores(z.split(counts.tolist()))
        bonded, row = torch.zeros_like(scores), graphs.graph_of("atom")
        place = torch.arange(len(z), device=z.device) - offsets[row]
        bonded[row[graphs.source], place[graphs.source], place[graphs.target]] = 1.0
        there = torch.arange(scores.shape[1], device=z.device) < counts[:, None]
        pairs = (there[:, :, None] & there[:, None, :]).triu(diagonal=1)
        losses = F.binary_cross_entropy_with_logits(scores, bonded, reduction="none")
        return (losses * pairs).sum(dim=(1, 2))
