"""A linear layer on concatenated parts, each multiplied before it is gathered or summed where that is less work."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation


@dataclass(frozen=True)
class CodedRows:
    """Rows that take few distinct values: ``table[code]``."""

    table: Float[Tensor, "k d"]  # float [k, d], the distinct rows
    code: Int[Tensor, " n"]  # int64 [n], the distinct row of each row

    def rows(self) -> Float[Tensor, "n d"]:
        """The rows, written out."""
        return self.table.index_select(0, self.code)


@dataclass(frozen=True)
class SummedRows:
    """The sum of what arrives at each target of a relation: ``propagate(h, relation)``, not yet taken."""

    h: Float[Tensor, "{relation.n_source} d"]  # float [n_source, d]
    relation: Relation  # from its rows to the targets


class JoinedLinear(nn.Linear):
    """``W [x_1, x_2, ...] + b`` of parts that are given as they are: rows, coded rows, or sums along a relation.

    A product commutes with a gather and with a sum, so each part is multiplied on the side that has fewer rows. In
    mixed precision coded rows are multiplied, and sums are taken, in single precision at least: bfloat16 has 8 bits,
    and every later step would add up what it rounds.

    Example:
        >>> layer, table = JoinedLinear(5, 2), torch.rand(3, 4)
        >>> x, code = torch.rand(6, 1), torch.tensor([0, 1, 2, 2, 1, 0])
        >>> joined = F.linear(torch.cat([table[code], x], 1), layer.weight, layer.bias)
        >>> bool(torch.allclose(layer(CodedRows(table, code), x), joined, atol=1e-6))
        True
    """

    def forward(self, *parts: Tensor | CodedRows | SummedRows) -> Float[Tensor, "n {self.out_features}"]:
        """Parts of n rows, their widths summing to ``in_features``, to float [n, out_features]."""
        # a whole weight as it is: in mixed precision its bfloat16 copy is made once a step, not once a use
        weights = self.weight.split([_width(part) for part in parts], dim=1) if len(parts) > 1 else [self.weight]
        out = _product(parts[0], weights[0], self.bias)
        for part, weight in zip(parts[1:], weights[1:], strict=True):
            out = out + _product(part, weight, None)
        return out


def _width(part: Tensor | CodedRows | SummedRows) -> int:
    rows = part.table if isinstance(part, CodedRows) else part.h if isinstance(part, SummedRows) else part
    return rows.shape[-1]


def _product(
    part: Tensor | CodedRows | SummedRows, weight: Float[Tensor, "d d_in"], bias: Float[Tensor, " d"] | None
) -> Float[Tensor, "n d"]:
    if isinstance(part, CodedRows):
        with torch.autocast(part.table.device.type, enabled=False):
            table = part.table.to(weight.dtype)  # a layer before may have given it in half precision
            if table.shape[0] <= part.code.shape[0]:
                return F.linear(table, weight, bias).index_select(0, part.code)
            return F.linear(table.index_select(0, part.code), weight, bias)
    if isinstance(part, SummedRows):
        if part.relation.n_source < part.relation.n_target:
            rows = F.linear(part.h, weight)
            out = propagate(rows.to(torch.promote_types(rows.dtype, torch.float32)), part.relation)
            return out if bias is None else out + bias
        return F.linear(propagate(part.h, part.relation), weight, bias)
    return F.linear(part, weight, bias)
