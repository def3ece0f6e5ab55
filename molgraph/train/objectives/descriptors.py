"""Pretrain an encoder by multi-task regression of RDKit's descriptors and counts of environments."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import LARGEST, Layers, NotNegative, Range, Share
from molgraph.base.registry import register
from molgraph.chem.descriptors217 import NAMES_217
from molgraph.train.descriptor_labels import DescriptorLabels
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample

N = len(NAMES_217)


@register(
    "objective",
    "descriptors",
    summary="regression of RDKit's 217 descriptors and folded counts of environments",
    paper="Burns et al. 2025",
)
class Descriptors(Objective):
    """Learn what RDKit computes, for pretraining any encoder of molecules.

    Burns et al. 2025, "Deep Learning Foundation Models from Classical Molecular Descriptors" (there 1,613 descriptors
    of Mordred): the state of a molecule predicts all its descriptors, winsorised and standardised; here RDKit's 217,
    and beside them the counts of its Morgan environments of radius 2, folded to ``bits`` columns. The loss of a
    molecule is the mean squared error of its descriptors and ``counts`` times that of its counts; a step learns a
    random share of the columns, a validation part is judged by all.

    Use it where a corpus of ten thousand molecules or more is at hand. Known limits: the vector knows what two
    dimensions say; stereo, where the descriptors see none, is not learned.

    Args:
        network: its one encoder is trained.
        inputs: the one column of molecules that it reads.
        bits: columns of the counts.
        counts: weight of their mean error; that of the descriptors has 1.
        share: of the columns that a step learns.
        layers: hidden layers between state and columns, of the state's width; 0 for a linear map.

    Raises:
        UsageError: the network reads something else than one column of molecules.
    """

    labelled = False
    small = MappingProxyType({"bits": 16})

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        bits: Annotated[int, Range(0, LARGEST, multiple_of=8)] = 1024,
        counts: NotNegative = 1.0,
        share: Share = 0.25,
        layers: Layers = 1,
    ) -> None:
        super().__init__()
        if len(inputs) != 1 or inputs[0].kind != "molecule":
            read = " and ".join(f"{input_.column} ({input_.kind})" for input_ in inputs)
            hint = "name one column of molecules: --input COLUMN (in Python: inputs=[...])"
            raise UnsupportedError(f"descriptors are of one column of molecules, and the model reads {read}", hint=hint)
        self.bits, self.counts, self.share = bits, counts, share
        d = network.encoder.d_out
        self.body = nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(d, d), nn.ReLU())))
        self.columns = nn.Linear(d, N + bits)

    @classmethod
    def row_labels(cls, *, bits: int = 1024, **_: Any) -> DescriptorLabels:
        """The labels of a corpus' molecules."""
        return DescriptorLabels(bits)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the molecules of a batch."""
        assert batch.y is not None and batch.weights is not None
        encoded, weights = network.encoder(batch.parts[0].batch), batch.weights[:, 0]
        h = self.body(encoded.graphs)
        groups = {"descriptors": (0, N)} | ({"counts": (N, N + self.bits)} if self.bits else {})
        chosen = [self._chosen(*columns, state) for columns in groups.values()]
        parts = dict(zip(groups, self._errors(h, batch.y, chosen), strict=True))
        parts = {name: (errors * weights).sum() for name, errors in parts.items()}
        total = parts["descriptors"] + self.counts * parts.get("counts", 0.0)
        return Loss(total, int((weights > 0).sum()), parts).with_penalties(encoded.penalties)

    def _chosen(self, start: int, stop: int, state: StepState) -> Tensor:
        """int64: these columns, or a share of them while training."""
        if not state.training or self.share == 1:
            return torch.arange(start, stop)
        order = torch.randperm(stop - start, generator=torch.Generator().manual_seed(state.step))
        return start + order[: max(round(self.share * (stop - start)), 1)]

    def _errors(self, h: Tensor, y: Tensor, chosen: list[Tensor]) -> list[Tensor]:
        """float [n] for each group of columns: the mean squared error of each molecule over them."""
        columns = torch.cat(chosen).to(h.device)
        weight, bias = self.columns.weight.index_select(0, columns), self.columns.bias.index_select(0, columns)
        y = y.index_select(1, columns)
        known = torch.isfinite(y)
        errors = torch.where(known, F.linear(h, weight, bias) - torch.where(known, y, 0.0), 0.0).square()
        parts = zip(*(values.split([*map(len, chosen)], dim=1) for values in (errors, known)), strict=True)
        return [error.sum(dim=1) / some.sum(dim=1).clamp(min=1) for error, some in parts]
