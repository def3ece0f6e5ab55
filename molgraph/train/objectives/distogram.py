"""Distogram: pretrain an encoder of molecules by the distances of their atoms in space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import BadValueError
from molgraph.base.parameters import check_params
from molgraph.base.ranges import Positive, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.chem.distance_geometry import DistanceBins
from molgraph.data.batch import GraphBatch
from molgraph.data.position_labels import POSITION
from molgraph.nn.atom_pairs import atom_pairs
from molgraph.nn.distogram import DistogramHead
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample

HEAD = "distogram"  # its name among a network's parts
Bins = Annotated[int, Range(2, 512)]


@register(
    "objective",
    "distogram",
    systems=(
        SystemCard(
            "alphafold-1",
            left_out="alignments, the convolution over pairs and its crops, torsions and their potential, the "
            "reference distribution and Rosetta's score: distances between the atoms of one molecule, from a 2D graph",
            off="masked-atoms",
            beside=("the marginal by elements and hops", "RDKit's ETKDG"),
            command="molgraph pretrain dataset:chembl2321810 -m dmpnn --objective distogram -o encoder.mgm",
            modules=("molgraph.nn.distogram", "molgraph.nn.atom_pairs", "molgraph.chem.distance_geometry"),
        ),
    ),
    summary="predict the binned distances of atoms in a conformer",
    paper="Senior et al. 2020, Nature 577:706",
)
class Distogram(Objective):
    """Cross-entropy of the bins of distances between all pairs of atoms of a molecule.

    Senior et al. 2020, "Improved protein structure prediction using potentials from deep learning": a network predicts
    for each pair a histogram of 64 bins of its distance, trained by cross-entropy to the bin of the structure. Here the
    pair's logits come from both atoms' states (``nn.distogram.DistogramHead``), and the structure is one conformer of
    RDKit's ETKDG, or the positions of the table's own column of atoms in space, of all atoms that the graph has, which
    leaves hydrogens out. The head is kept with the encoder: ``molgraph conformers`` makes coordinates of it.

    Args:
        network: its one encoder is trained; it must give the states of atoms.
        inputs: the one column of molecules that it reads.
        n_bins: bins.
        first, last: where the first bin begins and the last one ends, in angstrom; the end bins hold what is beyond.
        d_pair: width of a pair's state.

    Raises:
        UsageError: the network reads something else, or its encoder gives no states of atoms.
    """

    labelled = False
    unused_parameters = True  # those of a readout
    arrays = (POSITION,)

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        n_bins: Bins = 64,
        first: Positive = 1.0,
        last: Positive = 11.0,
        d_pair: Width = 128,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "distogram learns the distances of atoms of one column of molecules")
        check_molecules(inputs)
        bins_of(first, last, n_bins)

    @classmethod
    def parts(cls, encoder: Any, **settings: Any) -> Mapping[str, nn.Module]:
        """The head."""
        check_params(cls, settings, owner="distogram")
        return {HEAD: make_head(encoder, **settings)}

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum of the cross-entropies of the pairs whose distance is known."""
        (part,) = batch.parts
        encoded = network.encoder(part.batch, rows=True)
        (h,) = (states.h for states in encoded.rows if states.level == "atom")
        total, count = pair_losses(network.parts[HEAD], h, part.batch)
        return Loss(total, count).with_penalties(encoded.penalties)


def make_head(
    encoder: Any, *, n_bins: int = 64, first: float = 1.0, last: float = 11.0, d_pair: int = 128
) -> DistogramHead:
    """The head for an encoder's states of atoms; one of width 1 where it gives none, which is refused later."""
    return DistogramHead(encoder.d_rows or 1, bins_of(first, last, n_bins), d_pair)


def bins_of(first: float, last: float, n: int) -> DistanceBins:
    """The bins; ``BadValueError`` where the last one ends before the first begins."""
    if last <= first:
        raise BadValueError(f"bins from {first:g} to {last:g} angstrom", hint="give last a larger value than first")
    return DistanceBins(first, last, n)


def check_molecules(inputs: Sequence[Input]) -> None:
    """Refuse a column of something else than molecules, which have conformers."""
    if (kind := inputs[0].kind) != "molecule":
        words = f"distances are learned of the atoms of molecules, and {inputs[0].column!r} holds a {kind}"
        raise BadValueError(words, hint="name a column of SMILES")


def pair_losses(head: DistogramHead, h: Tensor, batch: GraphBatch) -> tuple[Tensor, int]:
    """The sum of the cross-entropies of a batch's pairs, and how many there are; 0 and 1 where there is none."""
    pairs = atom_pairs(batch)
    labels = head.labels(batch["atom"].arrays[POSITION], pairs)
    losses = F.cross_entropy(head(h, pairs).float(), labels, reduction="none", ignore_index=-1)
    return losses.sum(), max(int((labels >= 0).sum()), 1)
