"""An autoregressive prior of the codes of discrete latent vectors, one code after the other."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


class CodePrior(nn.Module):
    """``p(c) = prod_t p(c_t | c_<t)`` by a GRU, over rows of ``n_columns`` codes.

    Van den Oord et al. 2017, section 3: a prior is fitted to the codes once those are learned. Here it is fitted along
    with them, by codes that no gradient passes through, so the autoencoder learns as without it.

    Args:
        n_codes: choices in each column.
        n_columns: codes of a row.
        d_hidden: width of the states.
    """

    def __init__(self, n_codes: int, n_columns: int, d_hidden: int = 64) -> None:
        super().__init__()
        self.n_columns = n_columns
        self.before = nn.Embedding(n_codes + 1, d_hidden)  # the last one stands before the first column
        self.column = nn.Embedding(n_columns, d_hidden)
        self.gru, self.out = nn.GRU(d_hidden, d_hidden, batch_first=True), nn.Linear(d_hidden, n_codes)

    def forward(self, code: Int[Tensor, "n columns"]) -> Float[Tensor, "n columns"]:
        """``-log p(c_t | c_<t)`` in nats."""
        if not len(code):
            return torch.zeros(code.shape, device=code.device)
        first = torch.full_like(code[:, :1], self.before.num_embeddings - 1)
        h, _ = self.gru(self.before(torch.cat([first, code[:, :-1]], dim=1)) + self.column.weight)
        return F.cross_entropy(self.out(h).float().transpose(1, 2), code, reduction="none")

    @torch.no_grad()
    def sample(self, uniform: Float[Tensor, "n columns"]) -> Int[Tensor, "n columns"]:
        """Rows of codes, each code drawn by a number from 0 to 1."""
        code = torch.full((len(uniform), 1), self.before.num_embeddings - 1, device=uniform.device)
        drawn, state = list[Tensor](), None
        for t in range(self.n_columns if len(uniform) else 0):
            h, state = self.gru(self.before(code) + self.column.weight[t], state)
            below = self.out(h[:, 0]).double().softmax(dim=1).cumsum(dim=1)
            code = torch.searchsorted(below, uniform[:, [t]].double() * below[:, -1:], right=True)
            drawn.append(code := code.clamp(max=below.shape[1] - 1))
        return torch.cat(drawn, dim=1) if drawn else torch.zeros(uniform.shape, dtype=torch.int64)
