"""Match residues of a protein or pocket with atoms of its ligand, for pretraining two encoders together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Positive, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.contrastive import info_nce
from molgraph.nn.encoder import Encoded, Rows
from molgraph.nn.matching import attention_scores, padded
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample

PART = "match"  # its name among a network's parts


class Matcher(nn.Module):
    """Vectors of rows and of graphs of two columns in one space, and how well each of one matches each of the other.

    Args:
        d_rows, d_out: widths of the rows' and of the graphs' states of both columns.
        d: width of the space.
        gamma_1, gamma_2: of ``attention_scores``.
    """

    def __init__(
        self, d_rows: Sequence[int], d_out: Sequence[int], d: int, gamma_1: float = 5.0, gamma_2: float = 5.0
    ) -> None:
        super().__init__()
        self.gammas = gamma_1, gamma_2
        self.rows = nn.ModuleList(nn.Linear(width, d) for width in d_rows)
        self.graphs = nn.ModuleList(nn.Linear(width, d) for width in d_out)

    def forward(self, encoded: Sequence[Encoded], words: int) -> tuple[Tensor, Tensor]:
        """float [n, m] twice: scores of n proteins and m ligands by rows, and by the cosine of whole graphs.

        Args:
            encoded: of both columns, with the states of rows.
            words: the number of the column of proteins.
        """
        dense, whole = list[Any](), list[Tensor]()
        for k in (words, 1 - words):
            output, rows = encoded[k], rows_of(encoded[k])
            h = F.normalize(self.rows[k](rows.h.float()), dim=1)
            dense.append(padded(h, rows.graph_of, len(output.graphs)))
            whole.append(F.normalize(self.graphs[k](output.graphs.float()), dim=1))
        (a, in_a), (b, in_b) = dense
        return attention_scores(a, in_a, b, in_b, *self.gammas), whole[0] @ whole[1].T


def row_width(encoder: Any) -> int:
    """Width of the states of atoms or tokens; 0 where an encoder gives none."""
    return int(getattr(encoder, "d_tokens", encoder.d_rows))


def rows_of(encoded: Encoded) -> Rows:
    """The states of tokens or atoms."""
    return next(rows for rows in encoded.rows if rows.level in ("atom", "token"))


@register(
    "objective",
    "match",
    systems=(
        SystemCard(
            "attngan-damsm",
            left_out="the stages of the adversarial network and its pictures; captions: residues are the words here, "
            "and atoms of the ligand the regions",
            off="views",
            beside=("the cosine of pooled states", "chance"),
            command="molgraph pretrain dataset:davis -m dmpnn+tokens --objective match -o encoder.mgm",
            modules=("molgraph.nn.matching",),
        ),
    ),
    summary="residues of a protein attend to atoms of its ligand: DAMSM",
    paper="Xu et al. 2018, CVPR",
)
class Match(Objective):
    """DAMSM between a protein's residues and the atoms of its ligand.

    Xu et al. 2018, "AttnGAN: Fine-Grained Text to Image Generation with Attentional Generative Adversarial Networks",
    section 3.2: ``P(D_i | Q_i) = softmax_i(gamma_3 R(Q, D))`` over the batch, R being the attention-driven score of
    rows (``nn.matching.attention_scores``) and, beside it, the cosine of whole graphs; the loss is ``-log P`` in both
    directions of both, equations 11 to 13. Rows of the batch with the same protein or the same ligand are no negatives
    of each other.

    Args:
        network: its two encoders are trained; both must give the states of rows.
        inputs: a column of proteins and one of molecules, in any order; of two others the second has the words.
        gamma_1, gamma_2: of the attention, and of the pooling over residues.
        gamma_3: inverse temperature of both scores.
        width: of the space.

    Raises:
        UnsupportedError: other columns, or an encoder that gives no states of rows.
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
        gamma_1: Positive = 5.0,
        gamma_2: Positive = 5.0,
        gamma_3: Positive = 10.0,
        width: Width = 64,
    ) -> None:
        super().__init__()
        if len(inputs) != 2:
            read = ", ".join(f"{input_.column} ({input_.kind})" for input_ in inputs)
            words = f"match reads two columns, such as proteins and their ligands, and the model reads {read}"
            raise UnsupportedError(words, hint="choose -m dmpnn+tokens and name both columns")
        kinds = [input_.kind for input_ in inputs]
        for input_, encoder in zip(inputs, network.encoders, strict=True):
            if not row_width(encoder):
                words = f"match reads the states of residues and atoms, which {input_.encoder} does not give"
                raise UnsupportedError(words, hint="choose -m dmpnn+tokens")
        self.words, self.gamma_3 = kinds.index("sequence") if "sequence" in kinds else 1, gamma_3

    @classmethod
    def network_parts(
        cls, network: Network, *, width: int = 64, gamma_1: float = 5.0, gamma_2: float = 5.0, **_: Any
    ) -> Mapping[str, nn.Module]:
        """The space, and the attention in it."""
        ends = network.encoders
        return {PART: Matcher([row_width(e) or 1 for e in ends], [e.d_out for e in ends], width, gamma_1, gamma_2)}

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the rows of a batch of the losses of both directions and both scores."""
        assert batch.weights is not None
        encoded, n = network.encode(batch, rows=True), len(batch.weights)
        of_row = [torch.arange(n, device=batch.weights.device) if p.of_row is None else p.of_row for p in batch.parts]
        one, two = of_row[self.words], of_row[1 - self.words]
        scores = network.parts[PART](encoded, self.words)
        same = (one[:, None] == one[None]) | (two[:, None] == two[None])
        weights, positive = batch.weights[:, 0], torch.arange(n, device=one.device)
        losses = dict[str, Tensor]()
        for name, score in zip(("rows", "graphs"), scores, strict=True):
            s = self.gamma_3 * score.index_select(0, one).index_select(1, two)
            both = info_nce(s, positive, same).losses + info_nce(s.T, positive, same.T).losses
            losses[name] = (both * weights).sum()
        loss = Loss(losses["rows"] + losses["graphs"], int((weights > 0).sum()), losses)
        for e in encoded:
            loss = loss.with_penalties(e.penalties)
        return loss
