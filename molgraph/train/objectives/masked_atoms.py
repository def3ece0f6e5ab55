"""Masked atoms: hide the features of some atoms of each molecule and predict their elements, or learned codes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.feature_layout import ATOM_BLOCKS, FEATURISER
from molgraph.data.views.mask import chosen_rows, hidden
from molgraph.nn.atom_tokens import AtomTokeniser
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample

N_ELEMENTS = ATOM_BLOCKS[0]
N_BOND_TYPES = 5  # the first columns of a bond: null, single, double, triple, aromatic
MASKED, REPLACED = 0.8, 0.1  # of the chosen atoms; the others keep their features
CHOSEN, ORIGINAL = "chosen", "original"  # arrays of a masked batch: which atoms are predicted, the codes before
PRETRAIN = "molgraph pretrain dataset:chembl2321810 -m gin --objective masked-atoms"
TOKENS = ("molgraph.nn.atom_tokens", "molgraph.nn.codebook", "molgraph.nn.bottlenecks.vq")


@register(
    "objective",
    "masked-atoms",
    systems=(
        SystemCard("attribute-masking"),
        SystemCard(
            "bert",
            left_out="tokens and the transformer, the next sentence",
            off="-s params.objective.replace=false -s params.objective.bonds=false",
            beside=("the most common element",),
            command=f"{PRETRAIN} -s params.objective.replace=true -s params.objective.bonds=true -o encoder.mgm",
            modules=("molgraph.data.views.mask",),
            part=True,
        ),
        SystemCard(
            "vq-vae",
            left_out="images and sound, a prior of the codes",
            off="-s params.objective.targets=elements",
            beside=("elements as targets",),
            command=f'{PRETRAIN} -s "params.objective.targets=vq(512)" -o encoder.mgm',
            modules=TOKENS,
        ),
        SystemCard(
            "vq-vae-2",
            left_out="images, PixelSNAIL as the prior, rejection by a classifier: atoms and their fragments",
            off='-s "params.objective.targets=vq(512)"',
            beside=("one level", "elements as targets"),
            command=f'{PRETRAIN} -s "params.objective.targets=vq(512,levels=2)" -o encoder.mgm',
            modules=("molgraph.nn.ring_chains", *TOKENS),
        ),
    ),
    summary="predict the elements, or learned codes, of masked atoms",
    paper="Hu et al. 2020, ICLR; Devlin et al. 2019, NAACL; Xia et al. 2023, ICLR",
)
class MaskedAtoms(Objective):
    """Attribute masking, for pretraining an encoder of molecules.

    Hu et al. 2020, "Strategies for Pre-training Graph Neural Networks": ``int(rate n) + 1`` of the n atoms of each
    molecule lose all their features (a row of zeros, which no atom has, is their mask), and a linear layer on an
    atom's state predicts its element: ``-log softmax(W h_v + b)_element(v)``, the mean over
    masked atoms; the encoder's penalties are added.

    ``replace`` is BERT's (Devlin et al. 2019, section 3.1): of the chosen atoms 80% are masked, 10% have the features
    of another atom of the batch, 10% keep theirs, and all are predicted. ``bonds``: the bonds of masked atoms lose
    their features too, since an aromatic or a triple bond tells of an element, and their types (none, single,
    double, triple, aromatic) are predicted from the sum of both atoms' states; the mean over them is added.

    ``targets="vq(512)"``: in the place of elements, of which most are carbon, codes that an autoencoder gives atoms in
    their surroundings (``nn.atom_tokens``; Xia et al. 2023, "Mole-BERT"), and with ``vq(512, levels=2)`` those of their
    fragments too. The autoencoder learns in the first ``vocabulary`` of the training, and its codes stay then.

    Args:
        network: its one encoder is trained; it must give the states of atoms.
        inputs: the one column of molecules that it reads.
        rate: share of the atoms that are masked.
        targets: ``elements``, or a registered bottleneck of codes with its settings.
        replace: whether some of the chosen atoms are not masked.
        bonds: whether bonds of masked atoms are masked and predicted.
        tokeniser: a registered encoder with its settings, whose states of atoms are coded.
        vocabulary: share of the training in which codes are learned.

    Raises:
        UsageError: the network reads something else, or its encoder gives no states of atoms, or targets are no codes.
    """

    labelled = False
    unused_parameters = True  # those of a readout

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        rate: Share = 0.15,
        targets: str = "elements",
        replace: bool = False,
        bonds: bool = False,
        tokeniser: str = 'gin(d_hidden=64, depth=2, norm="none")',
        vocabulary: Share = 0.3,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "masked-atoms masks the atoms of one column of molecules", FEATURISER)
        self.rate, self.replace, self.vocabulary = rate, replace, vocabulary
        self.tokens = None if targets == "elements" else AtomTokeniser(targets, inputs[0].spec, tokeniser)
        self.columns = 1 if self.tokens is None else self.tokens.quantiser.n_columns
        n = N_ELEMENTS if self.tokens is None else self.tokens.quantiser.n_codes
        self.head = nn.Linear(network.encoder.d_rows, n * self.columns)
        self.bond_head = nn.Linear(network.encoder.d_rows, N_BOND_TYPES) if bonds else None

    def corrupt(self, batch: Sample, rng: np.random.Generator) -> Sample:
        """The batch with masked atoms; ``y`` holds the elements of the chosen ones, in the order of the atoms."""
        (part,) = batch.parts
        atoms = part.batch["atom"]
        assert atoms.table is not None
        rows = chosen_rows(atoms.offsets.numpy(), self.rate, rng)
        masks, others = bert_masks(rows, self.replace, rng)
        drawn = atoms.code[torch.from_numpy(rng.integers(len(atoms), size=len(others)))] if len(others) else others
        graphs = hidden(part.batch, "atom", masks)
        code = graphs["atom"].code.index_copy(0, others, drawn)
        chosen = torch.zeros(len(atoms), dtype=torch.bool).index_fill(0, rows, True)
        graphs = graphs.with_level("atom", code=code, **{CHOSEN: chosen, ORIGINAL: atoms.code})
        if self.bond_head is not None:
            mask = torch.zeros(len(atoms), dtype=torch.bool).index_fill(0, masks, True)
            graphs = graphs.with_level("bond", **{ORIGINAL: graphs["bond"].code})
            graphs = hidden(graphs, "bond", (mask[graphs.source] | mask[graphs.target]).nonzero()[:, 0])
        sample = copy(batch)
        sample.y = elements(atoms.table)[atoms.code[rows]]
        sample.parts = (part._replace(batch=graphs),)
        return sample

    def warming_up(self, state: StepState) -> bool:
        """Whether the codes are not yet what they will be."""
        return self.tokens is not None and state.progress < self.vocabulary

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum of the cross-entropies of the chosen atoms."""
        (part,) = batch.parts
        assert batch.y is not None and batch.weights is not None
        graphs, weights = part.batch, batch.weights[:, 0]
        rows = graphs["atom"].arrays[CHOSEN].nonzero()[:, 0]
        encoded = network.encoder(graphs, rows=True)
        (h,) = (states.h for states in encoded.rows if states.level == "atom")
        of_row = weights[graphs.graph_of("atom")[rows]]
        count = int((of_row > 0).sum())
        labels, parts = batch.y[:, None], dict[str, Tensor]()
        if self.tokens is not None:
            code, missed = self._codes(graphs, weights, state)
            labels, parts["vocabulary"] = code[rows], missed * count
        scores = self.head(h.index_select(0, rows)).float().unflatten(1, (self.columns, -1))
        losses = F.cross_entropy(scores.transpose(1, 2), labels, reduction="none").sum(dim=1)
        if self.bond_head is not None:
            parts["bonds"] = self._bonds(graphs, h, weights) * count
        return Loss(sum(parts.values(), (losses * of_row).sum()), count, parts).with_penalties(encoded.penalties)

    def _codes(self, graphs: GraphBatch, weights: Tensor, state: StepState) -> tuple[Tensor, Tensor]:
        """The codes of all atoms, and the mean loss of the autoencoder while it learns; 0 later."""
        assert self.tokens is not None
        learning = state.training and state.progress < self.vocabulary
        self.tokens.train(learning)
        with torch.set_grad_enabled(learning):
            code, losses = self.tokens(whole(graphs))
            of_atom = weights[graphs.graph_of("atom")]
            return code, (losses * of_atom).sum() / of_atom.sum().clamp(min=1) * learning

    def _bonds(self, graphs: GraphBatch, h: Tensor, weights: Tensor) -> Tensor:
        """The mean cross-entropy of the types of masked bonds, each of which counts once; 0 where there are none."""
        assert self.bond_head is not None
        bonds = graphs["bond"]
        assert bonds.table is not None
        rows = ((bonds.code == len(bonds.table) - 1) & (graphs.source < graphs.target)).nonzero()[:, 0]
        source, target = graphs.source[rows], graphs.target[rows]
        labels = bonds.table[:-1, :N_BOND_TYPES].argmax(dim=1)[bonds.arrays[ORIGINAL][rows]]
        losses = F.cross_entropy(self.bond_head(h[source] + h[target]).float(), labels, reduction="none")
        of_bond = weights[graphs.graph_of("atom")[source]]
        return (losses * of_bond).sum() / of_bond.sum().clamp(min=1)


def bert_masks(rows: Tensor, replace: bool, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Of some rows, int64 [n], those to mask and those to replace by others: all and none where `replace` is False."""
    if not replace:
        return rows, rows[:0]
    u = torch.from_numpy(rng.random(len(rows)))
    return rows[u < MASKED], rows[(u >= MASKED) & (u < MASKED + REPLACED)]


def whole(graphs: GraphBatch) -> GraphBatch:
    """A masked batch without its masks."""
    for level in ("atom", "bond"):
        batch_level = graphs[level]
        if ORIGINAL in batch_level.arrays:
            assert batch_level.table is not None
            graphs = graphs.with_level(level, code=batch_level.arrays[ORIGINAL], table=batch_level.table[:-1])
    return graphs


def elements(table: Tensor) -> Tensor:
    """int64 [n]: the place of each feature row's element among ``N_ELEMENTS``: 0 for H, ..., the last for others.

    Example:
        >>> from molgraph.data.featurize import featurize
        >>> store = featurize(["CO"])
        >>> elements(torch.from_numpy(store.tables["atom"]))[store.levels["atom"].arrays["code"].astype(int)].tolist()
        [5, 7]
    """
    return table[:, :N_ELEMENTS].argmax(dim=1)
