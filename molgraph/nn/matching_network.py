"""Matching networks: predict a molecule's class from its similarity to a few labelled molecules, by attention."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

EDGE = 1e-6  # of a probability, whose logit is finite


def attend(
    query: Float[Tensor, "q d"], keys: Float[Tensor, "n d"], values: Float[Tensor, "n v"]
) -> Float[Tensor, "q v"]:
    """``sum_j a_j v_j`` with ``a = softmax(cos(query, keys))``: Vinyals et al. 2016, equation 1."""
    return (F.normalize(query, dim=1) @ F.normalize(keys, dim=1).T).softmax(dim=1) @ values


class MatchingNetwork(nn.Module):
    """Attention of a query over the support, both refined by attention LSTMs that know no order.

    Altae-Tran et al. 2017, "Low Data Drug Discovery with One-Shot Learning", iterative refinement LSTMs. With f' and g'
    the embeddings of query and support, ``z = g'`` and ``dz = dp = 0``, each step is::

        s = sum_j softmax_j(cos(f' + dz, z_j)) z_j        dz = LSTM([dz, s])
        r = sum_j softmax_j(cos(z + dp, g'_j)) g'_j       dp = LSTM([dp, r])       z = r

    and ``p(y = 1) = sum_j softmax_j(cos(f' + dz, g'_j + dp_j)) y_j``. Without steps it is the matching network of
    Vinyals et al. 2016. Embeddings are ``tanh(W h + b)``, as those of the paper's last dense layer are.

    Args:
        d: width of the states h.
        steps: of refinement.
        width: of the embeddings.
    """

    def __init__(self, d: int, steps: int = 3, width: int = 64) -> None:
        super().__init__()
        self.steps, self.embed = steps, nn.Linear(d, width)
        self.query_lstm, self.support_lstm = nn.LSTMCell(width, width), nn.LSTMCell(width, width)

    def refine(
        self, f: Float[Tensor, "q w"], g: Float[Tensor, "n w"]
    ) -> tuple[Float[Tensor, "q w"], Float[Tensor, "n w"]]:
        """Embeddings of query and support after the steps, each in sight of the support."""
        z, query, support = g, (torch.zeros_like(f),) * 2, (torch.zeros_like(g),) * 2
        for _ in range(self.steps):
            s, r = attend(f + query[0], z, z), attend(z + support[0], g, g)
            query, support, z = self.query_lstm(s, query), self.support_lstm(r, support), r
        return f + query[0], g + support[0]

    def forward(
        self, h: Float[Tensor, "n d"], y: Float[Tensor, " n"], query: Float[Tensor, "q d"]
    ) -> Float[Tensor, " q"]:
        """The logit of each query's chance to be active, from states h of the support and their labels, 0 or 1."""
        f, g = self.refine(self.embed(query).tanh(), self.embed(h).tanh())
        return torch.logit(attend(f, g, y[:, None])[:, 0], eps=EDGE)


class FittedMatching(nn.Module):
    """A matching network with the support of each target, whose answers stand in the place of a head's.

    Args:
        network: the matching network.
        d: width of the states.
        columns: of the head, one for each target.
        most: rows of the support at most.
    """

    n: Int[Tensor, ""]
    h: Float[Tensor, "m d"]
    y: Float[Tensor, "m t"]
    known: Bool[Tensor, "m t"]

    def __init__(self, network: MatchingNetwork, d: int, columns: int, most: int) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("n", torch.zeros((), dtype=torch.long))
        self.register_buffer("h", torch.zeros(most, d))
        self.register_buffer("y", torch.zeros(most, columns))
        self.register_buffer("known", torch.zeros(most, columns, dtype=torch.bool))

    @torch.no_grad()
    def keep(self, h: Float[Tensor, "n d"], y: Float[Tensor, "n t"], known: Bool[Tensor, "n t"]) -> None:
        """Keep the support, as much as there is room for: states [n, d], labels and where there are any [n, t]."""
        n = min(len(h), len(self.h))
        self.n.fill_(n)
        for kept, values in ((self.h, h), (self.y, y), (self.known, known)):
            kept[:n] = values[:n].to(kept.dtype)

    def answer(self, head: nn.Module, args: tuple[Any, ...], raw: Float[Tensor, "q t"]) -> Float[Tensor, "q t"]:
        """After the head's pass: logits of the targets that have a support, float [q, t]; raw ones of others."""
        n = int(self.n)
        columns = [*raw.unbind(dim=1)]
        for t, rows in enumerate(self.known[:n].T):
            if rows.any():
                h, y = self.h[:n][rows], self.y[:n][rows, t]
                columns[t] = self.network(h, y, args[0].to(h.dtype)).to(raw.dtype) + 0 * columns[t]
        return torch.stack(columns, dim=1)
