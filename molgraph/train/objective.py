"""What training minimises: raw outputs and scaled labels in, one loss a label out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.train.outputs import Outputs


class Supervised(nn.Module):
    """Squared error for values, cross-entropy for classes; each label by itself, so that callers mask and weigh.

    Regression: ``(raw - y)^2`` on the scaled target; bounded: ``(sigmoid(raw) - y)^2``; binary:
    ``-y log p - (1 - y) log(1 - p)`` with ``p = sigmoid(raw)``; multiclass: ``-log softmax(raw)_y``.

    Args:
        outputs: which output columns belong to which target.
    """

    def __init__(self, outputs: Outputs) -> None:
        super().__init__()
        self.kinds = tuple((t.kind, s.start, s.stop) for t, s in zip(outputs.targets, outputs.slices, strict=True))
        kinds = {kind for kind, _, _ in self.kinds}
        self.single = kinds.pop() if len(kinds) == 1 and kinds != {"multiclass"} else None

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        """Losses of every label.

        Args:
            raw: float [n, d_out].
            y: float [n, t], as ``Outputs.labels`` gives them; missing ones hold 0 and must be masked after.

        Returns:
            float [n, t].
        """
        raw = raw.float()
        if self.single is not None:  # one operation for all columns, however many
            return _loss(self.single, raw, y)
        parts = []
        for j, (kind, start, stop) in enumerate(self.kinds):
            if kind == "multiclass":
                parts.append(F.cross_entropy(raw[:, start:stop], y[:, j].long(), reduction="none")[:, None])
            else:
                parts.append(_loss(kind, raw[:, start:stop], y[:, j : j + 1]))
        return torch.cat(parts, dim=1)


def _loss(kind: str, raw: Tensor, y: Tensor) -> Tensor:
    if kind == "binary":
        return F.binary_cross_entropy_with_logits(raw, y, reduction="none")
    return ((raw.sigmoid() if kind == "bounded" else raw) - y).square()
